//! Any text as a program that Core ML has compiled, with another part of the bytes as its description.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/core_ml_compiled.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
