//! Any bytes as a NumPy array; what can be read is written and read again as the same array.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/npy.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
