//! Which rooms of a crate use which, read from the syntax trees of its files. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::workspace::read;

/// A room and one that it uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoomPair {
    /// Room whose files name the other one.
    pub(super) user: String,
    /// Room that is named.
    pub(super) used: String,
}

/// Rooms of a crate, and how they use each other.
#[derive(Debug, Default)]
pub(super) struct CrateImports {
    /// Modules of the root file, without those for tests.
    pub(super) rooms: BTreeSet<String>,
    /// Number of files of a room that use another one.
    pub(super) uses: BTreeMap<RoomPair, usize>,
}

/// Reads a crate by its `src` folder.
///
/// # Errors
/// Fails when a file cannot be read or is no Rust.
pub(super) fn of_crate(source: &Path) -> Result<CrateImports, String> {
    let root = parse(&source.join("lib.rs"))?;
    let mut found = CrateImports { rooms: rooms(&root), uses: BTreeMap::new() };
    let exported = exported(&root, &found.rooms);
    for room in found.rooms.clone() {
        let mut files = Vec::new();
        let single = source.join(format!("{room}.rs"));
        if single.is_file() {
            files.push(single);
        }
        collect(&source.join(&room), &mut files)?;
        for file in files {
            let mut names = CrateNames::default();
            names.visit_file(&parse(&file)?);
            let used: BTreeSet<&String> = names
                .0
                .iter()
                .filter_map(|name| found.rooms.get(name).or(exported.get(name)))
                .collect();
            for used in used.into_iter().filter(|used| **used != room) {
                let pair = RoomPair { user: room.clone(), used: used.clone() };
                *found.uses.entry(pair).or_default() += 1;
            }
        }
    }
    Ok(found)
}

/// Reads the syntax tree of a file.
///
/// # Errors
/// Fails when the file cannot be read or is no Rust.
pub(super) fn parse(file: &Path) -> Result<syn::File, String> {
    syn::parse_file(&read(file)?).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns the modules of a root file that are compiled outside tests.
fn rooms(root: &syn::File) -> BTreeSet<String> {
    let modules = root.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if !is_for_tests(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

/// Returns the room behind each name that the root file gives on.
fn exported(root: &syn::File, rooms: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in &root.items {
        let syn::Item::Use(item) = item else { continue };
        let syn::UseTree::Path(path) = &item.tree else { continue };
        let room = path.ident.to_string();
        if rooms.contains(&room) {
            let mut names = Vec::new();
            last_names(&path.tree, &mut names);
            found.extend(names.into_iter().map(|name| (name, room.clone())));
        }
    }
    found
}

/// Collects the names that a tree of imports brings in.
fn last_names(tree: &syn::UseTree, names: &mut Vec<String>) {
    match tree {
        syn::UseTree::Path(path) => last_names(&path.tree, names),
        syn::UseTree::Name(name) => names.push(name.ident.to_string()),
        syn::UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        syn::UseTree::Group(group) => group.items.iter().for_each(|one| last_names(one, names)),
        syn::UseTree::Glob(_) => {}
    }
}

/// Collects the first names of a tree of imports.
fn first_names(tree: &syn::UseTree, names: &mut BTreeSet<String>) {
    match tree {
        syn::UseTree::Path(path) => {
            names.insert(path.ident.to_string());
        }
        syn::UseTree::Name(name) => {
            names.insert(name.ident.to_string());
        }
        syn::UseTree::Rename(rename) => {
            names.insert(rename.ident.to_string());
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|one| first_names(one, names)),
        syn::UseTree::Glob(_) => {}
    }
}

/// Names that follow `crate::` in a file.
#[derive(Debug, Default)]
struct CrateNames(BTreeSet<String>);

impl<'ast> Visit<'ast> for CrateNames {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let syn::UseTree::Path(path) = &item.tree
            && path.ident == "crate"
            && !is_for_tests(&item.attrs)
        {
            first_names(&path.tree, &mut self.0);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|first| first.ident == "crate")
            && let Some(second) = segments.next()
        {
            self.0.insert(second.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    // Who may see an item is no use of a room.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

/// Returns whether an item is compiled for tests only.
pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

/// Collects the Rust files below a folder, without those of tests.
fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<(), String> {
    if !folder.is_dir() {
        return Ok(());
    }
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let tests = stem == "tests" || stem.ends_with("_tests");
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") && !tests {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_the_crate_are_found_in_imports_and_paths() {
        let text = "use crate::fact::Fact;\nuse crate::{ops, length::{Length}};\nuse std::fmt;\n\
                    pub(in crate::hidden) fn f() -> crate::limits::Limits { crate::rows::g() }\n\
                    #[cfg(test)]\nmod tests { use crate::testing::x; }\n";
        let mut names = CrateNames::default();
        names.visit_file(&syn::parse_file(text).unwrap());
        let names: Vec<&str> = names.0.iter().map(String::as_str).collect();
        assert_eq!(names, ["fact", "length", "limits", "ops", "rows"]);
    }

    #[test]
    fn names_that_the_root_gives_on_belong_to_their_room() {
        let text = "mod fact;\npub mod ops;\n#[cfg(test)]\nmod support;\npub use fact::{Dim, kind::Fact as F};\n";
        let root = syn::parse_file(text).unwrap();
        let rooms = rooms(&root);
        assert_eq!(rooms.iter().map(String::as_str).collect::<Vec<_>>(), ["fact", "ops"]);
        let exported = exported(&root, &rooms);
        assert_eq!(exported.keys().map(String::as_str).collect::<Vec<_>>(), ["Dim", "F"]);
    }
}
