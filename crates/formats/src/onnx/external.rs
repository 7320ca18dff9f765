//! Tensor data in files beside the model.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use galatea_graph::limits;
use galatea_tensor::{Allocation, MappedFile, OrderedMap};

use super::OnnxFile;
use super::error::{FieldPath, OnnxError, OnnxErrorKind};
use super::proto::StringStringEntryProto;

/// Maps the files that a model refers to, each once, and counts the memory that constants take
/// beyond the data which the model brings.
#[derive(Debug)]
pub(super) struct ExternalData<'a> {
    folder: Option<&'a Path>,
    /// By location: where that is, and the file.
    files: OrderedMap<String, (PathBuf, Arc<MappedFile>)>,
    /// True if the model itself is a mapped file too.
    model_is_mapped: bool,
    dense_bytes: usize,
    /// Bytes of all sparse constants so far, values and positions.
    sparse_bytes: usize,
}

/// The most bytes of all sparse constants of a model together in their dense forms, beside
/// [`DENSE_BYTES_EACH`]: their sizes are stated, not backed by data.
const FREE_DENSE_BYTES: usize = 64 << 20;

/// How many bytes of a dense form each byte of a sparse constant may stand for.
const DENSE_BYTES_EACH: usize = 512;

/// Where the bytes of one tensor are.
#[derive(Debug)]
pub(super) struct ExternalWindow {
    pub(super) memory: Arc<dyn Allocation>,
    pub(super) offset_bytes: usize,
    /// Length that the model states, else up to the end of the file.
    pub(super) len_bytes: usize,
    /// True if the model states the length.
    pub(super) stated: bool,
}

impl<'a> ExternalData<'a> {
    /// Files in `folder`; without one every reference is an error.
    pub(super) fn new(folder: Option<&'a Path>) -> Self {
        Self {
            folder,
            files: OrderedMap::new(),
            model_is_mapped: false,
            dense_bytes: 0,
            sparse_bytes: 0,
        }
    }

    /// The same for a model whose own bytes are a mapped file.
    pub(super) fn beside_mapped(self) -> Self {
        Self { model_is_mapped: true, ..self }
    }

    /// Returns whether the model's own bytes are a mapped file.
    pub(super) fn model_is_mapped(&self) -> bool {
        self.model_is_mapped
    }

    /// The files that were mapped.
    pub(super) fn into_files(self) -> Vec<OnnxFile> {
        self.files.into_values().map(|(path, memory)| OnnxFile { path, memory }).collect()
    }

    /// Counts the dense form of a sparse constant that takes `given` bytes itself; `None` is more
    /// bytes than can be counted.
    ///
    /// # Errors
    /// Fails when all of them together would take more than the limit, which grows with what is
    /// given.
    pub(super) fn take_dense(&mut self, given: usize, bytes: Option<usize>) -> Result<(), String> {
        self.sparse_bytes = self.sparse_bytes.saturating_add(given);
        let backed = self.sparse_bytes.saturating_mul(DENSE_BYTES_EACH);
        let limit = limits::get().value_bytes.min(backed.saturating_add(FREE_DENSE_BYTES));
        let sum = bytes.and_then(|bytes| self.dense_bytes.checked_add(bytes));
        let Some(sum) = sum.filter(|&sum| sum <= limit) else {
            let bytes = bytes.map_or("too many".to_owned(), |bytes| bytes.to_string());
            return Err(format!(
                "takes {bytes} bytes, with {} of other sparse constants; the limit is {limit}",
                self.dense_bytes
            ));
        };
        self.dense_bytes = sum;
        Ok(())
    }

    /// The bytes that the entries of `external_data` describe.
    pub(super) fn window(
        &mut self,
        entries: &[StringStringEntryProto],
        place: &FieldPath<'_>,
    ) -> Result<ExternalWindow, OnnxError> {
        let place = place.field("external_data");
        let find = |key: &str| entries.iter().find(|e| e.key == key).map(|e| e.value.as_str());
        let number = |key: &str| {
            let parse = |text: &str| {
                text.trim().parse::<usize>().map_err(|_| {
                    OnnxError::invalid(&place, format!("{key} '{text}' is not a byte count"))
                })
            };
            find(key).map(parse).transpose()
        };
        let location = find("location")
            .ok_or_else(|| OnnxError::invalid(&place, "there is no entry 'location'"))?;
        let offset_bytes = number("offset")?.unwrap_or(0);
        let stated = number("length")?;
        let memory = self.map(location, &place)?;
        let file_bytes = memory.len_bytes();
        let available = file_bytes.checked_sub(offset_bytes).ok_or_else(|| {
            OnnxError::invalid(
                &place,
                format!("offset {offset_bytes} is beyond the {file_bytes} bytes of '{location}'"),
            )
        })?;
        let len_bytes = stated.unwrap_or(available);
        if len_bytes > available {
            return Err(OnnxError::invalid(
                &place,
                format!(
                    "{len_bytes} bytes from {offset_bytes} on are asked for, '{location}' has \
                     {file_bytes} bytes"
                ),
            ));
        }
        Ok(ExternalWindow { memory, offset_bytes, len_bytes, stated: stated.is_some() })
    }

    fn map(&mut self, location: &str, place: &FieldPath<'_>) -> Result<Arc<MappedFile>, OnnxError> {
        if let Some((_, file)) = self.files.get(location) {
            return Ok(Arc::clone(file));
        }
        let (named, path) = self.resolve(location, place)?;
        let file = MappedFile::open(&path)
            .map_err(|error| OnnxError::new(OnnxErrorKind::File(error.to_string()), place))?;
        let file = Arc::new(file);
        self.files.insert(location.to_owned(), (named, Arc::clone(&file)));
        Ok(file)
    }

    /// A location in the model's folder, and the real path behind it, which must be a plain file
    /// inside the folder.
    fn resolve(
        &self,
        location: &str,
        place: &FieldPath<'_>,
    ) -> Result<(PathBuf, PathBuf), OnnxError> {
        let folder = self.folder.ok_or_else(|| {
            OnnxError::invalid(
                place,
                format!("the data is in file '{location}', and this model has no folder"),
            )
        })?;
        let inside = Path::new(location)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !inside {
            return Err(OnnxError::invalid(
                place,
                format!("location '{location}' is not a relative path inside the model's folder"),
            ));
        }
        let failed = |path: &Path, error: std::io::Error| {
            let text = format!("cannot read '{}': {error}", path.display());
            OnnxError::new(OnnxErrorKind::File(text), place)
        };
        let root = folder.canonicalize().map_err(|error| failed(folder, error))?;
        let joined = root.join(location);
        let path = joined.canonicalize().map_err(|error| failed(&joined, error))?;
        if !path.starts_with(&root) {
            return Err(OnnxError::invalid(
                place,
                format!("location '{location}' is a link that leaves the model's folder"),
            ));
        }
        if !path.is_file() {
            return Err(OnnxError::invalid(place, format!("'{location}' is not a plain file")));
        }
        Ok((joined, path))
    }
}
