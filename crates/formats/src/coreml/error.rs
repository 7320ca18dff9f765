//! Errors of Core ML models, with the place of the fault.

use std::fmt;
use std::path::{Path, PathBuf};

use galatea_graph::{GraphError, OpError};
use galatea_tensor::TensorError;

/// Kind of an error of a Core ML model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoreMlErrorKind {
    /// A file cannot be opened, mapped or written.
    File(String),
    /// The bytes are no protobuf message of this schema.
    Encoding {
        /// How far the bytes could be read.
        offset_bytes: usize,
        /// The decoder's message, with the message type and field in question.
        text: String,
    },
    /// The model needs a version of the format outside the supported range.
    Version(String),
    /// The model says something that Core ML does not allow.
    Invalid(String),
    /// Valid Core ML that is not supported here.
    Unsupported(String),
    /// The graph that was made of the model is refused.
    Graph(GraphError),
}

/// An error of a Core ML model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreMlError {
    kind: Box<CoreMlErrorKind>,
    place: String,
    file: Option<PathBuf>,
}

impl CoreMlError {
    pub(super) fn new(kind: CoreMlErrorKind) -> Self {
        Self { kind: Box::new(kind), place: String::new(), file: None }
    }

    pub(super) fn file(text: impl Into<String>) -> Self {
        Self::new(CoreMlErrorKind::File(text.into()))
    }

    pub(super) fn invalid(text: impl Into<String>) -> Self {
        Self::new(CoreMlErrorKind::Invalid(text.into()))
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Self::new(CoreMlErrorKind::Unsupported(text.into()))
    }

    /// Says where the error is, from the inside out: each caller puts what it is about in front.
    pub(super) fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = match self.place.is_empty() {
            true => place.to_string(),
            false => format!("{place}: {}", self.place),
        };
        self
    }

    pub(super) fn in_file(mut self, path: &Path) -> Self {
        self.file.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> &CoreMlErrorKind {
        &self.kind
    }

    /// Returns the place of the fault, such as `function 'main': operation 'y' (conv)`; empty for
    /// the whole model.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl From<TensorError> for CoreMlError {
    fn from(error: TensorError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<OpError> for CoreMlError {
    fn from(error: OpError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<GraphError> for CoreMlError {
    fn from(error: GraphError) -> Self {
        Self::new(CoreMlErrorKind::Graph(error))
    }
}

impl fmt::Display for CoreMlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        match &*self.kind {
            CoreMlErrorKind::Encoding { offset_bytes, text } => {
                write!(f, "not a readable Core ML message at byte {offset_bytes}: {text}")
            }
            CoreMlErrorKind::Graph(error) => error.fmt(f),
            CoreMlErrorKind::File(text)
            | CoreMlErrorKind::Version(text)
            | CoreMlErrorKind::Invalid(text)
            | CoreMlErrorKind::Unsupported(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for CoreMlError {}
