//! `OneHot`: numbers as vectors with one place switched on.

use std::fmt;

use galatea_tensor::Tensor;
use num_traits::ToPrimitive;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks, values};

/// ONNX `OneHot`: inputs `indices`, `depth` and `values` (off, on).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneHot {
    /// Where the new axis goes; may count from the end of the output.
    pub axis: i64,
}

/// Numbers of any type as integers, the fraction cut off.
fn integers(tensor: &Tensor) -> Result<Vec<i64>, OpError> {
    let no_index = |one: &dyn fmt::Display| OpError::new(format!("{one} is no index"));
    match tensor.dtype() {
        dtype if dtype.is_float() => {
            let all = values::floats(tensor)?;
            all.iter().map(|one| one.to_i64().ok_or_else(|| no_index(one))).collect()
        }
        dtype if dtype.is_integer() => {
            let all = values::integers(tensor)?;
            all.iter().map(|one| i64::try_from(*one).map_err(|_| no_index(one))).collect()
        }
        dtype => Err(OpError::new(format!("type {dtype} does not count"))),
    }
}

fn depth_of(tensor: &Tensor) -> Result<usize, OpError> {
    match integers(tensor)?.as_slice() {
        &[depth] if depth > 0 => bounds::length(depth, "the depth"),
        other => Err(OpError::new(format!("depth {other:?}, expected one positive number"))),
    }
}

impl OneHot {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axis: context.attributes.int_or("axis", -1)? }))
    }

    fn encode(&self, indices: &Tensor, depth: usize, values: &Tensor) -> Result<Tensor, OpError> {
        if values.elements() != 2 {
            return Err(OpError::new(format!(
                "values of shape {:?}, expected [2]",
                values.shape()
            )));
        }
        let axis = bounds::axis(self.axis, indices.rank() + 1)?;
        let mut shape = indices.shape().to_vec();
        shape.insert(axis, depth);
        let count = bounds::bounded(values.dtype(), &shape)?;
        let numbers = integers(indices)?;
        let after: usize = indices.shape()[axis..].iter().product();
        // An index outside the depth switches nothing on.
        let chosen: Vec<Option<usize>> =
            numbers.into_iter().map(|number| bounds::axis(number, depth).ok()).collect();
        let value = |at: usize| {
            let (row, inside) = (at / after, at % after);
            let (before, place) = (row / depth, row % depth);
            Some(usize::from(chosen[before * after + inside] == Some(place)))
        };
        picks::picked(values, &shape, &mut (0..count).map(value))
    }
}

impl Operator for OneHot {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let indices = inputs.required(0)?;
        let depth = inputs.required(1)?;
        let dtype = inputs.required(2)?.dtype;
        let Some(mut shape) = indices.shape.clone() else { return Ok(vec![Fact::unranked(dtype)]) };
        let axis = bounds::axis(self.axis, shape.len() + 1)?;
        let depth = match (&depth.value, bounds::carried(depth).as_deref()) {
            (Some(value), _) => Dim::Known(depth_of(value)?),
            (None, Some([dim])) => length::unless_negative(dim.clone()),
            _ => Dim::Unknown,
        };
        shape.insert(axis, depth);
        Ok(vec![Fact::new(dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let indices = inputs.required(0)?;
        let values = inputs.required(2)?;
        let depth = depth_of(inputs.required(1)?)?;
        Ok(vec![self.encode(indices, depth, values)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn the_new_axis_goes_anywhere_and_indices_outside_stay_off() {
        let indices = tensor(&[3], &[0_i64, -1, 7]);
        let depth = Tensor::scalar(2_f32);
        let values = tensor(&[2], &[0_u8, 9]);
        let inputs = [&indices, &depth, &values];
        let last = one("OneHot", 11, &attributes([]), &inputs);
        assert_eq!(last, tensor(&[3, 2], &[9_u8, 0, 0, 9, 0, 0]));
        let first = one("OneHot", 11, &attributes([("axis", int(0))]), &inputs);
        assert_eq!(first, tensor(&[2, 3], &[9_u8, 0, 0, 0, 9, 0]));
    }

    #[test]
    fn a_depth_that_is_not_positive_or_too_large_is_an_error() {
        let indices = tensor(&[1], &[0_i64]);
        let values = tensor(&[2], &[0_u8, 9]);
        for depth in [0_i64, -1, i64::MAX] {
            let depth = Tensor::scalar(depth);
            let inputs = [Some(&indices), Some(&depth), Some(&values)];
            assert!(run("OneHot", 11, &attributes([]), &inputs, 1).is_err());
        }
    }
}
