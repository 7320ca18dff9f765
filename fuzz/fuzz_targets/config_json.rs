//! Any bytes as a configuration in JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_serving::fuzzing::config_json(data));
