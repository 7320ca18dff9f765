//! `EmbedLayerNormalization`: words, positions and segments looked up, added and normalised.

use galatea_tensor::{DataType, Tensor};

use super::skip_normalization::{normalise, row_vector};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::{floats, from_floats};

/// The first layer of BERT, of domain `com.microsoft`.
///
/// Inputs: word numbers `[B, S]`, optionally segment numbers, tables of words, positions and
/// optionally segments `[…, hidden]`, `gamma` and `beta` `[hidden]`, optionally a mask `[B, S]` and
/// positions `[B, S]` or `[1, S]`. Outputs: `[B, S, hidden]`, how many words each row of the mask
/// has, and the sum before normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmbedLayerNormalization {
    /// Added to the variance.
    pub epsilon: f32,
}

impl EmbedLayerNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // Only says whether the second output exists, which the node says too.
        context.attributes.ignore("mask_index_type");
        Ok(Box::new(Self { epsilon: context.attributes.float_or("epsilon", 1e-12)? }))
    }
}

/// A table of vectors.
struct EmbeddingTable {
    values: Vec<f64>,
    rows: usize,
    width: usize,
}

impl EmbeddingTable {
    fn read(tensor: &Tensor, what: &str) -> Result<Self, OpError> {
        match *tensor.shape() {
            [rows, width] => Ok(Self { values: floats(tensor)?, rows, width }),
            _ => Err(OpError::new(format!("{what} has rank {}, expected 2", tensor.rank()))),
        }
    }

    fn row(&self, number: i64, what: &str) -> Result<&[f64], OpError> {
        let row = usize::try_from(number).ok().filter(|row| *row < self.rows);
        let row = row.ok_or_else(|| {
            OpError::new(format!("{what} {number}, the table has {} rows", self.rows))
        })?;
        Ok(&self.values[row * self.width..(row + 1) * self.width])
    }
}

/// Positions are counted where they are no input.
fn positions(input: Option<&Tensor>, batch: usize, length: usize) -> Result<Vec<i64>, OpError> {
    let Some(tensor) = input else {
        let row = (0..length).map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        return Ok((0..batch).flat_map(|_| row.clone()).collect());
    };
    Ok(tensor.broadcast_to(&[batch, length])?.to_i64_vec()?)
}

impl Operator for EmbedLayerNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let ids = inputs.required(0)?;
        let words = inputs.required(2)?;
        let dim = |fact: &Fact, axis: usize| {
            let found = fact.shape.as_ref().and_then(|dims| dims.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let shape = vec![dim(ids, 0), dim(ids, 1), dim(words, 1)];
        let output = Fact::new(words.dtype, shape);
        let mask = Fact::new(DataType::Int32, vec![dim(ids, 0)]);
        Ok(vec![output.clone(), mask, output])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let ids = inputs.required(0)?;
        let &[batch, length] = ids.shape() else {
            return Err(OpError::new(format!("word numbers of rank {}, expected 2", ids.rank())));
        };
        let words = EmbeddingTable::read(inputs.required(2)?, "the table of words")?;
        let places = EmbeddingTable::read(inputs.required(3)?, "the table of positions")?;
        let segments = inputs
            .optional(4)
            .map(|t| EmbeddingTable::read(t, "the table of segments"))
            .transpose()?;
        let width = words.width;
        let gamma = row_vector(inputs.required(5)?, width, "gamma")?;
        let beta = row_vector(inputs.required(6)?, width, "beta")?;
        let shape = [batch, length, width];
        let other = segments.as_ref().map_or(width, |table| table.width);
        if places.width != width || other != width {
            return Err(OpError::new("the tables differ in the length of their vectors"));
        }
        let ids = ids.to_i64_vec()?;
        let kinds = match inputs.optional(1) {
            Some(kinds) if kinds.elements() == ids.len() => kinds.to_i64_vec()?,
            Some(kinds) => {
                return Err(OpError::new(format!("segment numbers of shape {:?}", kinds.shape())));
            }
            None => vec![0; ids.len()],
        };
        let positions = positions(inputs.optional(8), batch, length)?;
        let mut sums = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        for ((&id, &position), &kind) in ids.iter().zip(&positions).zip(&kinds) {
            let word = words.row(id, "word")?;
            let place = places.row(position, "position")?;
            let segment = segments.as_ref().map(|table| table.row(kind, "segment")).transpose()?;
            let add = |at: usize| segment.map_or(0.0, |segment| segment[at]);
            sums.extend((0..width).map(|at| word[at] + place[at] + add(at)));
        }
        let dtype = inputs.required(2)?.dtype();
        let sum = from_floats(dtype, &shape, sums.clone())?;
        for row in sums.chunks_mut(width.max(1)) {
            normalise(row, self.epsilon, false);
            row.iter_mut().enumerate().for_each(|(at, x)| *x = *x * gamma[at] + beta[at]);
        }
        let counts = match inputs.optional(7) {
            None => vec![0; batch],
            Some(mask) => counts(mask, [batch, length])?,
        };
        Ok(vec![from_floats(dtype, &shape, sums)?, Tensor::vector(counts), sum])
    }
}

/// How many words come before the first hidden one in each row.
fn counts(mask: &Tensor, shape: [usize; 2]) -> Result<Vec<i32>, OpError> {
    if mask.shape() != shape {
        return Err(OpError::new(format!(
            "a mask of shape {:?}, expected {shape:?}",
            mask.shape()
        )));
    }
    let all = mask.to_i64_vec()?;
    let of = |row: &[i64]| row.iter().take_while(|sees| **sees == 1).count();
    let rows = (0..shape[0]).map(|row| of(&all[row * shape[1]..(row + 1) * shape[1]]));
    Ok(rows.map(|count| i32::try_from(count).unwrap_or(i32::MAX)).collect())
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, run, tensor};

    #[test]
    fn rows_of_the_tables_are_added() {
        let ids = tensor(&[1, 2], &[1_i32, 0]);
        let words = tensor(&[2, 2], &[1.0_f32, 5.0, 2.0, 8.0]);
        let places = tensor(&[2, 2], &[0.0_f32, 1.0, 0.0, 0.0]);
        let gamma = tensor(&[2], &[2.0_f32, 1.0]);
        let beta = tensor(&[2], &[0.0_f32, 1.0]);
        let mask = tensor(&[1, 2], &[1_i32, 0]);
        let list = attributes([("epsilon", AttributeValue::Float(0.0))]);
        let inputs = [
            Some(&ids),
            None,
            Some(&words),
            Some(&places),
            None,
            Some(&gamma),
            Some(&beta),
            Some(&mask),
        ];
        let name = "com.microsoft:EmbedLayerNormalization";
        let all = run(name, 1, &list, &inputs, 3).unwrap();
        assert_eq!(all[0], tensor(&[1, 2, 2], &[-2.0_f32, 2.0, -2.0, 2.0]));
        assert_eq!(all[1], tensor(&[1], &[1_i32]));
        assert_eq!(all[2], tensor(&[1, 2, 2], &[2.0_f32, 9.0, 1.0, 5.0]));
        let beyond = tensor(&[1, 2], &[2_i32, 0]);
        let wrong = [&[Some(&beyond)], &inputs[1..]].concat();
        assert!(run(name, 1, &list, &wrong, 1).unwrap_err().contains("word 2"));
    }
}
