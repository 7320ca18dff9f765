//! Any bytes as JSON, beside a strict reader.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_server::fuzzing::json(data));
