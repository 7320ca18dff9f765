//! Names, comments and patterns of the workspace's Rust sources, read from their syntax trees.

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::workspace::{WorkspaceFolders, read};

/// First words of doc comments that say what a thing is by a relative clause in place of a noun or a verb.
const RIDDLES: &[&str] = &["What", "Who", "Those", "Of", "As", "So", "Such"];

/// Place of a definition or an offence: file relative to the workspace and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OffencePlace {
    /// Path relative to the workspace.
    pub(crate) file: String,
    /// Line, from 1.
    pub(crate) line: usize,
}

/// One type, trait or alias of types.
#[derive(Debug, Clone)]
pub(crate) struct TypeDefinition {
    /// Name.
    pub(crate) name: String,
    /// Place of its name.
    pub(crate) place: OffencePlace,
}

/// One function, method or doc comment that breaks a rule.
#[derive(Debug, Clone)]
pub(crate) struct NameOffence {
    /// Text by which it is known: a function's name, or the comment's first words.
    pub(crate) text: String,
    /// Place of it.
    pub(crate) place: OffencePlace,
}

/// Everything that the rules and the measures need of all sources.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceSources {
    /// Types, traits and aliases outside tests.
    pub(crate) types: Vec<TypeDefinition>,
    /// Number of doc comments.
    pub(crate) comments: usize,
    /// Doc comments of items with a code example.
    pub(crate) examples: usize,
    /// Doc comments that begin with one of [`RIDDLES`].
    pub(crate) riddles: Vec<NameOffence>,
    /// Number of functions and methods.
    pub(crate) functions: usize,
    /// Functions that take a tuple or an array apart in their parameters.
    pub(crate) destructured: Vec<NameOffence>,
    /// Number of `let` statements.
    pub(crate) lets: usize,
    /// `let` statements that bind a tuple of names to a tuple of expressions.
    pub(crate) paired_lets: usize,
    /// Methods of traits and of inherent implementations: name of the type, number.
    pub(crate) methods: std::collections::BTreeMap<String, usize>,
}

impl WorkspaceSources {
    /// Reads `src` of every crate and of xtask.
    ///
    /// # Errors
    /// Fails when a file cannot be read or is not Rust.
    pub(crate) fn read(workspace: &WorkspaceFolders) -> Result<Self, String> {
        let mut sources = Self::default();
        for file in files(workspace)? {
            let text = read(&file)?;
            let name = file.strip_prefix(&workspace.root).unwrap_or(&file).to_string_lossy();
            sources.add(&name, &text)?;
        }
        Ok(sources)
    }

    fn add(&mut self, file: &str, text: &str) -> Result<(), String> {
        let tree = syn::parse_file(text).map_err(|e| format!("{file}: {e}"))?;
        SourceVisitor { sources: self, file }.visit_file(&tree);
        Ok(())
    }
}

/// Returns the Rust files below the `src` folders of all crates, in the order of their paths.
fn files(workspace: &WorkspaceFolders) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for package in workspace.packages()? {
        collect(&workspace.root.join("crates").join(package.folder).join("src"), &mut found)?;
    }
    collect(&workspace.root.join("xtask/src"), &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Walks one file's syntax tree.
struct SourceVisitor<'a> {
    sources: &'a mut WorkspaceSources,
    file: &'a str,
}

