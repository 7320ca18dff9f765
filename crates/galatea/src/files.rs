//! Model files and checkpoints that a path stands for.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_formats::coreml;
use galatea_serving::backend::llm::{is_checkpoint, one_checkpoint};
use galatea_serving::graph_model::ModelFormat;

/// Returns the model file that a path stands for: itself, or the one in a folder, or in the newest version folder.
///
/// # Errors
/// Fails when there is none, or when a folder has several.
pub fn find_model(path: &Path) -> Result<PathBuf, String> {
    if path.is_file() || coreml::is_model(path) {
        return Ok(path.to_owned());
    }
    if !path.is_dir() {
        return Err(format!("there is no model file or folder '{}'", path.display()));
    }
    let entries: Vec<PathBuf> = fs::read_dir(path)
        .map_err(|error| format!("'{}' cannot be read: {error}", path.display()))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let preferred = path.join("model.onnx");
    if preferred.is_file() {
        return Ok(preferred);
    }
    let is_onnx = |entry: &&PathBuf| {
        entry.is_file() && entry.extension().is_some_and(|extension| extension == "onnx")
    };
    let is_core_ml = |entry: &&PathBuf| coreml::is_model(entry);
    let onnx: Vec<&PathBuf> = entries.iter().filter(is_onnx).collect();
    let core_ml: Vec<&PathBuf> = entries.iter().filter(is_core_ml).collect();
    match (onnx.as_slice(), core_ml.as_slice()) {
        ([], []) => {}
        ([file], _) | ([], [file]) => return Ok((*file).clone()),
        ([], _) => {
            return Err(format!("'{}' has several models of Core ML; name one", path.display()));
        }
        _ => {
            return Err(format!(
                "'{}' has several ONNX files and none is called model.onnx; name the file",
                path.display()
            ));
        }
    }
    match newest_version(path).as_deref() {
        Some(folder) => find_model(folder),
        None => Err(format!(
            "'{}' has neither an ONNX file, a model of Core ML, nor a version folder",
            path.display()
        )),
    }
}

/// The version folder of the greatest number, if a folder has any.
fn newest_version(folder: &Path) -> Option<PathBuf> {
    let version = |entry: &PathBuf| -> Option<u64> { entry.file_name()?.to_str()?.parse().ok() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let versions = entries.filter(|entry| entry.is_dir());
    versions.filter_map(|entry| Some((version(&entry)?, entry))).max().map(|(_, entry)| entry)
}

/// Returns the checkpoint that a path stands for: a GGUF file, a folder of weights, or what the newest version folder has of
/// these. Nothing where no checkpoint is meant.
///
/// # Errors
/// Fails for a folder with more than one model in GGUF files.
pub fn find_checkpoint(given: &Path) -> Result<Option<PathBuf>, String> {
    if given.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) {
        return Ok(Some(given.to_owned()));
    }
    if !given.is_dir() || find_model(given).is_ok() {
        return Ok(None);
    }
    // Of a folder without weights it is said later that they are missing.
    let holds = |folder: &PathBuf| is_checkpoint(folder) || folder.join("config.json").is_file();
    let places = [Some(given.to_owned()), newest_version(given)];
    let Some(place) = places.into_iter().flatten().find(holds) else { return Ok(None) };
    match one_checkpoint(&place) {
        Ok(found) => Ok(Some(found)),
        Err(text) => Err(format!("'{}' {text}", place.display())),
    }
}

/// Returns the format of a model's file.
///
/// # Errors
/// Fails when the file is not a model.
pub fn format(path: &Path) -> Result<ModelFormat, String> {
    ModelFormat::of(path).ok_or_else(|| {
        format!(
            "'{}' is of no known format ({}); models are .onnx, .mlpackage, .mlmodel, .mlmodelc and .gguf files, and \
             folders of safetensors",
            path.display(),
            path.extension().and_then(|extension| extension.to_str()).unwrap_or("it has no extension")
        )
    })
}
