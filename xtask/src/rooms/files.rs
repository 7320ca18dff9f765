//! Files of a crate and the files that each uses, read from the syntax trees. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::workspace::read;

/// Names from a crate's root to a module or an item.
pub(super) type ModulePath = Vec<String>;

/// Files that a file uses, and the names that it uses of each.
pub(super) type UsedFiles = BTreeMap<ModulePath, BTreeSet<String>>;

/// Files of a crate, and those that each uses.
pub(super) type FileUses = BTreeMap<ModulePath, UsedFiles>;

/// Number of imports by which a name is followed to the file that defines it.
const MAX_IMPORTS: usize = 8;

/// Definitions, imports and named paths of one file.
#[derive(Debug, Default)]
struct FileNames {
    /// Path of the module that is being read.
    module: ModulePath,
    /// Modules of the file that have a file of their own.
    children: BTreeSet<String>,
    /// Names of the items that the file defines.
    items: BTreeSet<String>,
    /// Imported names, and what they stand for.
    imports: BTreeMap<String, ModulePath>,
    /// Modules all of whose names are imported.
    globs: Vec<ModulePath>,
    /// Paths that the file names.
    named: BTreeSet<ModulePath>,
}

/// Files of a crate by the paths of their modules.
#[derive(Debug, Default)]
pub(super) struct CrateFiles(BTreeMap<ModulePath, FileNames>);

impl CrateFiles {
    /// Reads a crate by its `src` folder.
    ///
    /// # Errors
    /// Fails when a file cannot be read, is no Rust, or is missing.
    pub(super) fn read(source: &Path) -> Result<Self, String> {
        let mut files = Self::default();
        files.read_module(&source.join("lib.rs"), ModulePath::new())?;
        Ok(files)
    }

    fn read_module(&mut self, file: &Path, module: ModulePath) -> Result<(), String> {
        let tree = parse(file)?;
        let folder = folder_of_children(file);
        for item in &tree.items {
            let syn::Item::Mod(child) = item else { continue };
            if child.content.is_none() && !is_for_tests(&child.attrs) {
                let name = child.ident.to_string();
                if let Some(path) = file_of(child, file, &folder)? {
                    self.read_module(&path, joined(&module, &[name]))?;
                }
            }
        }
        self.add(module, &tree);
        Ok(())
    }

    /// Adds a file. Files that stand for one module on different systems count as one.
    pub(super) fn add(&mut self, module: ModulePath, tree: &syn::File) {
        let names = self.0.entry(module.clone()).or_default();
        names.module = module;
        for item in &tree.items {
            if let syn::Item::Mod(child) = item
                && child.content.is_none()
            {
                names.children.insert(child.ident.to_string());
            }
            names.items.extend(defined(item));
        }
        names.visit_file(tree);
    }

    /// Returns the files that each file uses, without those above and below it, and the names it uses of them.
    pub(super) fn uses(&self) -> FileUses {
        self.0.iter().map(|(module, names)| (module.clone(), self.uses_of(module, names))).collect()
    }

    fn uses_of(&self, module: &ModulePath, names: &FileNames) -> UsedFiles {
        let mut used = UsedFiles::new();
        for path in &names.named {
            let file = self.file_of(path, MAX_IMPORTS);
            if !file.starts_with(module) && !module.starts_with(&file) {
                used.entry(file).or_default().extend(path.last().cloned());
            }
        }
        used
    }

    /// Returns the file that defines what a path names, as far as imports lead.
    fn file_of(&self, path: &[String], imports: usize) -> ModulePath {
        let own = (0..=path.len()).rev().find(|&length| self.0.contains_key(&path[..length]));
        let (module, rest) = path.split_at(own.unwrap_or(0));
        let (Some(names), Some((name, rest))) = (self.0.get(module), rest.split_first()) else {
            return module.to_vec();
        };
        if names.items.contains(name) || imports == 0 {
            return module.to_vec();
        }
        if let Some(target) = names.imports.get(name) {
            return self.file_of(&joined(target, rest), imports - 1);
        }
        let defines =
            |glob: &&ModulePath| self.0.get(*glob).is_some_and(|g| g.items.contains(name));
        names.globs.iter().find(defines).cloned().unwrap_or_else(|| module.to_vec())
    }
}

