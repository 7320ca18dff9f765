//! Any bytes as a GGUF file; what can be read is written and read again as the same metadata and
//! tensors, and rows of tensors are computed.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/gguf.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
