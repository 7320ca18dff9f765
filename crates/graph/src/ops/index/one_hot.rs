//! `OneHot`: numbers as vectors with one place switched on.

use galatea_tensor::{Element, Tensor, with_element, with_number};
use num_traits::ToPrimitive;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `OneHot`: inputs `indices`, `depth` and `values` (off, on).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneHot {
    /// Where the new axis goes; may count from the end of the output.
    pub axis: i64,
}

/// Numbers of any type as integers, the fraction cut off.
fn integers(tensor: &Tensor) -> Result<Vec<i64>, OpError> {
    with_number!(tensor.dtype(), T => {
        let all = tensor.to_vec::<T>()?;
        all.iter()
            .map(|one| one.to_i64().ok_or_else(|| OpError::new(format!("{one} is no index"))))
            .collect()
    }, else { Err(OpError::new(format!("type {} does not count", tensor.dtype()))) })
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

    fn encode<T: Element>(
        &self,
        indices: &Tensor,
        depth: usize,
        values: &Tensor,
    ) -> Result<Tensor, OpError> {
        let Ok([off, on]) = <[T; 2]>::try_from(values.to_vec::<T>()?) else {
            return Err(OpError::new(format!(
                "values of shape {:?}, expected [2]",
                values.shape()
            )));
        };
        let axis = bounds::axis(self.axis, indices.rank() + 1)?;
        let mut shape = indices.shape().to_vec();
        shape.insert(axis, depth);
        let mut result = Vec::with_capacity(bounds::bounded(T::DTYPE, &shape)?);
        let numbers = integers(indices)?;
        let after: usize = indices.shape()[axis..].iter().product();
        for before in 0..indices.shape()[..axis].iter().product() {
            for place in 0..depth {
                for at in 0..after {
                    // An index outside the depth switches nothing on.
                    let hit = bounds::axis(numbers[before * after + at], depth) == Ok(place);
                    result.push(if hit { on.clone() } else { off.clone() });
                }
            }
        }
        Ok(Tensor::from_vec(&shape, result)?)
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
        Ok(vec![with_element!(values.dtype(), T => self.encode::<T>(indices, depth, values))?])
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
