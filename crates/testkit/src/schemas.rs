//! Every version of every operator of the `onnx` package against the operators' rows.

use std::path::Path;
use std::sync::Arc;

use galatea_graph::{Arity, ops};
use libtest_mimic::Trial;

use crate::expectations::{Expectations, OPERATORS};

/// One version of an operator, as the package defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Schema {
    domain: String,
    name: String,
    since: i64,
    inputs: Arity,
    outputs: Arity,
}

/// The largest number that the package has for "any number".
const ANY: usize = i32::MAX as usize;

impl Schema {
    /// Reads a line of `python/onnx_node_cases.py`.
    fn parse(line: &str) -> Option<Self> {
        let [domain, name, since, numbers @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let numbers: Vec<usize> =
            numbers.iter().map(|number| number.parse()).collect::<Result<_, _>>().ok()?;
        let &[inputs, most_inputs, outputs, most_outputs] = &numbers[..] else { return None };
        let arity = |min, max| Arity::between(min, if max >= ANY { usize::MAX } else { max });
        Some(Self {
            domain: (*domain).to_owned(),
            name: (*name).to_owned(),
            since: since.parse().ok()?,
            inputs: arity(inputs, most_inputs),
            outputs: arity(outputs, most_outputs),
        })
    }

    /// The name in the expectations file.
    fn title(&self) -> String {
        let domain = if self.domain.is_empty() { "" } else { "/" };
        format!("{}{domain}{} {}", self.domain, self.name, self.since)
    }

    /// Whether a row holds for this version, and allows its inputs and outputs.
    fn check(&self) -> Result<(), String> {
        let row = ops::find(&self.domain, &self.name, Some(self.since));
        let row = row.ok_or("no row holds for this version")?;
        let covers = |row: Arity, own: Arity| row.min <= own.min && row.max >= own.max;
        if covers(row.inputs, self.inputs) && covers(row.outputs, self.outputs) {
            return Ok(());
        }
        Err(format!(
            "the row since {} has {:?} inputs and {:?} outputs, the version {:?} and {:?}",
            row.since, row.inputs, row.outputs, self.inputs, self.outputs
        ))
    }
}

/// A test for every line of `SCHEMAS`.
///
/// # Errors
/// When the file or the expectations cannot be read.
pub(crate) fn trials(root: &Path) -> Result<Vec<Trial>, String> {
    let file = root.join("SCHEMAS");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let known = Arc::new(Expectations::parse(OPERATORS)?);
    let trial = |line: &str| {
        let schema = Schema::parse(line).ok_or_else(|| format!("SCHEMAS: '{line}'"))?;
        let known = Arc::clone(&known);
        Ok(Trial::test(format!("operator {}", schema.title()), move || {
            known.judge(&schema.title(), schema.check()).map_err(Into::into)
        }))
    };
    text.lines().map(trial).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_compared_with_its_row() {
        let relu = Schema::parse("\tRelu\t6\t1\t1\t1\t1").unwrap();
        assert_eq!((relu.title().as_str(), relu.check()), ("Relu 6", Ok(())));
        let more = Schema::parse("\tRelu\t6\t1\t2\t1\t1").unwrap();
        assert!(more.check().unwrap_err().contains("inputs"));
        let sum = Schema::parse("\tSum\t13\t1\t2147483647\t1\t1").unwrap();
        assert_eq!(sum.check(), Ok(()));
        let other = Schema::parse("ai.acme\tRelu\t6\t1\t1\t1\t1").unwrap();
        assert_eq!(other.title(), "ai.acme/Relu 6");
        assert!(other.check().is_err());
        assert_eq!(Schema::parse("Relu"), None);
    }
}
