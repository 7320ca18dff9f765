//! `Gather`: whole slices of an axis, picked by number.

use galatea_tensor::{Element, Tensor, with_element};

use super::position;
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

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
    indices.integers()?.iter().map(pick).collect()
}

fn rows<T: Element>(data: &Tensor, axis: usize, indices: &Tensor) -> Result<Tensor, OpError> {
    let before = &data.shape()[..axis];
    let after = &data.shape()[axis + 1..];
    let shape = [before, indices.shape(), after].concat();
    let mut result: Vec<T> = Vec::with_capacity(bounds::bounded(T::DTYPE, &shape)?);
    let values = data.to_vec::<T>()?;
    let len = data.shape()[axis];
    let run: usize = after.iter().product();
    let picks = indices.to_i64_vec()?;
    let picks = picks.iter().map(|&at| position(at, len)).collect::<Result<Vec<_>, _>>()?;
    for block in 0..before.iter().product::<usize>() {
        for &pick in &picks {
            let start = (block * len + pick) * run;
            result.extend_from_slice(&values[start..start + run]);
        }
    }
    Ok(Tensor::from_vec(&shape, result)?)
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
        Ok(vec![with_element!(data.dtype(), T => rows::<T>(data, axis, indices))?])
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
