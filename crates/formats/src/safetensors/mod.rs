//! Checkpoints of safetensors: one file, or shards that `model.safetensors.index.json` names.
//!
//! [`open`] maps the files and reads their headers; tensors share the mapped bytes, so that opening
//! takes as long as the names do. A tensor that is not aligned for its type is copied when somebody
//! needs it so. Source: the description of the format in the repository of `safetensors`.

#![deny(clippy::indexing_slicing, clippy::as_conversions)]

mod header;
mod index;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use galatea_tensor::{OrderedEntry, OrderedMap, Tensor};

use crate::checkpoint::{CheckpointError, CheckpointErrorKind, FileSource};
use crate::onnx::OnnxFile;
use header::SafetensorsHeader;
use index::ShardIndex;
pub use write::write;

/// The name of an index, and that of the only file of a checkpoint without one.
const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";

/// Named tensors, and what the files say about themselves.
#[derive(Clone, Debug, Default)]
pub struct SafeTensors {
    tensors: OrderedMap<String, Tensor>,
    metadata: OrderedMap<String, String>,
    files: Vec<OnnxFile>,
}

impl SafeTensors {
    /// The tensors in the order of their names.
    #[must_use]
    pub fn tensors(&self) -> &OrderedMap<String, Tensor> {
        &self.tensors
    }

    /// The tensor with this name.
    ///
    /// # Errors
    /// Fails when there is none.
    pub fn tensor(&self, name: &str) -> Result<&Tensor, CheckpointError> {
        self.tensors.get(name).ok_or_else(|| {
            let text = format!("not among the {} tensors of the checkpoint", self.tensors.len());
            let error = CheckpointError::missing(text).at(format_args!("tensor '{name}'"));
            match self.files.first() {
                Some(file) => error.in_file(&file.path),
                None => error,
            }
        })
    }

    /// The free text of the headers by key; of several files the first that has a key.
    #[must_use]
    pub fn metadata(&self) -> &OrderedMap<String, String> {
        &self.metadata
    }

    /// The mapped files that the tensors lie in; empty for bytes in memory.
    #[must_use]
    pub fn files(&self) -> &[OnnxFile] {
        &self.files
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.tensors.values().map(Tensor::size_bytes).sum()
    }

    fn add(&mut self, source: &FileSource) -> Result<Vec<String>, CheckpointError> {
        let header = SafetensorsHeader::parse(&source.bytes)?;
        let mut names = Vec::with_capacity(header.tensors.len());
        for (name, placed) in header.tensors {
            let memory = Arc::clone(&source.memory);
            let start = placed.bytes.start;
            let tensor = Tensor::from_allocation_lazily(placed.dtype, &placed.shape, memory, start)
                .map_err(|error| {
                    CheckpointError::invalid(error.to_string()).at(format_args!("tensor '{name}'"))
                })?;
            match self.tensors.entry(name) {
                OrderedEntry::Occupied(slot) => {
                    let place = format!("tensor '{}'", slot.key());
                    let text = "another file of the checkpoint has a tensor of this name";
                    return Err(CheckpointError::invalid(text).at(place));
                }
                OrderedEntry::Vacant(slot) => {
                    names.push(slot.key().clone());
                    slot.insert(tensor);
                }
            }
        }
        for (key, value) in header.metadata {
            self.metadata.entry(key).or_insert(value);
        }
        self.files.extend(source.file.clone());
        Ok(names)
    }
}

/// Opens a checkpoint: a `.safetensors` file, an index (`.json`), or a folder that has
/// `model.safetensors.index.json`, `model.safetensors` or exactly one `.safetensors` file.
///
/// # Errors
/// Fails when a file is missing or damaged, tensors overlap or leave the file, a type is not
/// supported (such as those of 8-bit floats), or index and shards do not name the same tensors; the
/// error names the file, the tensor and the numbers.
pub fn open(path: &Path) -> Result<SafeTensors, CheckpointError> {
    let path = if path.is_dir() { in_folder(path)? } else { path.to_owned() };
    if path.extension().is_some_and(|extension| extension == "json") {
        return open_sharded(&path);
    }
    let source = FileSource::open(&path)?;
    let mut all = SafeTensors::default();
    all.add(&source).map_err(|error| source.blame(error))?;
    Ok(all)
}

/// Reads the bytes of one safetensors file; tensors share them.
///
/// # Errors
/// Fails like [`open`].
pub fn parse(bytes: Bytes) -> Result<SafeTensors, CheckpointError> {
    let mut all = SafeTensors::default();
    all.add(&FileSource::of_bytes(bytes))?;
    Ok(all)
}

/// Reads the bytes of an index: which file has which tensor.
///
/// # Errors
/// Fails when the index is damaged, names a tensor twice or a file that is not beside it.
pub fn parse_index(bytes: &[u8]) -> Result<OrderedMap<String, String>, CheckpointError> {
    let shards = ShardIndex::parse(bytes)?.shards.into_iter();
    Ok(shards
        .flat_map(|(file, names)| names.into_iter().map(move |name| (name, file.clone())))
        .collect())
}

fn in_folder(folder: &Path) -> Result<PathBuf, CheckpointError> {
    for name in [INDEX, SINGLE] {
        let path = folder.join(name);
        if path.exists() {
            return Ok(path);
        }
    }
    let failed = |error: std::io::Error| {
        CheckpointError::new(CheckpointErrorKind::File, format!("cannot be listed: {error}"))
            .in_file(folder)
    };
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            found.push(path);
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        all => {
            let text = format!(
                "there is neither '{INDEX}' nor '{SINGLE}', and {} other files end in \
                 '.safetensors'",
                all.len()
            );
            Err(CheckpointError::missing(text).in_file(folder))
        }
    }
}

fn open_sharded(path: &Path) -> Result<SafeTensors, CheckpointError> {
    let index = ShardIndex::open(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut all = SafeTensors::default();
    for (shard, mut expected) in index.shards {
        let source = FileSource::open(&folder.join(&shard)).map_err(|error| {
            let name = expected.first().cloned().unwrap_or_default();
            error.at(format_args!("shard of tensor '{name}'"))
        })?;
        let found = all.add(&source).map_err(|error| source.blame(error))?;
        for name in found {
            if !expected.remove(&name) {
                let text = "the index does not name this tensor for this file";
                let error = CheckpointError::invalid(text).at(format_args!("tensor '{name}'"));
                return Err(source.blame(error));
            }
        }
        if let Some(name) = expected.first() {
            let text = "the index names this tensor, the file does not have it";
            let error = CheckpointError::missing(text).at(format_args!("tensor '{name}'"));
            return Err(source.blame(error));
        }
    }
    Ok(all)
}
