//! Any bytes as an ONNX model: an error or a graph whose facts can be asked for, never a crash.

#![no_main]

use std::collections::HashMap;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(graph) = galatea_formats::onnx::parse(Bytes::copy_from_slice(data), None) {
        let _ = galatea_graph::infer::facts(&graph, &HashMap::new());
    }
    let _ = galatea_formats::onnx::read_tensor(data.to_vec());
});
