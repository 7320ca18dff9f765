//! Errors of the library.

use std::fmt;

/// Part of the library that an error comes from.
///
/// ```
/// use galatea::{Engine, ErrorKind, ModelOptions};
///
/// let options = ModelOptions { device: Some("abacus".to_owned()), ..ModelOptions::default() };
/// let error = Engine::new().model_with("../../examples/models/simple", &options).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Device);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file is missing, damaged, or of an unknown format.
    File,
    /// A device is unknown or not present.
    Device,
    /// A model cannot be prepared for the devices.
    Model,
    /// An input or an option does not fit the model.
    Input,
    /// A run failed.
    Run,
    /// A server cannot start, or refuses a request.
    Server,
}

/// An error of the library: its kind, and a sentence that says what was found and what was expected.
///
/// ```
/// let error = galatea::Engine::new().model("no such file.onnx").unwrap_err();
/// assert_eq!(error.kind(), galatea::ErrorKind::File);
/// assert!(error.to_string().contains("no such file.onnx"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// Makes an error from whatever says what is wrong.
    ///
    /// ```
    /// let error = galatea::Error::new(galatea::ErrorKind::Input, "three rows found, expected four");
    /// assert_eq!(error.to_string(), "three rows found, expected four");
    /// ```
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// let error = galatea::Engine::new().llm("no such folder").unwrap_err();
    /// println!("{:?}: {error}", error.kind());
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns a function that makes errors of a kind, for `map_err`.
    pub(crate) fn of<E: fmt::Display>(kind: ErrorKind) -> impl Fn(E) -> Self {
        move |error| Self::new(kind, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
