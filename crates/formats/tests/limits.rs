//! Files that ask for more than the limits that hold for a process.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use galatea_formats::onnx::parse;
use galatea_formats::onnx::proto::{GraphProto, SparseTensorProto};
use galatea_graph::limits::{self, GraphLimits};
use galatea_testkit::model::{self, FLOAT, encode, floats, int64s, node, value};

#[test]
fn sparse_constants_share_one_limit() {
    limits::set(GraphLimits { value_bytes: 1 << 20, iterations: 16 }).unwrap();
    let sparse = |at: usize, len: i64| SparseTensorProto {
        values: Some(floats(&format!("b{at}"), &[1], &[5.0])),
        indices: Some(int64s("", &[1], &[0])),
        dims: vec![len],
    };
    let parsed = |sparse_initializer: Vec<SparseTensorProto>| {
        let graph = GraphProto {
            node: vec![node("Neg", &["b0"], &["y"])],
            sparse_initializer,
            output: vec![value("y", FLOAT, &["n"])],
            ..GraphProto::default()
        };
        parse(encode(&model::model(graph, 17)).into(), None).map_err(|error| error.to_string())
    };
    // Each of these has half a MiB.
    assert!(parsed((0..2).map(|at| sparse(at, 1 << 17)).collect()).is_ok());
    let text = parsed((0..3).map(|at| sparse(at, 1 << 17)).collect()).unwrap_err();
    assert!(text.contains("graph.sparse_initializer[2].dims"), "{text}");
    assert!(text.contains("takes 524288 bytes, with 1048576 of other sparse constants"), "{text}");
    assert!(text.ends_with("the limit is 1048576"), "{text}");
    let text = parsed(vec![sparse(0, 1 << 40)]).unwrap_err();
    assert!(text.contains("takes 4398046511104 bytes, with 0 of other"), "{text}");
}
