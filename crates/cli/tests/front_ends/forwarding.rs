//! Forwarded headers as a backend sees them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::ModelInferRequest;
use galatea_server::grpc::proto::inference::model_infer_request::InferInputTensor;
use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::request::ParameterValue;
use galatea_serving::{Core, CoreOptions, ServingError};
use tonic::metadata::MetadataValue;

use super::{Fixture, exchange, flags};

type Seen = Arc<Mutex<Vec<Vec<(String, ParameterValue)>>>>;

/// Keeps the parameters of each request, and refuses it.
#[derive(Debug, Clone)]
struct Witness(Seen);

impl ModelBackend for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, _: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl BackendModel for Witness {
    fn io(&self) -> Option<&ModelIo> {
        None
    }

    fn instance(&self, _: &InstancePlacement) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for Witness {
    fn execute(&mut self, payload: BatchPayload) {
        let parameters = payload.requests().iter().map(|asked| asked.request.parameters.clone());
        self.0.lock().unwrap().extend(parameters);
        payload.fail(&ServingError::unavailable("seen"));
    }
}

const CONFIG: &str = r#"name: "witness" backend: "witness" max_batch_size: 0
    input { name: "I" data_type: TYPE_INT32 dims: 1 }
    output { name: "O" data_type: TYPE_INT32 dims: 1 }
    instance_group { kind: KIND_CPU count: 1 }"#;

fn start(seen: &Seen) -> Fixture {
    let repository = Path::new(env!("CARGO_TARGET_TMPDIR")).join("forwarding");
    let model = repository.join("witness");
    std::fs::create_dir_all(model.join("1")).unwrap();
    std::fs::write(model.join("config.pbtxt"), CONFIG).unwrap();
    let options = CoreOptions { repositories: vec![repository], ..CoreOptions::default() };
    let core = Core::start(options, vec![Arc::new(Witness(Arc::clone(seen)))]).unwrap();
    let pattern = "-header-forward-pattern=(my_header.*|timeout_x)";
    Fixture::on(core, &flags(&[&format!("--http{pattern}"), &format!("--grpc{pattern}")]))
}

fn texts(pairs: &[(&str, &str)]) -> Vec<(String, ParameterValue)> {
    let text = |(key, value): &(&str, &str)| {
        ((*key).to_owned(), ParameterValue::String((*value).to_owned()))
    };
    pairs.iter().map(text).collect()
}

#[test]
fn headers_reach_the_backend_over_http() {
    let seen = Seen::default();
    let fixture = start(&seen);
    let body = r#"{"parameters":{"my_header_1":"body","a":"b"},"inputs":[{"name":"I","datatype":"INT32","shape":[1],"data":[1]}]}"#;
    for (headers, expected) in [
        ("", &[("my_header_1", "body"), ("a", "b")][..]),
        (
            "other: no\r\nX-My_Header: 1\r\n",
            &[("my_header_1", "body"), ("a", "b"), ("X-My_Header", "1")],
        ),
        ("my_header_1: x\r\nmy_header_1: y\r\n", &[("a", "b"), ("my_header_1", "y")]),
    ] {
        let length = body.len();
        let request = format!(
            "POST /v2/models/witness/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        let answer = exchange(fixture.http(), request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert_eq!(seen.lock().unwrap().pop(), Some(texts(expected)));
    }
    assert!(fixture.stop());
}

#[test]
fn metadata_reach_the_backend_over_grpc() {
    let seen = Seen::default();
    let fixture = start(&seen);
    let input = InferInputTensor {
        name: "I".to_owned(),
        datatype: "INT32".to_owned(),
        shape: vec![1],
        ..InferInputTensor::default()
    };
    let message = ModelInferRequest {
        model_name: "witness".to_owned(),
        inputs: vec![input],
        raw_input_contents: vec![vec![1, 0, 0, 0].into()],
        ..ModelInferRequest::default()
    };
    fixture.runtime.block_on(async {
        let mut client = connect(fixture.server.addresses().grpc.unwrap()).await.unwrap();
        let mut call = tonic::Request::new(message.clone());
        call.metadata_mut().insert("my_header_1", MetadataValue::from_static("v1"));
        call.metadata_mut().insert("other", MetadataValue::from_static("no"));
        assert_eq!(client.model_infer(call).await.unwrap_err().message(), "seen");
        assert_eq!(seen.lock().unwrap().pop(), Some(texts(&[("my_header_1", "v1")])));

        let requests = tonic::codegen::tokio_stream::once(message);
        let mut call = tonic::Request::new(requests);
        call.metadata_mut().insert("timeout_x", MetadataValue::from_static("5"));
        let mut answers = client.model_stream_infer(call).await.unwrap().into_inner();
        assert_eq!(answers.message().await.unwrap().unwrap().error_message, "seen");
        assert_eq!(seen.lock().unwrap().pop(), Some(texts(&[("timeout_x", "5")])));
    });
    assert!(fixture.stop());
}
