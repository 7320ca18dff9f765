//! Any bytes as messages of Core ML's worker and to it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_coreml::engine::fuzzing::core_ml_worker(data));
