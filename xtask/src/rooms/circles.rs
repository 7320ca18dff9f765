//! Circles of files: files of a crate that use each other, directly or through others. There must be none.
//!
//! A file and those above and below it in the tree of modules do not count.

use std::collections::BTreeSet;

use super::files::{CrateFiles, FileUses, ModulePath};
use crate::workspace::WorkspaceFolders;

/// Files of a crate that use each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileCircle {
    /// Folder of the crate.
    folder: String,
    /// Modules of the files.
    files: BTreeSet<String>,
    /// Lines that say which file uses which other one, and by what names.
    links: Vec<String>,
}

impl FileCircle {
    /// Returns lines that say which files it has and why.
    fn text(&self) -> String {
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        let mut text = format!(
            "{}: these files use each other; move what they share below them: {}\n",
            self.folder,
            files.join(" ")
        );
        for link in &self.links {
            text.push_str(&format!("    {link}\n"));
        }
        text
    }
}

/// Refuses circles of files.
///
/// # Errors
/// Returns how many circles there are.
pub(super) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    refuse(&all(workspace)?)?;
    println!("no circle of files");
    Ok(())
}

/// Prints circles, and fails where there are any.
fn refuse(found: &[FileCircle]) -> Result<(), String> {
    for circle in found {
        print!("{}", circle.text());
    }
    match found.len() {
        0 => Ok(()),
        count => Err(format!("{count} circles of files")),
    }
}

/// Collects the circles of all crates.
///
/// # Errors
/// Fails when a file cannot be read.
pub(super) fn all(workspace: &WorkspaceFolders) -> Result<Vec<FileCircle>, String> {
    let mut found = Vec::new();
    for package in workspace.packages()? {
        let source = workspace.root.join("crates").join(&package.folder).join("src");
        found.extend(circles(&package.folder, &CrateFiles::read(&source)?.uses()));
    }
    Ok(found)
}

/// Returns the sets of two or more files each of which reaches all others of its set.
fn circles(folder: &str, uses: &FileUses) -> Vec<FileCircle> {
    let sets: BTreeSet<BTreeSet<&ModulePath>> =
        uses.keys().map(|file| circle(uses, file)).collect();
    let sets = sets.into_iter().filter(|files| files.len() > 1);
    let found = sets.map(|files| FileCircle {
        folder: folder.to_owned(),
        links: links(uses, &files),
        files: files.into_iter().map(|file| file.join("::")).collect(),
    });
    found.collect()
}

/// Returns the files that a file reaches and that reach it.
fn circle<'a>(uses: &'a FileUses, file: &'a ModulePath) -> BTreeSet<&'a ModulePath> {
    let back = reach(uses, file).into_iter().filter(|other| reach(uses, other).contains(file));
    back.collect()
}

/// Returns the files that a file uses, directly or through others.
fn reach<'a>(uses: &'a FileUses, file: &ModulePath) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = uses[file].keys().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(uses[next].keys());
        }
    }
    reached
}

/// Returns lines such as `fact uses length: Length` for the uses within a set of files.
fn links(uses: &FileUses, files: &BTreeSet<&ModulePath>) -> Vec<String> {
    let mut lines = Vec::new();
    for &file in files {
        for (used, names) in uses[file].iter().filter(|(used, _)| files.contains(used)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let line =
                format!("{} uses {}: {}", file.join("::"), used.join("::"), names.join(", "));
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[[&str; 2]]) -> Vec<FileCircle> {
        let mut all = CrateFiles::default();
        for [module, text] in files {
            let module = module.split("::").filter(|name| !name.is_empty()).map(str::to_owned);
            all.add(module.collect(), &syn::parse_file(text).unwrap());
        }
        circles("made", &all.uses())
    }

    #[test]
    fn files_that_use_each_other_are_refused_with_what_they_use() {
        let root = ["", "mod layer; mod plan; mod shape; mod writer;"];
        let shape = ["shape", "pub struct Shape;"];
        let layer = ["layer", "use crate::{plan::Plan, shape::Shape};\npub struct Layer;"];
        let plan = ["plan", "pub struct Plan;\nfn f() { super::writer::write() }"];
        let writer = ["writer", "use super::layer::Layer;\npub fn write() {}"];
        let circle = found(&[root, shape, layer, plan, writer]);
        assert_eq!(refuse(&circle).unwrap_err(), "1 circles of files");
        let expected = "made: these files use each other; move what they share below them: layer plan writer\n    \
                        layer uses plan: Plan\n    plan uses writer: write\n    writer uses layer: Layer\n";
        assert_eq!(circle[0].text(), expected);
        // The same without the one use that closes the circle.
        let plan = ["plan", "pub struct Plan;"];
        let open = found(&[root, shape, layer, plan, writer]);
        assert_eq!((open.len(), refuse(&open)), (0, Ok(())));
    }

    #[test]
    fn circles_apart_from_each_other_are_counted_one_by_one() {
        let files = [
            ["", "mod a; mod b; mod c; mod d; mod e;"],
            ["a", "use crate::b::B; pub struct A;"],
            ["b", "use crate::a::A; use crate::c::C; pub struct B;"],
            ["c", "use crate::d::D; pub struct C;"],
            ["d", "use crate::c::C; use crate::e::E; pub struct D;"],
            ["e", "pub struct E;"],
        ];
        let files_of = |circle: &FileCircle| circle.files.iter().cloned().collect::<Vec<_>>();
        let found: Vec<Vec<String>> = found(&files).iter().map(files_of).collect();
        assert_eq!(found, [["a", "b"], ["c", "d"]]);
    }
}
