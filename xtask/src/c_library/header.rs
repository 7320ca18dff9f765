//! The C header, which cbindgen makes of the exported functions.

use std::fs;

use crate::workspace::{WorkspaceFolders, read};

/// The crate of the library for C.
pub(super) const CRATE: &str = "crates/c";

/// The header.
pub(super) const HEADER: &str = "crates/c/include/galatea.h";

/// Writes the header.
///
/// # Errors
/// Fails when a source cannot be parsed, or the file cannot be written.
pub(crate) fn write(workspace: &WorkspaceFolders) -> Result<(), String> {
    let path = workspace.root.join(HEADER);
    fs::write(&path, text(workspace)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// Compares the header with the sources.
///
/// # Errors
/// Fails when the file is not what [`write`] would write.
pub(super) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    match read(&workspace.root.join(HEADER))? == text(workspace)? {
        true => Ok(()),
        false => Err(format!("{HEADER} is old; `cargo xtask c-header` writes it")),
    }
}

/// Makes the text of the header.
fn text(workspace: &WorkspaceFolders) -> Result<String, String> {
    let folder = workspace.root.join(CRATE);
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"))?;
    let builder = cbindgen::Builder::new().with_config(config);
    let made = builder.with_src(folder.join("src/lib.rs")).generate();
    let mut text = Vec::new();
    made.map_err(|error| format!("{CRATE}: {error}"))?.write(&mut text);
    String::from_utf8(text).map_err(|error| format!("{HEADER}: {error}"))
}
