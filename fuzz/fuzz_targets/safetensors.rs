//! Any bytes as a safetensors file or an index of shards; what can be read is written and read again
//! as the same tensors, and as layers of codes where it has some.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/safetensors.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
