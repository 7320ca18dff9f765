//! Any bytes as a `tokenizer.json`; what loads also encodes and decodes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_llm::fuzzing::tokenizer(data));
