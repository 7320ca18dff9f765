//! `galatea chat`: talks with a language model in the terminal.

use std::io::{BufRead, IsTerminal, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use galatea_llm::engine::{GenerationEvent, TokenUsage};
use galatea_llm::model::LanguageModel;
use galatea_serving::backend::llm::EngineArguments;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use super::arguments::{CommandArguments, CommandOption};
use super::{complain, model, say};
use crate::models;
use crate::openai::answer::{AnswerPiece, AnswerReader};
use crate::openai::chat::PreparedChat;
use crate::openai::error::ApiError;
use crate::openai::fields::ObjectFields;
use crate::openai::request::ChatRequest;
use crate::openai::run::RunningGeneration;

const CHOICES: &[CommandOption] = &[
    CommandOption { name: "system", value: "TEXT", sentence: "what the model is told first" },
    CommandOption { name: "prompt", value: "TEXT", sentence: "say this, print the answer and end" },
    CommandOption { name: "temperature", value: "T", sentence: "0 for the most probable words" },
    CommandOption { name: "top-p", value: "P", sentence: "share of probability to choose from" },
    CommandOption { name: "top-k", value: "K", sentence: "most probable tokens to choose from" },
    CommandOption {
        name: "min-p",
        value: "P",
        sentence: "least probability beside the largest one",
    },
    CommandOption { name: "seed", value: "N", sentence: "the same answers each time" },
    CommandOption { name: "max-tokens", value: "N", sentence: "longest answer" },
    CommandOption {
        name: "context",
        value: "N",
        sentence: "longest conversation in tokens [the model's]",
    },
    CommandOption {
        name: "dtype",
        value: "NAME",
        sentence: "float32, bfloat16 or float16 [float32]",
    },
    CommandOption {
        name: "quantization",
        value: "NAME",
        sentence: "round weights to q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1 or q4_0",
    },
    CommandOption {
        name: "kv-cache-dtype",
        value: "NAME",
        sentence: "auto, float32, float16, bfloat16 or int8 [auto]",
    },
    CommandOption { name: "stats", value: "", sentence: "tell how fast each answer was" },
];

/// Options that are members of a request.
const SAMPLING: &[(&str, &str)] = &[
    ("temperature", "temperature"),
    ("top-p", "top_p"),
    ("top-k", "top_k"),
    ("min-p", "min_p"),
    ("seed", "seed"),
    ("max-tokens", "max_tokens"),
];

/// Lines that may wait to be said.
const MAX_LINES: usize = 16;

pub(super) const COMMANDS: &str = "/reset forgets the conversation, /system TEXT begins a new one, /bye ends; \
                        Ctrl-C breaks an answer off";

/// Returns the options of the command.
pub(super) fn options() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Talks with a model until the input ends.
pub(super) fn chat(arguments: &CommandArguments) -> Result<ExitCode, String> {
    let given = arguments.only("MODEL")?;
    let path = model::checkpoint(given)?.unwrap_or_else(|| PathBuf::from(given));
    let mut talk = ChatSession::new(arguments)?;
    let context: usize = arguments.number("context", 0)?;
    let engine = EngineArguments {
        max_num_seqs: Some(1),
        max_model_len: (context > 0).then_some(context),
        dtype: arguments.last("dtype").map(str::to_owned),
        quantization: arguments.last("quantization").map(str::to_owned),
        kv_cache_dtype: arguments.last("kv-cache-dtype").map(str::to_owned),
        ..EngineArguments::default()
    };
    let options = models::load_options(&engine).map_err(|error| error.to_string())?;
    let model = LanguageModel::load(&path, &options).map_err(|error| error.to_string())?;
    let model = Arc::new(model);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime does not start: {error}"))?;
    let result = match arguments.last("prompt") {
        Some(prompt) => runtime.block_on(talk.say(&model, prompt)),
        None => runtime.block_on(talk.go_on(&model)),
    };
    // A thread may wait for a line that never comes.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

/// A conversation.
struct ChatSession {
    messages: Vec<Value>,
    sampling: Map<String, Value>,
    stats: bool,
}

/// Command that a line of input stands for.
#[derive(Debug, PartialEq, Eq)]
enum ChatLine<'a> {
    Say(&'a str),
    Begin(Option<&'a str>),
    Nothing,
    End,
    Unknown,
}

impl<'a> ChatLine<'a> {
    fn parse(line: &'a str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "" => Self::Nothing,
            "/bye" | "/quit" | "/exit" => Self::End,
            "/reset" => Self::Begin(None),
            "/system" => Self::Begin(Some(rest.trim()).filter(|rest| !rest.is_empty())),
            _ if word.starts_with('/') => Self::Unknown,
            _ => Self::Say(line),
        }
    }
}

impl ChatSession {
    fn new(arguments: &CommandArguments) -> Result<Self, String> {
        let mut sampling = Map::new();
        for (option, member) in SAMPLING {
            let Some(text) = arguments.last(option) else { continue };
            let number = serde_json::from_str(text).ok().filter(Value::is_number);
            let number =
                number.ok_or_else(|| format!("--{option} expects a number, got '{text}'"))?;
            sampling.insert((*member).to_owned(), number);
        }
        let mut talk = Self { messages: Vec::new(), sampling, stats: arguments.has("stats") };
        talk.begin(arguments.last("system"));
        Ok(talk)
    }

    fn begin(&mut self, system: Option<&str>) {
        self.messages.clear();
        self.messages.extend(system.map(|text| json!({"role": "system", "content": text})));
    }

    /// Answers lines until they end.
    async fn go_on(&mut self, model: &Arc<LanguageModel>) -> Result<(), String> {
        let mut lines = lines();
        let system = self.messages.first().and_then(|first| first.get("content")).cloned();
        if stdin().is_terminal() {
            say(COMMANDS);
        }
        loop {
            if stdin().is_terminal() {
                show("> ");
            }
            let line = tokio::select! {
                line = lines.recv() => line,
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some(line) = line else { return Ok(()) };
            match ChatLine::parse(&line) {
                ChatLine::Nothing => {}
                ChatLine::End => return Ok(()),
                ChatLine::Unknown => complain(COMMANDS),
                ChatLine::Begin(None) => self.begin(system.as_ref().and_then(Value::as_str)),
                ChatLine::Begin(other) => self.begin(other),
                ChatLine::Say(text) => {
                    let before = self.messages.len();
                    if let Err(error) = self.say(model, text).await {
                        // The conversation goes on as if nothing had been said.
                        self.messages.truncate(before);
                        complain(&format!("Error: {error}"));
                    }
                }
            }
        }
    }

    /// Says something, and prints the answer as it comes.
    async fn say(&mut self, model: &Arc<LanguageModel>, text: &str) -> Result<(), String> {
        self.messages.push(json!({"role": "user", "content": text}));
        let (chat, running) = self.ask(model).map_err(|error| error.message().to_owned())?;
        let mut answer = String::new();
        let result = tokio::select! {
            result = listen(running, chat.reader(), &mut answer) => result,
            _ = tokio::signal::ctrl_c() => Ok(None),
        };
        say("");
        let usage = result.map_err(|error| error.message().to_owned())?;
        if let Some(usage) = usage.filter(|_| self.stats) {
            complain(&speed(&usage));
        }
        self.messages.push(json!({"role": "assistant", "content": answer}));
        Ok(())
    }

    fn ask(
        &self,
        model: &Arc<LanguageModel>,
    ) -> Result<(PreparedChat, RunningGeneration), ApiError> {
        let mut body = self.sampling.clone();
        body.insert("messages".to_owned(), Value::Array(self.messages.clone()));
        let body = Value::Object(body);
        let fields = ObjectFields::of_request(&body)?;
        let request = ChatRequest::decode(&fields, model.defaults(), "")?;
        let (chat, job) = PreparedChat::prepare(Arc::clone(model), "the model", request)?;
        Ok((chat, RunningGeneration::start(model, vec![job])?))
    }
}

/// Prints an answer as it comes, and collects its content.
async fn listen(
    mut running: RunningGeneration,
    mut reader: AnswerReader,
    answer: &mut String,
) -> Result<Option<TokenUsage>, ApiError> {
    while let Some((_, event)) = running.next().await? {
        match event {
            GenerationEvent::Delta(step) => {
                let mut pieces = reader.push(&step.text);
                if step.finish.is_some() {
                    pieces.extend(reader.finish());
                }
                for piece in pieces {
                    match piece {
                        AnswerPiece::Reasoning(text) => show(&text),
                        AnswerPiece::Content(text) => {
                            show(&text);
                            answer.push_str(&text);
                        }
                        // Nobody offers tools here.
                        AnswerPiece::Call { .. } | AnswerPiece::Arguments { .. } => {}
                    }
                }
            }
            GenerationEvent::Finished(usage) => return Ok(Some(usage)),
            GenerationEvent::Started { .. } | GenerationEvent::Failed(_) => {}
        }
    }
    Ok(None)
}

fn speed(usage: &TokenUsage) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let first = seconds(usage.first_token_ns.saturating_sub(usage.queue_ns));
    let rest = seconds(usage.total_ns.saturating_sub(usage.first_token_ns));
    let later = usage.completion_tokens.saturating_sub(1);
    let rate = if rest > 0.0 { later as f64 / rest } else { 0.0 };
    format!(
        "[{} tokens in, {} of them cached, first token after {first:.3} s; {} tokens out, {rate:.1} tokens/s]",
        usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens
    )
}

/// The lines of the standard input, read on a thread that may wait.
fn lines() -> Receiver<String> {
    let (to, lines) = channel(MAX_LINES);
    tokio::task::spawn_blocking(move || {
        for line in stdin().lock().lines() {
            let Ok(line) = line else { return };
            if to.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Prints without a line break. A closed standard output is not an error of the program.
fn show(text: &str) {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(arguments: &[&str]) -> Result<ChatSession, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        ChatSession::new(&CommandArguments::parse(&arguments, CHOICES)?)
    }

    #[test]
    fn lines_are_said_or_command() {
        for (line, meaning) in [
            ("  hello there ", ChatLine::Say("hello there")),
            ("", ChatLine::Nothing),
            ("/bye", ChatLine::End),
            ("/reset", ChatLine::Begin(None)),
            ("/system be brief", ChatLine::Begin(Some("be brief"))),
            ("/system", ChatLine::Begin(None)),
            ("/dance", ChatLine::Unknown),
        ] {
            assert_eq!(ChatLine::parse(line), meaning, "{line}");
        }
    }

    #[test]
    fn options_become_members_of_requests() {
        let talk = talk(&["m", "--temperature=0.5", "--max-tokens", "7", "--system", "s"]).unwrap();
        let members = json!({"temperature": 0.5, "max_tokens": 7});
        assert_eq!(Value::Object(talk.sampling), members);
        assert_eq!(talk.messages, [json!({"role": "system", "content": "s"})]);
        let error = self::talk(&["m", "--top-p=all"]).err().unwrap();
        assert_eq!(error, "--top-p expects a number, got 'all'");
    }

    #[test]
    fn speeds_leave_the_queue_and_the_first_token_out() {
        let usage = TokenUsage {
            prompt_tokens: 5,
            completion_tokens: 11,
            queue_ns: 1_000_000_000,
            first_token_ns: 1_250_000_000,
            total_ns: 3_250_000_000,
            ..TokenUsage::default()
        };
        let text = speed(&usage);
        assert!(
            text.contains("first token after 0.250 s") && text.contains("5.0 tokens/s"),
            "{text}"
        );
    }
}
