//! Finding the file or package of a model in the folder of its version.

use std::fs;
use std::path::{Path, PathBuf};

use crate::backend::ModelFiles;
use crate::error::ServingError;
use crate::graph_model::ModelFormat;

/// Returns the endings of files and folders that hold a model of a format.
fn endings(format: ModelFormat) -> &'static [&'static str] {
    match format {
        ModelFormat::Onnx => &["onnx"],
        ModelFormat::CoreMl => &["mlpackage", "mlmodel", "mlmodelc"],
    }
}

/// Returns what is a model by its ending, in the order of names.
pub(super) fn candidates(format: ModelFormat, folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_of(format, path)).collect();
    found.sort();
    found
}

/// Returns whether a path is a model of a format, by its ending.
pub(super) fn is_of(format: ModelFormat, path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
    !hidden && endings(format).contains(&ending)
}

/// Returns whether a folder holds exactly one model of a format, whatever its name.
pub(super) fn holds_one(format: ModelFormat, folder: &Path) -> bool {
    candidates(format, folder).len() == 1
}

/// Finds a version's model: the file that the configuration names, else the only one of the format.
///
/// The core writes the backend's usual name, `usual`, into configurations that name none.
///
/// # Errors
/// UNAVAILABLE with the path that was looked for, and with what lies there in its place.
pub(super) fn model_path(
    format: ModelFormat,
    usual: &str,
    files: &ModelFiles,
) -> Result<PathBuf, ServingError> {
    let named = match files.config.default_model_filename.as_str() {
        "" => usual,
        given => given,
    };
    let path = files.version_dir.join(named);
    if path.exists() {
        return Ok(path);
    }
    let found = candidates(format, &files.version_dir);
    match found.as_slice() {
        [only] if named == usual => Ok(only.clone()),
        others => {
            let mut text =
                format!("unable to find '{}' for model '{}'", path.display(), files.name);
            if !others.is_empty() {
                let names: Vec<String> = others.iter().map(|path| shown(path)).collect();
                text.push_str(&format!(
                    "; there is {}, which default_model_filename may name",
                    names.join(" and ")
                ));
            }
            Err(ServingError::unavailable(text))
        }
    }
}

fn shown(path: &Path) -> String {
    format!("'{}'", path.file_name().unwrap_or_default().display())
}
