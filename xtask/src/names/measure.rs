//! The table of `cargo xtask measure`: how far the sources are from the house's goals.

use std::collections::BTreeMap;

use super::prose::{self, ProsePage};
use super::source::WorkspaceSources;
use super::{duplicates, offences};
use crate::rooms;
use crate::workspace::WorkspaceFolders;

/// One line of the table.
struct MeasureRow {
    name: &'static str,
    found: String,
    goal: &'static str,
}

/// Prints the table.
///
/// # Errors
/// Fails when a source or a page cannot be read.
pub(crate) fn measure(workspace: &WorkspaceFolders) -> Result<(), String> {
    let sources = WorkspaceSources::read(workspace)?;
    let pages = prose::pages(workspace)?;
    for measure in measures(&sources, &pages) {
        println!("{:<52} {:<22} {}", measure.name, measure.found, measure.goal);
    }
    println!("{:<52} {:<22} 0", "circles of files", rooms::count_circles(workspace)?);
    println!("{:<52} {}", "names and texts that break a rule", offences(&sources, &pages).len());
    Ok(())
}

fn measures(sources: &WorkspaceSources, pages: &[ProsePage]) -> Vec<MeasureRow> {
    let single = sources.types.iter().filter(|t| words(&t.name) == 1).count();
    let repeated = duplicates(sources);
    let twice = sources.types.iter().filter(|t| repeated.contains_key(t.name.as_str())).count();
    let sentences: usize = pages.iter().map(|page| page.sentences).sum();
    let long: usize = pages.iter().map(|page| page.long).sum();
    let methods = |name: &str| sources.methods.get(name).copied().unwrap_or(0).to_string();
    vec![
        MeasureRow {
            name: "type names of one word",
            found: share(single, sources.types.len()),
            goal: "≤ 30 %",
        },
        MeasureRow {
            name: "definitions whose name another type bears",
            found: share(twice, sources.types.len()),
            goal: "≤ 20 %",
        },
        MeasureRow { name: "most frequent names", found: most_frequent(&repeated), goal: "" },
        MeasureRow {
            name: "doc comments that begin What/Who/Those/Of/As/So/Such",
            found: share(sources.riddles.len(), sources.comments),
            goal: "0",
        },
        MeasureRow {
            name: "doc comments with a code example",
            found: share(sources.examples, sources.comments),
            goal: "all of the facade",
        },
        MeasureRow {
            name: "functions with destructured parameters",
            found: share(sources.destructured.len(), sources.functions),
            goal: "0",
        },
        MeasureRow {
            name: "`let (a, b) = (x, y)` of all lets",
            found: share(sources.paired_lets, sources.lets),
            goal: "≤ 0.8 %",
        },
        MeasureRow {
            name: "sentences above 35 words",
            found: share(long, sentences),
            goal: "≤ 3 %",
        },
        MeasureRow {
            name: "methods of ExecutionProvider / Executable",
            found: format!("{} / {}", methods("ExecutionProvider"), methods("Executable")),
            goal: "4 / 3",
        },
        MeasureRow { name: "methods of Session", found: methods("Session"), goal: "≤ 20" },
    ]
}

fn most_frequent(repeated: &BTreeMap<&str, usize>) -> String {
    let mut names: Vec<(&&str, &usize)> = repeated.iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<String> =
        names.iter().take(3).map(|(name, count)| format!("{} {name}", **count + 1)).collect();
    shown.join(", ")
}

/// Returns a number with its share of all, in percent.
fn share(part: usize, all: usize) -> String {
    let tenths = (part * 1000 + all / 2).checked_div(all).unwrap_or(0);
    format!("{part} ({}.{} %)", tenths / 10, tenths % 10)
}

/// Returns the number of words in a name of a type; letters that follow each other in upper case are one word.
fn words(name: &str) -> usize {
    let letters: Vec<char> = name.chars().collect();
    let starts = |at: usize| {
        letters[at].is_uppercase()
            && (at == 0
                || !letters[at - 1].is_uppercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()))
    };
    (0..letters.len()).filter(|&at| starts(at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_name_begin_with_a_capital_and_abbreviations_are_one() {
        let found = ["Row", "HttpEndpoint", "GEMM", "OnnxFile", "MLProgram"].map(words);
        assert_eq!(found, [1, 2, 1, 2, 2]);
    }

    #[test]
    fn shares_have_one_digit_behind_the_point() {
        assert_eq!(share(1, 3), "1 (33.3 %)");
        assert_eq!(share(0, 0), "0 (0.0 %)");
    }
}
