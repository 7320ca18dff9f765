//! Any bytes as the requests of a connection of HTTP/1; what they ask for is answered.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_server::fuzzing::http1(data));
