//! Answers as they go over the wire.

use std::hash::{BuildHasher, Hasher, RandomState};

use galatea_llm::chat::AnswerMessage;
use galatea_llm::tools::ToolCall;
use serde::Serialize;
use serde_json::Value;

use super::logprobs::{ChatLogprobs, CompletionLogprobs};

/// Counts of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct UsageObject {
    prompt_tokens: usize,
    total_tokens: usize,
    completion_tokens: usize,
    prompt_tokens_details: PromptDetails,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct PromptDetails {
    cached_tokens: usize,
}

impl UsageObject {
    /// Counts of a prompt, of what the cache had of it, and of its answers.
    pub(crate) fn new(
        prompt_tokens: usize,
        cached_tokens: usize,
        completion_tokens: usize,
    ) -> Self {
        Self {
            prompt_tokens,
            total_tokens: prompt_tokens + completion_tokens,
            completion_tokens,
            prompt_tokens_details: PromptDetails { cached_tokens },
        }
    }
}

impl std::ops::AddAssign for UsageObject {
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens += other.prompt_tokens;
        self.total_tokens += other.total_tokens;
        self.completion_tokens += other.completion_tokens;
        self.prompt_tokens_details.cached_tokens += other.prompt_tokens_details.cached_tokens;
    }
}

/// Fields at the head of every answer and of every piece.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AnswerEnvelope {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: String,
}

impl AnswerEnvelope {
    /// The beginning of an answer's JSON.
    pub(crate) fn new(prefix: &str, object: &'static str, given: &str, model: &str) -> Self {
        Self {
            id: format!("{prefix}{given}"),
            object,
            created: now(),
            model: model.to_owned(),
            system_fingerprint: concat!("galatea-", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// An answer, or a piece of one.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerObject<'a, C> {
    /// Its beginning.
    #[serde(flatten)]
    pub(crate) envelope: &'a AnswerEnvelope,
    /// Its choices.
    pub(crate) choices: Vec<C>,
    /// Counts of tokens; `Some(None)` says in a piece that they come later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Option<UsageObject>>,
    /// Log-probabilities of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt_logprobs: Option<Value>,
    /// Tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt_token_ids: Option<&'a [u32]>,
}

impl<'a, C> AnswerObject<'a, C> {
    /// An answer of these choices alone.
    pub(crate) fn new(envelope: &'a AnswerEnvelope, choices: Vec<C>) -> Self {
        Self { envelope, choices, usage: None, prompt_logprobs: None, prompt_token_ids: None }
    }
}

/// One of a chat's answers.
#[derive(Debug, Serialize)]
pub(crate) struct ChatChoice {
    pub(crate) index: usize,
    pub(crate) message: WireMessage,
    pub(crate) logprobs: Option<ChatLogprobs>,
    pub(crate) finish_reason: Option<&'static str>,
    pub(crate) stop_reason: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_ids: Option<Vec<u32>>,
}

/// A message of the assistant.
#[derive(Debug, Serialize)]
pub(crate) struct WireMessage {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
}

impl From<AnswerMessage> for WireMessage {
    fn from(message: AnswerMessage) -> Self {
        let AnswerMessage { reasoning, content, calls } = message;
        // Beside calls, white space is no content.
        let silent = !calls.is_empty() && content.trim().is_empty();
        Self {
            role: "assistant",
            content: (!silent).then_some(content),
            refusal: None,
            reasoning_content: (!reasoning.is_empty()).then_some(reasoning),
            tool_calls: calls.into_iter().map(WireCall::whole).collect(),
        }
    }
}

/// A call, or a piece of one.
#[derive(Debug, Serialize)]
pub(crate) struct WireCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    sort: Option<&'static str>,
    function: WireFunction,
}

#[derive(Debug, Serialize)]
struct WireFunction {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    arguments: String,
}

impl WireCall {
    fn whole(call: ToolCall) -> Self {
        let function = WireFunction { name: Some(call.name), arguments: call.arguments };
        Self { index: None, id: Some(unique("call_")), sort: Some("function"), function }
    }

    /// The first piece of a call.
    pub(crate) fn begin(index: usize, name: String) -> Self {
        let call = Self::whole(ToolCall { name, arguments: String::new() });
        Self { index: Some(index), ..call }
    }

    /// Adds to the arguments, if they are those of the call of this number.
    pub(crate) fn grow(&mut self, index: usize, arguments: &str) -> bool {
        let same = self.index == Some(index);
        if same {
            self.function.arguments.push_str(arguments);
        }
        same
    }

    /// A further piece of a call.
    pub(crate) fn arguments(index: usize, arguments: String) -> Self {
        let function = WireFunction { name: None, arguments };
        Self { index: Some(index), id: None, sort: None, function }
    }
}

/// A piece of one of a chat's answers.
#[derive(Debug, Serialize)]
pub(crate) struct ChatPiece {
    pub(crate) index: usize,
    pub(crate) delta: DeltaObject,
    pub(crate) logprobs: Option<ChatLogprobs>,
    pub(crate) finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop_reason: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_ids: Option<Vec<u32>>,
}

/// Addition of a piece to a message.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DeltaObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<WireCall>,
}

/// One of a completion's answers, or a piece of one.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CompletionChoice {
    pub(crate) index: usize,
    pub(crate) text: String,
    pub(crate) logprobs: Option<CompletionLogprobs>,
    pub(crate) finish_reason: Option<&'static str>,
    pub(crate) stop_reason: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt_logprobs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_ids: Option<Vec<u32>>,
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The JSON of an answer.
pub(crate) fn to_bytes(answer: &impl Serialize) -> Vec<u8> {
    // Texts, numbers and lists of them always have a JSON form.
    serde_json::to_vec(answer).unwrap_or_default()
}

/// An event of a stream.
pub(crate) fn event(answer: &impl Serialize) -> Vec<u8> {
    [b"data: ", to_bytes(answer).as_slice(), b"\n\n"].concat()
}

/// The last event of a stream.
pub(crate) const DONE: &[u8] = b"data: [DONE]\n\n";

/// A name that no other answer and no other call has.
pub(crate) fn unique(prefix: &str) -> String {
    // The keys of the hasher are random, and differ each time.
    let word = || RandomState::new().build_hasher().finish();
    format!("{prefix}{:016x}{:016x}", word(), word())
}
