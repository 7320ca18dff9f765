//! Circles of files: files of a crate that use each other, directly or through others.
//!
//! A file and those above and below it in the tree of modules do not count. `circles.txt` lists the circles that there
//! are still; it may only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::files::{CrateFiles, ModulePath};
use super::lines;
use crate::workspace::{WorkspaceFolders, read};

/// Files of a crate that use each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileCircle {
    /// Folder of the crate.
    folder: String,
    /// Modules of the files.
    files: BTreeSet<String>,
}

impl FileCircle {
    /// Returns whether a circle is what is left of another one.
    fn is_within(&self, other: &Self) -> bool {
        self.folder == other.folder && self.files.is_subset(&other.files)
    }

    fn line(&self) -> String {
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        format!("{}: {}", self.folder, files.join(" "))
    }

    /// Reads a line such as `graph: fact length`.
    fn parse(line: &str) -> Result<Self, String> {
        let (folder, files) =
            line.split_once(':').ok_or_else(|| format!("circles.txt: no crate in `{line}`"))?;
        let files = files.split_whitespace().map(str::to_owned).collect();
        Ok(Self { folder: folder.to_owned(), files })
    }
}

/// Compares the circles with the known ones.
///
/// # Errors
/// Returns how many circles are new or larger, or that the list is old.
pub(super) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = all(workspace)?;
    let known = known(workspace)?;
    let mut problems = 0;
    for circle in added(&found, &known) {
        println!("{}: these files use each other; move what they share below them", circle.line());
        problems += 1;
    }
    if problems > 0 {
        return Err(format!("{problems} circles of files are new or larger"));
    }
    match known.iter().filter(|circle| !found.contains(circle)).count() {
        0 => {
            println!("{} known circles of files, no new one", known.len());
            Ok(())
        }
        gone => Err(format!(
            "{gone} lines of rooms/circles.txt are settled: `cargo xtask arrows --settle`"
        )),
    }
}

/// Writes the list of circles anew; nothing is added to it.
///
/// # Errors
/// Fails when a file cannot be read or written.
pub(super) fn settle(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = all(workspace)?;
    let path = list(workspace);
    let added = match path.exists() {
        true => added(&found, &known(workspace)?),
        false => Vec::new(),
    };
    let mut text = String::from(
        "# Written by `cargo xtask arrows --settle`: files of a crate that use each other.\n",
    );
    for circle in found.iter().filter(|circle| !added.contains(circle)) {
        text.push_str(&circle.line());
        text.push('\n');
    }
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Collects the circles of all crates.
///
/// # Errors
/// Fails when a file cannot be read.
pub(super) fn all(workspace: &WorkspaceFolders) -> Result<Vec<FileCircle>, String> {
    let mut found = Vec::new();
    for package in workspace.packages()? {
        let folder = package.folder;
        let source = workspace.root.join("crates").join(&folder).join("src");
        for files in circles(&CrateFiles::read(&source)?.uses()) {
            found.push(FileCircle { folder: folder.clone(), files });
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the circles that no known one contains.
fn added<'a>(found: &'a [FileCircle], known: &[FileCircle]) -> Vec<&'a FileCircle> {
    found.iter().filter(|circle| !known.iter().any(|old| circle.is_within(old))).collect()
}

/// Returns the sets of two or more files each of which reaches all others of its set.
fn circles(uses: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        uses.keys().map(|file| (file, reach(uses, file))).collect();
    let circle = |file: &ModulePath| -> BTreeSet<String> {
        let back = reached[file].iter().filter(|other| reached[**other].contains(file));
        back.map(|other| other.join("::")).collect()
    };
    uses.keys().map(circle).filter(|files| files.len() > 1).collect()
}

/// Returns the files that a file uses, directly or through others.
fn reach<'a>(
    uses: &'a BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    file: &ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = uses[file].iter().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(&uses[next]);
        }
    }
    reached
}

fn known(workspace: &WorkspaceFolders) -> Result<Vec<FileCircle>, String> {
    lines(&read(&list(workspace))?).map(FileCircle::parse).collect()
}

fn list(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.root.join("xtask/src/rooms/circles.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_reach_each_other_are_one_circle() {
        let path = |name: &str| vec!["ops".to_owned(), name.to_owned()];
        let edges = [["a", "b"], ["b", "c"], ["c", "a"], ["c", "d"], ["d", "e"], ["e", "d"]];
        let mut uses: BTreeMap<ModulePath, BTreeSet<ModulePath>> =
            ["a", "b", "c", "d", "e", "f"].map(|name| (path(name), BTreeSet::new())).into();
        for [user, used] in edges {
            uses.entry(path(user)).or_default().insert(path(used));
        }
        let found: Vec<String> = circles(&uses)
            .into_iter()
            .map(|files| files.into_iter().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(found, ["ops::a ops::b ops::c", "ops::d ops::e"]);
    }

    #[test]
    fn a_circle_may_become_smaller_and_not_larger() {
        let circle = |line: &str| FileCircle::parse(line).unwrap();
        let known = [circle("graph: fact length ops"), circle("llm: arch weights")];
        let found = ["graph: fact length", "graph: arch weights", "llm: arch body weights"];
        let found = found.map(circle);
        let added: Vec<String> = added(&found, &known).into_iter().map(FileCircle::line).collect();
        assert_eq!(added, ["graph: arch weights", "llm: arch body weights"]);
        assert!(FileCircle::parse("graph").is_err());
    }
}
