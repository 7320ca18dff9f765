//! `FusedRotary`: heads turned by angles that grow with the position, read in any storage order.

use galatea_tensor::Tensor;

use super::attention::{four, order};
use super::widened::{narrowed, widened};
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// Pairs of elements of each vector, half a vector apart, turned by the angle whose cosine and sine
/// are inputs: `x · cos + rotate_half(x) · sin` with `rotate_half([a, b]) = [−b, a]`.
///
/// Inputs: `X` is `[B, H, S, D]` with even `D` after applying `perm` to the stored axes; cosines and
/// sines broadcast to `[B, H, S, D]`, or to `[B, H, S, D / 2]`, which serve both halves.
/// Output: `[B, H, S, D]`. Types: FP32, FP64, FP16, BF16.
/// Source: Su et al. 2021, "RoFormer", arXiv 2104.09864.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusedRotary {
    /// Axis `i` of `[B, H, S, D]` is axis `perm[i]` of the stored `X`.
    pub perm: [usize; 4],
}

impl FusedRotary {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { perm: order(context, "perm")? }))
    }
}

impl Operator for FusedRotary {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([("perm", self.perm.as_slice().into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let Some(shape) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        let dims = four("X", shape, self.perm)?;
        if dims[3].known().is_some_and(|width| width % 2 != 0) {
            return Err(OpError::new(format!("vectors of {} elements have no halves", dims[3])));
        }
        Ok(vec![Fact::new(x.dtype, dims.to_vec())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![self.turn(inputs)?])
    }
}

impl FusedRotary {
    fn turn(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Tensor, OpError> {
        let x = inputs.required(0)?;
        let dtype = x.dtype();
        let shape = four("X", x.shape(), self.perm)?;
        let [b, h, s, width] = shape;
        let half = width / 2;
        if half * 2 != width {
            return Err(OpError::new(format!("vectors of {width} elements have no halves")));
        }
        let x = widened(&x.permute(&self.perm)?, dtype)?;
        let table = |index: usize| -> Result<(Vec<f64>, usize), OpError> {
            let table = inputs.required(index)?;
            let columns = table.shape().last().copied().unwrap_or(1);
            let columns = if columns == half { half } else { width };
            Ok((widened(&table.broadcast_to(&[b, h, s, columns])?, dtype)?, columns))
        };
        let ((cos, cos_columns), (sin, sin_columns)) = (table(1)?, table(2)?);
        let at = |table: &[f64], columns: usize, row: usize, column: usize| {
            table[row * columns + column % columns]
        };
        let mut result = Vec::with_capacity(x.len());
        for row in 0..b * h * s {
            let vector = &x[row * width..][..width];
            for column in 0..width {
                let turned =
                    if column < half { -vector[column + half] } else { vector[column - half] };
                let along = vector[column] * at(&cos, cos_columns, row, column);
                let across = turned * at(&sin, sin_columns, row, column);
                result.push(along + across);
            }
        }
        narrowed(dtype, &shape, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, ints, one, tensor};

    #[test]
    fn halves_turn_and_half_tables_serve_both() {
        let x = counting(&[1, 2, 1, 4]);
        let cos = tensor(&[1, 1, 1, 2], &[0.0_f32, 1.0]);
        let sin = tensor(&[1, 1, 1, 2], &[1.0_f32, 0.0]);
        let turned = one("ai.galatea:Rotary", 1, &attributes([]), &[&x, &cos, &sin]);
        let expected = tensor(&[1, 2, 1, 4], &[-2.0_f32, 1.0, 0.0, 3.0, -6.0, 5.0, 4.0, 7.0]);
        assert_eq!(turned, expected);
        let twice = |t: &Tensor| {
            let all = t.to_vec::<f32>().unwrap().repeat(2);
            Tensor::from_vec(&[4], all).unwrap()
        };
        let stored = x.permute(&[0, 2, 1, 3]).unwrap().contiguous().unwrap();
        let perm = attributes([("perm", ints(&[0, 2, 1, 3]))]);
        let whole = one("ai.galatea:Rotary", 1, &perm, &[&stored, &twice(&cos), &twice(&sin)]);
        assert_eq!(whole, expected);
    }
}
