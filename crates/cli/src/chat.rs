//! `galatea chat`: talks with a language model in the terminal.

use std::io::{BufRead, IsTerminal, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use galatea::{
    AnswerPiece, AnswerStream, ChatInput, ChatMessage, EngineArguments, Llm, SamplingParameters,
    TokenUsage,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::arguments::{number, path, purpose};
use super::language_choices::ContextLength;
use super::{complain, engine, harmless, say};

/// Command line of `galatea chat`.
#[derive(Debug, Args)]
#[command(mut_args(purpose("context", "longest conversation in tokens [the model's]")))]
pub(super) struct ChatArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[arg(long, value_name = "TEXT", help = "what the model is told first")]
    system: Option<String>,
    #[arg(long, value_name = "TEXT", help = "say this, print the answer and end")]
    prompt: Option<String>,
    #[command(flatten)]
    sampling: SamplingChoices,
    #[command(flatten)]
    text: ContextLength,
    #[arg(long, value_name = "NAME", help = "float32, bfloat16 or float16 [float32]")]
    dtype: Option<String>,
    #[arg(
        long,
        value_name = "NAME",
        help = "round weights to q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1 or q4_0"
    )]
    quantization: Option<String>,
    #[arg(long, value_name = "NAME", help = "auto, float32, float16, bfloat16 or int8 [auto]")]
    kv_cache_dtype: Option<String>,
    #[arg(long, help = "tell how fast each answer was")]
    stats: bool,
}

/// Parameters of choosing tokens that options give; the others are the model's.
#[derive(Debug, Clone, Default, PartialEq, Args)]
struct SamplingChoices {
    #[arg(
        long,
        value_name = "T",
        value_parser = number::<f32>,
        help = "0 for the most probable words"
    )]
    temperature: Option<f32>,
    #[arg(
        long,
        value_name = "P",
        value_parser = number::<f32>,
        help = "share of probability to choose from"
    )]
    top_p: Option<f32>,
    #[arg(
        long,
        value_name = "K",
        value_parser = number::<i64>,
        help = "most probable tokens to choose from"
    )]
    top_k: Option<i64>,
    #[arg(
        long,
        value_name = "P",
        value_parser = number::<f32>,
        help = "least probability beside the largest one"
    )]
    min_p: Option<f32>,
    #[arg(long, value_name = "N", value_parser = number::<u64>, help = "the same answers each time")]
    seed: Option<u64>,
    #[arg(long, value_name = "N", value_parser = number::<u32>, help = "longest answer")]
    max_tokens: Option<u32>,
}

/// Pieces of an answer that may wait to be printed.
const MAX_PIECES: usize = 64;
/// Lines that may wait to be said.
const MAX_LINES: usize = 16;

pub(super) const COMMANDS: &str = "/reset forgets the conversation, /system TEXT begins a new one, /bye ends; \
                        Ctrl-C breaks an answer off";

