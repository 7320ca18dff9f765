//! Errors of ONNX files, with the place of the fault.

use std::fmt;
use std::path::{Path, PathBuf};

use galatea_graph::GraphError;
use galatea_tensor::TensorError;

/// Kind of an error of an ONNX file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnnxErrorKind {
    /// A file cannot be opened or mapped.
    File(String),
    /// The bytes are no protobuf message of this schema.
    Encoding {
        /// How far the bytes could be read.
        offset_bytes: usize,
        /// The decoder's message, with the message type and field in question.
        text: String,
    },
    /// The model needs an opset or format version outside the supported range.
    Version(String),
    /// The file says something that ONNX does not allow.
    Invalid(String),
    /// Valid ONNX that is not supported here.
    Unsupported(String),
    /// A node or the graph as a whole is refused.
    Graph(GraphError),
}

/// An error of an ONNX file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxError {
    kind: Box<OnnxErrorKind>,
    place: String,
    file: Option<PathBuf>,
}

impl OnnxError {
    pub(super) fn new(kind: OnnxErrorKind, place: &FieldPath<'_>) -> Self {
        Self { kind: Box::new(kind), place: place.to_string(), file: None }
    }

    pub(super) fn invalid(place: &FieldPath<'_>, text: impl Into<String>) -> Self {
        Self::new(OnnxErrorKind::Invalid(text.into()), place)
    }

    pub(super) fn unsupported(place: &FieldPath<'_>, text: impl Into<String>) -> Self {
        Self::new(OnnxErrorKind::Unsupported(text.into()), place)
    }

    pub(super) fn tensor(place: &FieldPath<'_>, error: &TensorError) -> Self {
        Self::invalid(place, error.to_string())
    }

    pub(super) fn in_file(mut self, path: &Path) -> Self {
        self.file.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> &OnnxErrorKind {
        &self.kind
    }

    /// The field it is about, such as `graph.node[3].attribute[1].t`; empty for the whole file.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for OnnxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        match &*self.kind {
            OnnxErrorKind::Encoding { offset_bytes, text } => {
                write!(f, "not a readable ONNX message at byte {offset_bytes}: {text}")
            }
            OnnxErrorKind::Graph(error) => error.fmt(f),
            OnnxErrorKind::File(text)
            | OnnxErrorKind::Version(text)
            | OnnxErrorKind::Invalid(text)
            | OnnxErrorKind::Unsupported(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OnnxError {}

/// A field of the file, as a chain up to the root: written out only when an error needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    field: &'static str,
    index: Option<usize>,
}

impl<'a> FieldPath<'a> {
    /// The message as a whole.
    pub(super) const ROOT: FieldPath<'static> = FieldPath { parent: None, field: "", index: None };

    pub(super) fn field(&'a self, field: &'static str) -> FieldPath<'a> {
        FieldPath { parent: Some(self), field, index: None }
    }

    pub(super) fn item(&'a self, field: &'static str, index: usize) -> FieldPath<'a> {
        FieldPath { parent: Some(self), field, index: Some(index) }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            if !parent.field.is_empty() {
                f.write_str(".")?;
            }
        }
        f.write_str(self.field)?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}
