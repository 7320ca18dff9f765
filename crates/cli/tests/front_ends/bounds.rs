//! Bounds that come before work: many names, and texts far beyond the context.

use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::ModelInferRequest;
use serde_json::json;

use crate::client::{exchange, json_of, parts, post, request};
use crate::encoders::write_encoder;
use crate::speller::{self, CONTEXT, write_checkpoint};
use crate::{Fixture, flags, repository, simple_request, start};

#[test]
fn very_many_unknown_inputs_are_refused_in_a_short_text() {
    let fixture = start(&[]);
    let inputs: Vec<_> = (0..60_000)
        .map(|at| json!({"name": format!("n{at}"), "datatype": "INT32", "shape": [1], "data": [1]}))
        .collect();
    let (status, _, body) =
        post(fixture.http(), "/v2/models/simple/infer", &json!({"inputs": inputs}));
    assert_eq!(status, 400);
    assert!(body.contains("got 60000 inputs") && body.len() < 2500, "{}", body.len());
    let address = fixture.server.addresses().grpc.unwrap();
    let status = fixture.runtime.block_on(async {
        let simple = simple_request();
        let input = simple.inputs.first().unwrap();
        let mut request = ModelInferRequest { inputs: Vec::new(), ..simple.clone() };
        for at in 0..60_000 {
            let name = format!("n{at}");
            request.inputs.push(input.clone());
            request.inputs.last_mut().unwrap().name = name;
        }
        request.raw_input_contents = vec![vec![0; 64].into(); 60_000];
        connect(address).await.unwrap().model_infer(request).await.unwrap_err()
    });
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(status.message().contains("got 60000 inputs"), "{}", status.message());
    assert!(fixture.stop());
}

#[test]
fn texts_far_beyond_the_context_are_refused_before_they_are_tokens() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    let fixture = Fixture::on(speller::core(folder.path()), &flags(&[]));
    let http = fixture.http();
    let long = "a ".repeat(5_000_000);
    let exceeded = |path: &str, body: serde_json::Value, text: &str| {
        let (status, _, body) = post(http, path, &body);
        let error = &json_of(&body)["error"];
        assert_eq!((status, &error["code"]), (400, &json!("context_length_exceeded")), "{body}");
        assert!(error["message"].as_str().unwrap().contains(text), "{body}");
    };
    let has = format!("maximum context length is {CONTEXT} tokens. The prompt has more.");
    exceeded("/v1/completions", json!({"model": "speller", "prompt": long}), &has);
    let have = format!("maximum context length is {CONTEXT} tokens. The messages have more.");
    let messages = json!([{"role": "user", "content": long}]);
    exceeded("/v1/chat/completions", json!({"model": "speller", "messages": messages}), &have);
    let most = format!("more than {} tokens found", 4 * CONTEXT);
    exceeded("/tokenize", json!({"model": "speller", "prompt": long}), &most);
    let (status, _, body) = post(http, "/v2/models/speller/generate", &json!({"text_input": long}));
    assert!(status == 400 && body.contains("the prompt has more"), "{body}");
    assert!(fixture.stop());
}

#[test]
fn long_texts_of_encoders_are_refused_or_cut_as_their_requests_say() {
    let folder = tempfile::tempdir().unwrap();
    write_encoder("bert-mean", &folder.path().join("mean"));
    write_encoder("bert-rank", &folder.path().join("rank"));
    let fixture = Fixture::on(repository(folder.path()), &flags(&[]));
    let http = fixture.http();
    let long = "a5 a6 ".repeat(1_000_000);
    for (path, body) in [
        ("/v1/embeddings", json!({"model": "mean", "input": long})),
        ("/v1/rerank", json!({"model": "rank", "query": "a7", "documents": ["a8", long]})),
        ("/v1/rerank", json!({"model": "rank", "query": long, "documents": ["a8"]})),
        ("/v1/score", json!({"model": "mean", "text_1": "a7", "text_2": long})),
    ] {
        let (status, _, body) = post(http, path, &body);
        assert!(status == 400 && body.contains("has more; truncate_prompt_tokens"), "{body}");
    }
    let cut = |text: &str| {
        let body = json!({"model": "mean", "input": text, "truncate_prompt_tokens": 8});
        let (status, _, body) = post(http, "/v1/embeddings", &body);
        assert_eq!(status, 200, "{body}");
        json_of(&body)["data"].clone()
    };
    assert_eq!(cut(&long), cut("a5 a6 a5 a6 a5 a6 a5 a6 a5"));
    assert!(fixture.stop());
}

#[test]
fn settings_are_short_and_refused_before_they_come() {
    let fixture = start(&[]);
    for path in ["/v2/logging", "/v2/repository/models/simple/unload", "/v2/repository/index"] {
        // Nothing follows the head: it is refused for its length alone, and not asked for.
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\
             Expect: 100-continue\r\n\r\n"
        );
        let answer = exchange(fixture.http(), head.as_bytes());
        let (status, _, body) = parts(&answer);
        assert!(!answer.contains("100 Continue"), "{answer}");
        assert!(status == 400 && body.contains("maximum allowed size of 4194304"), "{answer}");
    }
    assert!(fixture.stop());
}

#[test]
fn names_that_no_path_can_have_are_decoded_and_others_are_taken_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    write_encoder("bert-mean", &folder.path().join("mean of \u{20ac}"));
    write_encoder("bert-mean", &folder.path().join("mean"));
    let fixture = Fixture::on(repository(folder.path()), &flags(&[]));
    for (name, status) in [
        ("mean", 200),
        ("mean%20of%20%E2%82%AC", 200),
        // Triton takes the text of a path: what can be written as it is, is to be.
        ("m%65an", 400),
        ("m%6xan", 400),
        ("mean%20of", 400),
    ] {
        let path = format!("/v2/models/{name}/ready");
        let answer = exchange(fixture.http(), &request("GET", &path, ""));
        assert_eq!(parts(&answer).0, status, "{path}: {answer}");
    }
    assert!(fixture.stop());
}
