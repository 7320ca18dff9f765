//! Headers of a request that become parameters of its inference.

use galatea_serving::ServingError;
use galatea_serving::request::ParameterValue;
use regex::{Regex, RegexBuilder};

/// Parameters with a meaning of their own, which no header may set.
const RESERVED: [&str; 7] = [
    "sequence_id",
    "sequence_start",
    "sequence_end",
    "priority",
    "timeout",
    "headers",
    "binary_data_output",
];

/// Most memory for a pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// Selection of headers that are forwarded.
#[derive(Debug, Clone, Default)]
pub struct HeaderForwarding {
    pattern: Option<Regex>,
}

impl HeaderForwarding {
    /// Headers whose name has a match of the pattern, in any case unless it says `(?-i)`. An empty pattern forwards
    /// nothing.
    ///
    /// # Errors
    /// Fails when the flag's pattern is not a regular expression.
    pub fn parse(flag: &str, pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Ok(Self::default());
        }
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(true)
            .size_limit(PATTERN_BYTES)
            .build()
            .map_err(|error| format!("--{flag} expects a regular expression: {error}"))?;
        Ok(Self { pattern: Some(regex) })
    }

    /// Adds the headers to the parameters. A header replaces a parameter of its name, and a later header an earlier.
    ///
    /// # Errors
    /// Fails when a header has the name of a reserved parameter.
    pub fn add<'a>(
        &self,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
        parameters: &mut Vec<(String, ParameterValue)>,
    ) -> Result<(), ServingError> {
        let Some(pattern) = &self.pattern else { return Ok(()) };
        for (name, value) in headers.filter(|(name, _)| pattern.is_match(name)) {
            if RESERVED.contains(&name) || name.starts_with("triton_") {
                return Err(ServingError::invalid_arg(format!(
                    "Header '{name}' is reserved for Triton usage and cannot be forwarded."
                )));
            }
            parameters.retain(|(key, _)| key != name);
            parameters.push((name.to_owned(), ParameterValue::String(value.to_owned())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(
        pattern: &str,
        headers: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, ServingError> {
        let mut parameters = vec![("a".to_owned(), ParameterValue::String("body".to_owned()))];
        let forward = HeaderForwarding::parse("flag", pattern).unwrap();
        forward.add(headers.iter().copied(), &mut parameters)?;
        Ok(parameters
            .into_iter()
            .map(|(key, value)| match value {
                ParameterValue::String(text) => (key, text),
                other => panic!("{other:?}"),
            })
            .collect())
    }

    #[test]
    fn names_match_in_part_and_in_any_case() {
        let headers = [("x-My_Header", "1"), ("other", "2"), ("a", "3"), ("a", "4")];
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        let found = forwarded("my_|^a$", &headers).unwrap();
        assert_eq!(found, pairs(&[("x-My_Header", "1"), ("a", "4")]));
        assert_eq!(forwarded("(?-i)my_", &headers).unwrap(), pairs(&[("a", "body")]));
        assert_eq!(forwarded("", &headers).unwrap(), pairs(&[("a", "body")]));
    }

    #[test]
    fn reserved_names_and_bad_patterns_are_errors() {
        for name in ["timeout", "headers", "triton_x"] {
            let error = forwarded(".*", &[(name, "1")]).unwrap_err();
            assert_eq!(
                error.message,
                format!("Header '{name}' is reserved for Triton usage and cannot be forwarded.")
            );
        }
        assert!(forwarded(".*", &[("timeout_x", "1")]).is_ok());
        assert!(HeaderForwarding::parse("flag", "(").unwrap_err().contains("--flag expects"));
    }
}
