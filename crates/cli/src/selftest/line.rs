//! One line of a report: what a subject gave on a unit.

use galatea_tensor::OrderedMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Outcome of a subject on a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SelftestVerdict {
    Passed,
    Failed,
    /// Another unit did the work; the results are right.
    FellBack,
    /// The machine or the program has nothing to test.
    Skipped,
    Crashed,
    TimedOut,
}

impl SelftestVerdict {
    /// Every verdict, in the order of the page.
    pub(super) const ALL: [Self; 6] =
        [Self::Passed, Self::Failed, Self::Crashed, Self::TimedOut, Self::FellBack, Self::Skipped];

    /// Returns the word of reports.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::FellBack => "fell_back",
            Self::Skipped => "skipped",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed_out",
        }
    }

    /// Returns whether the run counts as failed with it.
    pub(super) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Crashed | Self::TimedOut)
    }
}

/// Result of a subject, as its own process writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SubjectReport {
    pub(super) outcome: SelftestVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Numbers, whose names end in their units.
    #[serde(default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(super) figures: OrderedMap<String, f64>,
    /// Texts, such as names and versions.
    #[serde(default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(super) facts: OrderedMap<String, String>,
    /// Row of the package for the report of `--json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<Value>,
}

/// Result of a test: an error is a failure.
pub(super) type SubjectOutcome = Result<SubjectReport, String>;

impl SubjectReport {
    fn of(outcome: SelftestVerdict, reason: Option<String>) -> Self {
        let (figures, facts) = Default::default();
        Self { outcome, reason, figures, facts, row: None }
    }

    pub(super) fn passed() -> Self {
        Self::of(SelftestVerdict::Passed, None)
    }

    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::of(SelftestVerdict::Failed, Some(reason.into()))
    }

    pub(super) fn skipped(reason: impl Into<String>) -> Self {
        Self::of(SelftestVerdict::Skipped, Some(reason.into()))
    }

    pub(super) fn fell_back(reason: impl Into<String>) -> Self {
        Self::of(SelftestVerdict::FellBack, Some(reason.into()))
    }

    /// Makes a report of a check: a reason is a failure.
    pub(super) fn checked(mut self, wrong: Option<String>) -> Self {
        if let Some(reason) = wrong {
            self.outcome = SelftestVerdict::Failed;
            self.reason = Some(reason);
        }
        self
    }

    /// Adds a number that is known; what is not finite is left out.
    pub(super) fn figure(mut self, name: &str, value: impl Into<Option<f64>>) -> Self {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.figures.insert(name.to_owned(), value);
        }
        self
    }

    /// Adds a text that is known.
    pub(super) fn fact(mut self, name: &str, value: impl Into<Option<String>>) -> Self {
        if let Some(value) = value.into() {
            self.facts.insert(name.to_owned(), value);
        }
        self
    }
}

/// Result of a subject on a unit, as the report has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SelftestLine {
    pub(super) subject: String,
    pub(super) unit: String,
    #[serde(flatten)]
    pub(super) report: SubjectReport,
    /// From the start of the process to its end.
    pub(super) seconds: f64,
}

impl SelftestLine {
    /// Renders the line for people.
    pub(super) fn as_text(&self) -> String {
        let report = &self.report;
        let mut text = format!(
            "{:24} {:16} {:9} {:6.2} s",
            self.subject,
            self.unit,
            report.outcome.word(),
            self.seconds
        );
        let figures =
            report.figures.iter().map(|(name, value)| format!("{name} {}", number(*value)));
        let facts = report.facts.iter().map(|(name, value)| format!("{name} {value}"));
        let told: Vec<String> = facts.chain(figures).collect();
        if !told.is_empty() {
            text.push_str(&format!("  {}", told.join(", ")));
        }
        if let Some(reason) = &report.reason {
            text.push_str(&format!("\n    {}", reason.trim().replace('\n', "\n    ")));
        }
        text
    }
}

/// Renders a number with four digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.01..1e6 if value.fract() == 0.0 => format!("{value:.0}"),
        0.01..1000.0 => format!("{value:.3}"),
        1000.0..1e6 => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// Parses a report of lines.
///
/// # Errors
/// Fails with the number of the first line that is none. A last line without its end was being written when
/// the run was killed, and is left out.
pub(super) fn parse(text: &str) -> Result<Vec<SelftestLine>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_again_and_one_that_was_cut_off_is_left_out() {
        let report =
            SubjectReport::fell_back("no room").figure("rate_gbps", 2.5).figure("x", f64::NAN);
        let line = SelftestLine {
            subject: "a".to_owned(),
            unit: "cpu".to_owned(),
            report: report.fact("name", "M1".to_owned()),
            seconds: 0.5,
        };
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""outcome":"fell_back""#) && !text.contains("\"x\""), "{text}");
        assert_eq!(
            parse(&format!("{text}\n{text}\n{}", &text[..20])).unwrap(),
            [line.clone(), line]
        );
        assert!(parse(&format!("{text}\nno\n")).unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn every_verdict_has_the_word_that_reports_have() {
        for verdict in SelftestVerdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.word());
        }
    }
}
