//! Sample conversations of language models, and what they are expected to answer.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::http_client::HttpClient;

/// Most bytes of a file of conversations.
const MAX_BYTES: u64 = 1 << 20;
/// Characters of an answer that the table shows.
const SHOWN: usize = 80;

/// The conversations of a model: messages as OpenAI's clients write them.
#[derive(Debug)]
pub(super) struct SampleChats {
    pub(super) model: String,
    chats: Vec<Vec<Value>>,
}

/// The conversations of a repository's models, by model name.
///
/// # Errors
/// Fails when a file cannot be read or has another form.
pub(super) fn sample_chats(repository: &Path) -> Result<Vec<SampleChats>, String> {
    let entries = fs::read_dir(repository)
        .map_err(|error| format!("'{}' cannot be read: {error}", repository.display()))?;
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let file = entry.path().join("sample_chat.json");
        if !file.is_file() {
            continue;
        }
        let chats = read(&file).map_err(|why| format!("'{}': {why}", file.display()))?;
        all.push(SampleChats { model: entry.file_name().to_string_lossy().into_owned(), chats });
    }
    all.sort_by(|one, other| one.model.cmp(&other.model));
    Ok(all)
}

fn read(file: &Path) -> Result<Vec<Vec<Value>>, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("{size} bytes, expected at most {MAX_BYTES}"));
    }
    let text = fs::read(file).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text)
        .map_err(|error| format!("{error}; expected a list of lists of messages"))
}

fn text<'a>(message: &'a Value, member: &str) -> &'a str {
    message.get(member).and_then(Value::as_str).unwrap_or_default()
}

impl SampleChats {
    /// The first question, to show how one is asked.
    pub(super) fn question(&self) -> Option<&str> {
        Some(text(self.chats.first()?.first()?, "content"))
    }

    /// Asks for each answer again, choosing always the most probable token: rows of a table, whose last
    /// cell is "ok" where the answer is the recorded one.
    pub(super) fn ask(&self, address: SocketAddr) -> Result<Vec<Vec<String>>, String> {
        let mut client = HttpClient::connect(address).map_err(|error| error.to_string())?;
        let mut rows = Vec::new();
        for chat in &self.chats {
            for (at, message) in chat.iter().enumerate() {
                if text(message, "role") == "assistant" {
                    let before = chat.get(..at).unwrap_or_default();
                    rows.push(self.answer(&mut client, before, text(message, "content")));
                }
            }
        }
        Ok(rows)
    }

    fn answer(&self, client: &mut HttpClient, before: &[Value], expected: &str) -> Vec<String> {
        let question = before.last().map(|message| text(message, "content")).unwrap_or_default();
        let row = |answer: &str, ms: String, check: String| {
            vec![self.model.clone(), question.to_owned(), shown(answer), ms, check]
        };
        let body = json!({"model": self.model, "messages": before, "temperature": 0});
        let started = Instant::now();
        let found = ask(client, &body);
        let ms = format!("{:.1}", started.elapsed().as_secs_f64() * 1e3);
        match found {
            Ok(found) if found == expected => row(&found, ms, "ok".to_owned()),
            Ok(found) => row(&found, ms, format!("expected: {}", shown(expected))),
            Err(error) => row("-", ms, error),
        }
    }
}

/// The text that a chat is answered with.
fn ask(client: &mut HttpClient, body: &Value) -> Result<String, String> {
    let answer = client
        .post("/v1/chat/completions", None, body.to_string().as_bytes())
        .map_err(|error| error.to_string())?;
    if answer.status != 200 {
        return Err(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)));
    }
    let answer: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let content = answer.pointer("/choices/0/message/content").and_then(Value::as_str);
    content.map(str::to_owned).ok_or_else(|| format!("no content in {answer}"))
}

fn shown(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_found_and_wrong_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("talker");
        fs::create_dir(&model).unwrap();
        assert!(sample_chats(folder.path()).unwrap().is_empty());
        let file = model.join("sample_chat.json");
        fs::write(&file, r#"[[{"role": "user", "content": "Hi"}]]"#).unwrap();
        let found = sample_chats(folder.path()).unwrap();
        assert_eq!((found[0].model.as_str(), found[0].question()), ("talker", Some("Hi")));
        fs::write(&file, "{}").unwrap();
        let error = sample_chats(folder.path()).unwrap_err();
        assert!(error.contains("sample_chat.json") && error.contains("list of lists"), "{error}");
        assert_eq!(shown(&"é".repeat(100)).chars().count(), SHOWN);
    }
}
