//! Rules for names and words: a type's name is its own, doc comments begin with a noun or a verb, functions take
//! structs where they would take tuples apart, and sentences of pages are short. What breaks a rule today is listed
//! in `known.txt`, which may only become shorter. Links between pages lead somewhere.

mod measure;
mod prose;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::workspace::{WorkspaceFolders, read};

use prose::ProsePage;
use source::WorkspaceSources;

pub(crate) use measure::measure;

/// Keyword at the start of each line of the list.
const DUPLICATE: &str = "type";
const RIDDLE: &str = "comment";
const DESTRUCTURED: &str = "parameter";
const SENTENCES: &str = "sentences";

/// Everything that breaks a rule: a line of the list, and how often it occurs.
type OffenceCounts = BTreeMap<String, usize>;

/// Compares what breaks a rule with the list of what did.
pub(crate) fn check(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = offences(&WorkspaceSources::read(workspace)?, &prose::pages(workspace)?);
    let known = parse(&read(&list(workspace))?)?;
    let broken = prose::broken_links(workspace)?;
    for link in &broken {
        println!("{link}: no such page");
    }
    let mut problems = broken.len();
    for (text, count) in &found {
        let allowed = known.get(text).copied().unwrap_or(0);
        if *count > allowed {
            println!("{}", explain(text, *count, allowed));
            problems += 1;
        }
    }
    if problems > 0 {
        return Err(format!("{problems} names or texts break a rule of CONTRIBUTING.md"));
    }
    let gone = known.iter().filter(|(text, count)| found.get(*text).unwrap_or(&0) < count).count();
    if gone > 0 {
        return Err(format!("{gone} lines of known.txt are settled: `cargo xtask names --settle`"));
    }
    println!("{} known offences, no new one", known.values().sum::<usize>());
    Ok(())
}

/// Writes the list anew with what is still wrong; nothing is added to it.
pub(crate) fn settle(workspace: &WorkspaceFolders) -> Result<(), String> {
    let found = offences(&WorkspaceSources::read(workspace)?, &prose::pages(workspace)?);
    let path = list(workspace);
    let known = match path.exists() {
        true => Some(parse(&read(&path)?)?),
        false => None,
    };
    let mut text = String::from(
        "# Written by `cargo xtask names --settle`: a rule, what breaks it, how often.\n",
    );
    for (line, count) in &found {
        let allowed = known.as_ref().map_or(*count, |known| known.get(line).copied().unwrap_or(0));
        if allowed > 0 {
            text.push_str(&format!("{line} {}\n", allowed.min(*count)));
        }
    }
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn list(workspace: &WorkspaceFolders) -> PathBuf {
    workspace.root.join("xtask/src/names/known.txt")
}

/// Reads the list.
fn parse(text: &str) -> Result<OffenceCounts, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (text, count) =
                line.rsplit_once(' ').ok_or_else(|| format!("known.txt: no number in `{line}`"))?;
            let count = count.parse().map_err(|_| format!("known.txt: no number in `{line}`"))?;
            Ok((text.to_owned(), count))
        })
        .collect()
}

/// Says what a new offence is and what the rule wants.
fn explain(text: &str, count: usize, allowed: usize) -> String {
    let more = format!("{count} found, {allowed} known");
    let (rule, rest) = text.split_once(' ').unwrap_or((text, ""));
    match rule {
        DUPLICATE => format!("{rest}: {more}; a type's name is its own in the workspace"),
        RIDDLE => format!("{rest}: {more}; a doc comment begins with a noun or a verb"),
        DESTRUCTURED => format!("{rest}: {more}; a parameter is a struct, not a tuple taken apart"),
        _ => format!("{rest}: {more}; a sentence has at most {} words", prose::MAX_WORDS),
    }
}

/// Names of types that occur more than once, each with the number of its definitions beyond the first. A name that
/// one file defines twice is an enum or struct of two functions.
fn duplicates(sources: &WorkspaceSources) -> BTreeMap<&str, usize> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for definition in &sources.types {
        files.entry(&definition.name).or_default().insert(&definition.place.file);
    }
    files.into_iter().filter(|(_, files)| files.len() > 1).map(|(n, f)| (n, f.len() - 1)).collect()
}

fn offences(sources: &WorkspaceSources, pages: &[ProsePage]) -> OffenceCounts {
    let mut offences = OffenceCounts::new();
    for (name, count) in duplicates(sources) {
        offences.insert(format!("{DUPLICATE} {name}"), count);
    }
    for offence in &sources.riddles {
        *offences.entry(format!("{RIDDLE} {}", offence.place.file)).or_default() += 1;
    }
    for offence in &sources.destructured {
        let line = format!("{DESTRUCTURED} {} {}", offence.place.file, offence.text);
        *offences.entry(line).or_default() += 1;
    }
    for page in pages.iter().filter(|page| page.long > 0) {
        offences.insert(format!("{SENTENCES} {}", page.file), page.long);
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_is_written() {
        let list = parse("# Head.\ntype Row 25\nparameter a.rs f 1\n").unwrap();
        assert_eq!(list.get("type Row"), Some(&25));
        assert_eq!(list.get("parameter a.rs f"), Some(&1));
        assert!(parse("type Row\n").unwrap_err().contains("type Row"));
    }

    #[test]
    fn messages_say_what_the_rule_wants() {
        let text = explain("comment crates/gpu/src/lib.rs", 3, 2);
        assert_eq!(
            text,
            "crates/gpu/src/lib.rs: 3 found, 2 known; a doc comment begins with a noun or a verb"
        );
    }
}
