//! The sample language model answers as the reference library does with its weights.

use serde_json::{Value, json};

use crate::client::{json_of, post};
use crate::{Fixture, flags, samples};

#[test]
fn the_sample_answers_its_questions_as_recorded() {
    let fixture = Fixture::on(samples(&["chat"]), &flags(&[]));
    let address = fixture.http();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models");
    let recorded = std::fs::read(format!("{folder}/chat/sample_chat.json")).unwrap();
    let chats: Vec<Vec<Value>> = serde_json::from_slice(&recorded).unwrap();
    let mut answers = 0;
    for chat in &chats {
        for (at, message) in chat.iter().enumerate() {
            if message["role"] != "assistant" {
                continue;
            }
            let body = json!({"model": "chat", "messages": chat[..at], "temperature": 0});
            let body = json_of(&post(address, "/v1/chat/completions", &body).2);
            let choice = &body["choices"][0];
            assert_eq!(choice["message"]["content"], message["content"], "{body}");
            assert_eq!(choice["finish_reason"], "stop");
            answers += 1;
        }
    }
    assert_eq!(answers, 9);
    assert!(fixture.stop());
}
