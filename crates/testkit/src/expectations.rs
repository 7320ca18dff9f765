//! Which cases a provider is known to fail, and why; and which cases are compared less strictly.
//!
//! A file has one case a line, `name: reason`; a `*` in the name stands for any text, and `#` starts
//! a comment line. A listed case that passes fails the run, so the file never promises less than the
//! code keeps.
//!
//! A reason that starts with `[shapes]` or `[within 1e-4]` says that the case must pass, with only
//! types and shapes compared, or with elements at most so far from the expected ones. One that starts
//! with `[refused]` says that the provider must refuse the case, which its error tells by the word
//! `refused: `; a wrong result is a failure.

/// Cases that the reference evaluation is known to fail.
pub const REFERENCE: &str = include_str!("../expectations/reference.txt");
/// Which versions of ONNX's operators have no definition.
pub const OPERATORS: &str = include_str!("../expectations/operators.txt");
/// Cases that the CPU provider is known to fail.
pub const CPU: &str = include_str!("../expectations/cpu.txt");
/// Cases that the GPU provider is known to fail of what it claims.
pub const GPU: &str = include_str!("../expectations/gpu.txt");

/// Cases that are refused as graphs are converted to Core ML packages.
pub const COREML: &str = include_str!("../expectations/coreml.txt");

/// Texts in errors that say that a case is refused.
pub const REFUSED: &str = "refused: ";

/// How the results of a case are compared with the expected ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResultComparison {
    /// With the tolerance of the case's operators.
    Full,
    /// Elements may be this far away.
    Within(f64),
    /// Only types and shapes: the values are random.
    Shapes,
}

/// Facts about the cases of one provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseExpectations {
    /// Pattern and reason of known failures.
    lines: Vec<(String, String)>,
    /// Pattern of cases that are compared less strictly.
    lenient: Vec<(String, ResultComparison)>,
}

/// The comparison that a reason begins with, if any.
fn comparison(reason: &str) -> Result<Option<ResultComparison>, String> {
    let Some((marker, _)) = reason.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Ok(None);
    };
    let distance = marker.strip_prefix("within ").and_then(|text| text.parse().ok());
    match (marker, distance) {
        ("shapes", _) => Ok(Some(ResultComparison::Shapes)),
        ("refused", _) => Ok(None),
        (_, Some(distance)) => Ok(Some(ResultComparison::Within(distance))),
        _ => Err(format!("'[{marker}]', expected [shapes], [refused] or [within NUMBER]")),
    }
}

impl CaseExpectations {
    /// Reads the text of an expectations file.
    ///
    /// # Errors
    /// The first line without a reason, or that lists a case again.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines: Vec<(String, String)> = Vec::new();
        let mut lenient: Vec<(String, ResultComparison)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let (name, reason) = line
                .split_once(':')
                .map(|(name, reason)| (name.trim(), reason.trim()))
                .filter(|(_, reason)| !reason.is_empty())
                .ok_or_else(|| format!("line {number}: '{line}' gives no reason"))?;
            if lines.iter().any(|(listed, _)| listed == name) {
                return Err(format!("line {number}: '{name}' is listed twice"));
            }
            match comparison(reason).map_err(|error| format!("line {number}: {error}"))? {
                Some(comparison) => lenient.push((name.to_owned(), comparison)),
                None => lines.push((name.to_owned(), reason.to_owned())),
            }
        }
        Ok(Self { lines, lenient })
    }

    /// How a case is compared.
    #[must_use]
    pub fn comparison(&self, case: &str) -> ResultComparison {
        let found = self.lenient.iter().find(|(pattern, _)| matches(pattern, case));
        found.map_or(ResultComparison::Full, |(_, comparison)| *comparison)
    }

    /// Whether a case is known to fail.
    #[must_use]
    pub fn fails(&self, case: &str) -> bool {
        self.lines.iter().any(|(pattern, _)| matches(pattern, case))
    }

    /// Turns the outcome of a case into that of its test: a known failure passes, a known failure
    /// that did not happen fails.
    ///
    /// # Errors
    /// When the outcome is not the expected one.
    pub fn judge(&self, case: &str, outcome: Result<(), String>) -> Result<(), String> {
        let known = self.lines.iter().find(|(pattern, _)| matches(pattern, case));
        match (known, outcome) {
            (Some((_, reason)), Err(text))
                if reason.starts_with("[refused]") && !text.contains(REFUSED) =>
            {
                Err(format!("is not refused, but fails: {text}"))
            }
            (Some((_, reason)), Ok(())) => Err(format!(
                "passes, but the expectations file says it fails ({reason}): remove the line"
            )),
            (Some(_), Err(_)) => Ok(()),
            (None, outcome) => outcome,
        }
    }
}

/// Whether a name fits a pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = name.find(piece) else { return false };
        name = &name[at + piece.len()..];
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_failure_passes_and_its_success_fails() {
        let known = CaseExpectations::parse("# why\n\ntest_a: no such type\n").unwrap();
        assert_eq!(known.judge("test_a", Err("boom".into())), Ok(()));
        assert!(known.judge("test_a", Ok(())).unwrap_err().contains("no such type"));
        assert_eq!(known.judge("test_b", Err("boom".into())), Err("boom".into()));
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for name in ["test_a", "test_b_a", "test_a_to_a"] {
            assert!(matches("test_*a", name), "{name}");
        }
        assert!(matches("*_to_*_x", "a_to_b_x") && !matches("*_to_*_x", "a_to_x"));
        assert!(!matches("test_*a", "test_b") && !matches("test", "test_a"));
    }

    #[test]
    fn a_marker_relaxes_the_comparison_and_is_no_failure() {
        let text = "test_a: [shapes] random\ntest_b*: [within 1e-4] four decimals";
        let known = CaseExpectations::parse(text).unwrap();
        assert_eq!(known.comparison("test_a"), ResultComparison::Shapes);
        assert_eq!(known.comparison("test_b_1"), ResultComparison::Within(1e-4));
        assert_eq!(known.comparison("test_c"), ResultComparison::Full);
        assert_eq!(known.judge("test_a", Ok(())), Ok(()));
        assert!(known.judge("test_a", Err("boom".into())).is_err());
        assert!(CaseExpectations::parse("a: [maybe] x").unwrap_err().contains("line 1"));
    }

    #[test]
    fn a_case_that_must_be_refused_is_not_wrong_instead() {
        let known = CaseExpectations::parse("test_a: [refused] no such operation").unwrap();
        assert_eq!(known.judge("test_a", Err("refused: no such operation".into())), Ok(()));
        assert!(known.judge("test_a", Err("7, expected 8".into())).is_err());
        assert!(known.judge("test_a", Ok(())).unwrap_err().contains("remove the line"));
    }

    #[test]
    fn a_line_needs_a_reason_and_a_name_of_its_own() {
        assert!(CaseExpectations::parse("test_a").unwrap_err().contains("line 1"));
        assert!(CaseExpectations::parse("test_a:").unwrap_err().contains("no reason"));
        assert!(CaseExpectations::parse("a: x\na: y").unwrap_err().contains("twice"));
    }
}
