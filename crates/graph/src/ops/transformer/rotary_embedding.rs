//! `RotaryEmbedding`: vectors turned by angles that grow with their position.

use galatea_tensor::Tensor;

use super::heads::WideHeads;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_float, floats};

/// Pairs of elements of each vector, turned by the angle whose cosine and sine are inputs.
///
/// Inputs: `X` `[B, H, S, D]` or `[B, S, H · D]`; cosines and sines, either `[B, S, D / 2]`, where
/// exporters also write `[1, S, D / 2]` for all of a batch, or, with the positions `[B, S]`, rows by
/// position. Output: like `X`.
///
/// Source: Su et al. 2021, "RoFormer", arXiv 2104.09864.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotaryEmbedding {
    /// True if pairs are neighbours; otherwise their elements are half a vector apart.
    pub interleaved: bool,
    /// How many elements of each vector turn; 0 means all.
    pub rotary_dim: usize,
    /// Heads of a packed input.
    pub num_heads: Option<usize>,
}

/// Cosines or sines by batch and position.
struct RotaryAngleTable {
    values: Vec<f64>,
    half: usize,
    rows: usize,
    positions: Option<Vec<i64>>,
    sequence: usize,
}

impl RotaryAngleTable {
    /// The row for a position in a batch.
    fn row(&self, batch: usize, position: usize) -> Result<&[f64], OpError> {
        let at = batch * self.sequence + position;
        let row = match &self.positions {
            None => at % self.rows,
            Some(all) => {
                usize::try_from(all[at]).ok().filter(|row| *row < self.rows).ok_or_else(|| {
                    let found = all[at];
                    OpError::new(format!("position {found}, the caches have {} rows", self.rows))
                })?
            }
        };
        Ok(&self.values[row * self.half..(row + 1) * self.half])
    }
}

impl RotaryEmbedding {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let dim = context.attributes.int_or("rotary_embedding_dim", 0)?;
        let heads = context.attributes.int("num_heads")?;
        Ok(Box::new(Self {
            interleaved: context.attributes.flag("interleaved", false)?,
            rotary_dim: bounds::length(dim, "rotary_embedding_dim")?,
            num_heads: heads.map(|n| bounds::length(n, "num_heads")).transpose()?,
        }))
    }

    /// How many pairs of a vector turn.
    ///
    /// # Errors
    /// Fails when the vector is shorter, or has an odd number of elements to turn.
    pub fn pairs(&self, width: usize) -> Result<usize, OpError> {
        let turned = if self.rotary_dim == 0 { width } else { self.rotary_dim };
        if turned > width || !turned.is_multiple_of(2) {
            return Err(OpError::new(format!(
                "{turned} elements of vectors of {width} cannot turn in pairs"
            )));
        }
        Ok(turned / 2)
    }

    fn angles(
        cache: &Tensor,
        positions: Option<&Tensor>,
        batch: usize,
        sequence: usize,
        half: usize,
    ) -> Result<RotaryAngleTable, OpError> {
        let shape = cache.shape();
        let fits = match (shape, positions) {
            ([_, width], Some(positions)) => {
                *width == half && positions.shape() == [batch, sequence]
            }
            ([own, rest @ ..], None) => (*own == batch || *own == 1) && rest == [sequence, half],
            _ => false,
        };
        if !fits {
            return Err(OpError::new(format!(
                "a cache of shape {shape:?} with positions of shape {:?} for a batch of {batch}, \
                 {sequence} positions and {half} pairs",
                positions.map(Tensor::shape)
            )));
        }
        let positions = positions.map(Tensor::to_i64_vec).transpose()?;
        // Without positions the rows lie one after the other, for each of the batch or once for all.
        let rows = if positions.is_some() { shape[0] } else { shape[0] * sequence };
        Ok(RotaryAngleTable { values: floats(cache)?, half, rows, positions, sequence })
    }

    /// Turns every vector.
    pub(crate) fn turn(
        &self,
        heads: &mut WideHeads,
        angles: impl Fn(usize, usize) -> Result<(Vec<f64>, Vec<f64>), OpError>,
    ) -> Result<(), OpError> {
        let [batch, count, sequence, width] = heads.shape;
        let pairs = self.pairs(width)?;
        for at in bounds::indices(&[batch, sequence]) {
            let (cos, sin) = angles(at[0], at[1])?;
            for head in 0..count {
                let start = ((at[0] * count + head) * sequence + at[1]) * width;
                let vector = &mut heads.values[start..start + width];
                for pair in 0..pairs {
                    let (first, second) = if self.interleaved {
                        (2 * pair, 2 * pair + 1)
                    } else {
                        (pair, pair + pairs)
                    };
                    let x = vector[first];
                    let y = vector[second];
                    vector[first] = cos[pair] * x - sin[pair] * y;
                    vector[second] = sin[pair] * x + cos[pair] * y;
                }
            }
        }
        Ok(())
    }
}

