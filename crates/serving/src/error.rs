//! Kinds of errors, in Triton's eight codes.

use std::fmt;

/// Kind of an error; front ends map it to HTTP and gRPC statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing more is known.
    Unknown,
    /// A fault of the server or of the model.
    Internal,
    /// The thing asked for does not exist.
    NotFound,
    /// The request is wrong.
    InvalidArg,
    /// Not now: the model or the server is not ready, or a queue is full.
    Unavailable,
    /// The server cannot do this.
    Unsupported,
    /// The thing to be made exists.
    AlreadyExists,
    /// The request was cancelled.
    Cancelled,
}

impl ErrorCode {
    /// The name that Triton puts before a nested text, as in `Invalid argument: …`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Internal => "Internal",
            Self::NotFound => "Not found",
            Self::InvalidArg => "Invalid argument",
            Self::Unavailable => "Unavailable",
            Self::Unsupported => "Unsupported",
            Self::AlreadyExists => "Already exists",
            // Triton has no name for this code and says so.
            Self::Cancelled => "<invalid code>",
        }
    }
}

/// An error with the text that the user sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingError {
    /// Kind.
    pub code: ErrorCode,
    /// Text, without the code's name.
    pub message: String,
}

impl ServingError {
    /// An error of any kind.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The request is wrong.
    pub fn invalid_arg(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArg, message)
    }

    /// A fault of the server or of the model.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The thing asked for does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// Not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// The server cannot do this.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unsupported, message)
    }

    /// The request was cancelled.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Cancelled, message)
    }

    /// The text with the code's name before it, as it stands inside other texts.
    #[must_use]
    pub fn nested(&self) -> String {
        format!("{}: {}", self.code.name(), self.message)
    }
}

/// Returns the longest beginning of a text that has at most so many bytes.
#[must_use]
pub fn text_beginning(text: &str, most_bytes: usize) -> &str {
    let end = (0..=most_bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    text.get(..end.unwrap_or(0)).unwrap_or("")
}

impl fmt::Display for ServingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServingError {}

impl From<galatea_tensor::TensorError> for ServingError {
    fn from(error: galatea_tensor::TensorError) -> Self {
        Self::internal(error.to_string())
    }
}
