//! Parts that the checkpoint formats share: the error, and mapped files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use galatea_tensor::{Allocation, MappedFile, SharedBytes};

use crate::onnx::OnnxFile;

/// Kind of an error of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointErrorKind {
    /// A file cannot be read or written.
    File,
    /// The bytes say something that the format does not allow.
    Invalid,
    /// Valid in the format, and not read here.
    Unsupported,
    /// A tensor, key or file that is asked for is not there.
    Missing,
    /// A value is of another type than the one asked for.
    WrongType,
}

/// An error of a checkpoint: what was found and expected, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointError {
    kind: CheckpointErrorKind,
    file: Option<PathBuf>,
    place: String,
    text: String,
}

impl CheckpointError {
    pub(crate) fn new(kind: CheckpointErrorKind, text: impl Into<String>) -> Self {
        Self { kind, file: None, place: String::new(), text: text.into() }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(CheckpointErrorKind::Invalid, text)
    }

    pub(crate) fn unsupported(text: impl Into<String>) -> Self {
        Self::new(CheckpointErrorKind::Unsupported, text)
    }

    pub(crate) fn missing(text: impl Into<String>) -> Self {
        Self::new(CheckpointErrorKind::Missing, text)
    }

    /// The same error at a tensor, key or byte; what is outside comes first.
    pub(crate) fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = if self.place.is_empty() {
            place.to_string()
        } else {
            format!("{place}: {}", self.place)
        };
        self
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.file.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> CheckpointErrorKind {
        self.kind
    }

    /// The file it is about, where there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The tensor, key or byte it is about, such as `tensor 'lm_head.weight'`; empty for the whole
    /// file.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for CheckpointError {}

/// The bytes of a file, as a slice to read from and as memory for tensors.
#[derive(Clone, Debug)]
pub(crate) struct FileSource {
    pub(crate) bytes: Bytes,
    pub(crate) memory: Arc<dyn Allocation>,
    /// Absent for bytes in memory.
    pub(crate) file: Option<OnnxFile>,
}

/// A mapped file, for what wants to own bytes.
struct SharedMapping(Arc<MappedFile>);

impl AsRef<[u8]> for SharedMapping {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl FileSource {
    /// Maps a plain file, or what a link to one leads to.
    pub(crate) fn open(path: &Path) -> Result<Self, CheckpointError> {
        let failed = |text: String| CheckpointError::new(CheckpointErrorKind::File, text);
        let mapped = match path.metadata() {
            Err(error) => Err(failed(format!("cannot be read: {error}"))),
            Ok(found) if !found.is_file() => Err(failed("is not a plain file".to_owned())),
            Ok(_) => MappedFile::open(path).map_err(|error| failed(error.to_string())),
        };
        let memory = Arc::new(mapped.map_err(|error| error.in_file(path))?);
        let bytes = Bytes::from_owner(SharedMapping(Arc::clone(&memory)));
        let file = OnnxFile { path: path.to_owned(), memory: Arc::clone(&memory) };
        Ok(Self { bytes, memory, file: Some(file) })
    }

    /// Bytes that are in memory already.
    pub(crate) fn of_bytes(bytes: Bytes) -> Self {
        Self { memory: SharedBytes::new(bytes.clone()), bytes, file: None }
    }

    /// The error with this file's name, where it has one.
    pub(crate) fn blame(&self, error: CheckpointError) -> CheckpointError {
        match &self.file {
            Some(file) => error.in_file(&file.path),
            None => error,
        }
    }
}
