//! Configurations and files that come with a load.

use std::collections::HashMap;

use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::model_repository_parameter::ParameterChoice;
use galatea_server::grpc::proto::inference::{
    ModelRepositoryParameter, RepositoryModelLoadRequest,
};
use serde_json::{Value, json};

use super::client::{json_of, post};
use super::{Fixture, start};

/// A configuration of a sample, as the server tells it, with a further parameter.
fn config(fixture: &Fixture, parameter: Option<&str>) -> String {
    let mut config = super::client::get(fixture.http(), "/v2/models/simple/config");
    if let Some(name) = parameter {
        config["parameters"] = json!({name: {"string_value": "/usr/bin/python3"}});
    }
    config.to_string()
}

fn load(fixture: &Fixture, parameters: &Value) -> (u16, String) {
    let body = json!({"parameters": parameters});
    let (status, _, answer) = post(fixture.http(), "/v2/repository/models/simple/load", &body);
    (status, answer)
}

fn load_over_grpc(fixture: &Fixture, config: &str) -> Result<(), tonic::Status> {
    let choice = Some(ParameterChoice::StringParam(config.to_owned()));
    let parameter = ModelRepositoryParameter { parameter_choice: choice };
    let request = RepositoryModelLoadRequest {
        model_name: "simple".to_owned(),
        parameters: HashMap::from([("config".to_owned(), parameter)]),
        ..RepositoryModelLoadRequest::default()
    };
    let address = fixture.server.addresses().grpc.unwrap();
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        client.repository_model_load(request).await.map(|_| ())
    })
}

#[test]
fn loads_bring_nothing_where_that_is_not_allowed() {
    for argument in ["--allow-model-overrides=false", "--metrics-address=0.0.0.0"] {
        let fixture = start(&[argument]);
        let config = config(&fixture, None);
        for parameters in [
            json!({"config": config}),
            json!({"config": config, "file:1/model.onnx": "AAAA"}),
            json!({"file:1/model.py": "AAAA"}),
        ] {
            let (status, answer) = load(&fixture, &parameters);
            assert_eq!(status, 403, "{answer}");
            let text = json_of(&answer)["error"].as_str().unwrap().to_owned();
            assert!(text.contains("'simple'") && text.contains("--allow-model-overrides=true"));
        }
        let status = load_over_grpc(&fixture, &config).unwrap_err();
        assert_eq!(status.code(), tonic::Code::PermissionDenied, "{status:?}");
        assert_eq!(load(&fixture, &json!({})).0, 200);
        assert!(fixture.stop());
    }
    let fixture = start(&["--metrics-address=0.0.0.0", "--allow-model-overrides=true"]);
    let (status, answer) = load(&fixture, &json!({"config": config(&fixture, None)}));
    assert_eq!(status, 200, "{answer}");
    assert!(fixture.stop());
}

#[test]
fn loads_never_name_the_programs_that_run_a_model() {
    let fixture = start(&["--allow-model-overrides=true"]);
    for name in ["EXECUTION_ENV_PATH", "PYTHON_EXECUTABLE"] {
        let config = config(&fixture, Some(name));
        let spaced = config.replace(':', " :\t");
        for parameters in [
            json!({"config": config}),
            json!({"config": spaced}),
            json!({"config": config, "file:1/model.py": "AAAA"}),
        ] {
            let (status, answer) = load(&fixture, &parameters);
            assert!(status == 403 && answer.contains(name), "{answer}");
        }
        let status = load_over_grpc(&fixture, &config).unwrap_err();
        assert_eq!(status.code(), tonic::Code::PermissionDenied, "{status:?}");
    }
    // Parameters of other names are as good as before.
    let (status, answer) = load(&fixture, &json!({"config": config(&fixture, Some("other"))}));
    assert_eq!(status, 200, "{answer}");
    load_over_grpc(&fixture, &config(&fixture, None)).unwrap();
    assert!(fixture.stop());
}
