//! The folder of a package: `PackageManifest.json`, the model, and its weights.

use std::path::{Component, Path, PathBuf};

use galatea_tensor::{OrderedMap, read_plain_file};
use serde::{Deserialize, Serialize};

use super::error::CoreMlError;

/// The most bytes of a manifest.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Fields of `PackageManifest.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PackageManifest {
    pub(super) file_format_version: String,
    pub(super) item_info_entries: OrderedMap<String, ManifestItem>,
    pub(super) root_model_identifier: String,
}

/// An entry of a manifest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ManifestItem {
    pub(super) author: String,
    pub(super) description: String,
    pub(super) name: String,
    pub(super) path: String,
}

/// The model's file of a package: where its manifest says.
///
/// # Errors
/// Fails when the manifest cannot be read, has another version than 1.0.0 or older, or names no
/// file inside of the package.
pub(super) fn model_file(package: &Path) -> Result<PathBuf, CoreMlError> {
    let path = package.join("Manifest.json");
    let in_manifest = |error: CoreMlError| error.in_file(&path);
    let manifest = read_manifest(&path).map_err(in_manifest)?;
    if !version_is_known(&manifest.file_format_version) {
        let text = format!(
            "fileFormatVersion is '{}', expected 1.0.0 or older",
            manifest.file_format_version
        );
        return Err(in_manifest(CoreMlError::unsupported(text)));
    }
    let root = &manifest.root_model_identifier;
    let Some(item) = manifest.item_info_entries.get(root) else {
        let text = format!("rootModelIdentifier '{root}' is none of the itemInfoEntries");
        return Err(in_manifest(CoreMlError::invalid(text)));
    };
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if item.path.is_empty() || !Path::new(&item.path).components().all(inside) {
        let text = format!("the path '{}' of '{}' leaves the package", item.path, item.name);
        return Err(in_manifest(CoreMlError::invalid(text)));
    }
    Ok(package.join("Data").join(&item.path))
}

fn read_manifest(path: &Path) -> Result<PackageManifest, CoreMlError> {
    let failed = |error: std::io::Error| CoreMlError::file(format!("cannot be read: {error}"));
    let found = path.metadata().map_err(failed)?;
    if !found.is_file() || found.len() > MAX_MANIFEST_BYTES {
        let text = format!("is not a plain file of at most {MAX_MANIFEST_BYTES} bytes");
        return Err(CoreMlError::file(text));
    }
    let text = read_plain_file(path).map_err(failed)?;
    serde_json::from_slice(&text)
        .map_err(|error| CoreMlError::invalid(format!("is no manifest of a package: {error}")))
}

/// Returns whether a version of three numbers is not above 1.0.0.
fn version_is_known(text: &str) -> bool {
    let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    matches!(parts.as_deref(), Some([major, minor, patch])
        if (*major, *minor, *patch) <= (1, 0, 0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn package(manifest: &str) -> Result<PathBuf, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Manifest.json"), manifest).unwrap();
        let found = model_file(folder.path()).map_err(|error| error.to_string())?;
        Ok(found.strip_prefix(folder.path()).unwrap().to_owned())
    }

    fn manifest(version: &str, root: &str, path: &str) -> String {
        format!(
            r#"{{"fileFormatVersion": "{version}", "rootModelIdentifier": "{root}",
            "itemInfoEntries": {{"A": {{"author": "com.apple.CoreML", "description": "",
            "name": "model.mlmodel", "path": "{path}"}}}}}}"#
        )
    }

    #[test]
    fn the_manifest_says_where_the_model_is() {
        let found = package(&manifest("1.0.0", "A", "com.apple.CoreML/model.mlmodel")).unwrap();
        assert_eq!(found, Path::new("Data/com.apple.CoreML/model.mlmodel"));
    }

    #[test]
    fn a_wrong_manifest_is_refused_with_what_is_wrong() {
        for (text, expected) in [
            (manifest("1.0.1", "A", "m"), "fileFormatVersion is '1.0.1'"),
            (manifest("1.0", "A", "m"), "fileFormatVersion is '1.0'"),
            (manifest("1.0.0", "B", "m"), "rootModelIdentifier 'B'"),
            (manifest("1.0.0", "A", "../m"), "leaves the package"),
            (manifest("1.0.0", "A", "/etc/passwd"), "leaves the package"),
            (manifest("1.0.0", "A", ""), "leaves the package"),
            ("{}".to_owned(), "is no manifest of a package"),
            ("nonsense".to_owned(), "is no manifest of a package"),
        ] {
            let error = package(&text).unwrap_err();
            assert!(error.contains(expected) && error.contains("Manifest.json"), "{error}");
        }
    }
}
