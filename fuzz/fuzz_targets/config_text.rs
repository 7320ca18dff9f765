//! Any bytes as a `config.pbtxt`: reading, completing and checking.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_serving::fuzzing::config_text(data));
