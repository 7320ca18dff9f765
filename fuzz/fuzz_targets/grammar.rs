//! Any text as a grammar of each kind; answers that follow it are made token by token.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_llm::fuzzing::grammar(data));
