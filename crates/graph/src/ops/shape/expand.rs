//! `Expand` and `Tile`: a tensor repeated.

use galatea_tensor::{Tensor, broadcast_shapes};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::floats;

/// ONNX `Expand`: broadcasts input 0 to the shape in input 1, both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expand;

/// ONNX `Tile`: repeats input 0 along every axis as often as input 1 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile;

impl Expand {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

/// `Tile` of version 1: the input so often along one axis. Both numbers have the type of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileAlong;

impl TileAlong {
    /// The repeats of every axis.
    #[allow(clippy::cast_possible_truncation, reason = "a whole number in a float tensor")]
    fn repeats(inputs: OperatorInputs<'_, Tensor>) -> Result<Tensor, OpError> {
        let number = |index: usize| -> Result<i64, OpError> {
            let tensor = inputs.required(index)?;
            let all = if tensor.dtype().is_float() {
                floats(tensor)?.into_iter().map(|value| value as i64).collect()
            } else {
                tensor.to_i64_vec()?
            };
            match all[..] {
                [one] => Ok(one),
                _ => Err(OpError::new(format!("input {index} has {} elements", all.len()))),
            }
        };
        let mut repeats = vec![1; inputs.required(0)?.rank()];
        let axis = bounds::axis(number(2)?, repeats.len())?;
        repeats[axis] = number(1)?;
        Ok(Tensor::vector(repeats))
    }
}

impl Operator for TileAlong {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let shape = data.shape.as_ref().map(|dims| vec![Dim::Unknown; dims.len()]);
        Ok(vec![Fact::shaped(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let repeats = Self::repeats(inputs)?;
        Tile.reference(OperatorInputs::new(&[inputs.optional(0), Some(&repeats)]))
    }
}

impl Operator for Expand {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let target = inputs.required(1)?;
        let wanted = match target.lengths() {
            Some(lengths) => Fact::new(data.dtype, lengths),
            None => match bounds::vector_len(target) {
                Some(rank) => Fact::new(data.dtype, vec![Dim::Unknown; rank]),
                None => return Ok(vec![Fact::unranked(data.dtype)]),
            },
        };
        let shape = Fact::broadcast(&[data, &wanted])?;
        Ok(vec![Fact::shaped(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let target = bounds::lengths(&inputs.required(1)?.to_i64_vec()?, "a target length")?;
        let shape = broadcast_shapes(data.shape(), &target)?;
        Ok(vec![bounds::owned(&data.broadcast_to(&shape)?)?])
    }
}

impl Tile {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for Tile {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let repeats = inputs.required(1)?;
        let Some(dims) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let shape = match repeats.lengths() {
            None => vec![Dim::Unknown; dims.len()],
            Some(counts) if counts.len() == dims.len() => {
                dims.iter().zip(&counts).map(|(dim, count)| bounds::product([dim, count])).collect()
            }
            Some(counts) => return Err(misfit(counts.len(), dims.len())),
        };
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let repeats = bounds::lengths(&inputs.required(1)?.to_i64_vec()?, "a repeat count")?;
        if repeats.len() != data.rank() {
            return Err(misfit(repeats.len(), data.rank()));
        }
        // Axis after axis: an axis of repeats is put before each axis and broadcast.
        let mut apart = Vec::new();
        let mut wide = Vec::new();
        let mut shape = Vec::new();
        for (&len, &count) in data.shape().iter().zip(&repeats) {
            apart.extend([1, len]);
            wide.extend([count, len]);
            shape.push(len.saturating_mul(count));
        }
        bounds::bounded(data.dtype(), &shape)?;
        Ok(vec![data.reshape(&apart)?.broadcast_to(&wide)?.contiguous()?.reshape(&shape)?])
    }
}

fn misfit(counts: usize, rank: usize) -> OpError {
    OpError::new(format!("{counts} repeat counts for an input of rank {rank}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, one, run, tensor};
    use galatea_tensor::DataType;

    #[test]
    fn expanding_broadcasts_both_ways() {
        let target = Tensor::vector(vec![2_i64, 1, 1]);
        let result = one("Expand", 13, &attributes([]), &[&counting(&[3, 1]), &target]);
        assert_eq!(result, tensor(&[2, 3, 1], &[0_f32, 1.0, 2.0, 0.0, 1.0, 2.0]));
    }

    #[test]
    fn tiles_repeat_in_every_direction() {
        let repeats = Tensor::vector(vec![2_i64, 2]);
        let result = one("Tile", 13, &attributes([]), &[&counting(&[1, 2]), &repeats]);
        assert_eq!(result, tensor(&[2, 4], &[0_f32, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
        let none = Tensor::vector(vec![0_i64, 1]);
        assert_eq!(one("Tile", 6, &attributes([]), &[&counting(&[1, 2]), &none]).shape(), [0, 2]);
    }

    #[test]
    fn hostile_sizes_are_errors() {
        let huge = Tensor::vector(vec![1_i64 << 50]);
        let data = counting(&[1]);
        assert!(run("Expand", 13, &attributes([]), &[Some(&data), Some(&huge)], 1).is_err());
        assert!(run("Tile", 13, &attributes([]), &[Some(&data), Some(&huge)], 1).is_err());
        let negative = Tensor::vector(vec![-1_i64]);
        assert!(run("Tile", 13, &attributes([]), &[Some(&data), Some(&negative)], 1).is_err());
    }

    #[test]
    fn a_symbolic_target_gives_a_symbolic_shape() {
        let batch = Dim::symbol("batch");
        let seq = Dim::symbol("seq");
        let data = Fact::new(DataType::Fp32, vec![Dim::Known(1), seq.clone()]);
        let target = Fact::fixed(DataType::Int64, &[2])
            .with_elements(Some(vec![batch.clone(), seq.clone()]));
        let fact = inferred("Expand", 13, &attributes([]), &[&data, &target]).unwrap();
        assert_eq!(fact.shape.unwrap(), [batch, seq]);
    }
}
