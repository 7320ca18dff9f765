//! The front ends for SageMaker and Vertex AI.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{check, open};
use galatea_cli::flags::{ParsedCommand, ServerFlags};
use tokio::runtime::Runtime;

use super::{Fixture, SIMPLE, core, exchange, request};

/// A server whose other front ends stay closed.
fn start(door: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Fixture {
    Fixture::on(core(), &flags(door, arguments, variables))
}

fn flags(door: &str, arguments: &[&str], variables: &[(&str, &str)]) -> ServerFlags {
    let door = [format!("--allow-{door}=true"), format!("--{door}-port=0")];
    let closed = ["--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"];
    let arguments = closed.iter().chain(arguments).map(|&text| text.to_owned());
    let arguments: Vec<String> = door.into_iter().chain(arguments).collect();
    let environment = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    match ServerFlags::parse_in(&arguments, false, environment).unwrap() {
        ParsedCommand::Serve(flags) => flags,
        ParsedCommand::Help => panic!("no flags"),
    }
}

fn with_headers(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// An inference in binary, and how long its JSON is.
fn binary() -> (Vec<u8>, usize) {
    let json = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,16],"parameters":{"binary_data_size":64}}],"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}"#;
    ([json.as_bytes(), &[0x40; 64]].concat(), json.len())
}

