//! Any bytes as frames of HTTP/2 on an open connection.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_server::fuzzing::http2(data));
