//! The end of a classifier.

use galatea_tensor::{ByteString, DataType, Tensor};

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilElement, MilValue};
use crate::coreml::program::names;

pub(super) const ROWS: &[LoweringRow] = &[LoweringRow::new("classify", classify)];

/// The label of the greatest probability, and all probabilities in the order of the labels: Core ML
/// makes a dictionary of them.
fn classify(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let probabilities = low.required(op, "probabilities")?;
    let classes = low.constant_of(op, "classes")?;
    let classes = classes.ok_or_else(|| CoreMlError::invalid("input 'classes' is missing"))?;
    let labels = names(&classes).ok_or_else(|| {
        let text = format!("input 'classes' is {}, expected texts or integers", classes.describe());
        CoreMlError::invalid(text)
    })?;
    let flat = low.reshape(probabilities, &[-1])?;
    let found = low.known_shape(flat).and_then(|shape| shape.first().copied());
    if let Some(found) = found.filter(|found| *found != labels.len()) {
        let text = format!("{found} probabilities for {} classes", labels.len());
        return Err(CoreMlError::invalid(text));
    }
    let count = labels.len();
    let table = match holds_texts(&classes) {
        true => {
            let texts = labels.into_iter().map(ByteString::from).collect();
            Tensor::from_vec::<ByteString>(&[count], texts)?
        }
        false => {
            let parse = |label: &String| label.parse::<i64>().unwrap_or(0);
            Tensor::from_vec(&[count], labels.iter().map(parse).collect())?
        }
    };
    let table = low.constant(table);
    let named = attributes([("axis", 0_i64.into()), ("keepdims", 0_i64.into())]);
    let best = low.node("ArgMax", &named, &[flat])?;
    let label = low.node("Gather", &attributes([("axis", 0_i64.into())]), &[table, best])?;
    let wide = low.cast(flat, DataType::Fp32)?;
    low.give(op, &[label, wide])
}

fn holds_texts(value: &MilValue) -> bool {
    match value {
        MilValue::List(items) => items.first().is_some_and(holds_texts),
        MilValue::Tensor(element, _) => *element == MilElement::String,
        _ => false,
    }
}
