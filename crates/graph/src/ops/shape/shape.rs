//! `Shape` and `Size`: lengths of a tensor as data.

use galatea_tensor::{DataType, Tensor};

use crate::attribute::{Attributes, named};
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `Shape`: the lengths of the axes `start..end` as a vector of 64-bit integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// First axis; negative counts from the end, anything outside is clamped.
    pub start: i64,
    /// One past the last axis; all of them if absent.
    pub end: Option<i64>,
}

/// ONNX `Size`: the number of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size;

/// A length as an element.
fn number(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

impl Shape {
    /// Reads the attributes (`start` and `end` from opset 15 on).
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        if context.opset < 15 {
            return Ok(Box::new(Self { start: 0, end: None }));
        }
        let start = context.attributes.int_or("start", 0)?;
        Ok(Box::new(Self { start, end: context.attributes.int("end")? }))
    }

    /// The axes that are reported for an input of this rank.
    fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let clamp = |at: i64| {
            let at = if at < 0 { at.saturating_add(number(rank)) } else { at };
            usize::try_from(at).unwrap_or(0).min(rank)
        };
        let start = clamp(self.start);
        start..self.end.map_or(rank, clamp).max(start)
    }
}

impl Operator for Shape {
    fn attributes(&self) -> Option<Attributes> {
        let end = self.end.map(|end| ("end", end.into()));
        Some(named([("start", self.start.into())].into_iter().chain(end)))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(dims) = &data.shape else {
            return Ok(vec![Fact::new(DataType::Int64, vec![Dim::Unknown])]);
        };
        let dims = &dims[self.range(dims.len())];
        let known: Option<Vec<i64>> =
            collected_some(&mut dims.iter().map(|dim| dim.known().map(number)));
        Ok(vec![match known {
            Some(all) => Fact::constant(Tensor::vector(all)),
            None => Fact::fixed(DataType::Int64, &[dims.len()]).with_elements(Some(dims.to_vec())),
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let lengths = data.shape()[self.range(data.rank())].iter().copied().map(number);
        Ok(vec![Tensor::vector(lengths.collect())])
    }
}

impl Size {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for Size {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let count = inputs.required(0)?.shape.as_ref().map_or(Dim::Unknown, bounds::product);
        Ok(vec![match count {
            Dim::Known(count) => Fact::constant(Tensor::scalar(number(count))),
            other => Fact::fixed(DataType::Int64, &[]).with_elements(Some(vec![other])),
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![Tensor::scalar(number(inputs.required(0)?.elements()))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, int, one};

    #[test]
    fn start_and_end_clamp() {
        let data = counting(&[2, 3, 4]);
        let of = |start, end| {
            let attributes = attributes([("start", int(start)), ("end", int(end))]);
            one("Shape", 15, &attributes, &[&data]).to_vec::<i64>().unwrap()
        };
        assert_eq!(of(1, 3), [3, 4]);
        assert_eq!(of(-1, 9), [4]);
        assert_eq!(of(-9, -1), [2, 3]);
        assert!(of(2, 1).is_empty());
        assert_eq!(one("Size", 13, &attributes([]), &[&data]).item::<i64>().unwrap(), 24);
    }

    #[test]
    fn symbols_become_elements() {
        let batch = Dim::symbol("batch");
        let seq = Dim::symbol("seq");
        let data = Fact::new(DataType::Int64, vec![batch.clone(), seq.clone()]);
        let fact = inferred("Shape", 13, &attributes([]), &[&data]).unwrap();
        assert_eq!(fact.elements, Some(vec![batch, seq]));
        let fixed = Fact::fixed(DataType::Int64, &[2, 5]);
        let fact = inferred("Shape", 13, &attributes([]), &[&fixed]).unwrap();
        assert_eq!(fact.value, Some(Tensor::vector(vec![2_i64, 5])));
    }
}
