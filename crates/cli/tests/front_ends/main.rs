//! The front ends from outside: a server on the sample models, sockets and bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod access;
mod bounds;
mod calls;
mod chat;
mod chat_templates;
mod client;
mod clouds;
mod draining;
mod encoders;
mod forwarding;
mod framing;
mod generation;
mod http2;
mod keys;
mod openai;
mod overrides;
mod pages;
mod profiling;
mod quickstart;
mod recorded_kinds;
mod remote_chat;
mod residency;
mod speller;
mod terminal_chat;
mod texts;
mod top;
mod triton_rules;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use galatea::Engine;
use galatea_cli::flags::{ParsedCommand, ServerFlags};
use galatea_cli::grpc_client::connect;
use galatea_cli::server_options::server_options;
use galatea_server::grpc::proto::inference::model_infer_request::InferInputTensor;
use galatea_server::grpc::proto::inference::{
    ModelInferRequest, ModelReadyRequest, ServerLiveRequest, ServerReadyRequest,
};
use galatea_server::server::RunningServer;
use galatea_serving::{ControlMode, Core, CoreOptions};
use tokio::runtime::Runtime;

use client::{exchange, parts, request, socket};

/// A server with its runtime; dropped in this order.
struct Fixture {
    server: RunningServer,
    runtime: Runtime,
}

fn flags(arguments: &[&str]) -> ServerFlags {
    let free = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
    let arguments: Vec<String> = free.iter().chain(arguments).map(|&text| text.into()).collect();
    match ServerFlags::parse(&arguments, false).unwrap() {
        ParsedCommand::Serve(flags) => flags,
        ParsedCommand::Help => panic!("no flags"),
    }
}

/// Opens the front ends that flags ask for.
fn open(core: Arc<Core>, flags: &ServerFlags) -> Result<RunningServer, String> {
    RunningServer::start(core, Engine::new(), &server_options(flags)?)
}

/// Checks flags as the program does before it loads models.
fn check(flags: &ServerFlags) -> Result<(), String> {
    server_options(flags)?.check()
}

fn core() -> Arc<Core> {
    samples(&["simple", "simple_string", "identity_fp32", "digits"])
}

/// Some models of the samples.
fn samples(names: &[&str]) -> Arc<Core> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models");
    let load = names.iter().map(|&name| name.to_owned()).collect();
    let options = CoreOptions {
        repositories: vec![models],
        control_mode: ControlMode::Explicit { load },
        ..CoreOptions::default()
    };
    Core::start(options, Engine::new().backends(None)).unwrap()
}

/// All models of a repository.
fn repository(folder: &Path) -> Arc<Core> {
    let options = CoreOptions { repositories: vec![folder.to_owned()], ..CoreOptions::default() };
    Core::start(options, Engine::new().backends(None)).unwrap()
}

fn start(arguments: &[&str]) -> Fixture {
    Fixture::on(core(), &flags(arguments))
}

impl Fixture {
    /// A server on the models of a core.
    fn on(core: Arc<Core>, flags: &ServerFlags) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = {
            let _inside = runtime.enter();
            open(core, flags).unwrap()
        };
        Self { server, runtime }
    }

    fn http(&self) -> SocketAddr {
        self.server.addresses().http.unwrap()
    }

    fn stop(self) -> bool {
        self.runtime.block_on(self.server.stop(Duration::from_secs(10))).complete
    }
}

fn infer(address: SocketAddr, body: &str) -> String {
    exchange(address, &request("POST", "/v2/models/simple/infer", body))
}

