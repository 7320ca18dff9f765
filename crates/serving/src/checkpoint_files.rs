//! Files that make a folder, or a file, a checkpoint.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_llm::chunked::ChunkManifest;

/// Most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Whether a path is a checkpoint: a folder with `config.json` and safetensors, a folder of chunks, a folder with GGUF
/// files, or a GGUF file.
#[must_use]
pub fn is_checkpoint(path: &Path) -> bool {
    if path.is_file() {
        return is_gguf(path);
    }
    if ChunkManifest::is_in(path) {
        return true;
    }
    let config = path.join("config.json").is_file();
    files(path).iter().any(|file| is_gguf(file) || config && has_extension(file, "safetensors"))
}

pub(crate) fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

pub(crate) fn is_gguf(path: &Path) -> bool {
    has_extension(path, "gguf")
}

/// The files of a folder in the order of their names; none where it cannot be read.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The name of the model that a GGUF file is, where it is one: the file's without its extension, and of a model in
/// several files, which are called `NAME-00001-of-00003.gguf` and so on, without the number.
#[must_use]
pub fn model_name(path: &Path) -> Option<&str> {
    let stem = path.file_stem()?.to_str().filter(|_| is_gguf(path) && path.is_file())?;
    match split_number(stem) {
        None => Some(stem),
        Some((name, 1)) => Some(name),
        Some(_) => None,
    }
}

/// Takes `-00001-of-00003` off a name.
fn split_number(stem: &str) -> Option<(&str, u32)> {
    let (rest, count) = stem.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = digits(count) && digits(number) && !name.is_empty();
    fits.then(|| number.parse().ok()).flatten().map(|number| (name, number))
}