impl FileNames {
    /// Returns the path from the crate's root, or `None` for a path that begins elsewhere.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some(joined(&self.module, rest)),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let kept = self.module.len().checked_sub(supers)?;
                Some(joined(&self.module[..kept], &path[supers..]))
            }
            child if self.children.contains(child) => Some(joined(&self.module, path)),
            _ => None,
        }
    }

    fn name(&mut self, path: &[String]) {
        if let Some(path) = self.absolute(path) {
            self.named.insert(path);
        }
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String]) {
        match tree {
            syn::UseTree::Path(path) => {
                self.import(&path.tree, &joined(before, &[path.ident.to_string()]));
            }
            syn::UseTree::Name(name) => self.import_as(&name.ident, &name.ident, before),
            syn::UseTree::Rename(name) => self.import_as(&name.ident, &name.rename, before),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|one| self.import(one, before));
            }
            syn::UseTree::Glob(_) => {
                self.name(before);
                self.globs.extend(self.absolute(before));
            }
        }
    }

    fn import_as(&mut self, name: &syn::Ident, local: &syn::Ident, before: &[String]) {
        let path = match name == "self" {
            true => before.to_vec(),
            false => joined(before, &[name.to_string()]),
        };
        if let Some(path) = self.absolute(&path) {
            let local = match local == "self" {
                true => path.last().cloned().unwrap_or_default(),
                false => local.to_string(),
            };
            self.imports.insert(local, path.clone());
            self.named.insert(path);
        }
    }

    /// Collects paths from the text of a macro, which has no syntax tree.
    fn name_in_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.name(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                proc_macro2::TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.name(&std::mem::take(&mut path));
                    colons = 0;
                    if let proc_macro2::TokenTree::Group(group) = other {
                        self.name_in_tokens(group.stream());
                    }
                }
            }
        }
        self.name(&path);
    }
}

impl<'ast> Visit<'ast> for FileNames {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.import(&item.tree, &[]);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && !is_for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|one| one.ident.to_string()).collect();
        self.name(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.name_in_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }

    // Who may see an item is no use of a file.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

/// Reads the syntax tree of a file.
///
/// # Errors
/// Fails when the file cannot be read or is no Rust.
pub(super) fn parse(file: &Path) -> Result<syn::File, String> {
    syn::parse_file(&read(file)?).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns whether an item is compiled for tests only.
pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

fn joined(before: &[String], after: &[String]) -> ModulePath {
    before.iter().chain(after).cloned().collect()
}

/// Returns the name that an item defines in its module.
fn defined(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Mod(item) if item.content.is_some() => &item.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns the folder of the modules that a file declares.
fn folder_of_children(file: &Path) -> PathBuf {
    let is_folder = ["lib.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
    match is_folder {
        true => file.parent().unwrap_or(file).to_path_buf(),
        false => file.with_extension(""),
    }
}

/// Returns the file of a module, or `None` where its path is for tests.
fn file_of(module: &syn::ItemMod, parent: &Path, folder: &Path) -> Result<Option<PathBuf>, String> {
    let given = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"));
    if let Some(attribute) = given {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return Ok(None) };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value else {
            return Ok(None);
        };
        return Ok(Some(parent.with_file_name(path.value())));
    }
    let name = module.ident.to_string();
    let candidates = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
    let found = candidates.into_iter().find(|path| path.is_file());
    match found {
        Some(path) => Ok(Some(path)),
        None => Err(format!("{}: no file of the module '{name}'", parent.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ModulePath {
        text.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn uses(files: &[[&str; 2]], module: &str) -> Vec<String> {
        let mut all = CrateFiles::default();
        for [module, text] in files {
            all.add(path(module), &syn::parse_file(text).unwrap());
        }
        all.uses()[&path(module)].keys().map(|file| file.join("::")).collect()
    }

    #[test]
    fn imports_paths_and_macros_name_files() {
        let files = [
            ["", "mod a; mod b; mod c; mod d; mod e;"],
            ["a", "use crate::b::B;\nfn f() -> super::c::C { vec![crate::d::g(1)] }"],
            ["b", "pub struct B;"],
            ["c", ""],
            ["d", ""],
            ["e", "pub(in crate::a) fn f() {}\n#[cfg(test)]\nmod tests { use crate::b::B; }"],
        ];
        assert_eq!(uses(&files, "a"), ["b", "c", "d"]);
        assert!(uses(&files, "e").is_empty());
    }

    #[test]
    fn names_that_a_module_gives_on_belong_to_the_file_that_defines_them() {
        let files = [
            ["", "mod a; mod b; pub use a::{One as Uno, all::*};"],
            ["a", "mod one; mod two; mod all; use one::One; struct Own;"],
            ["a::one", "pub struct One;"],
            ["a::two", "use super::{One, Own};"],
            ["a::all", "pub fn every() {}"],
            ["b", "use crate::Uno;\nfn f() { crate::every() }"],
        ];
        assert_eq!(uses(&files, "a::two"), ["a::one"]);
        assert_eq!(uses(&files, "b"), ["a::all", "a::one"]);
    }

    #[test]
    fn files_above_and_below_do_not_count_and_modules_within_a_file_are_part_of_it() {
        let files = [
            ["", "mod a; mod b;"],
            ["a", "mod child; use self::child::C; mod inner { use super::super::b::B; }"],
            ["a::child", "use super::inner; use crate::f;"],
            ["b", ""],
        ];
        assert_eq!(uses(&files, "a"), ["b"]);
        assert!(uses(&files, "a::child").is_empty());
    }
}
