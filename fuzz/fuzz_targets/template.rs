//! Any text as a chat template; what compiles is also rendered.

#![no_main]

use galatea_llm::template::{ChatTemplate, Conversation, GenerationPrompt};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|source: &str| {
    let Ok(template) = ChatTemplate::new(source) else { return };
    for ending in [GenerationPrompt::GenerationPrompt, GenerationPrompt::ContinueFinalMessage] {
        let conversation = Conversation {
            messages: vec![
                json!({"role": "system", "content": "s"}),
                json!({"role": "user", "content": [{"type": "text", "text": "x"}]}),
                json!({"role": "assistant", "content": " y \n", "tool_calls": [
                    {"id": "abcdefghi", "function": {"name": "f", "arguments": {"a": 1.5}}}]}),
            ],
            tools: Some(vec![json!({"type": "function", "function": {"name": "f"}})]),
            ending,
            now: Some(std::time::UNIX_EPOCH),
            ..Conversation::default()
        };
        let _ = template.render(&conversation);
    }
});
