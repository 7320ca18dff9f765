//! The end of a report: what works, what fell back and why, and what was measured.

use std::fmt::Write;
use std::path::Path;

use galatea_tensor::OrderedMap;

use super::line::{SelftestLine, SelftestVerdict, number};
use crate::table::table;

/// How a report reaches those who can use it.
const SEND: &str = "Reports help to support machines that nobody here has. A report has no user names, and no file \
                    names except those of models that you passed. Attach it to an issue of the project";

/// Most characters of a reason that the page has; the line has all.
const MAX_REASON: usize = 200;

/// Renders the page for a terminal.
pub(super) fn text(lines: &[SelftestLine], output: Option<&Path>) -> String {
    let mut text = format!("\n{}\n", counts(lines));
    for verdict in SelftestVerdict::ALL.into_iter().filter(|one| *one != SelftestVerdict::Passed) {
        for (reason, subjects) in reasons(lines, verdict) {
            let _ = write!(text, "\n{} {}: {reason}", verdict.word(), subjects.join(", "));
        }
    }
    let peaks = peaks(lines);
    if !peaks.is_empty() {
        let _ = write!(text, "\n\n{}", table(&PEAKS, peaks));
    }
    match output {
        Some(file) => {
            let _ = write!(text, "\n{SEND}: {}", file.display());
        }
        None => {
            let _ = write!(text, "\n{SEND}: --output report.jsonl writes one.");
        }
    }
    text
}

const PEAKS: [&str; 5] = ["Peak", "Unit", "Measured", "Chip file", "Share"];

/// Rows of the peaks that were measured, beside what the chip's file states. The figure `stated_X` is stated for
/// the figure `X`.
fn peaks(lines: &[SelftestLine]) -> Vec<Vec<String>> {
    let of_line = |line: &SelftestLine| {
        let figures = &line.report.figures;
        let measured = figures.iter().filter(|(name, _)| name.starts_with("peak_"));
        let row = |(name, value): (&String, &f64)| {
            let stated = figures.get(&format!("stated_{name}"));
            let share = stated.map(|stated| format!("{:.0} %", 100.0 * value / stated));
            vec![
                name.clone(),
                line.unit.clone(),
                number(*value),
                stated.map_or_else(|| "-".to_owned(), |stated| number(*stated)),
                share.unwrap_or_else(|| "-".to_owned()),
            ]
        };
        measured.map(row).collect::<Vec<_>>()
    };
    lines.iter().flat_map(of_line).collect()
}

/// Counts the lines of each outcome.
fn counts(lines: &[SelftestLine]) -> String {
    let count = |verdict| lines.iter().filter(|line| line.report.outcome == verdict).count();
    let each = SelftestVerdict::ALL.into_iter().map(|verdict| (verdict.word(), count(verdict)));
    let told = each.filter(|(word, count)| *count > 0 || ["passed", "failed"].contains(word));
    let told: Vec<String> =
        told.map(|(word, count)| format!("{count} {}", word.replace('_', " "))).collect();
    told.join(", ")
}

/// Subjects of an outcome by their reasons.
fn reasons(lines: &[SelftestLine], verdict: SelftestVerdict) -> Vec<(String, Vec<String>)> {
    let mut found: OrderedMap<String, Vec<String>> = OrderedMap::new();
    for line in lines.iter().filter(|line| line.report.outcome == verdict) {
        let reason = line.report.reason.as_deref().unwrap_or_default();
        let reason: String = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = reason.chars().take(MAX_REASON).collect();
        found.entry(reason).or_default().push(format!("{} on {}", line.subject, line.unit));
    }
    found.into_iter().collect()
}

/// Renders the page for a browser.
pub(super) fn html(lines: &[SelftestLine], machine: &str) -> String {
    let mut rows = String::new();
    for line in lines {
        let report = &line.report;
        let figures =
            report.figures.iter().map(|(name, value)| format!("{name} {}", number(*value)));
        let facts = report.facts.iter().map(|(name, value)| format!("{name} {value}"));
        let told: Vec<String> = facts.chain(figures).collect();
        let _ = writeln!(
            rows,
            "<tr class=\"{}\"><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{}</td><td>{}</td></tr>",
            report.outcome.word(),
            escaped(&line.subject),
            escaped(&line.unit),
            report.outcome.word().replace('_', " "),
            line.seconds,
            escaped(report.reason.as_deref().unwrap_or_default()),
            escaped(&told.join(", ")),
        );
    }
    let mut peak_rows = String::new();
    for row in peaks(lines) {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(peak_rows, "<tr>{cells}</tr>");
    }
    let heads: String = PEAKS.iter().map(|head| format!("<th>{head}</th>")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Galatea selftest</title>\n\
         <style>{STYLE}</style></head><body>\n<h1>Galatea {} selftest on {}</h1>\n<pre>{}</pre>\n<p>{}</p>\n\
         <h2>Peaks</h2>\n<table><tr>{heads}</tr>\n{peak_rows}</table>\n<h2>Subjects</h2>\n\
         <table><tr><th>Subject</th><th>Unit</th><th>Outcome</th><th>Seconds</th><th>Reason</th><th>Figures</th></tr>\n\
         {rows}</table>\n<p>{SEND}.</p>\n</body></html>\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        escaped(machine),
        escaped(&counts(lines)),
    )
}

const STYLE: &str = "body{font:15px system-ui;margin:2em;max-width:80em}table{border-collapse:collapse}\
                     td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid #ccc;vertical-align:top}\
                     .failed,.crashed,.timed_out{background:#fdd}.fell_back{background:#ffd}.skipped{color:#777}";

/// Replaces what has a meaning in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::line::SubjectReport;
    use super::*;

    fn line(subject: &str, report: SubjectReport) -> SelftestLine {
        SelftestLine { subject: subject.to_owned(), unit: "cpu".to_owned(), report, seconds: 1.0 }
    }

    #[test]
    fn the_page_says_what_failed_and_why_and_how_peaks_compare() {
        let peak =
            SubjectReport::passed().figure("peak_gbps", 50.0).figure("stated_peak_gbps", 100.0);
        let lines = [
            line("a", SubjectReport::failed("off <b>")),
            line("b", peak),
            line("c", SubjectReport::skipped("no GPU")),
        ];
        let text = text(&lines, None);
        for part in [
            "1 passed, 1 failed, 1 skipped",
            "failed a on cpu: off <b>",
            "50 %",
            "--output report.jsonl",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let html = html(&lines, "M1 & more");
        assert!(
            html.contains("off &lt;b&gt;")
                && html.contains("M1 &amp; more")
                && html.contains("50 %")
        );
        assert!(!html.contains("<b>"));
    }
}
