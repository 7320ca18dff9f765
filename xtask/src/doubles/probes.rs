//! Which lines of the code for macOS run: sources get a call before each statement and arm that is there for macOS
//! alone, on the same line.
//!
//! This needs no tool of the compiler's, and tells nothing of other code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Part of the cfg of code for macOS; what is for the doubles alone has none of it.
const CFG: &str = "target_os=\"macos\"";

/// Files without that cfg which only Core ML makes run, by crate.
const FILES: &[(&str, &[&str])] =
    &[("galatea_coreml", &["engine/core_ml.rs", "engine/surface_pool.rs"])];

/// Crates whose lines are watched, by their folders.
pub(super) const WATCHED: &[(&str, &str)] =
    &[("galatea_apple", "apple"), ("galatea_coreml", "coreml")];

/// Text that is to stand at a place of a source.
#[derive(Debug, PartialEq)]
struct InsertedText {
    line: usize,
    column: usize,
    /// Order among those at one place: what closes comes before what opens.
    opens: bool,
    text: String,
}

/// Probes of a source, and the lines that they watch.
#[derive(Default)]
struct ProbeFinder {
    /// Depth of items for macOS alone, around the place that is looked at.
    inside: usize,
    /// True within code that is compiled to constants, or for tests.
    skipped: bool,
    inserted: Vec<InsertedText>,
    lines: BTreeSet<usize>,
    /// Modules for macOS alone that are files.
    files: Vec<String>,
    /// Beginning of the numbers of the source's lines.
    first: usize,
}

/// Says of attributes whether they keep what follows for macOS, and whether for tests.
struct CfgFacts {
    macos: bool,
    test: bool,
}

fn facts(attributes: &[syn::Attribute]) -> CfgFacts {
    let mut facts = CfgFacts { macos: false, test: false };
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")) {
        let Ok(list) = attribute.meta.require_list() else { continue };
        let text = list.tokens.to_string().replace(' ', "");
        let test = text == "test" || text.starts_with("all(test");
        facts.test |= test;
        facts.macos |= text.contains(CFG) && !text.contains("not(") && !text.contains("test");
    }
    facts
}

impl ProbeFinder {
    fn put(&mut self, at: LineColumn, opens: bool, text: String) {
        self.inserted.push(InsertedText { line: at.line, column: at.column, opens, text });
    }

    fn watches(&self) -> bool {
        self.inside > 0 && !self.skipped
    }

    fn probe(&mut self, line: usize) -> String {
        self.lines.insert(line);
        format!("crate::galatea_seen({}); ", self.first + line)
    }

    /// Looks into something with attributes.
    fn within(&mut self, attributes: &[syn::Attribute], look: impl FnOnce(&mut Self)) {
        let facts = facts(attributes);
        let skipped = self.skipped;
        self.skipped |= facts.test;
        self.inside += usize::from(facts.macos);
        look(self);
        self.inside -= usize::from(facts.macos);
        self.skipped = skipped;
    }

    fn skip(&mut self, skip: bool, look: impl FnOnce(&mut Self)) {
        let skipped = self.skipped;
        self.skipped |= skip;
        look(self);
        self.skipped = skipped;
    }
}

