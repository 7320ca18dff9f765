//! Any text as a `config.pbtxt`.

#![no_main]

#[path = "../../crates/formats/tests/fuzz_targets/prototext.rs"]
mod target;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| target::run(data));
