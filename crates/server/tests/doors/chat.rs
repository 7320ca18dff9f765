//! The sample language model answers as the reference library does with its weights.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use galatea::models;
use galatea::server::Server;
use galatea_serving::{ControlMode, Core, CoreOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{exchange, flags, request};

fn samples() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models")
}

fn core() -> Arc<Core> {
    let options = CoreOptions {
        repositories: vec![samples()],
        control_mode: ControlMode::Explicit { load: vec!["chat".to_owned()] },
        ..CoreOptions::default()
    };
    Core::start(options, models::backends(None)).unwrap()
}

#[test]
fn the_sample_answers_its_questions_as_recorded() {
    let runtime = Runtime::new().unwrap();
    let server = {
        let _inside = runtime.enter();
        Server::start(core(), &flags(&[])).unwrap()
    };
    let address = server.addresses().http.unwrap();
    let recorded = std::fs::read(samples().join("chat/sample_chat.json")).unwrap();
    let chats: Vec<Vec<Value>> = serde_json::from_slice(&recorded).unwrap();
    let mut answers = 0;
    for chat in &chats {
        for (at, message) in chat.iter().enumerate() {
            if message["role"] != "assistant" {
                continue;
            }
            let body = json!({"model": "chat", "messages": chat[..at], "temperature": 0});
            let answer =
                exchange(address, &request("POST", "/v1/chat/completions", &body.to_string()));
            let body: Value =
                serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            let choice = &body["choices"][0];
            assert_eq!(choice["message"]["content"], message["content"], "{body}");
            assert_eq!(choice["finish_reason"], "stop");
            answers += 1;
        }
    }
    assert_eq!(answers, 9);
    assert!(runtime.block_on(server.stop(Duration::from_secs(10))).complete);
}
