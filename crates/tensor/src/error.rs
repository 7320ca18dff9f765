//! Kinds of errors of a tensor operation.

use std::fmt;
use std::str::FromStr;

use crate::dtype::DataType;

/// Text of what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorErrorKind {
    /// A data type name that does not exist.
    UnknownDataType(String),
    /// A tensor of another type than the one asked for.
    WrongType {
        /// The type the tensor has.
        found: DataType,
        /// The type that was asked for.
        expected: DataType,
    },
    /// The number of elements or bytes does not fit the shape.
    WrongSize {
        /// The shape in question.
        shape: Vec<usize>,
        /// Number of elements that the shape needs.
        expected: usize,
        /// Number of elements that were given.
        found: usize,
        /// `"elements"` or `"bytes"`.
        unit: &'static str,
    },
    /// The element count of a shape overflows.
    TooLarge(Vec<usize>),
    /// A slice of a view was asked for whose elements are not adjacent.
    NotContiguous,
    /// Shapes that do not fit an operation on them.
    Shape(String),
    /// An encoding that does not parse, such as a cut string tensor.
    Encoding(String),
    /// A file that could not be read.
    File(String),
    /// Elements on a device that could not be reached, such as one that was lost.
    Remote(String),
}

/// An error of the tensor crate.
#[derive(Clone, PartialEq, Eq)]
pub struct TensorError {
    kind: Box<TensorErrorKind>,
}

impl TensorError {
    /// Description of what was wrong.
    #[must_use]
    pub fn kind(&self) -> &TensorErrorKind {
        &self.kind
    }

    pub(crate) fn shape(text: impl Into<String>) -> Self {
        TensorErrorKind::Shape(text.into()).into()
    }
}

impl From<TensorErrorKind> for TensorError {
    fn from(kind: TensorErrorKind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl fmt::Debug for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.kind, f)
    }
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            TensorErrorKind::UnknownDataType(name) => write!(f, "unknown data type '{name}'"),
            TensorErrorKind::WrongType { found, expected } => {
                write!(f, "expected a tensor of type {expected}, found {found}")
            }
            TensorErrorKind::WrongSize { shape, expected, found, unit } => {
                write!(f, "shape {shape:?} needs {expected} {unit}, found {found}")
            }
            TensorErrorKind::TooLarge(shape) => {
                write!(f, "shape {shape:?} has more elements than this machine can address")
            }
            TensorErrorKind::NotContiguous => {
                f.write_str("the elements of this view are not adjacent")
            }
            TensorErrorKind::Shape(text)
            | TensorErrorKind::Encoding(text)
            | TensorErrorKind::File(text)
            | TensorErrorKind::Remote(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for TensorError {}

impl FromStr for DataType {
    type Err = TensorError;

    fn from_str(text: &str) -> Result<Self, TensorError> {
        Self::from_wire_name(text)
            .ok_or_else(|| TensorErrorKind::UnknownDataType(text.to_owned()).into())
    }
}