impl<'ast> Visit<'ast> for ProbeFinder {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let found = facts(&module.attrs);
        if module.content.is_none() && found.macos && !found.test {
            self.files.push(module.ident.to_string());
        }
        self.within(&module.attrs, |this| visit::visit_item_mod(this, module));
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let constant = function.sig.constness.is_some();
        self.within(&function.attrs, |this| {
            this.skip(constant, |this| visit::visit_item_fn(this, function));
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let constant = function.sig.constness.is_some();
        self.within(&function.attrs, |this| {
            this.skip(constant, |this| visit::visit_impl_item_fn(this, function));
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.within(&item.attrs, |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_const(&mut self, _item: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _item: &'ast syn::ItemStatic) {}

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        let attributes: &[syn::Attribute] = match statement {
            syn::Stmt::Local(local) => &local.attrs,
            syn::Stmt::Expr(syn::Expr::Return(expression), _) => &expression.attrs,
            syn::Stmt::Expr(syn::Expr::Block(expression), _) => &expression.attrs,
            _ => &[],
        };
        let is_code = !matches!(statement, syn::Stmt::Item(_));
        self.within(attributes, |this| {
            if is_code && this.watches() && attributes.is_empty() {
                let start = statement.span().start();
                let probe = this.probe(start.line);
                this.put(start, true, probe);
            }
            visit::visit_stmt(this, statement);
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let is_block = matches!(*arm.body, syn::Expr::Block(_));
        if self.watches() && !is_block {
            let span = arm.body.span();
            let probe = self.probe(span.start().line);
            self.put(span.start(), true, format!("{{ {probe}"));
            self.put(span.end(), false, " }".to_owned());
        }
        visit::visit_arm(self, arm);
    }
}

/// A source with probes.
struct WatchedSource {
    text: String,
    lines: BTreeSet<usize>,
    files: Vec<String>,
}

/// Puts probes into a source. All of it is watched where `whole` says so.
fn watched(source: &str, whole: bool, first: usize) -> Result<WatchedSource, syn::Error> {
    let file = syn::parse_file(source)?;
    let mut finder = ProbeFinder { inside: usize::from(whole), first, ..ProbeFinder::default() };
    finder.visit_file(&file);
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    finder.inserted.sort_by_key(|one| std::cmp::Reverse((one.line, one.column, one.opens)));
    for one in &finder.inserted {
        let Some(line) = lines.get_mut(one.line - 1) else { continue };
        let at = line.char_indices().nth(one.column).map_or(line.len(), |(at, _)| at);
        line.insert_str(at, &one.text);
    }
    let text = lines.join("\n") + "\n";
    Ok(WatchedSource { text, lines: finder.lines, files: finder.files })
}

/// Function that a crate's root gets: each line that runs for the first time is written down at once, so that
/// processes which are ended count too.
fn function(seen: &Path) -> String {
    format!(
        "\n#[doc(hidden)]\npub(crate) fn galatea_seen(line: usize) {{\n    use std::io::Write as _;\n    \
         static SEEN: std::sync::Mutex<std::collections::BTreeSet<usize>> =\n        \
         std::sync::Mutex::new(std::collections::BTreeSet::new());\n    \
         let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);\n    \
         if seen.insert(line) {{\n        \
         let file = std::fs::OpenOptions::new().create(true).append(true).open({seen:?});\n        \
         if let Ok(mut file) = file {{\n            \
         let _ = file.write_all(format!(\"{{line}}\\n\").as_bytes());\n        }}\n    }}\n}}\n"
    )
}

/// Numbers of a source's lines begin at multiples of this.
const LINES: usize = 10_000;

/// Files of a crate that is watched.
pub(super) struct WatchedCrate {
    /// Name, as rustc has it.
    pub(super) name: String,
    /// Folder of its sources.
    pub(super) from: PathBuf,
    /// Folder for those with probes.
    pub(super) to: PathBuf,
    /// Folder of what is known of lines.
    pub(super) records: PathBuf,
}

impl WatchedCrate {
    /// Finds the crate with this root file, if its lines are watched.
    pub(super) fn of(root: &str, folder: &Path) -> Option<Self> {
        let crates = std::env::current_dir().ok()?.join("crates");
        let is_root = |row: &&(&str, &str)| root == format!("crates/{}/src/lib.rs", row.1);
        let (name, inner) = WATCHED.iter().find(is_root)?;
        Some(Self {
            name: (*name).to_owned(),
            from: crates.join(inner).join("src"),
            to: folder.join("crates").join(inner).join("src"),
            records: folder.to_path_buf(),
        })
    }

    /// Lets cargo look at the sources themselves for changes: rustc has listed the copies in this file.
    pub(super) fn correct(&self, list: &Path) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("{}: {error}", list.display());
        let text = fs::read_to_string(list).map_err(wrong)?;
        let text = text.replace(&*self.to.to_string_lossy(), &self.from.to_string_lossy());
        fs::write(list, text).map_err(wrong)
    }

    /// Copies the crate's sources, those for macOS with probes, and lists their lines.
    pub(super) fn copy(&self) -> Result<(), String> {
        let mut sources = Vec::new();
        collect(&self.from, &mut sources).map_err(|e| format!("{}: {e}", self.from.display()))?;
        // A module comes before those inside it.
        sources.sort_by_key(|path| (path.components().count(), path.clone()));
        let mut whole: BTreeSet<PathBuf> = BTreeSet::new();
        for (_, files) in FILES.iter().filter(|row| row.0 == self.name) {
            whole.extend(files.iter().map(|file| self.from.join(file)));
        }
        let mut listed = String::new();
        for (index, path) in sources.iter().enumerate() {
            let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            let folder = path.with_extension("");
            let within = whole.iter().any(|one| folder.starts_with(one.with_extension("")));
            let made = watched(&text, within, index * LINES)
                .map_err(|e| format!("{}: {e}", path.display()))?;
            let root = path.parent() == Some(&self.from) && path.ends_with("lib.rs");
            let beside = if root { self.from.clone() } else { folder };
            whole.extend(made.files.iter().map(|file| beside.join(file).with_extension("rs")));
            for line in &made.lines {
                listed += &format!("{} {}:{line}\n", index * LINES + line, path.display());
            }
            let mut text = made.text;
            if root {
                text.push_str(&function(&self.records.join(format!("{}.seen", self.name))));
            }
            let inner = path.strip_prefix(&self.from).unwrap_or(path);
            write(&self.to.join(inner), &text)?;
        }
        // Other files that sources name.
        let beside = |inner: &str| -> Option<()> {
            let from = self.from.parent()?.join(inner);
            let to = self.to.parent()?.join(inner);
            plain(&from, &to).ok()
        };
        for inner in BESIDE {
            beside(inner);
        }
        write(&self.records.join(format!("{}.lines", self.name)), &listed)
    }
}

/// Folders and files beside sources that they include.
const BESIDE: &[&str] = &["rules", "tests/data", "../doubles/src/c/darwin.rs"];

/// Copies a file, or the files of a folder.
fn plain(from: &Path, to: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", from.display());
    if !from.is_dir() {
        return write(to, &fs::read_to_string(from).map_err(wrong)?);
    }
    for entry in fs::read_dir(from).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        plain(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Writes a text that others may be reading: they find the old or the new one.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(wrong)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    fs::write(&beside, text).map_err(wrong)?;
    fs::rename(&beside, path).map_err(wrong)
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

/// Prints the share of lines that ran, and writes down those that did not.
pub(super) fn report(records: &Path) -> Result<(), String> {
    let mut all = 0;
    let mut missed = Vec::new();
    for (name, _) in WATCHED {
        let read = |extension: &str| {
            let path = records.join(format!("{name}.{extension}"));
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let seen: String = read("seen")?;
        let seen: BTreeSet<&str> = seen.lines().collect();
        for line in read("lines")?.lines() {
            let Some((number, place)) = line.split_once(' ') else { continue };
            all += 1;
            if !seen.contains(number) {
                missed.push(place.to_owned());
            }
        }
    }
    let list = records.join("not-run.txt");
    write(&list, &(missed.join("\n") + "\n"))?;
    let run = all - missed.len();
    let share = if all == 0 { 0.0 } else { 100.0 * run as f64 / all as f64 };
    println!(
        "{run} of {all} lines for macOS ran ({share:.1} %); the others are in {}",
        list.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_arms_for_macos_are_watched_and_no_others() {
        let source = "fn a() {\n    b();\n}\n#[cfg(any(target_os = \"macos\", apple_doubles))]\nfn c() {\n    \
                      match d {\n        1 => e(),\n        _ => {}\n    }\n}\n";
        let made = watched(source, false, 100).unwrap();
        assert_eq!(made.lines.into_iter().collect::<Vec<_>>(), [6, 7]);
        assert!(made.text.contains("    crate::galatea_seen(106); match d {"), "{}", made.text);
        assert!(made.text.contains("1 => { crate::galatea_seen(107); e() },"), "{}", made.text);
        assert_eq!(made.text.lines().count(), source.lines().count());
    }

    #[test]
    fn what_is_for_tests_or_constant_is_not_watched() {
        let source = "const fn a() -> u8 { 1 }\n#[cfg(test)]\nmod tests { fn b() { c(); } }\n";
        assert!(watched(source, true, 0).unwrap().lines.is_empty());
    }
}
