//! Any bytes as the archive of a Python environment.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_serving::fuzzing::archive(data));
