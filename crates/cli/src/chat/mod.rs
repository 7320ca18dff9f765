//! `galatea chat`: talks with a language model in the terminal.

mod editor;
mod event;
mod input;
mod message;
mod peer;
mod remote;

use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use galatea::{ChatMessage, EngineArguments, SamplingParameters};
use galatea_llm::chat::NO_TEMPLATE;
use tokio::sync::mpsc::Receiver;

use super::arguments::{number, purpose};
use super::language_choices::ContextLength;
use super::model::checkpoint;
use super::progress::ProgressLine;
use super::server_place::{ClientArguments, HostPort, http_place};
use super::{complain, engine, harmless, say};
use event::{ChatEvent, ChatSpeed};
use input::MessageSource;
use peer::ChatPeer;
use remote::RemoteChat;

/// Command line of `galatea chat`.
#[derive(Debug, Args)]
#[command(mut_args(purpose("context", "longest conversation in tokens [the model's]")))]
pub(super) struct ChatArguments {
    #[arg(value_name = "MODEL", required_unless_present = "url")]
    model: Option<String>,
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = openai_place,
        help = "talk with MODEL of the server there, or with its only model"
    )]
    url: Option<HostPort>,
    #[command(flatten)]
    client: ClientArguments,
    #[arg(long, value_name = "TEXT", help = "what the model is told first")]
    system: Option<String>,
    #[arg(long, value_name = "TEXT", help = "say this, print the answer and end")]
    prompt: Option<String>,
    #[command(flatten)]
    sampling: SamplingChoices,
    #[command(flatten)]
    text: ContextLength,
    #[arg(
        long,
        value_name = "FILE",
        help = "chat template in the place of the model's: a file or a text"
    )]
    chat_template: Option<String>,
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
pub(super) struct SamplingChoices {
    #[arg(
        long,
        value_name = "T",
        value_parser = number::<f32>,
        help = "0 for the most probable words"
    )]
    pub(super) temperature: Option<f32>,
    #[arg(
        long,
        value_name = "P",
        value_parser = number::<f32>,
        help = "share of probability to choose from"
    )]
    pub(super) top_p: Option<f32>,
    #[arg(
        long,
        value_name = "K",
        value_parser = number::<i64>,
        help = "most probable tokens to choose from"
    )]
    pub(super) top_k: Option<i64>,
    #[arg(
        long,
        value_name = "P",
        value_parser = number::<f32>,
        help = "least probability beside the largest one"
    )]
    pub(super) min_p: Option<f32>,
    #[arg(long, value_name = "N", value_parser = number::<u64>, help = "the same answers each time")]
    pub(super) seed: Option<u64>,
    #[arg(long, value_name = "N", value_parser = number::<u32>, help = "longest answer")]
    pub(super) max_tokens: Option<u32>,
}

pub(super) const COMMANDS: &str = "/reset forgets the conversation, /system TEXT begins a new one, /bye or Ctrl-D \
                        ends; Ctrl-C breaks an answer off. Arrow keys move in a message and bring earlier ones \
                        back. \"\"\" begins and ends a message of several lines, and so does a backslash at the \
                        end of each but the last.";