const SIMPLE: &str = r#"{"inputs":[
    {"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]},
    {"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]}"#;

#[test]
fn an_inference_over_json_gives_sums_and_differences() {
    let fixture = start(&[]);
    let answer = infer(fixture.http(), SIMPLE);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"data\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"), "{answer}");
    assert!(answer.contains("\"data\":[-1,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14]"), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn every_path_answers_as_the_table_says() {
    let fixture = start(&[]);
    for (method, path, status, content) in [
        ("GET", "/v2/health/live", 200, "text/plain"),
        ("GET", "/v2/health/ready", 200, "text/plain"),
        ("HEAD", "/v2/health/live", 405, "text/plain"),
        ("POST", "/v2", 405, "application/json"),
        ("GET", "/v2", 200, "application/json"),
        ("GET", "/v2/models/simple", 200, "application/json"),
        ("GET", "/v2/models/simple/config", 200, "application/json"),
        ("GET", "/v2/models/simple/stats", 200, "application/json"),
        ("GET", "/v2/models/stats", 200, "application/json"),
        ("GET", "/v2/models/simple/ready", 200, "text/plain"),
        ("GET", "/v2/models/nope/ready", 400, "text/plain"),
        ("GET", "/v2/models/nope", 404, "application/json"),
        ("POST", "/v2/repository/index", 200, "application/json"),
        ("GET", "/v2/repository/index", 405, "application/json"),
        ("GET", "/v2/health/live/", 404, "text/plain"),
        ("POST", "/v2/models/nope/infer", 404, "text/plain"),
    ] {
        let answer = exchange(fixture.http(), &request(method, path, ""));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
        assert!(answer.contains(&format!("Content-Type: {content}\r\n")), "{path}: {answer}");
    }
    assert!(fixture.stop());
}

#[test]
fn hostile_bodies_are_refused_and_the_server_goes_on() {
    let fixture = start(&["--http-max-input-size=100000"]);
    let address = fixture.http();
    let tensor = |name: &str, datatype: &str, shape: &str, data: &str| {
        format!(
            r#"{{"inputs":[{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":{data}}}]}}"#
        )
    };
    let deep = format!("{{\"inputs\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let long = format!("{{\"id\":\"{}\"}}", "x".repeat(200_000));
    for (body, status, text) in [
        (tensor("INPUT0", "INT32", "[4611686018427387904,4]", "[1]"), 400, "invalid shape"),
        (tensor("INPUT0", "INT32", "[9223372036854775807]", "[1]"), 400, "byte size overflow"),
        (tensor("INPUT0", "INT32", "[1000000,1000000]", "[1]"), 400, "exceeds the maximum"),
        (tensor("INPUT0", "INT32", "[-1]", "[1]"), 500, "non-unsigned-integer"),
        (tensor("NOPE", "INT32", "[1]", "[1]"), 400, "for model 'simple'"),
        (tensor("INPUT0", "FP32", "[1]", "[\"x\"]"), 500, "non-number as double"),
        (tensor("INPUT0", "FLOAT", "[1]", "[1]"), 400, "invalid datatype"),
        (deep, 400, "JSON nesting depth exceeds maximum allowed limit (100)"),
        (long, 400, "exceeds the maximum allowed input size of 100000 bytes"),
        ("{\"inputs\":".to_owned(), 500, "failed to parse the request JSON buffer"),
        ("\u{0}\u{1}".to_owned(), 500, "The document is empty."),
        (String::new(), 400, "Raw request must only have 1 input"),
    ] {
        let answer = infer(address, &body);
        let start: String = body.chars().take(80).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{start}: {answer}");
        assert!(answer.contains(text), "{start}: {answer}");
    }
    assert!(infer(address, SIMPLE).starts_with("HTTP/1.1 200"));
    assert!(fixture.stop());
}

#[test]
fn a_body_beyond_every_limit_is_refused_by_its_head() {
    let fixture = start(&[]);
    let huge = "POST /v2/repository/index HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n";
    assert!(exchange(fixture.http(), huge.as_bytes()).contains("exceeds the maximum"));
    assert!(infer(fixture.http(), SIMPLE).starts_with("HTTP/1.1 200"));
    assert!(fixture.stop());
}

#[test]
fn a_connection_serves_many_requests_in_every_framing() {
    let fixture = start(&[]);
    let mut stream = socket(fixture.http());
    let (head, tail) = SIMPLE.split_at(30);
    let chunked = format!(
        "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{head}\r\n{:x};ext=1\r\n{tail}\r\n0\r\nTrailer: x\r\n\r\n",
        head.len(),
        tail.len()
    );
    let plain = "GET http://host/v2/health/live?x=1 HTTP/1.1\r\nHost: x\r\n\r\n";
    let last = "GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("{chunked}{plain}{chunked}{last}").as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 4, "{answers}");
    assert!(fixture.stop());
}

#[test]
fn a_client_that_waits_for_leave_gets_it() {
    let fixture = start(&[]);
    let mut stream = socket(fixture.http());
    let head = format!(
        "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        SIMPLE.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut leave = [0; 25];
    stream.read_exact(&mut leave).unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(SIMPLE.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn binary_tensors_go_in_and_out_as_they_are() {
    let fixture = start(&[]);
    let json = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,16],"parameters":{"binary_data_size":64}}],"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}"#;
    let tensor: Vec<u8> = (0..16).flat_map(|i| (i as f32 * 0.5).to_le_bytes()).collect();
    let mut bytes = format!(
        "POST /v2/models/identity_fp32/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Inference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n{json}",
        json.len(),
        json.len() + 64
    )
    .into_bytes();
    bytes.extend_from_slice(&tensor);
    let mut stream = socket(fixture.http());
    stream.write_all(&bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&tensor), "{}", String::from_utf8_lossy(&answer));
    assert!(fixture.stop());
}

#[test]
fn a_taken_port_is_named_as_triton_names_it() {
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let core = core();
    for (door, title) in [("http", "HTTP"), ("grpc", "GRPC"), ("metrics", "Metrics")] {
        let error = open(Arc::clone(&core), &flags(&[&format!("--{door}-port={port}")]));
        assert_eq!(
            error.map(|_| ()).unwrap_err(),
            format!(
                "failed to start {title} service: Unavailable - Socket '127.0.0.1:{port}' already \
                 in use "
            )
        );
    }
    core.shutdown(Duration::ZERO);
}

#[test]
fn a_server_that_stops_answers_what_it_has_begun() {
    let fixture = start(&[]);
    let address = fixture.http();
    let mut stream = socket(address);
    let head = format!(
        "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        SIMPLE.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    while fixture.server.app().open_requests() == 0 {
        std::thread::yield_now();
    }
    let app = Arc::clone(fixture.server.app());
    let late = std::thread::spawn(move || {
        while !app.is_stopping() {
            std::thread::yield_now();
        }
        stream.write_all(SIMPLE.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(fixture.stop());
    let answer = late.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(TcpStream::connect(address).is_err(), "the front end is still open");
}

fn simple_request() -> ModelInferRequest {
    let input = |name: &str| InferInputTensor {
        name: name.to_owned(),
        datatype: "INT32".to_owned(),
        shape: vec![1, 16],
        ..InferInputTensor::default()
    };
    ModelInferRequest {
        model_name: "simple".to_owned(),
        id: "7".to_owned(),
        inputs: vec![input("INPUT0"), input("INPUT1")],
        raw_input_contents: vec![vec![1; 64].into(), vec![0; 64].into()],
        ..ModelInferRequest::default()
    }
}

#[test]
fn calls_over_grpc_are_answered() {
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        assert!(client.server_live(ServerLiveRequest {}).await.unwrap().into_inner().live);
        assert!(client.server_ready(ServerReadyRequest {}).await.unwrap().into_inner().ready);
        let unknown = ModelReadyRequest { name: "nope".to_owned(), version: String::new() };
        assert!(!client.model_ready(unknown).await.unwrap().into_inner().ready);
        let answer = client.model_infer(simple_request()).await.unwrap().into_inner();
        assert_eq!((answer.id.as_str(), answer.outputs.len()), ("7", 2));
        assert_eq!(answer.raw_output_contents, [vec![1_u8; 64], vec![1; 64]]);
    });
    assert!(fixture.stop());
}

#[test]
fn hostile_messages_over_grpc_are_refused() {
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    type Change = fn(&mut ModelInferRequest);
    let cases: [(&str, Change, tonic::Code); 7] = [
        ("2^63 elements", |m| m.inputs[0].shape = vec![1 << 62, 16], tonic::Code::InvalidArgument),
        ("negative", |m| m.inputs[0].shape = vec![-1, 16], tonic::Code::InvalidArgument),
        ("short", |m| m.raw_input_contents[0] = vec![0; 3].into(), tonic::Code::InvalidArgument),
        ("absent", |m| m.raw_input_contents.clear(), tonic::Code::InvalidArgument),
        ("type", |m| m.inputs[0].datatype = "WORDS".to_owned(), tonic::Code::InvalidArgument),
        ("twice", |m| m.inputs[1].name = "INPUT0".to_owned(), tonic::Code::InvalidArgument),
        ("model", |m| m.model_name = "nope".to_owned(), tonic::Code::NotFound),
    ];
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        for (what, change, code) in cases {
            let mut message = simple_request();
            change(&mut message);
            let status = client.model_infer(message).await.unwrap_err();
            assert_eq!(status.code(), code, "{what}: {}", status.message());
        }
        client.model_infer(simple_request()).await.unwrap();
    });
    assert!(fixture.stop());
}

#[test]
fn metrics_count_what_was_asked() {
    let fixture = start(&[]);
    assert!(infer(fixture.http(), SIMPLE).starts_with("HTTP/1.1 200"));
    let metrics = fixture.server.addresses().metrics.unwrap();
    let page = exchange(metrics, &request("GET", "/metrics", ""));
    assert!(page.contains("nv_inference_count{model=\"simple\",version=\"1\"} 1\n"), "{page}");
    assert!(page.contains("# TYPE nv_inference_request_failure counter\n"), "{page}");
    let other = exchange(metrics, &request("GET", "/foo", ""));
    assert!(other.starts_with("HTTP/1.1 200") && other.ends_with("\r\n\r\n"), "{other}");
    assert!(fixture.stop());
}