impl Operator for RotaryEmbedding {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        super::heads::head_dims(x, self.num_heads, "X")?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let mut heads = WideHeads::read(x, self.num_heads, "X")?;
        let [batch, _, sequence, width] = heads.shape;
        let half = self.pairs(width)?;
        let positions = inputs.optional(3);
        let cos = Self::angles(inputs.required(1)?, positions, batch, sequence, half)?;
        let sin = Self::angles(inputs.required(2)?, positions, batch, sequence, half)?;
        if cos.rows != sin.rows {
            return Err(OpError::new("the caches of cosines and sines differ in shape"));
        }
        self.turn(&mut heads, |batch, at| {
            Ok((cos.row(batch, at)?.to_vec(), sin.row(batch, at)?.to_vec()))
        })?;
        let packed = x.rank() == 3;
        Ok(vec![if packed { heads.write_packed(x.dtype())? } else { heads.write(x.dtype())? }])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn pairs_turn_by_a_quarter() {
        let x = tensor(&[1, 1, 1, 4], &[1.0_f32, 2.0, 3.0, 4.0]);
        let cos = tensor(&[1, 1, 2], &[0.0_f32, 1.0]);
        let sin = tensor(&[1, 1, 2], &[1.0_f32, 0.0]);
        let halves = one("RotaryEmbedding", 23, &attributes([]), &[&x, &cos, &sin]);
        assert_eq!(halves, tensor(&[1, 1, 1, 4], &[-3.0_f32, 2.0, 1.0, 4.0]));
        let next = attributes([("interleaved", int(1))]);
        let neighbours = one("RotaryEmbedding", 23, &next, &[&x, &cos, &sin]);
        assert_eq!(neighbours, tensor(&[1, 1, 1, 4], &[-2.0_f32, 1.0, 3.0, 4.0]));
    }

    #[test]
    fn positions_pick_rows_and_the_rest_of_a_vector_stays() {
        let x = tensor(&[1, 2, 3], &[1.0_f32, 2.0, 9.0, 1.0, 2.0, 9.0]);
        let cos = tensor(&[2, 1], &[1.0_f32, 0.0]);
        let sin = tensor(&[2, 1], &[0.0_f32, 1.0]);
        let positions = tensor(&[1, 2], &[1_i64, 0]);
        let list = attributes([("num_heads", int(1)), ("rotary_embedding_dim", int(2))]);
        let found = one("RotaryEmbedding", 23, &list, &[&x, &cos, &sin, &positions]);
        assert_eq!(found, tensor(&[1, 2, 3], &[-2.0_f32, 1.0, 9.0, 1.0, 2.0, 9.0]));
        let beyond = tensor(&[1, 2], &[0_i64, 2]);
        let inputs = [Some(&x), Some(&cos), Some(&sin), Some(&beyond)];
        assert!(run("RotaryEmbedding", 23, &list, &inputs, 1).unwrap_err().contains("rows"));
    }
}
