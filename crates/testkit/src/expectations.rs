//! Which cases a provider is known to fail, and why.
//!
//! A file has one case a line, `name: reason`; `#` starts a comment line. A listed case that passes
//! fails the run, so the file never promises less than the code keeps.

use std::collections::BTreeMap;

/// The known failures of one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    reasons: BTreeMap<String, String>,
}

impl Expectations {
    /// Reads the text of an expectations file.
    ///
    /// # Errors
    /// The first line without a reason, or that lists a case again.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reasons = BTreeMap::new();
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
            if reasons.insert(name.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("line {number}: '{name}' is listed twice"));
            }
        }
        Ok(Self { reasons })
    }

    /// Turns the outcome of a case into that of its test: a known failure passes, a known failure
    /// that did not happen fails.
    ///
    /// # Errors
    /// When the outcome is not the expected one.
    pub fn judge(&self, case: &str, outcome: Result<(), String>) -> Result<(), String> {
        match (self.reasons.get(case), outcome) {
            (Some(reason), Ok(())) => Err(format!(
                "passes, but the expectations file says it fails ({reason}): remove the line"
            )),
            (Some(_), Err(_)) => Ok(()),
            (None, outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_failure_passes_and_its_success_fails() {
        let known = Expectations::parse("# why\n\ntest_a: no such type\n").unwrap();
        assert_eq!(known.judge("test_a", Err("boom".into())), Ok(()));
        assert!(known.judge("test_a", Ok(())).unwrap_err().contains("no such type"));
        assert_eq!(known.judge("test_b", Err("boom".into())), Err("boom".into()));
    }

    #[test]
    fn a_line_needs_a_reason_and_a_name_of_its_own() {
        assert!(Expectations::parse("test_a").unwrap_err().contains("line 1"));
        assert!(Expectations::parse("test_a:").unwrap_err().contains("no reason"));
        assert!(Expectations::parse("a: x\na: y").unwrap_err().contains("twice"));
    }
}
