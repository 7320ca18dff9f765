//! Any bytes as the body of an inference over HTTP: JSON, and tensors behind it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_server::fuzzing::http_infer(data));
