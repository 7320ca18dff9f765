//! Settings and counts of what language models generate, as C has them.

use std::ffi::{c_char, c_void};

use galatea::{AnswerPiece, ChatMessage, GenerationSettings, Llm, TokenUsage};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};

/// Settings of an answer. Zeros stand for the model's own values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct GenerationOptions {
    /// `sizeof(galatea_generation_options)`.
    pub size: usize,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    /// 1 to take the most probable token each time.
    pub greedy: i32,
    /// Divides logits.
    pub temperature: f32,
    /// Share of probability that the most probable tokens that remain have together.
    pub top_p: f32,
    /// Least probability of a token, as a share of that of the most probable one.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens that were there.
    pub repetition_penalty: f32,
    /// Number of the most probable tokens that remain.
    pub top_k: u32,
    /// 1 if `seed` decides all random choices.
    pub has_seed: i32,
    /// Seed of random choices.
    pub seed: u64,
    /// Texts that end the answer.
    pub stop: *const *const c_char,
    /// Number of these texts.
    pub stop_count: usize,
    /// Priority; requests with lower values run first.
    pub priority: i32,
    /// 1 if the end tokens of the model do not end the answer.
    pub ignore_end: i32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for GenerationOptions {}

/// Message of a conversation.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ApiChatMessage {
    /// Role, such as "system", "user" or "assistant".
    pub role: *const c_char,
    /// Text.
    pub content: *const c_char,
}

/// Counts of tokens and times of an answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ApiTokenUsage {
    /// `sizeof(galatea_token_usage)`, set by the caller.
    pub size: usize,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Number of them that were found in the cache of keys and values.
    pub cached_tokens: usize,
    /// Tokens of the answer.
    pub completion_tokens: usize,
    /// Nanoseconds until the prompt began to be computed.
    pub queue_ns: u64,
    /// Nanoseconds until the first token.
    pub first_token_ns: u64,
    /// Nanoseconds until the end.
    pub total_ns: u64,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ApiTokenUsage {}

/// Kind of a piece of an answer.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// The content goes on.
    Content = 0,
    /// Reasoning goes on.
    Reasoning = 1,
    /// A call of a tool begins; the text is the name of the function.
    Call = 2,
    /// The arguments of a call go on.
    Arguments = 3,
}

/// Called with each piece of an answer, on the thread that waits for it. The text ends with a zero byte, which `length`
/// does not count, and is valid until the callback returns. Any result but 0 cancels the answer.
pub type PieceCallback = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        kind: i32,
        text: *const c_char,
        length: usize,
    ) -> i32,
>;

/// Kind and text of a piece.
pub(crate) struct PieceText {
    pub(crate) kind: PieceKind,
    pub(crate) text: String,
}

impl PieceText {
    pub(crate) fn of(piece: AnswerPiece) -> Self {
        match piece {
            AnswerPiece::Content(text) => Self { kind: PieceKind::Content, text },
            AnswerPiece::Reasoning(text) => Self { kind: PieceKind::Reasoning, text },
            AnswerPiece::Call { name, .. } => Self { kind: PieceKind::Call, text: name },
            AnswerPiece::Arguments { text, .. } => Self { kind: PieceKind::Arguments, text },
        }
    }

    /// Tells the callback of the piece. `false` cancels.
    pub(crate) fn tell(&self, callback: PieceCallback, context: *mut c_void) -> bool {
        let Some(callback) = callback else { return true };
        let text = format!("{}\0", self.text.replace('\0', "\u{fffd}"));
        // SAFETY: the caller promises that the callback may be called with its context; the text outlives the call.
        let result =
            unsafe { callback(context, self.kind as i32, text.as_ptr().cast(), text.len() - 1) };
        result == 0
    }
}

/// Reads settings of an answer over those of the model.
pub(crate) fn settings(
    caller: CallerPointers,
    llm: &Llm,
    options: *const GenerationOptions,
) -> Result<GenerationSettings, CallFailure> {
    let options = caller.options(options, "options")?;
    let mut settings =
        GenerationSettings { sampling: llm.defaults().clone(), ..Default::default() };
    let sampling = &mut settings.sampling;
    let set = |to: &mut f32, value: f32| {
        if value != 0.0 {
            *to = value;
        }
    };
    set(&mut sampling.temperature, options.temperature);
    set(&mut sampling.top_p, options.top_p);
    set(&mut sampling.min_p, options.min_p);
    set(&mut sampling.repetition_penalty, options.repetition_penalty);
    if options.greedy != 0 {
        sampling.temperature = 0.0;
    }
    if options.top_k != 0 {
        sampling.top_k = i64::from(options.top_k);
    }
    if options.max_tokens != 0 {
        sampling.max_tokens = Some(options.max_tokens);
    }
    if options.has_seed != 0 {
        sampling.seed = Some(options.seed);
    }
    sampling.ignore_eos |= options.ignore_end != 0;
    for &stop in caller.slice(options.stop, options.stop_count, "stop")? {
        sampling.stop.push(caller.text(stop, "stop")?.to_owned());
    }
    settings.priority = options.priority;
    Ok(settings)
}

/// Reads a conversation.
pub(crate) fn conversation_of(
    caller: CallerPointers,
    messages: *const ApiChatMessage,
    count: usize,
) -> Result<Vec<ChatMessage>, CallFailure> {
    if count == 0 {
        return Err(match messages.is_null() {
            true => CallFailure::null("messages"),
            false => CallFailure::argument("a conversation needs a message"),
        });
    }
    let read = |message: &ApiChatMessage| {
        let role = caller.text(message.role, "role")?;
        Ok(ChatMessage::new(role, caller.text(message.content, "content")?))
    };
    caller.slice(messages, count, "messages")?.iter().map(read).collect()
}

/// Writes counts and times where C asks for them.
pub(crate) fn put_usage(
    caller: CallerPointers,
    usage: Option<&TokenUsage>,
    to: *mut ApiTokenUsage,
) -> Result<(), CallFailure> {
    if to.is_null() {
        return Ok(());
    }
    let Some(usage) = usage else {
        return Err(CallFailure::new(ApiStatus::Run, "the answer has not ended"));
    };
    let found = ApiTokenUsage {
        size: size_of::<ApiTokenUsage>(),
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        completion_tokens: usage.completion_tokens,
        queue_ns: usage.queue_ns,
        first_token_ns: usage.first_token_ns,
        total_ns: usage.total_ns,
    };
    caller.report(found, to, "usage")
}
