//! Parts of an answer, whoever gives it.

/// Part of an answer, or its end.
#[derive(Debug)]
pub(super) enum ChatEvent {
    /// Text in front of the answer.
    Reasoning(String),
    /// Text of the answer.
    Content(String),
    Ended(ChatSpeed),
    Failed(String),
}

/// Tokens and times of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ChatSpeed {
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) answer_tokens: u64,
    /// Seconds until the first token.
    pub(super) first: f64,
    /// Seconds from the first token to the last.
    pub(super) rest: f64,
}
