//! Files that a client gives in the place of a model's folder.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::error::ServingError;
use crate::temporary_folder::LockedFolder;
use bytes::Bytes;

/// Longest name of a file or folder, as the file systems of Linux and macOS have it.
const MAX_NAME_BYTES: usize = 255;

/// A model folder that holds the given files and nothing else, and goes when it is dropped or the server is killed.
#[derive(Debug)]
pub(super) struct GivenFolder {
    folder: LockedFolder,
}

impl GivenFolder {
    /// Writes the files. Their paths are relative to the model's folder and must stay inside it.
    ///
    /// # Errors
    /// When a path leaves the folder or is no path, or the files cannot be written; nothing stays behind then.
    pub(super) fn write(files: &[(String, Bytes)]) -> Result<Self, ServingError> {
        let paths: Result<Vec<PathBuf>, ServingError> =
            files.iter().map(|(path, _)| inner_path(path)).collect();
        let paths = paths?;
        let failed = |path: &Path, error: std::io::Error| {
            ServingError::internal(format!(
                "cannot write the given file '{}': {error}",
                path.display()
            ))
        };
        let folder = LockedFolder::make("model").map_err(|error| failed(Path::new("."), error))?;
        for (path, (_, content)) in paths.iter().zip(files) {
            let target = folder.path().join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(|error| failed(path, error))?;
            }
            fs::write(&target, content).map_err(|error| failed(path, error))?;
        }
        Ok(Self { folder })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A path that stays in the folder that it is relative to.
fn inner_path(text: &str) -> Result<PathBuf, ServingError> {
    let refuse = |why: &str| {
        let shown: String = text.chars().take(MAX_NAME_BYTES).collect();
        Err(ServingError::internal(format!("the path of the given file '{shown}' {why}")))
    };
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) if name.len() > MAX_NAME_BYTES => {
                return refuse("has a name of more than 255 bytes");
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return refuse("leaves the folder of the model");
            }
        }
    }
    if path.as_os_str().is_empty() || text.contains('\0') || text.ends_with('/') {
        return refuse("names no file");
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_files_lie_in_a_folder_of_their_own_that_goes() {
        let content = Bytes::from_static(b"x");
        let files = [("1/a/model.onnx".to_owned(), content.clone()), ("./b".to_owned(), content)];
        let folder = GivenFolder::write(&files).unwrap();
        let path = folder.path().to_owned();
        assert!(path.join("1/a/model.onnx").is_file() && path.join("b").is_file());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn paths_that_leave_the_folder_or_name_nothing_are_refused() {
        for path in ["../x", "1/../../x", "/etc/x", "", ".", "1/", "a\0b"] {
            let error = GivenFolder::write(&[(path.to_owned(), Bytes::new())]).unwrap_err();
            assert!(error.message.contains("given file"), "{path}: {error}");
        }
        let long = format!("1/{}", "x".repeat(256));
        let error = GivenFolder::write(&[(long, Bytes::new())]).unwrap_err();
        assert!(error.message.contains("255 bytes") && error.message.len() < 400, "{error}");
    }
}
