//! Any bytes as an ONNX model or a value of its test data: an error, or a graph whose facts can be
//! asked for and that can be rewritten, never a crash.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/onnx.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
