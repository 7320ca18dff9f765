//! `Gather`: whole slices of an axis, picked by number.

use galatea_tensor::{Element, Tensor, with_carrier};

use super::position;
use crate::attribute::{Attributes, named};
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::lanes::AxisLanes;

/// ONNX `Gather`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The axis whose positions the indices name; may count from the end.
    pub axis: i64,
}

impl Gather {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axis: context.attributes.int_or("axis", 0)? }))
    }
}

/// The elements that indices pick from a vector of lengths.
fn picked(data: &Fact, indices: &Fact) -> Option<Vec<Dim>> {
    if data.rank() != Some(1) || indices.rank().is_none_or(|rank| rank > 1) {
        return None;
    }
    let lengths = bounds::carried(data)?;
    let pick = |&index: &i64| position(index, lengths.len()).ok().map(|at| lengths[at].clone());
    collected_some(&mut indices.integers()?.iter().map(pick))
}

/// Copies the rows at positions of an axis, block after block of the axes before it.
fn copied_rows<T: Element>(
    data: &Tensor,
    lanes: AxisLanes,
    picks: &[usize],
    shape: &[usize],
) -> Result<Tensor, OpError> {
    let mut result: Vec<T> = Vec::with_capacity(lanes.outer * picks.len() * lanes.inner);
    let values = data.to_carriers::<T>()?;
    for block in 0..lanes.outer {
        for &pick in picks {
            let start = (block * lanes.len + pick) * lanes.inner;
            result.extend_from_slice(&values[start..start + lanes.inner]);
        }
    }
    Ok(Tensor::from_carriers(data.dtype(), shape, result)?)
}

fn rows(data: &Tensor, axis: usize, indices: &Tensor) -> Result<Tensor, OpError> {
    let shape = [&data.shape()[..axis], indices.shape(), &data.shape()[axis + 1..]].concat();
    bounds::bounded(data.dtype(), &shape)?;
    let len = data.shape()[axis];
    let picks = indices.to_i64_vec()?;
    let picks = picks.iter().map(|&at| position(at, len)).collect::<Result<Vec<_>, _>>()?;
    let lanes = AxisLanes::along(data.shape(), axis);
    with_carrier!(data.dtype(), T => copied_rows::<T>(data, lanes, &picks, &shape))
}

impl Operator for Gather {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([("axis", self.axis.into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let (Some(dims), Some(picks)) = (&data.shape, &indices.shape) else {
            return Ok(vec![Fact::unranked(data.dtype)]);
        };
        let axis = bounds::axis(self.axis, dims.len())?;
        let shape = [&dims[..axis], picks, &dims[axis + 1..]].concat();
        Ok(vec![Fact::new(data.dtype, shape).with_elements(picked(data, indices))])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let axis = bounds::axis(self.axis, data.rank())?;
        Ok(vec![rows(data, axis, indices)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, int, one, run, tensor};
    use galatea_tensor::DataType;

    #[test]
    fn indices_count_from_either_end() {
        let indices = tensor::<i64>(&[1, 2], &[-1, 0]);
        let result =
            one("Gather", 13, &attributes([("axis", int(1))]), &[&counting(&[2, 3]), &indices]);
        assert_eq!(result, tensor(&[2, 1, 2], &[2_f32, 0.0, 5.0, 3.0]));
        let scalar = Tensor::scalar(1_i32);
        assert_eq!(one("Gather", 1, &attributes([]), &[&counting(&[2, 3]), &scalar]).shape(), [3]);
    }

    #[test]
    fn an_index_outside_is_an_error() {
        let indices = tensor::<i64>(&[1], &[3]);
        let inputs = [Some(&counting(&[3])), Some(&indices)];
        assert!(run("Gather", 13, &attributes([]), &inputs, 1).is_err());
    }

    #[test]
    fn a_symbol_is_picked_from_a_shape() {
        let seq = Dim::symbol("seq");
        let shape = Fact::fixed(DataType::Int64, &[2])
            .with_elements(Some(vec![Dim::symbol("batch"), seq.clone()]));
        let index = Fact::constant(Tensor::scalar(-1_i64));
        let fact = inferred("Gather", 13, &attributes([]), &[&shape, &index]).unwrap();
        assert_eq!((fact.rank(), fact.elements), (Some(0), Some(vec![seq])));
    }
}
