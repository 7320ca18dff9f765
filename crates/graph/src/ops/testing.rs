//! Running one operator in a test, with inference held against the result.

use galatea_tensor::{ByteString, Element, Tensor};

use crate::attribute::{AttributeValue, Attributes};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs};

/// Attributes by name.
pub(crate) fn attributes<const N: usize>(list: [(&str, AttributeValue); N]) -> Attributes {
    list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An attribute of integers.
pub(crate) fn ints(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

/// An attribute of one integer.
pub(crate) fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

/// A text attribute.
pub(crate) fn text(value: &str) -> AttributeValue {
    AttributeValue::String(ByteString::from(value))
}

/// A tensor of a shape.
pub(crate) fn tensor<T: Element>(shape: &[usize], values: &[T]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

/// A tensor of 0, 1, 2, …
pub(crate) fn counting(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    Tensor::from_vec(shape, (0..count).map(|n| n as f32).collect()).unwrap()
}

/// Parses `[domain:]name`.
pub(crate) fn parse(
    name: &str,
    opset: i64,
    attributes: &Attributes,
    inputs: usize,
    outputs: usize,
) -> Result<Box<dyn Operator>, String> {
    let (domain, name) = name.split_once(':').unwrap_or(("", name));
    super::parse(domain, name, Some(opset), attributes, inputs, outputs)
        .map_err(|kind| crate::GraphError { kind, node: None }.to_string())
}

/// Runs an operator and checks that inference agrees with the result: with constant inputs, with
/// inputs of known shape, and with inputs of unknown lengths.
pub(crate) fn run(
    name: &str,
    opset: i64,
    attributes: &Attributes,
    inputs: &[Option<&Tensor>],
    outputs: usize,
) -> Result<Vec<Tensor>, String> {
    let operator = parse(name, opset, attributes, inputs.len(), outputs)?;
    let text = |error: OpError| error.to_string();
    let results = operator.reference(OperatorInputs::new(inputs)).map_err(text)?;
    assert!(results.len() >= outputs, "{name} gives {} outputs", results.len());
    let constants: Vec<Option<Fact>> =
        inputs.iter().map(|input| input.map(|one| Fact::constant(one.clone()))).collect();
    let shaped: Vec<Option<Fact>> =
        inputs.iter().map(|input| input.map(|one| Fact::fixed(one.dtype(), one.shape()))).collect();
    let unknown: Vec<Option<Fact>> = inputs
        .iter()
        .map(|input| input.map(|one| Fact::new(one.dtype(), vec![Dim::Unknown; one.rank()])))
        .collect();
    for facts in [constants, shaped, unknown] {
        let all: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
        let inferred = operator.infer(OperatorInputs::new(&all)).map_err(text)?;
        for (fact, result) in inferred.iter().zip(&results) {
            agrees(name, fact, result);
        }
        assert_eq!(inferred.len(), results.len(), "{name}: inferred outputs");
    }
    Ok(results)
}

/// Like [`run`] for one output that must come.
pub(crate) fn one(name: &str, opset: i64, attributes: &Attributes, inputs: &[&Tensor]) -> Tensor {
    let inputs: Vec<Option<&Tensor>> = inputs.iter().copied().map(Some).collect();
    run(name, opset, attributes, &inputs, 1).unwrap().remove(0)
}

fn agrees(name: &str, fact: &Fact, result: &Tensor) {
    assert_eq!(fact.dtype, result.dtype(), "{name}: inferred type");
    if let Some(shape) = &fact.shape {
        assert_eq!(shape.len(), result.rank(), "{name}: inferred {fact}, found {result:?}");
        for (dim, len) in shape.iter().zip(result.shape()) {
            assert!(
                dim.known().is_none_or(|known| known == *len),
                "{name}: inferred {fact}, found {result:?}"
            );
        }
    }
    if let Some(value) = &fact.value {
        assert_eq!(value, result, "{name}: inferred value");
    }
    if let Some(elements) = &fact.elements {
        let found = result.to_i64_vec().unwrap();
        assert_eq!(elements.len(), found.len(), "{name}: inferred elements");
        for (dim, number) in elements.iter().zip(found) {
            assert!(dim.known().is_none_or(|known| known as i64 == number));
        }
    }
}

/// The inferred fact of a one-output operator.
pub(crate) fn inferred(
    name: &str,
    opset: i64,
    attributes: &Attributes,
    inputs: &[&Fact],
) -> Result<Fact, String> {
    let operator = parse(name, opset, attributes, inputs.len(), 1)?;
    let inputs: Vec<Option<&Fact>> = inputs.iter().copied().map(Some).collect();
    let mut all =
        operator.infer(OperatorInputs::new(&inputs)).map_err(|error| error.to_string())?;
    Ok(all.remove(0))
}
