//! `SequenceAt`, `SequenceErase`, `SequenceInsert`, `SequenceLength`: items of a sequence.

use galatea_tensor::{DataType, Tensor};

use super::{sequence_fact, taken};
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Fact, FactKind};
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};

/// ONNX `SequenceAt`: one tensor of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceAt;

/// ONNX `SequenceErase`: the sequence without one tensor, the last if nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceErase;

/// ONNX `SequenceInsert`: the sequence with one more tensor, at the end if nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceInsert;

/// ONNX `SequenceLength`: the number of tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceLength;

/// A position that may count from the end, among `count`.
fn position(datum: Datum, count: usize) -> Result<usize, OpError> {
    let tensor = datum.into_tensor()?;
    let &[given] = tensor.to_i64_vec()?.as_slice() else {
        return Err(OpError::new(format!("a position of shape {:?}", tensor.shape())));
    };
    let signed = i64::try_from(count).unwrap_or(i64::MAX);
    let shifted = if given < 0 { given.saturating_add(signed) } else { given };
    usize::try_from(shifted)
        .ok()
        .filter(|&at| at < count)
        .ok_or_else(|| OpError::new(format!("position {given} is outside -{count}..{count}")))
}

impl SequenceAt {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for SequenceAt {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![sequence_fact(inputs, 0)?.within(FactKind::Tensor)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let sequence = taken(&mut inputs, 0)?.into_sequence()?;
        let at = position(taken(&mut inputs, 1)?, sequence.items().len())?;
        Ok(vec![Datum::Tensor(sequence.items()[at].clone())])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

impl SequenceErase {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for SequenceErase {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![sequence_fact(inputs, 0)?.clone()])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let mut sequence = taken(&mut inputs, 0)?.into_sequence()?;
        let count = sequence.items().len();
        let at = match inputs.get_mut(1).and_then(Option::take) {
            Some(given) => position(given, count)?,
            None => count.saturating_sub(1),
        };
        sequence.remove(at)?;
        Ok(vec![Datum::Sequence(sequence)])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

impl SequenceInsert {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for SequenceInsert {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let sequence = sequence_fact(inputs, 0)?;
        let item = inputs.required(1)?;
        let joined = sequence.within(FactKind::Tensor).join(item)?;
        Ok(vec![joined.within(FactKind::Sequence)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let mut sequence = taken(&mut inputs, 0)?.into_sequence()?;
        let item = taken(&mut inputs, 1)?.into_tensor()?;
        let count = sequence.items().len();
        let at = match inputs.get_mut(2).and_then(Option::take) {
            // The end is a position too; negative ones count from the last tensor.
            Some(given) => {
                match given.as_tensor().map(Tensor::to_i64_vec).transpose()?.as_deref() {
                    Some(&[end]) if usize::try_from(end) == Ok(count) => count,
                    _ => position(given, count)?,
                }
            }
            None => count,
        };
        sequence.insert(at, item)?;
        Ok(vec![Datum::Sequence(sequence)])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

impl SequenceLength {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for SequenceLength {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        sequence_fact(inputs, 0)?;
        Ok(vec![Fact::fixed(DataType::Int64, &[])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let sequence = taken(&mut inputs, 0)?.into_sequence()?;
        let count = i64::try_from(sequence.items().len()).unwrap_or(i64::MAX);
        Ok(vec![Datum::Tensor(Tensor::scalar(count))])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}
