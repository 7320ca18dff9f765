//! `UnfoldTensor`: slices of an axis that overlap.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// `UnfoldTensor` of domain `com.microsoft`, as `torch.Tensor.unfold`.
///
/// The axis has the number of slices in the result, and a new last axis their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfoldTensor {
    /// The axis; negative ones count from the end.
    pub axis: i64,
    /// Length of a slice.
    pub size: usize,
    /// Distance between the beginnings of slices.
    pub step: usize,
}

impl UnfoldTensor {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("dim", -1)?;
        let size = context.attributes.int("size")?;
        let size = size.ok_or_else(|| OpError::new("attribute 'size' is missing"))?;
        let step = context.attributes.int_or("step", 1)?;
        let positive = |value: i64, name: &str| match bounds::length(value, name)? {
            0 => Err(OpError::new(format!("attribute '{name}' is 0"))),
            length => Ok(length),
        };
        Ok(Box::new(Self { axis, size: positive(size, "size")?, step: positive(step, "step")? }))
    }

    fn slices(&self, len: usize) -> Result<usize, OpError> {
        match len.checked_sub(self.size) {
            Some(rest) => Ok(rest / self.step + 1),
            None => {
                Err(OpError::new(format!("slices of {} of an axis of length {len}", self.size)))
            }
        }
    }
}

impl Operator for UnfoldTensor {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        let axis = bounds::axis(self.axis, dims.len())?;
        let mut shape = dims.clone();
        shape[axis] = match dims[axis].known() {
            Some(len) => Dim::Known(self.slices(len)?),
            None => Dim::Unknown,
        };
        shape.push(Dim::Known(self.size));
        Ok(vec![Fact::new(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let axis = bounds::axis(self.axis, x.rank())?;
        let mut shape = x.shape().to_vec();
        shape[axis] = self.slices(shape[axis])?;
        shape.push(self.size);
        bounds::bounded(x.dtype(), &shape)?;
        let steps = bounds::steps(x.shape());
        let offset = |index: Vec<usize>| {
            let within = index[x.rank()] * steps[axis];
            let place = |(at, step): (usize, &usize)| {
                index[at] * step * if at == axis { self.step } else { 1 }
            };
            Some(within + steps.iter().enumerate().map(place).sum::<usize>())
        };
        Ok(vec![picks::picked(x, &shape, &mut bounds::indices(&shape).map(offset))?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, one, run, tensor};

    #[test]
    fn slices_stand_behind_the_other_axes() {
        let x = counting(&[2, 5]);
        let found = |list: &[(&str, i64)]| {
            let list = list.iter().map(|&(name, value)| (name.to_owned(), int(value))).collect();
            one("com.microsoft:UnfoldTensor", 1, &list, &[&x])
        };
        let expected = tensor(&[2, 2, 2], &[0.0_f32, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(found(&[("size", 2), ("step", 2)]), expected);
        let columns = [0.0_f32, 5.0, 1.0, 6.0, 2.0, 7.0, 3.0, 8.0, 4.0, 9.0];
        assert_eq!(found(&[("size", 2), ("dim", 0)]), tensor(&[1, 5, 2], &columns));
        for (size, step) in [(6, 1), (0, 1), (2, 0)] {
            let list = attributes([("size", int(size)), ("step", int(step))]);
            assert!(run("com.microsoft:UnfoldTensor", 1, &list, &[Some(&x)], 1).is_err());
        }
    }
}
