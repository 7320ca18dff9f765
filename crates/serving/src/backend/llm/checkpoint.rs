//! Where checkpoints lie in a repository.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_llm::chunked::ChunkManifest;

use crate::backend::ModelFiles;
use crate::checkpoint_files::{files, has_extension, is_checkpoint, is_gguf, model_name};
use crate::error::ServingError;

/// The checkpoint of a version: its folder, that of the model, or the one GGUF file in either.
///
/// # Errors
/// When there is none, or more than one.
pub(super) fn find(files: &ModelFiles) -> Result<PathBuf, ServingError> {
    let places = [&files.version_dir, &files.model_dir];
    let Some(place) = places.into_iter().find(|place| is_checkpoint(place)) else {
        return Err(ServingError::unavailable(format!(
            "unable to find a checkpoint for model '{}': neither '{}' nor '{}' has config.json with safetensors, or \
             a GGUF file",
            files.name,
            files.version_dir.display(),
            files.model_dir.display()
        )));
    };
    one(place).map_err(|text| {
        ServingError::invalid_arg(format!("model '{}': '{}' {text}", files.name, place.display()))
    })
}

/// The path that a checkpoint is loaded from: a folder of safetensors, or a GGUF file.
///
/// # Errors
/// A folder with more than one model in GGUF files, or with none; the text goes on behind its name.
pub fn one(place: &Path) -> Result<PathBuf, String> {
    if place.is_file() || place.join("config.json").is_file() || ChunkManifest::is_in(place) {
        return Ok(place.to_owned());
    }
    let mut models: Vec<PathBuf> =
        files(place).into_iter().filter(|file| model_name(file).is_some()).collect();
    match (models.pop(), models.len()) {
        (Some(only), 0) => Ok(only),
        (_, more) => Err(format!("has {} models in GGUF files, expected one", more + 1)),
    }
}

/// Bytes of the weights' files of a checkpoint: those of its folder, or of a GGUF file.
pub(super) fn file_bytes(path: &Path) -> u64 {
    let size = |file: &Path| fs::metadata(file).map_or(0, |metadata| metadata.len());
    if path.is_file() {
        return size(path);
    }
    let files = files(path).into_iter();
    let weights = files.filter(|file| is_gguf(file) || has_extension(file, "safetensors"));
    weights.fold(0, |sum, file| sum.saturating_add(size(&file)))
}

/// The checkpoint that `model.json` names: a path, absolute or from the version's folder on.
///
/// # Errors
/// When there is none. Nothing is downloaded.
pub(super) fn named(files: &ModelFiles, model: &str) -> Result<PathBuf, ServingError> {
    let place = files.version_dir.join(model);
    if !is_checkpoint(&place) {
        return Err(ServingError::unavailable(format!(
            "model '{}': \"model\": \"{model}\" must be the path of a checkpoint (config.json with safetensors, or a \
             GGUF file); nothing is downloaded",
            files.name
        )));
    }
    one(&place).map_err(|text| {
        ServingError::invalid_arg(format!("model '{}': '{}' {text}", files.name, place.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_in_several_files_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        for (file, name) in [
            ("a.gguf", Some("a")),
            ("b-00001-of-00002.gguf", Some("b")),
            ("b-00002-of-00002.gguf", None),
            ("c-1-of-2.gguf", Some("c-1-of-2")),
            ("d.onnx", None),
        ] {
            let path = folder.path().join(file);
            fs::write(&path, "").unwrap();
            assert_eq!(model_name(&path), name, "{file}");
        }
        assert_eq!(model_name(&folder.path().join("absent.gguf")), None);
        assert!(is_checkpoint(folder.path()));
        assert!(one(folder.path()).unwrap_err().contains("3 models"));
    }

    #[test]
    fn safetensors_alone_are_no_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("model.safetensors"), "").unwrap();
        assert!(!is_checkpoint(folder.path()));
        fs::write(folder.path().join("config.json"), "{}").unwrap();
        assert!(is_checkpoint(folder.path()));
        assert_eq!(one(folder.path()).unwrap(), folder.path());
    }
}