impl SourceVisitor<'_> {
    fn place(&self, span: proc_macro2::Span) -> OffencePlace {
        OffencePlace { file: self.file.to_owned(), line: span.start().line }
    }

    fn define(&mut self, name: &syn::Ident) {
        let place = self.place(name.span());
        self.sources.types.push(TypeDefinition { name: name.to_string(), place });
    }

    fn comment(&mut self, attributes: &[syn::Attribute]) {
        let lines: Vec<(String, OffencePlace)> =
            attributes.iter().filter_map(|a| self.doc(a)).collect();
        let Some((first, place)) = lines.first() else { return };
        self.sources.comments += 1;
        if lines.iter().any(|(line, _)| line.trim_start().starts_with("```")) {
            self.sources.examples += 1;
        }
        let word = first.split_whitespace().next().unwrap_or_default();
        if RIDDLES.contains(&word.trim_end_matches(',')) {
            let text = first.trim().to_owned();
            self.sources.riddles.push(NameOffence { text, place: place.clone() });
        }
    }

    /// Text of an attribute that is a line of a doc comment.
    fn doc(&self, attribute: &syn::Attribute) -> Option<(String, OffencePlace)> {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(value) = &pair.value else { return None };
        let syn::Lit::Str(text) = &value.lit else { return None };
        let is_doc = pair.path.is_ident("doc");
        is_doc.then(|| (text.value(), self.place(text.span())))
    }

    fn function(&mut self, signature: &syn::Signature) {
        self.sources.functions += 1;
        let apart = signature.inputs.iter().any(|input| match input {
            syn::FnArg::Typed(typed) => takes_apart(&typed.pat),
            syn::FnArg::Receiver(_) => false,
        });
        if apart {
            let place = self.place(signature.ident.span());
            self.sources
                .destructured
                .push(NameOffence { text: signature.ident.to_string(), place });
        }
    }
}

/// Returns whether a parameter's pattern is a tuple or a slice.
fn takes_apart(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Tuple(_) | syn::Pat::Slice(_) => true,
        syn::Pat::Reference(inner) => takes_apart(&inner.pat),
        _ => false,
    }
}

/// Returns whether an item is compiled for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

impl<'ast> Visit<'ast> for SourceVisitor<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.comment(&file.attrs);
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            self.comment(&item.attrs);
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.comment(&item.attrs);
        self.define(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.comment(&item.attrs);
        self.define(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.comment(&item.attrs);
        self.define(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.comment(&item.attrs);
        self.define(&item.ident);
        let methods = item.items.iter().filter(|i| matches!(i, syn::TraitItem::Fn(_))).count();
        *self.sources.methods.entry(item.ident.to_string()).or_default() += methods;
        visit::visit_item_trait(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let (None, syn::Type::Path(path)) = (&item.trait_, &*item.self_ty)
            && let Some(last) = path.path.segments.last()
        {
            let methods = item.items.iter().filter(|i| matches!(i, syn::ImplItem::Fn(_))).count();
            *self.sources.methods.entry(last.ident.to_string()).or_default() += methods;
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.comment(&item.attrs);
        self.function(&item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.comment(&item.attrs);
        self.function(&item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.comment(&item.attrs);
        self.function(&item.sig);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.comment(&item.attrs);
        visit::visit_item_const(self, item);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.comment(&field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.comment(&variant.attrs);
        visit::visit_variant(self, variant);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.sources.lets += 1;
        let value = local.init.as_ref().map(|init| &*init.expr);
        if matches!((&local.pat, value), (syn::Pat::Tuple(_), Some(syn::Expr::Tuple(_)))) {
            self.sources.paired_lets += 1;
        }
        visit::visit_local(self, local);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> WorkspaceSources {
        let mut sources = WorkspaceSources::default();
        sources.add("a.rs", text).unwrap();
        sources
    }

    #[test]
    fn comments_that_begin_with_a_riddle_are_found() {
        let found = sources("/// What a thing is.\nstruct A;\n/// Number of things.\nstruct B;\n");
        assert_eq!((found.comments, found.riddles.len()), (2, 1));
        assert_eq!(found.riddles[0].place.line, 1);
    }

    #[test]
    fn parameters_that_are_taken_apart_are_found_and_closures_are_left_alone() {
        let text =
            "fn a((x, y): (u8, u8)) {}\nfn b(&[x]: &[u8; 1]) {}\nfn c(x: u8) { d(|(a, b)| a); }";
        assert_eq!(sources(text).destructured.len(), 2);
    }

    #[test]
    fn types_of_tests_do_not_count() {
        let found = sources("struct A;\n#[cfg(test)]\nmod tests { struct B; }\n");
        assert_eq!(found.types.len(), 1);
    }

    #[test]
    fn pairs_of_values_bound_to_pairs_of_names_are_counted() {
        let found = sources("fn f() { let (a, b) = (1, 2); let (c, d) = g(); let e = 3; }");
        assert_eq!((found.lets, found.paired_lets), (3, 1));
    }
}
