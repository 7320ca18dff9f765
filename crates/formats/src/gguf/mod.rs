//! Checkpoints in GGUF, versions 2 and 3, of one file or several.
//!
//! [`open`] maps the files and reads metadata and directory; arrays of the metadata and the bytes of
//! tensors stay where they are. Weights of few bits are [`BlockMatrix`](crate::blocks::BlockMatrix):
//! codes with scales, or floats row by row. [`GgufWriter`] writes the format. Source: `gguf.md` in
//! ggml's repository.

#![deny(clippy::indexing_slicing, clippy::as_conversions)]

mod cursor;
mod directory;
mod metadata;
mod split;
mod write;

use std::path::Path;

use bytes::Bytes;
use galatea_tensor::OrderedMap;

use crate::checkpoint::{CheckpointError, FileSource};
pub use crate::ggml_type::GgmlType;
use crate::onnx::OnnxFile;
use cursor::GgufCursor;
pub use directory::TensorEntry;
use directory::{ListedTensor, place_all};
pub use metadata::{FromValue, GgufArray, GgufMetadata, GgufValue, GgufValueType};
pub use write::{GgufWriter, MakeData, TensorData};

/// The first bytes of a file.
const MAGIC: [u8; 4] = *b"GGUF";
/// The version that is written.
const VERSION: u32 = 3;
/// The alignment of files that do not state theirs.
const DEFAULT_ALIGNMENT: usize = 32;
/// The most that files may state.
const MAX_ALIGNMENT: usize = 1 << 20;
/// The key of the alignment.
const ALIGNMENT_KEY: &str = "general.alignment";

/// A checkpoint: metadata and tensors.
#[derive(Clone, Debug)]
pub struct GgufFile {
    version: u32,
    metadata: GgufMetadata,
    tensors: Vec<TensorEntry>,
    places: OrderedMap<String, usize>,
    files: Vec<OnnxFile>,
}

impl GgufFile {
    /// The version of the format.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Values by key; of a checkpoint in several files those of the first.
    #[must_use]
    pub fn metadata(&self) -> &GgufMetadata {
        &self.metadata
    }

    /// The tensors in the order of the files.
    #[must_use]
    pub fn tensors(&self) -> &[TensorEntry] {
        &self.tensors
    }

    /// The tensor with this name, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&TensorEntry> {
        self.places.get(name).and_then(|&at| self.tensors.get(at))
    }

    /// The tensor with this name.
    ///
    /// # Errors
    /// Fails when there is none.
    pub fn tensor(&self, name: &str) -> Result<&TensorEntry, CheckpointError> {
        self.find(name).ok_or_else(|| {
            let text = format!("not among the {} tensors of the checkpoint", self.tensors.len());
            let error = CheckpointError::missing(text).at(format_args!("tensor '{name}'"));
            match self.files.first() {
                Some(file) => error.in_file(&file.path),
                None => error,
            }
        })
    }

    /// The mapped files that the tensors lie in; empty for bytes in memory.
    #[must_use]
    pub fn files(&self) -> &[OnnxFile] {
        &self.files
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.tensors.iter().map(|entry| entry.bytes().len()).sum()
    }

    fn read(source: &FileSource) -> Result<Self, CheckpointError> {
        let mut cursor = GgufCursor::new(source.bytes.clone());
        let version = version(&mut cursor)?;
        let tensors = cursor.u64()?;
        let entries = cursor.u64()?;
        let metadata = GgufMetadata::read(&mut cursor, entries)?;
        let alignment = alignment(&metadata)?;
        let listed = ListedTensor::read_all(&mut cursor, tensors)?;
        // Without tensors the padding in front of the data may be missing.
        let start = cursor.offset().next_multiple_of(alignment);
        let tensors = place_all(listed, source, start, alignment)?;
        let mut all = Self {
            version,
            metadata,
            tensors: Vec::new(),
            places: OrderedMap::new(),
            files: source.file.clone().into_iter().collect(),
        };
        all.append(tensors)?;
        Ok(all)
    }

    fn append(&mut self, tensors: Vec<TensorEntry>) -> Result<(), CheckpointError> {
        for entry in tensors {
            let at = self.tensors.len();
            if self.places.insert(entry.name().to_owned(), at).is_some() {
                let place = format!("tensor '{}'", entry.name());
                return Err(CheckpointError::invalid("the name is given twice").at(place));
            }
            self.tensors.push(entry);
        }
        Ok(())
    }
}

fn version(cursor: &mut GgufCursor) -> Result<u32, CheckpointError> {
    let magic: [u8; 4] = cursor.array()?;
    if magic != MAGIC {
        let text = format!("the file starts with {}, expected 'GGUF'", magic.escape_ascii());
        return Err(CheckpointError::invalid(text));
    }
    let version = cursor.u32()?;
    match version {
        2 | 3 => Ok(version),
        // The first bytes of a small number with its big end first.
        _ if version & 0xFFFF == 0 => Err(CheckpointError::unsupported(format!(
            "version {} with the big end of numbers first; files with the little end first are read",
            version.swap_bytes()
        ))),
        _ => Err(CheckpointError::unsupported(format!(
            "version {version} of the format, supported are 2 and 3"
        ))),
    }
}

fn alignment(metadata: &GgufMetadata) -> Result<usize, CheckpointError> {
    let alignment = metadata.find::<usize>(ALIGNMENT_KEY)?.unwrap_or(DEFAULT_ALIGNMENT);
    if alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT {
        return Ok(alignment);
    }
    let text = format!("{alignment} is no power of two up to {MAX_ALIGNMENT}");
    Err(CheckpointError::invalid(text).at(format_args!("metadata '{ALIGNMENT_KEY}'")))
}

/// Opens a checkpoint; of one in several files (`NAME-00001-of-00003.gguf`) any of them.
///
/// # Errors
/// Fails when a file is missing or damaged, a length or place leaves it, tensors overlap, or files
/// do not belong together; the error names file, key or tensor, and byte.
pub fn open(path: &Path) -> Result<GgufFile, CheckpointError> {
    let source = FileSource::open(path)?;
    let all = GgufFile::read(&source).map_err(|error| source.blame(error))?;
    split::complete(path, all)
}

/// Reads the bytes of a file; tensors share them.
///
/// # Errors
/// Fails like [`open`], and when the checkpoint has more files.
pub fn parse(bytes: Bytes) -> Result<GgufFile, CheckpointError> {
    let all = GgufFile::read(&FileSource::of_bytes(bytes))?;
    match split::count(&all)? {
        0 | 1 => Ok(all),
        count => {
            let text = format!("one of {count} files of a checkpoint, which are read together");
            Err(CheckpointError::unsupported(text))
        }
    }
}
