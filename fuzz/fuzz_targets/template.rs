//! Any text as a chat template; what compiles is also rendered.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_llm::fuzzing::template(data));
