//! Runs that end when nobody waits for them any more.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use galatea_runtime::SessionOptions;
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, ErrorCode, InferenceRequest};
use galatea_tensor::DataType;

use crate::messages::ProtoMessage;
use crate::plain::Plain;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const FLOAT: u64 = 1;
const INT64: u64 = 7;
const BOOL: u64 = 9;

/// A value of a type, with one axis of length 1 or none.
fn value(name: &str, element: u64, rank: usize) -> ProtoMessage {
    let dim = || ProtoMessage::default().number(1, 1);
    let shape = (0..rank).fold(ProtoMessage::default(), |shape, _| shape.message(1, dim()));
    let tensor = ProtoMessage::default().number(1, element).message(2, shape);
    ProtoMessage::default()
        .bytes(1, name.as_bytes())
        .message(2, ProtoMessage::default().message(1, tensor))
}

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> ProtoMessage {
    let named =
        inputs.iter().fold(ProtoMessage::default(), |node, name| node.bytes(1, name.as_bytes()));
    let named = outputs.iter().fold(named, |node, name| node.bytes(2, name.as_bytes()));
    named.bytes(4, operator.as_bytes())
}

/// A model that adds a number to itself 2^62 times.
fn endless() -> Vec<u8> {
    let body = ProtoMessage::default()
        .message(1, node("Identity", &["on"], &["on_still"]))
        .message(1, node("Add", &["number", "number"], &["doubled"]))
        .bytes(2, b"body")
        .message(11, value("iteration", INT64, 0))
        .message(11, value("on", BOOL, 0))
        .message(11, value("number", FLOAT, 1))
        .message(12, value("on_still", BOOL, 0))
        .message(12, value("doubled", FLOAT, 1));
    let body = ProtoMessage::default().bytes(1, b"body").message(6, body).number(20, 5);
    let count = ProtoMessage::default().number(2, INT64).number(7, 1 << 62).bytes(8, b"count");
    let first = ProtoMessage::default().number(2, BOOL).number(5, 1).bytes(8, b"first");
    let graph = ProtoMessage::default()
        .message(1, node("Loop", &["count", "first", "x"], &["y"]).message(5, body))
        .bytes(2, b"endless")
        .message(5, count)
        .message(5, first)
        .message(11, value("x", FLOAT, 1))
        .message(12, value("y", FLOAT, 1));
    let opset = ProtoMessage::default().number(2, 17);
    ProtoMessage::default().number(1, 8).message(7, graph).message(8, opset).0
}

fn start(repository: &Path) -> Arc<Core> {
    let folder = repository.join("endless");
    std::fs::create_dir_all(folder.join("1")).unwrap();
    let config = "backend: \"onnxruntime\" instance_group { count: 1 kind: KIND_CPU }\n";
    std::fs::write(folder.join("config.pbtxt"), config).unwrap();
    std::fs::write(folder.join("1/model.onnx"), endless()).unwrap();
    let options =
        CoreOptions { repositories: vec![repository.to_owned()], ..CoreOptions::default() };
    let backend = GraphBackend::onnx(vec![Arc::new(Plain)], SessionOptions::default());
    Core::start(options, vec![Arc::new(backend)]).unwrap()
}

#[test]
fn a_loop_that_would_never_end_is_given_up_when_its_client_has_gone() {
    let repository = tempfile::tempdir().unwrap();
    let core = start(repository.path());
    let (to, from) = channel();
    let mut tokens = Vec::new();
    // The second one waits for the instance of the first.
    for _ in 0..2 {
        let request = InferenceRequest {
            model_name: "endless".to_owned(),
            inputs: vec![InputTensor {
                name: "x".to_owned(),
                datatype: DataType::Fp32,
                shape: vec![1],
                data: InputData::Raw(1_f32.to_le_bytes().to_vec().into()),
            }],
            ..InferenceRequest::default()
        };
        tokens.push(request.cancel.clone());
        let to = to.clone();
        core.infer(request, Box::new(move |answer| to.send(answer.result).unwrap())).unwrap();
    }
    std::thread::sleep(Duration::from_millis(50));
    for token in tokens {
        assert!(from.try_recv().is_err(), "it ended by itself");
        token.cancel();
        let error = from.recv_timeout(PATIENCE).expect("an answer").unwrap_err();
        assert_eq!(error.code, ErrorCode::Cancelled, "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let statistics = core.model_statistics(Some("endless"), "").unwrap();
    assert_eq!(statistics[0].inference_stats.success.count, 0);
}
