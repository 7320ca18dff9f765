//! Lengths of the sentences in the workspace's pages.

use std::fs;
use std::path::PathBuf;

use crate::workspace::{WorkspaceFolders, read};

/// Words that a sentence may have.
pub(crate) const MAX_WORDS: usize = 35;

/// One page.
#[derive(Debug, PartialEq)]
pub(crate) struct ProsePage {
    /// Path relative to the workspace.
    pub(crate) file: String,
    /// Number of sentences.
    pub(crate) sentences: usize,
    /// Number of those with more than [`MAX_WORDS`] words.
    pub(crate) long: usize,
}

/// Reads the pages at the root and under `docs`.
///
/// # Errors
/// Fails when a page cannot be read.
pub(crate) fn pages(workspace: &WorkspaceFolders) -> Result<Vec<ProsePage>, String> {
    files(workspace)?
        .iter()
        .map(|file| {
            let lengths = sentence_lengths(&read(file)?);
            let name = file.strip_prefix(&workspace.root).unwrap_or(file);
            Ok(ProsePage {
                file: name.to_string_lossy().into_owned(),
                sentences: lengths.len(),
                long: lengths.iter().filter(|&&words| words > MAX_WORDS).count(),
            })
        })
        .collect()
}

/// Lists links between pages that lead nowhere, as `PAGE: TARGET`.
///
/// # Errors
/// Fails when a page cannot be read.
pub(crate) fn broken_links(workspace: &WorkspaceFolders) -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    for file in files(workspace)? {
        let folder = file.parent().unwrap_or(&workspace.root);
        for target in link_targets(&read(&file)?) {
            if !folder.join(&target).exists() {
                let name = file.strip_prefix(&workspace.root).unwrap_or(&file);
                broken.push(format!("{}: {target}", name.display()));
            }
        }
    }
    Ok(broken)
}

/// Returns the relative targets of Markdown links, without their anchors.
fn link_targets(text: &str) -> Vec<String> {
    let ends = text.split("](").skip(1);
    let targets = ends.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets
        .filter(|target| !target.contains(':') && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or(target).to_owned())
        .collect()
}

/// Returns the pages at the root and under `docs`, in the order of their paths.
fn files(workspace: &WorkspaceFolders) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
            .map(|name| workspace.root.join(name))
            .into();
    let docs = workspace.root.join("docs");
    let entries = fs::read_dir(&docs).map_err(|e| format!("{}: {e}", docs.display()))?;
    files.extend(
        entries
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    files.sort();
    Ok(files)
}

/// Returns the number of words of each sentence of a page in Markdown. Code blocks and tables are no sentences.
fn sentence_lengths(text: &str) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut paragraph = String::new();
    let mut in_code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let apart = in_code || line.is_empty() || line.starts_with(['|', '#', '`', '<']);
        if apart || starts_item(line) {
            add_sentences(&paragraph, &mut lengths);
            paragraph.clear();
        }
        if !apart {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    add_sentences(&paragraph, &mut lengths);
    lengths
}

/// Returns whether a line begins an item of a list.
fn starts_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (number.len() < line.len() && number.starts_with(". "))
}

fn add_sentences(paragraph: &str, lengths: &mut Vec<usize>) {
    let mut words = 0;
    for word in paragraph.split_whitespace() {
        // Signs that stand alone are no words.
        words += usize::from(word.contains(char::is_alphanumeric));
        let bare = word.trim_end_matches(['`', ')', '*', '"', '”']);
        if bare.ends_with(['.', '?', '!']) && words > 0 {
            lengths.push(words);
            words = 0;
        }
    }
    if words > 0 {
        lengths.push(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_with_a_full_stop_and_items_stand_alone() {
        assert_eq!(
            sentence_lengths("One two three. Four\nfive.\n\n- six\n- seven eight\n"),
            [3, 2, 1, 2]
        );
    }

    #[test]
    fn targets_of_links_are_relative_paths() {
        let text = "[a](b.md) and [c](docs/d.md#e), [f](https://example.org) and [g](#h)";
        assert_eq!(link_targets(text), ["b.md", "docs/d.md"]);
    }

    #[test]
    fn code_headings_and_tables_are_no_sentences() {
        assert_eq!(sentence_lengths("# Title\n```sh\na b c\n```\n| a | b |\nText here.\n"), [2]);
    }
}
