//! `GatherElements`: one element for every index.

use galatea_tensor::Tensor;

use super::{check_inside, position};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// ONNX `GatherElements`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherElements {
    /// The axis whose position the indices replace; may count from the end.
    pub axis: i64,
}

impl GatherElements {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axis: context.attributes.int_or("axis", 0)? }))
    }
}

fn pick(data: &Tensor, axis: usize, indices: &Tensor) -> Result<Tensor, OpError> {
    bounds::bounded(data.dtype(), indices.shape())?;
    let steps = bounds::steps(data.shape());
    let mut offsets = Vec::with_capacity(indices.elements());
    for (mut index, pick) in bounds::indices(indices.shape()).zip(indices.to_i64_vec()?) {
        index[axis] = position(pick, data.shape()[axis])?;
        offsets.push(index.iter().zip(&steps).map(|(at, step)| at * step).sum());
    }
    picks::picked_runs(data, indices.shape(), &offsets, 1)
}

impl Operator for GatherElements {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        if let Some(rank) = data.rank() {
            bounds::axis(self.axis, rank)?;
        }
        let dtype = data.dtype;
        let shape = indices.shape.clone();
        Ok(vec![Fact::shaped(dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let axis = bounds::axis(self.axis, data.rank())?;
        check_inside(data.shape(), indices.shape(), axis)?;
        Ok(vec![pick(data, axis, indices)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, one, run, tensor};

    #[test]
    fn every_index_picks_one_element() {
        let indices = tensor::<i64>(&[2, 2], &[0, 0, -1, 0]);
        let axis = attributes([("axis", int(1))]);
        let result = one("GatherElements", 13, &axis, &[&counting(&[2, 2]), &indices]);
        assert_eq!(result, tensor(&[2, 2], &[0_f32, 0.0, 3.0, 2.0]));
    }

    #[test]
    fn indices_beyond_the_data_are_errors() {
        let data = counting(&[2, 2]);
        let tall = tensor::<i64>(&[3, 1], &[0, 0, 0]);
        let axis = attributes([("axis", int(1))]);
        assert!(run("GatherElements", 13, &axis, &[Some(&data), Some(&tall)], 1).is_err());
        let far = tensor::<i64>(&[1, 1], &[2]);
        assert!(run("GatherElements", 13, &axis, &[Some(&data), Some(&far)], 1).is_err());
    }
}
