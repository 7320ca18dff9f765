//! Chats with a model of a running server, by OpenAI's protocol.

use std::io::{BufRead, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use galatea::ChatMessage;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::SamplingChoices;
use super::event::{ChatEvent, ChatSpeed};
use crate::http_client::{HttpClient, ServerAddress};
use crate::server_place::{ClientArguments, HostPort};

/// Longest time for a connection and for the list of models.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of one event of an answer.
const MAX_EVENT: u64 = 16 << 20;

/// Most bytes of the sentence of a refusal.
const MAX_REFUSAL: u64 = 1 << 20;

/// A model of a server.
#[derive(Debug)]
pub(super) struct RemoteChat {
    place: HostPort,
    address: ServerAddress,
    pub(super) model: String,
}

/// The connection of a request, which is closed when the last holder but the reader goes.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionHold(Arc<Mutex<Option<TcpStream>>>);

impl ConnectionHold {
    fn set(&self, stream: Option<TcpStream>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }
}

impl Drop for ConnectionHold {
    fn drop(&mut self) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = stream.take() {
            // The peer may have gone first.
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

impl RemoteChat {
    /// Finds a model of a server: the named one, or the only one.
    ///
    /// # Errors
    /// Fails when no server answers, or it has no such model.
    pub(super) fn find(
        place: &HostPort,
        client: &ClientArguments,
        model: Option<&str>,
    ) -> Result<Self, String> {
        let address = client.address(place)?;
        let failed =
            |error: &dyn std::fmt::Display| format!("no server answers at {place}: {error}");
        let mut http =
            HttpClient::connect_within(&address, PATIENCE).map_err(|error| failed(&error))?;
        let answer = http.get("/v1/models").map_err(|error| failed(&error))?;
        if answer.status != 200 {
            return Err(format!(
                "the server at {place} answers: {}",
                refusal(answer.status, &answer.body)
            ));
        }
        let names = model_names(&answer.body);
        let known = || match names.is_empty() {
            true => "it serves no language model".to_owned(),
            false => format!("it serves {}", names.join(", ")),
        };
        let model = match (model, names.as_slice()) {
            (Some(model), names) if names.iter().any(|name| name == model) => model.to_owned(),
            (Some(model), _) => {
                return Err(format!("the server at {place} has no model '{model}'; {}", known()));
            }
            (None, [only]) => only.clone(),
            (None, _) => return Err(format!("name a model of the server at {place}; {}", known())),
        };
        Ok(Self { place: place.clone(), address, model })
    }

    /// Makes the body of a request.
    pub(super) fn body(&self, messages: &[ChatMessage], sampling: &SamplingChoices) -> Value {
        let message =
            |message: &ChatMessage| json!({"role": message.role, "content": message.content});
        let messages: Vec<Value> = messages.iter().map(message).collect();
        let mut body = json!({
            "model": self.model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let given = [
            ("temperature", sampling.temperature.map(Value::from)),
            ("top_p", sampling.top_p.map(Value::from)),
            ("top_k", sampling.top_k.map(Value::from)),
            ("min_p", sampling.min_p.map(Value::from)),
            ("seed", sampling.seed.map(Value::from)),
            ("max_tokens", sampling.max_tokens.map(Value::from)),
        ];
        if let Some(body) = body.as_object_mut() {
            body.extend(
                given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))),
            );
        }
        body
    }

    /// Sends a request and tells the answer piece by piece.
    pub(super) fn answer(&self, body: &str, hold: &ConnectionHold, to: &Sender<ChatEvent>) {
        if let Err(error) = self.try_answer(body, hold, to) {
            // Nobody wants to know any more where this fails.
            drop(to.blocking_send(ChatEvent::Failed(error)));
        }
        hold.set(None);
    }

    fn try_answer(
        &self,
        body: &str,
        hold: &ConnectionHold,
        to: &Sender<ChatEvent>,
    ) -> Result<(), String> {
        let place = &self.place;
        let failed = |error: std::io::Error| format!("the server at {place}: {error}");
        let http = HttpClient::connect_within(&self.address, PATIENCE).map_err(failed)?;
        hold.set(Some(http.patient().map_err(failed)?));
        let begun = Instant::now();
        let mut answer = http.stream("/v1/chat/completions", body.as_bytes()).map_err(failed)?;
        if answer.status != 200 {
            let mut text = Vec::new();
            answer.by_ref().take(MAX_REFUSAL).read_to_end(&mut text).map_err(failed)?;
            return Err(refusal(answer.status, &text));
        }
        let mut reader = AnswerEvents { begun, first: None, speed: ChatSpeed::default() };
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = answer.by_ref().take(MAX_EVENT);
            if bounded.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                return Err(format!("the server at {place} ended in the middle of an answer"));
            }
            match reader.read(&line)? {
                EventMeaning::Told(events) => {
                    for event in events {
                        if to.blocking_send(event).is_err() {
                            return Ok(());
                        }
                    }
                }
                EventMeaning::Done => {
                    drop(to.blocking_send(ChatEvent::Ended(reader.ended())));
                    return Ok(());
                }
            }
        }
    }
}

