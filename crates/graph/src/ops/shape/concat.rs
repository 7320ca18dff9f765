//! `Concat`: tensors one after the other along an axis.

use galatea_tensor::{DataType, Element, Tensor, with_carrier};

use crate::attribute::{Attributes, named};
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::expect_same;

/// ONNX `Concat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concat {
    /// The axis to join; may count from the end.
    pub axis: i64,
}

impl Concat {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int("axis")?;
        Ok(Box::new(Self {
            axis: axis.ok_or_else(|| OpError::new("attribute 'axis' is missing"))?,
        }))
    }

    /// Version 1 had a default.
    pub(super) fn parse_1(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axis: context.attributes.int_or("axis", 1)? }))
    }
}

/// The length that several tensors share, the best known one.
fn shared(axis: usize, shapes: &[&Vec<Dim>]) -> Result<Dim, OpError> {
    let mut best = Dim::Unknown;
    for shape in shapes {
        best = match (&best, &shape[axis]) {
            (Dim::Known(a), Dim::Known(b)) if a != b => {
                return Err(OpError::new(format!(
                    "inputs have lengths {a} and {b} on axis {axis}"
                )));
            }
            (Dim::Known(_), _) | (Dim::Symbol(_), Dim::Symbol(_) | Dim::Unknown) => best,
            (_, other) => other.clone(),
        };
    }
    Ok(best)
}

fn join<T: Element>(
    dtype: DataType,
    parts: &[&Tensor],
    axis: usize,
    shape: &[usize],
) -> Result<Tensor, OpError> {
    let count = bounds::bounded(dtype, shape)?;
    let mut result: Vec<T> = Vec::with_capacity(count);
    let mut sources = Vec::with_capacity(parts.len());
    for part in parts {
        let run: usize = part.shape()[axis..].iter().product();
        sources.push((part.to_carriers::<T>()?, run));
    }
    for row in 0..shape[..axis].iter().product::<usize>() {
        for (values, run) in &sources {
            result.extend_from_slice(&values[row * run..(row + 1) * run]);
        }
    }
    Ok(Tensor::from_carriers(dtype, shape, result)?)
}

impl Operator for Concat {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([("axis", self.axis.into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let all = inputs.all_required()?;
        let Some(first) = all.first() else { return Err(OpError::new("no inputs")) };
        let dtype = first.dtype;
        if let Some(other) = all.iter().find(|fact| fact.dtype != dtype) {
            return Err(OpError::new(format!("inputs of types {dtype} and {}", other.dtype)));
        }
        let shapes: Vec<&Vec<Dim>> = all.iter().filter_map(|fact| fact.shape.as_ref()).collect();
        let Some(rank) = shapes.first().map(|shape| shape.len()) else {
            return Ok(vec![Fact::unranked(dtype)]);
        };
        if let Some(other) = shapes.iter().find(|shape| shape.len() != rank) {
            return Err(OpError::new(format!("inputs of ranks {rank} and {}", other.len())));
        }
        let along = bounds::axis(self.axis, rank)?;
        let mut shape = Vec::with_capacity(rank);
        for axis in 0..rank {
            shape.push(if axis != along {
                shared(axis, &shapes)?
            } else if shapes.len() == all.len() {
                bounds::sum(shapes.iter().map(|shape| &shape[axis]))
            } else {
                Dim::Unknown
            });
        }
        let elements = if rank == 1 {
            let parts: Option<Vec<Vec<Dim>>> =
                collected_some(&mut all.iter().map(|one| bounds::carried(one)));
            parts.map(|parts| parts.concat())
        } else {
            None
        };
        Ok(vec![Fact::new(dtype, shape).with_elements(elements)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let all = inputs.all_required()?;
        let Some(first) = all.first() else { return Err(OpError::new("no inputs")) };
        Ok(vec![join_tensors(&all, bounds::axis(self.axis, first.rank())?)?])
    }
}

/// Tensors of one type joined along an axis, in which alone their shapes may differ.
pub(crate) fn join_tensors(all: &[&Tensor], axis: usize) -> Result<Tensor, OpError> {
    let Some(first) = all.first() else { return Err(OpError::new("no inputs")) };
    let mut shape = first.shape().to_vec();
    for other in &all[1..] {
        expect_same(first.dtype(), other.dtype())?;
        let fits = other.rank() == shape.len()
            && (0..shape.len()).all(|at| at == axis || other.shape()[at] == shape[at]);
        if !fits {
            return Err(OpError::new(format!(
                "shapes {:?} and {:?} do not join on axis {axis}",
                first.shape(),
                other.shape()
            )));
        }
        shape[axis] = shape[axis].saturating_add(other.shape()[axis]);
    }
    with_carrier!(first.dtype(), T => join::<T>(first.dtype(), all, axis, &shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, int, one, run, tensor};
    use galatea_tensor::DataType;

    #[test]
    fn rows_interleave_on_an_inner_axis() {
        let attributes = attributes([("axis", int(-1))]);
        let result = one("Concat", 13, &attributes, &[&counting(&[2, 1]), &counting(&[2, 2])]);
        assert_eq!(result, tensor(&[2, 3], &[0_f32, 0.0, 1.0, 1.0, 2.0, 3.0]));
    }

    #[test]
    fn symbolic_vectors_join() {
        let batch = Dim::symbol("batch");
        let one = Fact::fixed(DataType::Int64, &[1]).with_elements(Some(vec![batch.clone()]));
        let two = Fact::constant(Tensor::vector(vec![12_i64, 32]));
        let axis = attributes([("axis", int(0))]);
        let fact = inferred("Concat", 13, &axis, &[&one, &two]).unwrap();
        assert_eq!(fact.elements, Some(vec![batch, Dim::Known(12), Dim::Known(32)]));
    }

    #[test]
    fn lengths_that_differ_elsewhere_are_an_error() {
        let axis = attributes([("axis", int(0))]);
        let inputs = [Some(&counting(&[2, 1])), Some(&counting(&[2, 2]))];
        assert!(run("Concat", 13, &axis, &inputs, 1).is_err());
    }
}
