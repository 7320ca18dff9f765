//! `MaxUnpool`: the largest elements back at their places.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::convolution::list;
use crate::ops::picks;
use crate::ops::values::expect_float;

/// ONNX `MaxUnpool`.
///
/// Inputs: what `MaxPool` gave, the positions it gave, counted through the whole image before it,
/// and optionally a larger shape, at whose beginning that image lies. The rest is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxUnpool {
    /// Lengths of the window.
    pub kernel_shape: Vec<usize>,
    /// Steps of the window; empty means ones.
    pub strides: Vec<usize>,
    /// How far the window left the image: all begins, then all ends; empty means none.
    pub pads: Vec<usize>,
}

impl MaxUnpool {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let kernel_shape = list(context, "kernel_shape")?;
        let strides = list(context, "strides")?;
        let pads = list(context, "pads")?;
        let rank = kernel_shape.len();
        let fits = |found: usize, expected: usize| found == 0 || found == expected;
        if rank == 0 || !fits(strides.len(), rank) || !fits(pads.len(), 2 * rank) {
            return Err(OpError::new(format!(
                "kernel_shape {kernel_shape:?}, strides {strides:?} and pads {pads:?} do not fit"
            )));
        }
        Ok(Box::new(Self { kernel_shape, strides, pads }))
    }

    /// The length of the image before the pool along a spatial axis.
    fn length(&self, axis: usize, pooled: usize) -> Result<usize, OpError> {
        let rank = self.kernel_shape.len();
        let pad = |at: usize| self.pads.get(at).copied().unwrap_or(0);
        let stride = self.strides.get(axis).copied().unwrap_or(1);
        let reach = pooled.saturating_sub(1).saturating_mul(stride);
        let padded = reach.saturating_add(self.kernel_shape[axis]);
        padded.checked_sub(pad(axis).saturating_add(pad(axis + rank))).ok_or_else(|| {
            OpError::new(format!("pads {:?} leave nothing of axis {axis}", self.pads))
        })
    }

    fn check_rank(&self, rank: usize) -> Result<(), OpError> {
        if rank == self.kernel_shape.len() + 2 {
            return Ok(());
        }
        Err(OpError::new(format!("an input of rank {rank} for windows {:?}", self.kernel_shape)))
    }

    fn unpool(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Tensor, OpError> {
        let x = inputs.required(0)?;
        let places = inputs.required(1)?;
        self.check_rank(x.rank())?;
        if x.shape() != places.shape() {
            return Err(OpError::new(format!(
                "elements of shape {:?} and positions of shape {:?}",
                x.shape(),
                places.shape()
            )));
        }
        let mut inner = x.shape().to_vec();
        for axis in 0..self.kernel_shape.len() {
            inner[axis + 2] = self.length(axis, inner[axis + 2])?;
        }
        let count = bounded(x.dtype(), &inner)?;
        let shape = match inputs.optional(2) {
            None => inner.clone(),
            Some(shape) => bounds::lengths(&shape.to_i64_vec()?, "output_shape")?,
        };
        let larger = |(whole, part): (&usize, &usize)| whole >= part;
        if shape.len() != inner.len() || !shape.iter().zip(&inner).all(larger) {
            return Err(OpError::new(format!(
                "output_shape {shape:?}, expected {inner:?} or more"
            )));
        }
        bounded(x.dtype(), &shape)?;
        let from = bounds::steps(&inner);
        let to = bounds::steps(&shape);
        let mut slots = Vec::with_capacity(places.elements());
        for place in places.to_i64_vec()? {
            let place = usize::try_from(place).ok().filter(|at| *at < count).ok_or_else(|| {
                OpError::new(format!("position {place} is outside an image of shape {inner:?}"))
            })?;
            let index = from.iter().zip(&inner).map(|(step, len)| place / step % len);
            slots.push(index.zip(&to).map(|(at, step)| at * step).sum());
        }
        picks::overwritten(&Tensor::zeros(x.dtype(), &shape)?, x, &slots, 1)
    }
}

impl Operator for MaxUnpool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let rank = self.kernel_shape.len() + 2;
        if let Some(found) = x.rank() {
            self.check_rank(found)?;
        }
        if let Some(shape) = inputs.optional(2) {
            let lengths = shape.lengths().filter(|lengths| lengths.len() == rank);
            let dims = lengths.unwrap_or_else(|| vec![Dim::Unknown; rank]);
            return Ok(vec![Fact::new(x.dtype, dims)]);
        }
        let mut dims = x.shape.clone().unwrap_or_else(|| vec![Dim::Unknown; rank]);
        for (axis, dim) in dims[2..].iter_mut().enumerate() {
            *dim = match dim.known() {
                Some(len) => Dim::Known(self.length(axis, len)?),
                None => Dim::Unknown,
            };
        }
        Ok(vec![Fact::new(x.dtype, dims)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let dtype = inputs.required(0)?.dtype();
        expect_float(dtype)?;
        Ok(vec![self.unpool(inputs)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, ints, one, run, tensor};

    #[test]
    fn what_a_pool_found_goes_back() {
        let x = tensor(&[1, 1, 4], &[1.0_f32, 5.0, 2.0, 7.0]);
        let list = attributes([("kernel_shape", ints(&[2])), ("strides", ints(&[2]))]);
        let pooled = run("MaxPool", 12, &list, &[Some(&x)], 2).unwrap();
        let back = one("MaxUnpool", 11, &list, &[&pooled[0], &pooled[1]]);
        assert_eq!(back, tensor(&[1, 1, 4], &[0.0_f32, 5.0, 0.0, 7.0]));
        let shape = Tensor::vector(vec![1_i64, 1, 5]);
        let larger = one("MaxUnpool", 11, &list, &[&pooled[0], &pooled[1], &shape]);
        assert_eq!(larger, tensor(&[1, 1, 5], &[0.0_f32, 5.0, 0.0, 7.0, 0.0]));
        let beyond = tensor(&[1, 1, 2], &[0_i64, 4]);
        assert!(run("MaxUnpool", 11, &list, &[Some(&pooled[0]), Some(&beyond)], 1).is_err());
    }
}