#[test]
fn sagemaker_pings_and_invokes_the_one_model() {
    let variables = [("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "simple")];
    let fixture = start("sagemaker", &[], &variables);
    let address = fixture.server.addresses().sagemaker.unwrap();
    for (method, path, status) in [
        ("GET", "/ping", 200),
        ("POST", "/ping", 405),
        ("GET", "/invocations", 405),
        ("GET", "/v2/health/ready", 400),
        ("GET", "/ping/", 400),
        ("GET", "/models", 200),
        ("PUT", "/models", 400),
        ("DELETE", "/models", 404),
        ("GET", "/models/none", 404),
        ("DELETE", "/models/none", 404),
        ("POST", "/models/none/invoke", 404),
    ] {
        let answer = exchange(address, &request(method, path, ""));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
    }
    let answer = exchange(address, &request("POST", "/invocations", SIMPLE));
    assert!(answer.contains("\"data\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"), "{answer}");
    // Nothing is compressed, and a coding is not looked at.
    let coded = "Content-Encoding: br\r\nAccept-Encoding: gzip\r\n";
    let answer = exchange(address, &with_headers("POST", "/invocations", coded, SIMPLE.as_bytes()));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("Content-Encoding"), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn sagemaker_tells_lengths_in_content_types() {
    let variables = [("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "identity_fp32")];
    let fixture = start("sagemaker", &[], &variables);
    let address = fixture.server.addresses().sagemaker.unwrap();
    let mime = "application/vnd.sagemaker-triton.binary+json;json-header-size=";
    let (body, json) = binary();
    let ask = |length: &str| {
        let header = format!("Content-Type: {mime}{length}\r\n");
        exchange(address, &with_headers("POST", "/invocations", &header, &body))
    };
    let answer = ask(&json.to_string());
    let (head, content) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.split_once(mime).unwrap().1.split_once("\r\n").unwrap().0;
    let (json, tensor) = content.split_at(length.parse().unwrap());
    assert!(json.ends_with('}') && tensor == "@".repeat(64), "{answer}");
    assert!(!head.contains("Inference-Header-Content-Length"), "{head}");
    let answer = ask("5000");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("inference header size should be in range"), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn sagemaker_generates_where_the_environment_says_so() {
    let variables = [
        ("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "identity_fp32"),
        ("SAGEMAKER_TRITON_INFERENCE_TYPE", "generate"),
    ];
    let fixture = start("sagemaker", &[], &variables);
    let address = fixture.server.addresses().sagemaker.unwrap();
    let numbers = [0.5; 16].map(|number: f64| number.to_string()).join(",");
    let body = format!("{{\"INPUT0\":[{numbers}]}}");
    let answer = exchange(address, &request("POST", "/invocations", &body));
    assert!(answer.contains(&format!("{{\"OUTPUT0\":[{numbers}]")), "{answer}");
    assert!(fixture.stop());
}

/// A copy of the sample in a folder of its own, as SageMaker unpacks it.
fn archive(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("galatea-{name}-{}", std::process::id()));
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/simple");
    fs::create_dir_all(root.join("model/1")).unwrap();
    for file in ["config.pbtxt", "1/model.onnx"] {
        if sample.join(file).exists() {
            fs::copy(sample.join(file), root.join("model").join(file)).unwrap();
        }
    }
    root
}

fn load(address: SocketAddr, name: &str, url: &Path) -> String {
    let body = format!("{{\"model_name\":\"{name}\",\"url\":\"{}\"}}", url.display());
    exchange(address, &request("POST", "/models", &body))
}

#[test]
fn sagemaker_loads_and_unloads_models() {
    let fixture = start("sagemaker", &[], &[]);
    let address = fixture.server.addresses().sagemaker.unwrap();
    let get = |method: &str, path: &str| exchange(address, &request(method, path, ""));
    let root = archive("hosted");
    let folder = root.join("model");
    let answer = load(address, "m1", &folder);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let described = format!("{{\"modelName\":\"m1\",\"modelUrl\":\"{}\"}}", root.display());
    assert!(get("GET", "/models").ends_with(&format!("{{\"models\":[{described}]}}")));
    assert!(get("GET", "/models/m1").ends_with(&described));
    let answer = exchange(address, &request("POST", "/models/m1/invoke", SIMPLE));
    assert!(answer.contains("\"model_name\":\"m1\""), "{answer}");
    assert!(answer.contains("\"data\":[1,2,3,4,"), "{answer}");
    let answer = exchange(address, &request("POST", "/models/m1/invoke", "{"));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");

    let other = archive("other");
    for (folder, text) in
        [(&root, "has already been registered"), (&other, "a conflicting mapping for 'm1'")]
    {
        let answer = load(address, "m1", &folder.join("model"));
        assert!(answer.starts_with("HTTP/1.1 409") && answer.contains(text), "{answer}");
    }
    assert!(load(address, "m2", &folder).starts_with("HTTP/1.1 409"));
    for (url, text) in [("/proc/self", "a folder of the system"), ("/none", "repository not found")]
    {
        let answer = load(address, "m3", Path::new(url));
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(text), "{answer}");
    }
    let broken = archive("broken");
    fs::write(broken.join("model/1/model.onnx"), "no model").unwrap();
    for _ in 0..2 {
        // The second attempt finds nothing of the first.
        let answer = load(address, "m4", &broken.join("model"));
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("load failed for model 'm4'"), "{answer}");
    }

    assert!(get("DELETE", "/models/m1").starts_with("HTTP/1.1 200"));
    assert!(get("GET", "/models/m1").starts_with("HTTP/1.1 404"));
    assert!(get("GET", "/models").ends_with("{\"models\":[]}"));
    assert!(get("POST", "/models/m1/invoke").starts_with("HTTP/1.1 404"));
    let named = with_headers(
        "POST",
        "/models",
        "X-Amzn-SageMaker-Target-Model: archive.tar.gz\r\n",
        format!("{{\"model_name\":\"m1\",\"url\":\"{}\"}}", folder.display()).as_bytes(),
    );
    assert!(exchange(address, &named).starts_with("HTTP/1.1 200"));
    let answer = exchange(address, &request("POST", "/models/m1/invoke", SIMPLE));
    assert!(answer.contains("\"model_name\":\"archive.tar.gz\""), "{answer}");
    assert!(fixture.stop());
    for root in [root, broken, other] {
        fs::remove_dir_all(root).unwrap();
    }
}

const ROUTES: [(&str, &str); 2] = [("AIP_PREDICT_ROUTE", "/predict"), ("AIP_HEALTH_ROUTE", "/fit")];

#[test]
fn vertex_ai_has_two_routes_and_redirections() {
    let fixture = start("vertex-ai", &["--vertex-ai-default-model=simple"], &ROUTES);
    let address = fixture.server.addresses().vertex_ai.unwrap();
    for (method, path, status) in [
        ("GET", "/fit", 200),
        ("POST", "/fit", 405),
        ("GET", "/predict", 405),
        ("GET", "/v2/health/ready", 400),
        ("POST", "/predict/", 400),
    ] {
        let answer = exchange(address, &request(method, path, ""));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
    }
    let answer = exchange(address, &request("POST", "/predict", SIMPLE));
    assert!(answer.contains("\"data\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"), "{answer}");
    let redirect = |method: &str, to: &str, body: &str| {
        let header = format!("X-Vertex-Ai-Triton-Redirect: {to}\r\n");
        exchange(address, &with_headers(method, "/predict", &header, body.as_bytes()))
    };
    for (to, status, text) in [
        ("v2", 200, "\"extensions\""),
        ("v2/health/live", 200, ""),
        ("v2/models/simple", 200, "\"platform\""),
        ("v2/models/simple/config", 200, "\"max_batch_size\""),
        ("v2/models/stats", 200, "\"model_stats\""),
        ("v2/repository/index", 200, "\"state\":\"READY\""),
        ("v2/systemsharedmemory/status", 200, "[]"),
        ("metrics", 200, "nv_inference_count"),
        ("v2/repository/models/simple/unload", 403, "error"),
        ("v2/systemsharedmemory/region/r/register", 403, "error"),
        ("v2/logging", 400, ""),
        ("v2/nothing", 400, ""),
    ] {
        let answer = redirect("POST", to, "");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{to}: {answer}");
        assert!(answer.contains(text), "{to}: {answer}");
    }
    assert!(redirect("GET", "v2", "").starts_with("HTTP/1.1 405"));
    assert!(redirect("POST", "v2/models/simple/infer", SIMPLE).contains("\"OUTPUT1\""));
    let (body, json) = binary();
    let headers = format!(
        "X-Vertex-Ai-Triton-Redirect: v2/models/identity_fp32/infer\r\n\
         Content-Type: application/vnd.vertex-ai-triton.binary+json;json-header-size={json}\r\n"
    );
    let answer = exchange(address, &with_headers("POST", "/predict", &headers, &body));
    assert!(answer.contains("Inference-Header-Content-Length"), "{answer}");
    assert!(answer.ends_with(&"@".repeat(64)), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn vertex_ai_says_at_the_start_what_it_misses() {
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let core = core();
    let no_health = &ROUTES[..1];
    for (arguments, variables, text) in [
        (&[][..], &[][..], "AIP_PREDICT_ROUTE is not defined for Vertex AI endpoint"),
        (&[], no_health, "AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint"),
        (&[], &ROUTES, "Expect the model repository contains only a single model"),
        (&["--vertex-ai-default-model=none"], &ROUTES, "default model 'none' is loaded"),
    ] {
        let flags = flags("vertex-ai", arguments, variables);
        let error = open(Arc::clone(&core), &flags).map(|_| ()).unwrap_err();
        if text.contains("_ROUTE") {
            assert_eq!(check(&flags), Err(error.clone()));
        }
        assert!(error.starts_with("failed to start Vertex AI service: Invalid argument - "));
        assert!(error.contains(text), "{error}");
    }
    core.shutdown(std::time::Duration::ZERO);
}
