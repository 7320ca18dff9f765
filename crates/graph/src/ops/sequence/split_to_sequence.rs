//! `SplitToSequence`: a tensor cut into a sequence of pieces along an axis.

use galatea_tensor::Tensor;

use super::taken;
use crate::datum::{Datum, TensorSequence};
use crate::error::OpError;
use crate::fact::{Dim, Fact, FactKind};
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::bounds;

/// ONNX `SplitToSequence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitToSequence {
    /// The axis to cut; may count from the end.
    pub axis: i64,
    /// True if pieces of length 1 keep the axis where no lengths are given.
    pub keepdims: bool,
}

impl SplitToSequence {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", 0)?;
        Ok(Box::new(Self { axis, keepdims: context.attributes.flag("keepdims", true)? }))
    }
}

/// The lengths of the pieces of an axis of length `len`: all of one length but the last, or as
/// listed.
fn pieces(given: &Tensor, len: usize) -> Result<Vec<usize>, OpError> {
    let numbers = bounds::lengths(&given.to_i64_vec()?, "an entry of 'split'")?;
    if given.rank() > 0 {
        let sum = numbers.iter().fold(0_usize, |sum, &one| sum.saturating_add(one));
        if sum != len {
            return Err(OpError::new(format!(
                "pieces {numbers:?} do not add up to an axis of length {len}"
            )));
        }
        return Ok(numbers);
    }
    match numbers.first() {
        Some(&piece) if piece > 0 => {
            let starts = (0..len).step_by(piece);
            Ok(starts.map(|start| piece.min(len - start)).collect())
        }
        _ => Err(OpError::new("pieces of length 0")),
    }
}

impl Operator for SplitToSequence {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(mut shape) = data.shape.clone() else {
            return Ok(vec![Fact::unranked(data.dtype).within(FactKind::Sequence)]);
        };
        let axis = bounds::axis(self.axis, shape.len())?;
        match inputs.optional(1) {
            Some(_) => shape[axis] = Dim::Unknown,
            None if self.keepdims => shape[axis] = Dim::Known(1),
            None => drop(shape.remove(axis)),
        }
        Ok(vec![Fact::new(data.dtype, shape).within(FactKind::Sequence)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let data = taken(&mut inputs, 0)?.into_tensor()?;
        let axis = bounds::axis(self.axis, data.rank())?;
        let len = data.shape()[axis];
        let given = inputs.get_mut(1).and_then(Option::take).map(Datum::into_tensor).transpose()?;
        let lengths = match &given {
            Some(given) => pieces(given, len)?,
            None => vec![1; len],
        };
        let squeezed = given.is_none() && !self.keepdims;
        let mut start = 0;
        let mut items = Vec::with_capacity(lengths.len());
        for length in lengths {
            let piece = data.slice_axis(axis, start, length, 1)?;
            start += length;
            let mut shape = piece.shape().to_vec();
            items.push(if squeezed {
                shape.remove(axis);
                piece.contiguous()?.reshape(&shape)?
            } else {
                piece
            });
        }
        Ok(vec![Datum::Sequence(TensorSequence::new(data.dtype(), items)?)])
    }
}
