//! Keys of clients at every front end: who is let in, what a key opens, and its limits.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::{
    ModelReadyRequest, RepositoryIndexRequest, ServerLiveRequest,
};
use serde_json::json;
use tonic::codegen::tokio_stream::{self, StreamExt};
use tonic::metadata::MetadataValue;

use crate::client::{exchange, json_of, parts, socket};
use crate::speller::{self, write_checkpoint};
use crate::{Fixture, SIMPLE, check, core, flags, simple_request};

/// The key that opens everything.
const ROOT: &str = "Authorization: Bearer root-key-of-this-test\r\n";

const KEYS: &str = "# keys of this test\n\
    root:root-key-of-this-test\n\
    infer:infer-key-of-this-test groups=inference\n\
    few:few-key-of-this-test requests-per-minute=2\n\
    one:sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD concurrency=1\n\
    talker:talker-key-of-this-test tokens-per-minute=10\n";

struct KeyFile {
    _folder: tempfile::TempDir,
    flag: String,
}

fn key_file(text: &str, mode: u32) -> KeyFile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    KeyFile { flag: format!("--api-key-file={}", path.display()), _folder: folder }
}

fn start(arguments: &[&str]) -> Fixture {
    let file = key_file(KEYS, 0o600);
    Fixture::on(core(), &flags(&[&[file.flag.as_str()], arguments].concat()))
}

fn ask(address: SocketAddr, line: &str, headers: &str, body: &str) -> (u16, String, String) {
    let request = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    parts(&exchange(address, request.as_bytes()))
}

#[test]
fn every_front_end_but_health_asks_for_a_key() {
    let fixture = start(&["--openai-port=0"]);
    let addresses = fixture.server.addresses();
    let doors = [fixture.http(), addresses.openai.unwrap(), addresses.metrics.unwrap()];
    let [http, openai, metrics] = doors;
    for (address, line) in [
        (http, "GET /v2/health/live"),
        (http, "GET /v2/health/ready"),
        (http, "GET /health"),
        (openai, "GET /health/ready"),
    ] {
        assert_eq!(ask(address, line, "", "").0, 200, "{line}");
    }
    for (address, line) in [
        (http, "GET /v2"),
        (http, "GET /v2/models/simple/ready"),
        (http, "POST /v2/models/simple/infer"),
        (http, "POST /v2/repository/index"),
        (http, "GET /nothing/there"),
        (http, "GET /v1/models"),
        (openai, "GET /v1/models"),
        (openai, "POST /tokenize"),
        (metrics, "GET /metrics"),
        (metrics, "GET /other"),
    ] {
        for headers in [
            "",
            "Authorization: Bearer wrong\r\n",
            "x-api-key: wrong\r\n",
            "Authorization: Basic cm9vdA==\r\n",
        ] {
            let (status, head, body) = ask(address, line, headers, "");
            assert_eq!(status, 401, "{line} {headers}");
            assert!(head.contains("\r\nWWW-Authenticate: Bearer"), "{head}");
            let error = &json_of(&body)["error"];
            if line.contains("/v1/") || address == openai {
                assert_eq!(error["code"], "invalid_api_key", "{body}");
                assert_eq!(error["type"], "invalid_request_error", "{body}");
            } else {
                assert!(error.as_str().is_some_and(|text| text.contains("key")), "{body}");
            }
        }
        let (status, ..) = ask(address, line, ROOT, "");
        assert!(status != 401 && status != 403, "{line}: {status}");
    }
    let (status, _, page) =
        ask(metrics, "GET /metrics", "x-api-key: root-key-of-this-test\r\n", "");
    assert!(status == 200 && page.contains("nv_inference_count"), "{page}");
    assert!(fixture.stop());
}

#[test]
fn a_key_opens_its_groups_alone() {
    let fixture = start(&["--http-restricted-api=logging:extra=yes"]);
    let key = "Authorization: Bearer infer-key-of-this-test\r\n";
    let http = fixture.http();
    assert_eq!(ask(http, "POST /v2/models/simple/infer", key, SIMPLE).0, 200);
    for (address, line) in [
        (http, "GET /v2"),
        (http, "POST /v2/repository/index"),
        (fixture.server.addresses().metrics.unwrap(), "GET /metrics"),
    ] {
        let (status, _, body) = ask(address, line, key, "");
        assert_eq!(status, 403, "{line}");
        assert!(body.contains("the key 'infer' does not open the endpoint group"), "{body}");
    }
    // Restrictions hold besides keys.
    assert_eq!(ask(http, "GET /v2/logging", ROOT, "").0, 403);
    assert_eq!(ask(http, "GET /v2/logging", &format!("{ROOT}extra: yes\r\n"), "").0, 200);
    assert!(fixture.stop());
}

#[test]
fn keys_are_looked_at_before_bodies_are_asked_for_or_read() {
    let fixture = start(&[]);
    for (headers, status) in [("", 401), (ROOT, 404)] {
        let mut stream = socket(fixture.http());
        let head = format!(
            "POST /v2/nothing HTTP/1.1\r\nHost: x\r\n{headers}Expect: 100-continue\r\nContent-Length: 2000000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    }
    // Short bodies are dropped, and the connection goes on.
    let mut stream = socket(fixture.http());
    let refused = "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    let last = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("{refused}{refused}{last}").as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 401 Unauthorized").count(), 2, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1, "{answers}");
    assert!(fixture.stop());
}

