//! Any bytes as an ONNX model or a value of its test data: an error, or a graph whose facts can be
//! asked for and that can be rewritten, never a crash.

use std::collections::HashMap;

use bytes::Bytes;
use galatea_formats::onnx::{parse, read_tensor, read_value};
use galatea_graph::rewrite::{RewriteLevel, optimise};
use galatea_graph::{Fact, FactKind, infer, onnx_data_type};

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    if let Ok(mut graph) = parse(Bytes::copy_from_slice(data), None) {
        let _ = infer::facts(&graph, &HashMap::new());
        let _ = optimise(&mut graph, RewriteLevel::default());
    }
    let _ = read_tensor(data.to_vec());
    for (number, kind) in [(1, FactKind::Sequence), (7, FactKind::OptionalSequence)] {
        if let Ok(dtype) = onnx_data_type(number) {
            let _ = read_value(data.to_vec(), &Fact::unranked(dtype).within(kind));
        }
    }
}
