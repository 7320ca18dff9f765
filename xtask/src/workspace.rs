//! Location of the workspace, and its packages.

use std::fs;
use std::path::{Path, PathBuf};

/// Package of the library that people add.
const LIBRARY: &str = "galatea";

/// The workspace's folders.
#[derive(Debug)]
pub(crate) struct WorkspaceFolders {
    /// The folder of the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Folder for cargo's build products (`CARGO_TARGET_DIR`, else `target`).
    pub(crate) target: PathBuf,
}

/// One member package, as far as the checks read it.
#[derive(Debug)]
pub(crate) struct WorkspacePackage {
    /// The folder's name: the house's word for the crate.
    pub(crate) folder: String,
    /// Names under `[dependencies]`, `[build-dependencies]` and their target tables.
    pub(crate) dependencies: Vec<String>,
    /// Names under `[dev-dependencies]`.
    pub(crate) dev_dependencies: Vec<String>,
    /// The text of `src/lib.rs`, or of `src/main.rs` where there is no library.
    pub(crate) root_source: String,
}

impl WorkspaceFolders {
    /// Finds the workspace from xtask's own manifest folder.
    pub(crate) fn find() -> Result<Self, String> {
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().map(Path::to_path_buf).ok_or("xtask has no parent folder")?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(path) => std::path::absolute(&path).map_err(|e| e.to_string())?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// xtask itself.
    pub(crate) fn own_package(&self) -> Result<WorkspacePackage, String> {
        WorkspacePackage::read(&self.root.join("xtask"))
    }

    /// All packages under `crates/`, by folder name.
    pub(crate) fn packages(&self) -> Result<Vec<WorkspacePackage>, String> {
        let crates = self.root.join("crates");
        let mut folders: Vec<PathBuf> = fs::read_dir(&crates)
            .map_err(|e| format!("{}: {e}", crates.display()))?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.join("Cargo.toml").is_file())
            .collect();
        folders.sort();
        folders.iter().map(|folder| WorkspacePackage::read(folder)).collect()
    }
}

impl WorkspacePackage {
    /// Folders of the workspace's crates that it names, for its tests too.
    pub(crate) fn uses(&self) -> impl Iterator<Item = &str> {
        let all = self.dependencies.iter().chain(&self.dev_dependencies);
        // The library's package is called as its folder.
        all.filter_map(
            |name| if name == LIBRARY { Some(LIBRARY) } else { name.strip_prefix("galatea-") },
        )
    }

    fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("Cargo.toml");
        let manifest: toml::Table =
            read(&path)?.parse().map_err(|e| format!("{}: {e}", path.display()))?;
        let mut dependencies = table_keys(&manifest, "dependencies");
        dependencies.extend(table_keys(&manifest, "build-dependencies"));
        let mut dev_dependencies = table_keys(&manifest, "dev-dependencies");
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        for target in targets.into_iter().flat_map(toml::Table::values) {
            if let Some(table) = target.as_table() {
                dependencies.extend(table_keys(table, "dependencies"));
                dev_dependencies.extend(table_keys(table, "dev-dependencies"));
            }
        }
        let library = folder.join("src/lib.rs");
        let root = if library.is_file() { library } else { folder.join("src/main.rs") };
        let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        Ok(Self {
            folder: name.to_owned(),
            dependencies,
            dev_dependencies,
            root_source: read(&root)?,
        })
    }
}

fn table_keys(manifest: &toml::Table, name: &str) -> Vec<String> {
    let table = manifest.get(name).and_then(toml::Value::as_table);
    table.map(|t| t.keys().cloned().collect()).unwrap_or_default()
}

/// Reads a text file; the error names it.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
