//! Any bytes as a NumPy archive.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/npz.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
