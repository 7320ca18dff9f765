//! A line of JSON as a `config.json`, and any bytes behind it as safetensors; what has codes is taken apart,
//! row by row and whole, to the same numbers.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/mlx.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
