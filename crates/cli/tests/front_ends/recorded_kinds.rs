//! Requests of the kinds that a real Triton was recorded with, and its answers: status, content type and text.

use std::collections::HashMap;
use std::net::SocketAddr;

use galatea_cli::grpc_client::connect;
use galatea_server::grpc::proto::inference::infer_parameter::ParameterChoice;
use galatea_server::grpc::proto::inference::model_infer_request::InferRequestedOutputTensor;
use galatea_server::grpc::proto::inference::{InferParameter, ModelInferRequest};
use serde_json::{Value, json};

use crate::client::{exchange, parts, post};
use crate::{Fixture, flags, samples, simple_request};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

fn fixture() -> Fixture {
    let core = samples(&["simple", "identity_bytes", "identity_fp32"]);
    Fixture::on(core, &flags(&["--allow-client-shm=true"]))
}

/// Sends a body with these further headers.
fn send(address: SocketAddr, model: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
    let head = format!(
        "POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    parts(&exchange(address, &[head.as_bytes(), body].concat()))
}

/// An answer that is an error.
fn refused(answer: &(u16, String, String), status: u16, content: &str, text: &str) {
    let (found, head, body) = answer;
    let content = format!("Content-Type: {content}\r\n");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((*found, body), (status, json!({ "error": text })), "{head}");
    assert!(format!("{head}\r\n").contains(&content), "{text}: {head}");
}

#[test]
fn strings_are_counted_by_the_core_and_read_by_the_model() {
    let fixture = fixture();
    let address = fixture.http();
    let of = |data: Value| {
        let input = json!({"name": "INPUT0", "datatype": "BYTES", "shape": [1, 2], "data": data});
        let body = json!({"id": "q", "inputs": [input]});
        post(address, "/v2/models/identity_bytes/infer", &body)
    };
    let prefix = "[request id: q] ";
    let named = "for inference input 'INPUT0' for model 'identity_bytes'";
    let few = format!("{prefix}expected 2 string elements {named}, got 1");
    refused(&of(json!(["a"])), 400, JSON, &few);
    let none = format!("{prefix}expected 2 string elements {named}, got 0");
    refused(&of(json!([])), 400, JSON, &none);
    let many = format!("{prefix}unexpected number of string elements 3 {named}, expecting 2");
    refused(&of(json!(["a", ["b", "c"], "d"])), 400, JSON, &many);
    let no_string = "Unable to parse JSON bytes array: attempt to access JSON non-string as string";
    refused(&of(json!(["a", 1])), 500, JSON, no_string);
    assert_eq!(of(json!([["a"], "b"])).0, 200);
    // The end of a string is the model's to find, so that the answer is one of a request that failed.
    let head = r#"{"inputs":[{"name":"INPUT0","datatype":"BYTES","shape":[1,1],"parameters":{"binary_data_size":6}}]}"#;
    let headers = format!("Inference-Header-Content-Length: {}\r\n", head.len());
    let short = [head.as_bytes(), b"\x32\0\0\0ab"].concat();
    let text = "incomplete string data for inference input 'INPUT0', expecting string of length 50 but only 2 bytes \
                available";
    refused(&send(address, "identity_bytes", &headers, &short), 400, TEXT, text);
    assert!(fixture.stop());
}

#[test]
fn lengths_of_json_are_read_as_c_reads_numbers() {
    let fixture = fixture();
    let address = fixture.http();
    let of = |model: &str, length: &str, body: &[u8]| {
        send(address, model, &format!("Inference-Header-Content-Length: {length}\r\n"), body)
    };
    let one = "[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but got 2 inputs \
               in 'simple' model configuration";
    refused(&of("simple", "abc", b"{}"), 400, JSON, one);
    assert_eq!(of("identity_fp32", "abc", &1.5_f32.to_le_bytes()).0, 200);
    for digits in ["99999999999999999999", "-1", "5"] {
        let text = format!("inference header size should be in range (0, 4), got: {digits}");
        refused(&of("simple", digits, b"1234"), 400, TEXT, &text);
    }
    let empty = send(address, "simple", "Content-Encoding: gzip\r\n", b"");
    refused(&empty, 400, TEXT, "nothing to be decompressed");
    assert!(!empty.1.contains("Accept-Encoding"), "{}", empty.1);
    let unknown = send(address, "simple", "Content-Encoding: br\r\n", b"");
    refused(&unknown, 501, TEXT, "Unsupported compression type");
    assert!(unknown.1.contains("Accept-Encoding: gzip, deflate"), "{}", unknown.1);
    assert!(fixture.stop());
}

#[test]
fn classes_do_not_go_to_shared_memory() {
    let fixture = fixture();
    let address = fixture.http();
    let of = |parameters: Value| {
        let input = json!({"name": "INPUT0", "datatype": "FP32", "shape": [1, 1], "data": [1]});
        let output = json!({"name": "OUTPUT0", "parameters": parameters});
        let body = json!({"inputs": [input], "outputs": [output]});
        post(address, "/v2/models/identity_fp32/infer", &body)
    };
    for classes in [json!(1), json!(0), json!("1")] {
        let both = json!({"classification": classes, "shared_memory_region": "nope"});
        let text = "Output can't set both 'shared_memory_region' and 'classification'";
        refused(&of(both), 400, JSON, text);
    }
    let both = json!({"binary_data": true, "shared_memory_region": "nope"});
    refused(&of(both), 400, JSON, "Output can't set both 'shared_memory_region' and 'binary_data'");
    let alone = of(json!({"shared_memory_region": "nope", "shared_memory_byte_size": 4}));
    refused(&alone, 404, JSON, "Unable to find shared memory region: 'nope'");
    assert!(fixture.stop());
}

#[test]
fn plain_values_become_as_many_rows_as_they_fill() {
    let fixture = fixture();
    let address = fixture.http();
    let generate = |model: &str, body: Value| {
        let path = format!("/v2/models/{model}/generate");
        post(address, &path, &body)
    };
    let ones = vec![1; 32];
    let answer = generate("simple", json!({"INPUT0": ones, "INPUT1": ones}));
    let sums: Value = serde_json::from_str(&answer.2).unwrap();
    assert_eq!((answer.0, &sums["OUTPUT0"]), (200, &json!(vec![2; 32])));
    let broken = json!({"INPUT0": vec![1; 17], "INPUT1": ones});
    let text = "The schema can not convert input 'INPUT0' to tensor with proper shape";
    refused(&generate("simple", broken), 400, JSON, text);
    let nested = json!({"INPUT0": [[1, 2], [3, 4]]});
    let text = "Unable to parse 'data': Shape does not match true shape of 'data' field";
    refused(&generate("identity_fp32", nested), 500, JSON, text);
    for parameters in [json!(1), json!("x"), json!([1])] {
        let text = "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object";
        let body = json!({"INPUT0": 1, "parameters": parameters});
        refused(&generate("identity_fp32", body), 500, JSON, text);
    }
    assert!(fixture.stop());
}

fn parameter(choice: ParameterChoice) -> InferParameter {
    InferParameter { parameter_choice: Some(choice) }
}

#[test]
fn parameters_over_grpc_are_refused_with_tritons_texts() {
    let fixture = fixture();
    let address = fixture.server.addresses().grpc.unwrap();
    let with = |name: &str, choice: ParameterChoice| {
        let parameters = HashMap::from([(name.to_owned(), parameter(choice))]);
        ModelInferRequest { parameters, ..simple_request() }
    };
    let both = HashMap::from([
        ("classification".to_owned(), parameter(ParameterChoice::Int64Param(1))),
        ("shared_memory_region".to_owned(), parameter(ParameterChoice::StringParam("no".into()))),
        ("shared_memory_byte_size".to_owned(), parameter(ParameterChoice::Int64Param(4))),
    ]);
    let output = InferRequestedOutputTensor { name: "OUTPUT0".to_owned(), parameters: both };
    let without_region = |name: &str| {
        let number = parameter(ParameterChoice::Int64Param(4));
        let mut message = simple_request();
        message.inputs[0].parameters.insert(name.to_owned(), number);
        message
    };
    let tensor = simple_request().inputs[0].name.clone();
    let alone = |name: &str| {
        format!(
            "'{name}' can not be specified without 'shared_memory_region' parameter for tensor '{tensor}'"
        )
    };
    let (offset, size) = (alone("shared_memory_offset"), alone("shared_memory_byte_size"));
    let cases = [
        (
            with("triton_x", ParameterChoice::Int64Param(1)),
            "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting \
             with 'triton_' are allowed: triton_enable_empty_final_response",
        ),
        (
            with("priority", ParameterChoice::StringParam("1".into())),
            "invalid value type for 'priority' parameter, expected int64_param or uint64_param.",
        ),
        (
            ModelInferRequest { outputs: vec![output], ..simple_request() },
            "output can't set both 'shared_memory_region' and 'classification'",
        ),
        (without_region("shared_memory_offset"), offset.as_str()),
        (without_region("shared_memory_byte_size"), size.as_str()),
    ];
    fixture.runtime.block_on(async {
        let mut client = connect(address).await.unwrap();
        for (message, text) in cases {
            let status = client.model_infer(message).await.unwrap_err();
            assert_eq!((status.code(), status.message()), (tonic::Code::InvalidArgument, text));
        }
    });
    assert!(fixture.stop());
}
