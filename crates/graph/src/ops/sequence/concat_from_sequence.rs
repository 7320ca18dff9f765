//! `ConcatFromSequence`: the tensors of a sequence joined along an axis.

use galatea_tensor::Tensor;

use super::{sequence_fact, taken};
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::bounds;
use crate::ops::shape::join_tensors;

/// ONNX `ConcatFromSequence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcatFromSequence {
    /// The axis to join on; may count from the end of the result's.
    pub axis: i64,
    /// True if the axis is a new one, on which each tensor has one position.
    pub new_axis: bool,
}

impl ConcatFromSequence {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int("axis")?;
        let axis = axis.ok_or_else(|| OpError::new("attribute 'axis' is missing"))?;
        Ok(Box::new(Self { axis, new_axis: context.attributes.flag("new_axis", false)? }))
    }
}

impl Operator for ConcatFromSequence {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let sequence = sequence_fact(inputs, 0)?;
        let Some(mut shape) = sequence.shape.clone() else {
            return Ok(vec![Fact::unranked(sequence.dtype)]);
        };
        let axis = bounds::axis(self.axis, shape.len() + usize::from(self.new_axis))?;
        if self.new_axis {
            shape.insert(axis, Dim::Unknown);
        } else {
            shape[axis] = Dim::Unknown;
        }
        Ok(vec![Fact::new(sequence.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let sequence = taken(&mut inputs, 0)?.into_sequence()?;
        let Some(first) = sequence.items().first() else {
            return Err(OpError::new("the sequence is empty, there is nothing to join"));
        };
        let axis = bounds::axis(self.axis, first.rank() + usize::from(self.new_axis))?;
        let part = |item: &Tensor| -> Result<Tensor, OpError> {
            let mut shape = item.shape().to_vec();
            if self.new_axis && axis <= shape.len() {
                shape.insert(axis, 1);
            }
            Ok(item.contiguous()?.reshape(&shape)?)
        };
        let parts = collected(&mut sequence.items().iter().map(part))?;
        Ok(vec![Datum::Tensor(join_tensors(&parts.iter().collect::<Vec<_>>(), axis)?)])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}
