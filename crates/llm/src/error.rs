//! Errors of language models, and where they arise.

use std::fmt;

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// A file could not be read.
    Read,
    /// A `config.json` is malformed, lacks something or contradicts itself.
    Config,
    /// Tensors of a checkpoint are missing, have another shape or are not known.
    Weights,
    /// A tokenizer is malformed, or does not know what it is asked for.
    Tokenizer,
    /// A chat template is malformed, refuses its messages or takes too long.
    Template,
    /// A parameter of a request is out of its range or contradicts another one.
    Parameter,
    /// A grammar is malformed, impossible or too large.
    Grammar,
    /// The queue of waiting requests is full.
    Overloaded,
    /// The engine stops.
    Unavailable,
    /// A step of the model failed.
    Model,
    /// Data that a step needs was lost through no fault of its requests, such as with a process that ended.
    Lost,
}

/// An error of this crate: its kind, the place, and what was found and expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmError {
    kind: LlmErrorKind,
    place: String,
    message: String,
}

impl LlmError {
    /// An error of `kind` at `place` (a field path, a file, a token).
    pub fn new(kind: LlmErrorKind, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, place: place.into(), message: message.into() }
    }

    /// The kind.
    pub fn kind(&self) -> LlmErrorKind {
        self.kind
    }

    /// Where it went wrong: a field path, a file, a token.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Text of what was found and what was expected, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error, whose place lies inside `outer`.
    #[must_use]
    pub fn within(mut self, outer: impl fmt::Display) -> Self {
        self.place = format!("{outer}: {}", self.place);
        self
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for LlmError {}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, LlmError>;
