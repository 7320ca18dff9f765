//! Any bytes as an answer of a worker of the Python backend.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_serving::fuzzing::python_worker(data));
