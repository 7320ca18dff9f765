//! Any bytes as a model of Core ML, whose file of weights is another part of the bytes.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/core_ml.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
