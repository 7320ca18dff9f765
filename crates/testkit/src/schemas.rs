//! Every version of every operator of the `onnx` package against the operators' rows.

use std::path::Path;
use std::sync::Arc;

use galatea_graph::{Arity, AttributeValue, Attributes, ops};
use galatea_tensor::ByteString;
use libtest_mimic::Trial;

use crate::expectations::{CaseExpectations, OPERATORS};

/// One version of an operator, as the package defines it.
#[derive(Clone, Debug)]
struct OperatorSchema {
    domain: String,
    name: String,
    since: i64,
    inputs: Arity,
    outputs: Arity,
    attributes: Attributes,
}

/// An attribute with its default, or with some value where it has none; `None` for kinds that have
/// no simple values.
fn attribute(text: &str) -> Option<(String, AttributeValue)> {
    let (name, rest) = text.split_once('=')?;
    let (kind, default) = rest.split_once(':')?;
    let value = match (kind, default) {
        ("INT", default) => AttributeValue::Int(default.parse().unwrap_or(1)),
        ("FLOAT", default) => AttributeValue::Float(default.parse().unwrap_or(1.0)),
        ("STRING", "") => return None,
        ("STRING", default) => AttributeValue::String(ByteString::from(default)),
        ("INTS", _) => AttributeValue::Ints(vec![1]),
        ("FLOATS", _) => AttributeValue::Floats(vec![1.0]),
        _ => return None,
    };
    Some((name.to_owned(), value))
}

/// The largest number that the package has for "any number".
const ANY: usize = i32::MAX as usize;

impl OperatorSchema {
    /// Reads a line of `python/onnx_node_cases.py`.
    fn parse(line: &str) -> Option<Self> {
        let [domain, name, since, numbers @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let (attributes, numbers) = numbers.split_last()?;
        let attributes = attributes.split_whitespace().filter_map(attribute).collect();
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
            attributes,
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
            return self.check_attributes();
        }
        Err(format!(
            "the row since {} has {:?} inputs and {:?} outputs, the version {:?} and {:?}",
            row.since, row.inputs, row.outputs, self.inputs, self.outputs
        ))
    }
}

impl OperatorSchema {
    /// Refuses an operator that does not know an attribute of this version: all of them together,
    /// or one by one where together they make no sense.
    fn check_attributes(&self) -> Result<(), String> {
        let parse = |attributes: &Attributes| {
            let inputs = self.inputs.min;
            let outputs = self.outputs.min.max(1);
            let since = Some(self.since);
            let parsed = ops::parse(&self.domain, &self.name, since, attributes, inputs, outputs);
            parsed.map(|_| ()).map_err(|error| format!("{error:?}"))
        };
        let unknown = |result: Result<(), String>| match result {
            Err(error) if error.contains("unknown attribute") => Err(error),
            _ => Ok(()),
        };
        if parse(&self.attributes).is_ok() {
            return Ok(());
        }
        unknown(parse(&self.attributes))?;
        let one = |(name, value): (&String, &AttributeValue)| {
            unknown(parse(&Attributes::from([(name.clone(), value.clone())])))
        };
        self.attributes.iter().try_for_each(one)
    }
}

/// A test for every line of `SCHEMAS`.
///
/// # Errors
/// When the file or the expectations cannot be read.
pub(crate) fn trials(root: &Path) -> Result<Vec<Trial>, String> {
    let file = root.join("SCHEMAS");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let known = Arc::new(CaseExpectations::parse(OPERATORS)?);
    let trial = |line: &str| {
        let schema = OperatorSchema::parse(line).ok_or_else(|| format!("SCHEMAS: '{line}'"))?;
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
        let relu = OperatorSchema::parse("\tRelu\t6\t1\t1\t1\t1\t").unwrap();
        assert_eq!((relu.title().as_str(), relu.check()), ("Relu 6", Ok(())));
        let more = OperatorSchema::parse("\tRelu\t6\t1\t2\t1\t1\t").unwrap();
        assert!(more.check().unwrap_err().contains("inputs"));
        let sum = OperatorSchema::parse("\tSum\t13\t1\t2147483647\t1\t1\t").unwrap();
        assert_eq!(sum.check(), Ok(()));
        let leaky = OperatorSchema::parse("\tLeakyRelu\t6\t1\t1\t1\t1\talpha=FLOAT:0.01").unwrap();
        assert_eq!(leaky.check(), Ok(()));
        let slope = OperatorSchema::parse("\tLeakyRelu\t6\t1\t1\t1\t1\tslope=FLOAT:0.01").unwrap();
        assert!(slope.check().unwrap_err().contains("unknown attribute"));
        let other = OperatorSchema::parse("ai.acme\tRelu\t6\t1\t1\t1\t1\t").unwrap();
        assert_eq!(other.title(), "ai.acme/Relu 6");
        assert!(other.check().is_err());
        assert!(OperatorSchema::parse("Relu").is_none());
    }
}