/// Talks with a model until the input ends.
pub(super) fn chat(arguments: &ChatArguments) -> Result<ExitCode, String> {
    let mut talk = ChatSession::new(arguments);
    let weights = EngineArguments {
        max_num_seqs: Some(1),
        max_model_len: arguments.text.context.filter(|tokens| *tokens > 0),
        dtype: arguments.dtype.clone(),
        quantization: arguments.quantization.clone(),
        kv_cache_dtype: arguments.kv_cache_dtype.clone(),
        ..EngineArguments::default()
    };
    let model = engine().llm_with(&arguments.model, &weights).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime does not start: {error}"))?;
    let result = match &arguments.prompt {
        Some(prompt) => runtime.block_on(talk.say(&model, prompt)),
        None => runtime.block_on(talk.go_on(&model)),
    };
    // A thread may wait for a line that never comes.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

/// A conversation.
struct ChatSession {
    messages: Vec<ChatMessage>,
    sampling: SamplingChoices,
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

impl SamplingChoices {
    /// The model's own parameters, with these in their place.
    fn apply(&self, defaults: &SamplingParameters) -> SamplingParameters {
        let own = defaults.clone();
        SamplingParameters {
            temperature: self.temperature.unwrap_or(own.temperature),
            top_p: self.top_p.unwrap_or(own.top_p),
            top_k: self.top_k.unwrap_or(own.top_k),
            min_p: self.min_p.unwrap_or(own.min_p),
            seed: self.seed.or(own.seed),
            max_tokens: self.max_tokens.or(own.max_tokens),
            ..own
        }
    }
}

impl ChatSession {
    fn new(arguments: &ChatArguments) -> Self {
        let sampling = arguments.sampling.clone();
        let mut talk = Self { messages: Vec::new(), sampling, stats: arguments.stats };
        talk.begin(arguments.system.as_deref());
        talk
    }

    fn begin(&mut self, system: Option<&str>) {
        self.messages.clear();
        self.messages.extend(system.map(ChatMessage::system));
    }

    /// Answers lines until they end.
    async fn go_on(&mut self, model: &Llm) -> Result<(), String> {
        let mut lines = lines();
        let system = self.messages.first().map(|first| first.content.clone());
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
                ChatLine::Begin(None) => self.begin(system.as_deref()),
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
    async fn say(&mut self, model: &Llm, text: &str) -> Result<(), String> {
        self.messages.push(ChatMessage::user(text));
        let input =
            ChatInput::new(&self.messages).with_sampling(self.sampling.apply(model.defaults()));
        let stream = model.stream_chat(input).map_err(|error| error.to_string())?;
        let mut answer = String::new();
        let (to, events) = channel(MAX_PIECES);
        // The thread ends, and with it the request, when nobody listens any more.
        tokio::task::spawn_blocking(move || tell(stream, &to));
        let result = tokio::select! {
            result = listen(events, &mut answer) => result,
            _ = tokio::signal::ctrl_c() => Ok(None),
        };
        say("");
        if let Some(usage) = result?.filter(|_| self.stats) {
            complain(&speed(&usage));
        }
        self.messages.push(ChatMessage::assistant(answer));
        Ok(())
    }
}

/// Part of an answer, or its end.
enum ChatEvent {
    Piece(AnswerPiece),
    Ended(TokenUsage),
    Failed(String),
}

/// Tells an answer piece by piece.
fn tell(mut stream: AnswerStream, to: &Sender<ChatEvent>) {
    for piece in stream.by_ref() {
        let event = match piece {
            Ok(piece) => ChatEvent::Piece(piece),
            Err(error) => ChatEvent::Failed(error.to_string()),
        };
        if to.blocking_send(event).is_err() {
            return;
        }
    }
    if let Some(usage) = stream.usage() {
        // Nobody wants to know any more where this fails.
        drop(to.blocking_send(ChatEvent::Ended(*usage)));
    }
}

/// Prints an answer as it comes, and collects its content.
async fn listen(
    mut events: Receiver<ChatEvent>,
    answer: &mut String,
) -> Result<Option<TokenUsage>, String> {
    while let Some(event) = events.recv().await {
        match event {
            ChatEvent::Piece(AnswerPiece::Reasoning(text)) => show(&text),
            ChatEvent::Piece(AnswerPiece::Content(text)) => {
                show(&text);
                answer.push_str(&text);
            }
            // Nobody offers tools here.
            ChatEvent::Piece(AnswerPiece::Call { .. } | AnswerPiece::Arguments { .. }) => {}
            ChatEvent::Ended(usage) => return Ok(Some(usage)),
            ChatEvent::Failed(error) => return Err(error),
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
    let text = harmless(text);
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    fn talk(arguments: &[&str]) -> Result<ChatSession, String> {
        parse(arguments).map(|arguments| ChatSession::new(&arguments))
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
    fn options_go_before_the_models_own_choices() {
        let talk = talk(&["m", "--temperature=0.5", "--max-tokens", "7", "--system", "s"]).unwrap();
        let defaults = SamplingParameters { top_p: 0.9, ..SamplingParameters::default() };
        let wanted =
            SamplingParameters { temperature: 0.5, max_tokens: Some(7), ..defaults.clone() };
        assert_eq!(talk.sampling.apply(&defaults), wanted);
        assert_eq!(talk.messages, [ChatMessage::system("s")]);
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
