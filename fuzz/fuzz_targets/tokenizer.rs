//! Any bytes as a `tokenizer.json`; what loads also encodes and decodes.

#![no_main]

use galatea_llm::tokens::{SpecialText, SpecialTokens, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(tokenizer) = Tokenizer::from_json(bytes) else { return };
    for surround in [SpecialTokens::Add, SpecialTokens::Omit] {
        let Ok(ids) = tokenizer.encode(" ab a1 <s> \u{4E2D}\u{1F600}aab\n", surround) else {
            continue;
        };
        let _ = tokenizer.decode(&ids, SpecialText::Keep);
    }
    let _ = tokenizer.encode_pair("ab", "b a");
    let ids: Vec<u32> = (0..40).rev().collect();
    let _ = tokenizer.decode(&ids, SpecialText::Skip);
});
