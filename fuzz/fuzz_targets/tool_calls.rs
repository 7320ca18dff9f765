//! Any text as an answer with calls of functions and thoughts, as a whole and in pieces, which must be read alike.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_llm::fuzzing::tool_calls(data));
