//! `AffineGrid`: the grid by which `GridSample` moves, turns and scales an image.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// Every position of an image, from −1 to 1 along each axis, multiplied by a matrix.
///
/// Inputs: matrices `[N, 2, 3]` or `[N, 3, 4]`, and the size `[N, C, H, W]` or `[N, C, D, H, W]`.
/// Output: `[N, H, W, 2]` or `[N, D, H, W, 3]`, last axis of the image first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffineGrid {
    /// True if −1 and 1 are the centres of the outermost elements instead of their outer edges.
    pub align_corners: bool,
}

impl AffineGrid {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { align_corners: context.attributes.flag("align_corners", false)? }))
    }

    /// The place of an element along an axis.
    #[allow(clippy::cast_precision_loss, reason = "an axis has fewer than 2^31 elements")]
    fn place(&self, at: usize, len: usize) -> f64 {
        match (self.align_corners, len) {
            (true, 1) => 0.0,
            (true, _) => 2.0 * at as f64 / (len as f64 - 1.0) - 1.0,
            (false, _) => (2.0 * at as f64 + 1.0) / len as f64 - 1.0,
        }
    }

    fn check(theta: &[usize], size: usize) -> Result<usize, OpError> {
        match *theta {
            [_, rows @ 2..=3, columns] if columns == rows + 1 && size == rows + 2 => Ok(rows),
            _ => Err(OpError::new(format!(
                "matrices of shape {theta:?} for a size of {size} numbers, expected [N, 2, 3] for \
                 4 or [N, 3, 4] for 5"
            ))),
        }
    }
}

impl Operator for AffineGrid {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let theta = inputs.required(0)?;
        let size = inputs.required(1)?;
        expect_float(theta.dtype)?;
        let Some(size) = size.lengths() else { return Ok(vec![Fact::unranked(theta.dtype)]) };
        if let Some(theta) = theta.known_shape() {
            Self::check(&theta, size.len())?;
        }
        let [_, _, spatial @ ..] = &size[..] else {
            return Err(OpError::new(format!("a size of {} numbers, expected 4 or 5", size.len())));
        };
        let batch = theta.shape.as_ref().and_then(|dims| dims.first().cloned());
        let batch = batch.unwrap_or_else(|| size[0].clone());
        let parts = Dim::Known(spatial.len());
        Ok(vec![Fact::new(theta.dtype, [&[batch], spatial, &[parts]].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let theta = inputs.required(0)?;
        let size = bounds::lengths(&inputs.required(1)?.to_i64_vec()?, "the size")?;
        let rows = Self::check(theta.shape(), size.len())?;
        let batch = theta.shape()[0];
        let spatial = &size[2..];
        let shape = [&[batch], spatial, &[rows]].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        for matrix in floats(theta)?.chunks(rows * (rows + 1)) {
            for index in bounds::indices(spatial) {
                let places = index.iter().zip(spatial).map(|(&at, &len)| self.place(at, len));
                // Last axis first, and a one for the column that moves.
                let vector: Vec<f64> = places.rev().chain([1.0]).collect();
                let row = |row: &[f64]| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f64>();
                result.extend(matrix.chunks(rows + 1).map(row));
            }
        }
        Ok(vec![from_floats(theta.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn the_identity_names_every_element_and_a_shift_moves_them() {
        let theta = tensor(&[1, 2, 3], &[1.0_f32, 0.0, 0.0, 0.0, 1.0, 10.0]);
        let size = Tensor::vector(vec![1_i64, 1, 1, 2]);
        let found = one("AffineGrid", 20, &attributes([]), &[&theta, &size]);
        assert_eq!(found, tensor(&[1, 1, 2, 2], &[-0.5_f32, 10.0, 0.5, 10.0]));
        let corners = attributes([("align_corners", int(1))]);
        let found = one("AffineGrid", 20, &corners, &[&theta, &size]);
        assert_eq!(found, tensor(&[1, 1, 2, 2], &[-1.0_f32, 10.0, 1.0, 10.0]));
    }

    #[test]
    fn a_size_of_another_rank_is_an_error() {
        let theta = tensor(&[1, 2, 3], &[1.0_f32; 6]);
        let size = Tensor::vector(vec![1_i64, 1, 1, 2, 2]);
        assert!(run("AffineGrid", 20, &attributes([]), &[Some(&theta), Some(&size)], 1).is_err());
    }
}
