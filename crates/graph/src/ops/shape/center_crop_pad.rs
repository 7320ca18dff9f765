//! `CenterCropPad`: axes brought to a length around their middle.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// ONNX `CenterCropPad`; input 1 holds the wanted lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CenterCropPad {
    /// The axes; all if absent.
    pub axes: Option<Vec<i64>>,
}

impl CenterCropPad {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axes: context.attributes.ints("axes")? }))
    }

    fn positions(&self, rank: usize, count: usize) -> Result<Vec<usize>, OpError> {
        let axes = match &self.axes {
            Some(axes) => bounds::axes(axes, rank)?,
            None => (0..rank).collect(),
        };
        if axes.len() == count {
            return Ok(axes);
        }
        Err(OpError::new(format!("{count} lengths for {} axes", axes.len())))
    }
}

fn framed(data: &Tensor, shape: &[usize]) -> Result<Tensor, OpError> {
    let steps = bounds::steps(data.shape());
    let offset = |index: Vec<usize>| {
        let mut offset = Some(0);
        for (axis, &at) in index.iter().enumerate() {
            let from = data.shape()[axis];
            let to = shape[axis];
            // Where the difference is odd, the extra element goes to the end.
            let source = if to >= from {
                at.checked_sub((to - from) / 2)
            } else {
                Some(at + (from - to) / 2)
            };
            let source = source.filter(|&source| source < from);
            offset = offset.zip(source).map(|(offset, source)| offset + source * steps[axis]);
        }
        offset
    };
    picks::picked(data, shape, &mut bounds::indices(shape).map(offset))
}

impl Operator for CenterCropPad {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(dims) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let wanted = inputs.required(1)?;
        let mut shape = dims.clone();
        match wanted.lengths() {
            Some(lengths) => {
                let axes = self.positions(dims.len(), lengths.len())?;
                for (axis, length) in axes.into_iter().zip(lengths) {
                    shape[axis] = length;
                }
            }
            None => shape.fill(Dim::Unknown),
        }
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let wanted = bounds::lengths(&inputs.required(1)?.to_i64_vec()?, "a wanted length")?;
        let mut shape = data.shape().to_vec();
        for (axis, &length) in self.positions(shape.len(), wanted.len())?.iter().zip(&wanted) {
            shape[*axis] = length;
        }
        Ok(vec![framed(data, &shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, ints, one, run, tensor};

    #[test]
    fn one_axis_is_cut_and_another_framed() {
        let wanted = Tensor::vector(vec![1_i64, 4]);
        let result = one("CenterCropPad", 18, &attributes([]), &[&counting(&[3, 2]), &wanted]);
        assert_eq!(result, tensor(&[1, 4], &[0_f32, 2.0, 3.0, 0.0]));
        let axes = attributes([("axes", ints(&[-1]))]);
        let wanted = Tensor::vector(vec![1_i64]);
        let result = one("CenterCropPad", 18, &axes, &[&counting(&[2, 2]), &wanted]);
        assert_eq!(result, tensor(&[2, 1], &[0_f32, 2.0]));
    }

    #[test]
    fn axes_that_do_not_match_the_lengths_are_an_error() {
        let wanted = Tensor::vector(vec![1_i64]);
        let inputs = [Some(&counting(&[3, 2])), Some(&wanted)];
        assert!(run("CenterCropPad", 18, &attributes([]), &inputs, 1).is_err());
        assert!(run("CenterCropPad", 18, &attributes([("axes", int(0))]), &inputs, 1).is_err());
    }
}
