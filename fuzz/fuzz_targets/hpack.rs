//! Any bytes as coded heads of HTTP/2.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_server::fuzzing::hpack(data));
