//! Runs the programs that use the library. None of them needs more than the samples of the repository.

use std::fs;
use std::process::Command;

use crate::process::run;
use crate::programs;
use crate::workspace::WorkspaceFolders;

/// Builds the examples with the tests, and runs each without arguments.
///
/// # Errors
/// Fails with the names of those that fail, and where there is none.
pub(crate) fn run_all(workspace: &WorkspaceFolders) -> Result<(), String> {
    // The build of the tests has the examples too, with the same features.
    programs::build(workspace)?;
    let names = names(workspace)?;
    let built = workspace.target.join("debug/examples");
    let fails =
        |name: &&String| run(Command::new(built.join(name)).current_dir(&workspace.root)).is_err();
    let failed: Vec<&str> = names.iter().filter(fails).map(String::as_str).collect();
    match (names.is_empty(), failed.is_empty()) {
        (true, _) => Err("examples/rust/examples has no program".to_owned()),
        (false, true) => Ok(()),
        (false, false) => Err(format!("examples failed: {}", failed.join(", "))),
    }
}

/// Names of the programs, from those of their files.
fn names(workspace: &WorkspaceFolders) -> Result<Vec<String>, String> {
    let folder = workspace.root.join("examples/rust/examples");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_rust = path.extension().is_some_and(|end| end == "rs");
            is_rust.then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
        })
        .collect();
    names.sort_unstable();
    Ok(names)
}
