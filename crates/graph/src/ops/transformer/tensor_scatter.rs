//! `TensorScatter`: new positions written into a cache of fixed length.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::lanes::AxisLanes;
use crate::ops::values::expect_same;
use crate::ops::{bounds, picks};

/// ONNX `TensorScatter`.
///
/// Inputs: the cache, an update that differs from it in the length of one axis only, and for each
/// row of the batch the position to write at (0 if absent). Output: the new cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorScatter {
    /// The axis of positions; negative ones count from the end.
    pub axis: i64,
    /// True if writing goes on at the beginning when it reaches the end.
    pub circular: bool,
}

impl TensorScatter {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", -2)?;
        let circular = context.attributes.choice("mode", &["linear", "circular"], 0)? == 1;
        Ok(Box::new(Self { axis, circular }))
    }

    fn axis(&self, rank: usize) -> Result<usize, OpError> {
        match bounds::axis(self.axis, rank)? {
            0 => Err(OpError::new("axis 0 is the batch and cannot be the axis of positions")),
            axis => Ok(axis),
        }
    }

    fn check(&self, cache: &[usize], update: &[usize]) -> Result<usize, OpError> {
        let axis = self.axis(cache.len())?;
        let fits = cache.len() == update.len()
            && cache.iter().zip(update).enumerate().all(|(at, (cache, update))| {
                if at == axis { update <= cache } else { update == cache }
            });
        if fits {
            return Ok(axis);
        }
        Err(OpError::new(format!(
            "an update of shape {update:?} does not fit axis {axis} of a cache of shape {cache:?}"
        )))
    }

    /// The position in the cache that an update goes to.
    fn slot(&self, start: i64, position: usize, len: usize) -> Result<usize, OpError> {
        let at = start.saturating_add(position as i64);
        let len_signed = len as i64;
        let at = if self.circular { at.rem_euclid(len_signed.max(1)) } else { at };
        usize::try_from(at).ok().filter(|at| *at < len).ok_or_else(|| {
            OpError::new(format!("writing at position {at} leaves a cache of {len} positions"))
        })
    }

    fn write(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Tensor, OpError> {
        let cache = inputs.required(0)?;
        let update = inputs.required(1)?;
        let axis = self.check(cache.shape(), update.shape())?;
        let batch = cache.shape()[0];
        let starts = match inputs.optional(2) {
            None => vec![0; batch],
            Some(starts) if starts.shape() == [batch] => starts.to_i64_vec()?,
            Some(other) => {
                return Err(OpError::new(format!(
                    "write_indices has shape {:?}, expected [{batch}]",
                    other.shape()
                )));
            }
        };
        bounds::bounded(cache.dtype(), cache.shape())?;
        let to = AxisLanes::along(cache.shape(), axis);
        let from = AxisLanes::along(update.shape(), axis);
        let mut slots = Vec::with_capacity(from.outer * from.len);
        for outer in 0..from.outer {
            let start = starts[outer * batch / from.outer];
            for position in 0..from.len {
                slots.push((outer * to.len + self.slot(start, position, to.len)?) * to.inner);
            }
        }
        picks::overwritten(cache, update, &slots, from.inner)
    }
}

impl Operator for TensorScatter {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let cache = inputs.required(0)?;
        let update = inputs.required(1)?;
        expect_same(cache.dtype, update.dtype)?;
        if let (Some(cache), Some(update)) = (cache.known_shape(), update.known_shape()) {
            self.check(&cache, &update)?;
        }
        Ok(vec![Fact { value: None, elements: None, ..cache.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let dtype = inputs.required(0)?.dtype();
        expect_same(dtype, inputs.required(1)?.dtype())?;
        Ok(vec![self.write(inputs)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, run, tensor, text};

    #[test]
    fn each_row_is_written_at_its_place_and_a_circle_goes_on_at_the_beginning() {
        let cache = tensor(&[2, 3, 1], &[0_i32; 6]);
        let update = tensor(&[2, 2, 1], &[1_i32, 2, 3, 4]);
        let at = Tensor::vector(vec![0_i64, 1]);
        let linear = one("TensorScatter", 24, &attributes([]), &[&cache, &update, &at]);
        assert_eq!(linear, tensor(&[2, 3, 1], &[1_i32, 2, 0, 0, 3, 4]));
        let circle = attributes([("mode", text("circular"))]);
        let at = Tensor::vector(vec![2_i64, 0]);
        let found = one("TensorScatter", 24, &circle, &[&cache, &update, &at]);
        assert_eq!(found, tensor(&[2, 3, 1], &[2_i32, 0, 1, 3, 4, 0]));
        let inputs = [Some(&cache), Some(&update), Some(&at)];
        assert!(run("TensorScatter", 24, &attributes([]), &inputs, 1).is_err());
    }
}