#[test]
fn requests_beyond_the_limits_of_a_key_are_told_when_to_come_again() {
    let fixture = start(&[]);
    let http = fixture.http();
    let few = "x-api-key: few-key-of-this-test\r\n";
    assert_eq!(ask(http, "GET /v2", few, "").0, 200);
    // What does not exist counts for no limit.
    assert_eq!(ask(http, "GET /nothing", few, "").0, 404);
    assert_eq!(ask(http, "GET /v2", few, "").0, 200);
    let (status, head, body) = ask(http, "GET /v2", few, "");
    assert_eq!(status, 429, "{body}");
    assert!(head.contains("\r\nRetry-After: 30") || head.contains("\r\nRetry-After: 29"), "{head}");
    assert!(body.contains("the key 'few' has reached its limit of 2 requests a minute"), "{body}");
    let (status, _, body) = ask(http, "GET /v1/models", few, "");
    assert_eq!((status, &json_of(&body)["error"]["code"]), (429, &json!("rate_limit_exceeded")));

    // A request whose body is on its way holds the one place of this key.
    let one = "Authorization: Bearer abc\r\n";
    let mut stream = socket(http);
    let head = format!(
        "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{one}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        SIMPLE.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut leave = [0; 25];
    stream.read_exact(&mut leave).unwrap();
    assert_eq!(ask(http, "GET /v2", one, "").0, 429);
    stream.write_all(SIMPLE.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The place is free as soon as the connection has ended its request.
    while ask(http, "GET /v2", one, "").0 == 429 {}
    assert!(fixture.stop());
}

#[test]
fn tokens_of_prompts_and_answers_count_at_every_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    let key = "Authorization: Bearer talker-key-of-this-test\r\n";
    for (path, body) in [
        ("/v1/completions", json!({"model": "speller", "prompt": "a"})),
        ("/v2/models/speller/generate", json!({"text_input": "a"})),
    ] {
        let file = key_file(KEYS, 0o600);
        let fixture = Fixture::on(speller::core(folder.path()), &flags(&[&file.flag]));
        let line = format!("POST {path}");
        let (status, _, answer) = ask(fixture.http(), &line, key, &body.to_string());
        assert_eq!(status, 200, "{answer}");
        // The speller's answer alone has more than 10 tokens.
        let (status, _, answer) = ask(fixture.http(), &line, key, &body.to_string());
        assert_eq!(status, 429, "{path}: {answer}");
        assert!(answer.contains("its limit of 10 tokens a minute"), "{answer}");
        assert_eq!(ask(fixture.http(), &line, ROOT, &body.to_string()).0, 200);
        assert!(fixture.stop());
    }
}

/// A call with the key.
fn keyed<T>(message: T, key: &'static str) -> tonic::Request<T> {
    let mut call = tonic::Request::new(message);
    call.metadata_mut().insert("authorization", MetadataValue::from_static(key));
    call
}

#[test]
fn rpcs_ask_for_keys_too() {
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        client.server_live(ServerLiveRequest {}).await.unwrap();
        let index = RepositoryIndexRequest::default;
        let ready = ModelReadyRequest { name: "simple".to_owned(), ..Default::default() };
        for status in [
            client.repository_index(index()).await.unwrap_err(),
            client.repository_index(keyed(index(), "Bearer wrong")).await.unwrap_err(),
            client.model_ready(ready).await.unwrap_err(),
            client.model_infer(simple_request()).await.unwrap_err(),
            client.model_stream_infer(tokio_stream::empty()).await.unwrap_err(),
        ] {
            assert_eq!(status.code(), tonic::Code::Unauthenticated, "{status}");
        }
        client.repository_index(keyed(index(), "Bearer root-key-of-this-test")).await.unwrap();
        let infer = "Bearer infer-key-of-this-test";
        let status = client.repository_index(keyed(index(), infer)).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::PermissionDenied);
        client.model_infer(keyed(simple_request(), infer)).await.unwrap();
        let few = "Bearer few-key-of-this-test";
        client.model_infer(keyed(simple_request(), few)).await.unwrap();
        client.model_infer(keyed(simple_request(), few)).await.unwrap();
        let status = client.model_infer(keyed(simple_request(), few)).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        let again: u64 =
            status.metadata().get("retry-after").unwrap().to_str().unwrap().parse().unwrap();
        assert!((25..=30).contains(&again), "{again}");
    });
    assert!(fixture.stop());
}

#[test]
fn each_message_of_a_stream_is_a_request() {
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    let errors = fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        let messages = tokio_stream::iter(vec![simple_request(); 4]);
        let call = keyed(messages, "Bearer few-key-of-this-test");
        let mut answers = client.model_stream_infer(call).await.unwrap().into_inner();
        let mut errors = Vec::new();
        while let Some(answer) = answers.next().await {
            errors.push(answer.unwrap().error_message);
        }
        errors
    });
    let refused = "the key 'few' has reached its limit of 2 requests a minute";
    assert_eq!(errors, ["", "", refused, refused]);
    assert!(fixture.stop());
}

#[test]
fn files_of_keys_that_cannot_be_used_are_told_at_the_start() {
    for (text, mode, expected) in [
        (KEYS, 0o644, "has the mode 0644, expected 0600"),
        ("lonely\n", 0o600, "line 1: expected NAME:KEY or NAME:sha256:HEX"),
    ] {
        let file = key_file(text, mode);
        let error = check(&flags(&[&file.flag])).unwrap_err();
        assert!(error.starts_with(&file.flag) && error.contains(expected), "{error}");
    }
    let error = check(&flags(&["--api-key-file=/nothing/there"])).unwrap_err();
    assert!(error.contains("No such file"), "{error}");
}