/// Names of the models that a server lists.
fn model_names(body: &[u8]) -> Vec<String> {
    let all: Value = serde_json::from_slice(body).unwrap_or_default();
    let name = |model: &Value| model.get("id").and_then(Value::as_str).map(str::to_owned);
    let list = all.get("data").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(name).collect()
}

/// The sentence of an error.
fn refusal(status: u16, body: &[u8]) -> String {
    let all: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = all.get("error");
    let text = error.and_then(|error| error.as_str().or_else(|| error.get("message")?.as_str()));
    match text {
        Some(text) => text.to_owned(),
        None => format!("status {status} {}", String::from_utf8_lossy(body).trim()),
    }
}

/// Meaning of a line of an answer.
#[derive(Debug)]
enum EventMeaning {
    Told(Vec<ChatEvent>),
    Done,
}

/// Reader of an answer's lines.
struct AnswerEvents {
    begun: Instant,
    first: Option<Instant>,
    speed: ChatSpeed,
}

impl AnswerEvents {
    fn read(&mut self, line: &[u8]) -> Result<EventMeaning, String> {
        let text = String::from_utf8_lossy(line);
        let Some(data) = text.trim().strip_prefix("data:").map(str::trim) else {
            return Ok(EventMeaning::Told(Vec::new()));
        };
        if data == "[DONE]" {
            return Ok(EventMeaning::Done);
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|error| format!("the server sends no JSON: {error}"))?;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(refusal(200, data.as_bytes()));
        }
        if let Some(usage) = event.get("usage").filter(|usage| !usage.is_null()) {
            let count = |name: &str| usage.pointer(name).and_then(Value::as_u64).unwrap_or(0);
            self.speed.prompt_tokens = count("/prompt_tokens");
            self.speed.answer_tokens = count("/completion_tokens");
            self.speed.cached_tokens = count("/prompt_tokens_details/cached_tokens");
        }
        let delta = event.pointer("/choices/0/delta");
        let part = |name: &str| {
            let text = delta?.get(name)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let reasoning = part("reasoning_content").or_else(|| part("reasoning"));
        let events = [reasoning.map(ChatEvent::Reasoning), part("content").map(ChatEvent::Content)];
        let events: Vec<ChatEvent> = events.into_iter().flatten().collect();
        if !events.is_empty() {
            self.first.get_or_insert_with(Instant::now);
        }
        Ok(EventMeaning::Told(events))
    }

    /// Tokens as the server counts them, and times as they are seen here.
    fn ended(&self) -> ChatSpeed {
        let first = self.first.unwrap_or_else(Instant::now);
        ChatSpeed {
            first: first.duration_since(self.begun).as_secs_f64(),
            rest: first.elapsed().as_secs_f64(),
            ..self.speed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> AnswerEvents {
        AnswerEvents { begun: Instant::now(), first: None, speed: ChatSpeed::default() }
    }

    #[test]
    fn answers_are_read_as_servers_write_them() {
        let mut reader = reader();
        let mut told = String::new();
        for line in [
            ": a comment",
            "",
            r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"data: {"choices":[{"delta":{"reasoning_content":"hm "}}]}"#,
            r#"data: {"choices":[{"delta":{"content":"yes"}}]}"#,
            r#"data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}"#,
        ] {
            let EventMeaning::Told(events) = reader.read(line.as_bytes()).unwrap() else {
                panic!("{line}")
            };
            for event in events {
                match event {
                    ChatEvent::Reasoning(text) | ChatEvent::Content(text) => told.push_str(&text),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(told, "hm yes");
        assert!(matches!(reader.read(b"data: [DONE]\n"), Ok(EventMeaning::Done)));
        let speed = reader.ended();
        assert_eq!((speed.prompt_tokens, speed.answer_tokens), (4, 2));
    }

    #[test]
    fn what_a_server_refuses_is_said_in_its_words() {
        for (body, expected) in [
            (&br#"{"error":{"message":"too long","code":400}}"#[..], "too long"),
            (br#"{"error":"no such model"}"#, "no such model"),
            (b"<html>", "status 404 <html>"),
        ] {
            assert_eq!(refusal(404, body), expected);
        }
        let error = reader().read(br#"data: {"error":{"message":"it broke"}}"#).unwrap_err();
        assert_eq!(error, "it broke");
        assert!(reader().read(b"data: {").unwrap_err().contains("no JSON"));
        assert_eq!(model_names(br#"{"data":[{"id":"a"},{"x":1}]}"#), ["a"]);
    }
}
