//! `galatea selftest --compare`: two reports beside each other.

use std::path::Path;

use galatea_tensor::OrderedMap;

use super::line::{self, SelftestLine, number};
use crate::table::table;

/// Ratios from here to its inverse are noise, and are not shown.
const NOISE: f64 = 1.1;

/// Renders what differs between two reports: outcomes, and figures with their ratio.
///
/// # Errors
/// Fails when a file cannot be read or is no report.
pub(super) fn compare(one: &Path, other: &Path) -> Result<String, String> {
    Ok(compared(&read(one)?, &read(other)?))
}

fn read(path: &Path) -> Result<Vec<SelftestLine>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("'{}': {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let no_report = |error| format!("{error}; expected a report that --output has written");
    let lines = line::parse(&text).map_err(|error| failed(&no_report(error)))?;
    match lines.is_empty() {
        true => Err(failed(&"no line of a report; --output writes one")),
        false => Ok(lines),
    }
}

/// Lines of a report by subject and unit.
fn by_name(lines: &[SelftestLine]) -> OrderedMap<[&str; 2], &SelftestLine> {
    lines.iter().map(|line| ([line.subject.as_str(), line.unit.as_str()], line)).collect()
}

fn compared(one: &[SelftestLine], other: &[SelftestLine]) -> String {
    let before = by_name(one);
    let after = by_name(other);
    let mut names: Vec<_> = before.keys().chain(after.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut outcomes = Vec::new();
    let mut figures = Vec::new();
    for name in names {
        let found = [before.get(&name), after.get(&name)];
        let words = found.map(|line| line.map_or("-", |line| line.report.outcome.word()));
        if words[0] != words[1] {
            let reason = found.iter().rev().flatten().find_map(|line| line.report.reason.clone());
            let reason = reason.unwrap_or_default().lines().next().unwrap_or_default().to_owned();
            let row = [name[0], name[1], words[0], words[1]].map(ToOwned::to_owned);
            outcomes.push(row.into_iter().chain([reason]).collect());
        }
        if let [Some(one), Some(other)] = found {
            figures.extend(ratios(one, other));
        }
    }
    let mut text = format!("Outcomes that differ: {}\n", outcomes.len());
    if !outcomes.is_empty() {
        text.push_str(&table(&["Subject", "Unit", "A", "B", "Reason"], outcomes));
        text.push('\n');
    }
    text.push_str(&format!("\nFigures that differ by more than 10 %: {}\n", figures.len()));
    if !figures.is_empty() {
        text.push_str(&table(&["Subject", "Unit", "Figure", "A", "B", "B/A"], figures));
    }
    text
}

/// Rows of the figures that both lines have and that differ.
fn ratios(one: &SelftestLine, other: &SelftestLine) -> Vec<Vec<String>> {
    let row = |name: &String, before: f64, after: f64| {
        let ratio = after / before;
        let same = before == after || (1.0 / NOISE..=NOISE).contains(&ratio);
        let shown = if ratio.is_finite() { format!("{ratio:.2}") } else { "-".to_owned() };
        (!same).then(|| {
            let names = [one.subject.clone(), one.unit.clone(), name.clone()];
            names.into_iter().chain([number(before), number(after), shown]).collect()
        })
    };
    let figures = one.report.figures.iter();
    figures
        .filter_map(|(name, before)| row(name, *before, *other.report.figures.get(name)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::line::SubjectReport;
    use super::*;

    fn line(subject: &str, report: SubjectReport) -> SelftestLine {
        SelftestLine { subject: subject.to_owned(), unit: "cpu".to_owned(), report, seconds: 1.0 }
    }

    #[test]
    fn outcomes_and_figures_that_differ_are_shown_and_no_others() {
        let passed =
            |rate: f64| SubjectReport::passed().figure("rate_gbps", rate).figure("same", 3.0);
        let one = [line("a", passed(2.0)), line("b", SubjectReport::passed())];
        let other = [
            line("a", passed(5.0)),
            line("b", SubjectReport::failed("off by 3")),
            line("c", passed(1.0)),
        ];
        let text = compared(&one, &other);
        assert!(text.contains("Outcomes that differ: 2") && text.contains("off by 3"), "{text}");
        assert!(
            text.contains("10 %: 1") && text.contains("2.50") && !text.contains("same"),
            "{text}"
        );
        assert!(compared(&one, &one).contains("Outcomes that differ: 0"));
    }

    #[test]
    fn a_file_that_is_no_report_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        for text in ["", "{}\n"] {
            std::fs::write(&file, text).unwrap();
            let error = compare(&file, &file).unwrap_err();
            assert!(error.contains("a.jsonl") && !error.contains('\n'), "{error}");
        }
        assert!(compare(&folder.path().join("none"), &file).unwrap_err().contains("none"));
    }
}