/// Talks with a model until the input ends.
pub(super) fn chat(arguments: &ChatArguments) -> Result<ExitCode, String> {
    let mut talk = ChatSession::new(arguments);
    let peer = match &arguments.url {
        Some(place) => server_model(place, arguments)?,
        None => local_model(arguments)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime does not start: {error}"))?;
    let result = match &arguments.prompt {
        Some(prompt) => runtime.block_on(talk.say(&peer, prompt)),
        None => runtime.block_on(talk.go_on(&peer)),
    };
    // A thread may wait for a line that never comes.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

/// Loads the model that the command line names.
fn local_model(arguments: &ChatArguments) -> Result<ChatPeer, String> {
    if arguments.client.are_given() {
        return Err("--ca-file, --insecure and --header are about a server: give --url".to_owned());
    }
    let model = arguments.model.as_deref().unwrap_or_default();
    let weights = EngineArguments {
        max_num_seqs: Some(1),
        max_model_len: arguments.text.context.filter(|tokens| *tokens > 0),
        dtype: arguments.dtype.clone(),
        quantization: arguments.quantization.clone(),
        kv_cache_dtype: arguments.kv_cache_dtype.clone(),
        chat_template: arguments.chat_template.clone(),
        ..EngineArguments::default()
    };
    let line = ProgressLine::start(format!("Loading {model}"));
    let loaded = engine().llm_with(Path::new(model), &weights).map_err(|error| error.to_string());
    drop(line);
    let loaded = loaded.map_err(|error| match checkpoint(Path::new(model)) {
        Ok(None) => format!(
            "'{model}' is no language model, which is a GGUF file or a folder with config.json and weights: {error}"
        ),
        _ => error,
    })?;
    if loaded.language_model().template().is_none() {
        return Err(format!("the model '{model}' {NO_TEMPLATE}"));
    }
    Ok(ChatPeer::Here(Box::new(loaded)))
}

/// Finds the model of a server.
fn server_model(place: &HostPort, arguments: &ChatArguments) -> Result<ChatPeer, String> {
    let ChatArguments { dtype, quantization, kv_cache_dtype, chat_template, text, .. } = arguments;
    let of_loading = [
        ("context", text.context.is_some()),
        ("dtype", dtype.is_some()),
        ("quantization", quantization.is_some()),
        ("kv-cache-dtype", kv_cache_dtype.is_some()),
        ("chat-template", chat_template.is_some()),
    ];
    if let Some((option, _)) = of_loading.iter().find(|(_, given)| *given) {
        return Err(format!(
            "--{option} is about loading a model, which the server at {place} has done"
        ));
    }
    let found = RemoteChat::find(place, &arguments.client, arguments.model.as_deref())?;
    if stdin().is_terminal() {
        say(&format!("{} at {place}", found.model));
    }
    Ok(ChatPeer::Server(Arc::new(found)))
}

/// Reads the place of a server that speaks OpenAI's protocol, whose address is often given with `/v1`.
fn openai_place(given: &str) -> Result<HostPort, String> {
    let bare = given.trim_end_matches('/');
    http_place(bare.strip_suffix("/v1").unwrap_or(bare))
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

    /// Answers messages until they end.
    async fn go_on(&mut self, peer: &ChatPeer) -> Result<(), String> {
        let mut source = MessageSource::open()?;
        let system = self.messages.first().map(|first| first.content.clone());
        if stdin().is_terminal() {
            say(COMMANDS);
        }
        loop {
            let Some(line) = source.next().await? else { return Ok(()) };
            match ChatLine::parse(&line) {
                ChatLine::Nothing => {}
                ChatLine::End => return Ok(()),
                ChatLine::Unknown => complain(COMMANDS),
                ChatLine::Begin(None) => self.begin(system.as_deref()),
                ChatLine::Begin(other) => self.begin(other),
                ChatLine::Say(text) => {
                    let before = self.messages.len();
                    if let Err(error) = self.say(peer, text).await {
                        // The conversation goes on as if nothing had been said.
                        self.messages.truncate(before);
                        complain(&format!("Error: {error}"));
                    }
                }
            }
        }
    }

    /// Says something, and prints the answer as it comes.
    async fn say(&mut self, peer: &ChatPeer, text: &str) -> Result<(), String> {
        self.messages.push(ChatMessage::user(text));
        let mut asked = peer.ask(&self.messages, &self.sampling)?;
        let mut answer = String::new();
        let result = tokio::select! {
            result = listen(&mut asked.events, &mut answer) => result,
            _ = tokio::signal::ctrl_c() => Ok(None),
        };
        drop(asked);
        say("");
        if let Some(speed) = result?.filter(|_| self.stats) {
            complain(&speed_text(&speed));
        }
        self.messages.push(ChatMessage::assistant(answer));
        Ok(())
    }
}

/// Prints an answer as it comes, and collects its content.
async fn listen(
    events: &mut Receiver<ChatEvent>,
    answer: &mut String,
) -> Result<Option<ChatSpeed>, String> {
    // A prompt may take long to be read.
    let mut line = Some(ProgressLine::start("Reading"));
    while let Some(event) = events.recv().await {
        line.take();
        match event {
            ChatEvent::Reasoning(text) => show(&text),
            ChatEvent::Content(text) => {
                show(&text);
                answer.push_str(&text);
            }
            ChatEvent::Ended(speed) => return Ok(Some(speed)),
            ChatEvent::Failed(error) => return Err(error),
        }
    }
    Ok(None)
}

fn speed_text(of: &ChatSpeed) -> String {
    let later = of.answer_tokens.saturating_sub(1);
    let rate = if of.rest > 0.0 { later as f64 / of.rest } else { 0.0 };
    format!(
        "[{} tokens in, {} of them cached, first token after {:.3} s; {} tokens out, {rate:.1} tokens/s]",
        of.prompt_tokens, of.cached_tokens, of.first, of.answer_tokens
    )
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
    fn speeds_are_of_the_tokens_behind_the_first() {
        let speed = ChatSpeed { answer_tokens: 11, first: 0.25, rest: 2.0, ..ChatSpeed::default() };
        let text = speed_text(&speed);
        assert!(
            text.contains("first token after 0.250 s") && text.contains("5.0 tokens/s"),
            "{text}"
        );
    }

    #[test]
    fn a_model_is_named_or_a_server_is() {
        assert_eq!(talk(&[]).err().unwrap(), "MODEL is missing");
        let parsed: ChatArguments = parse(&["--url", "http://h:9/v1/"]).unwrap();
        assert_eq!(parsed.url.unwrap().to_string(), "h:9");
    }
}
