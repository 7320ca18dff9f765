//! `QLinearMatMul`: a product of quantised matrices, quantised again.

use galatea_tensor::{DataType, Tensor};

use super::mat_mul_integer::{OperandSide, centred, expect_8_bits, spread};
use super::product::{ProductExtents, infer_shape};
use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{
    expect_float, expect_same, floats, from_integers, integer_range, integers,
};

/// `A · B / y_scale + y_zero_point`, rounded to even and clamped to the type of `y_zero_point`,
/// where each of `A` and `B` is `(value − zero point) · scale`.
///
/// Inputs: `A`, its scale and zero point, `B`, its scale and zero point, then scale and zero point
/// of the result. Scales and zero points are one for all, or of `A` and the result one a row, of
/// `B` one a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QLinearMatMul;

/// A scale for each element of the result.
fn scales(scale: &Tensor, side: OperandSide, shape: &[usize]) -> Result<Vec<f64>, OpError> {
    floats(&spread(scale, side, shape)?)
}

impl Operator for QLinearMatMul {
    fn attributes(&self) -> Option<Attributes> {
        Some(Attributes::new())
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(3)?;
        let y = inputs.required(7)?;
        for (operand, at) in [(a, 1), (b, 4), (y, 6)] {
            expect_8_bits(operand.dtype)?;
            expect_float(inputs.required(at)?.dtype)?;
        }
        expect_same(a.dtype, inputs.required(2)?.dtype)?;
        expect_same(b.dtype, inputs.required(5)?.dtype)?;
        let shape = infer_shape(a, b)?;
        Ok(vec![Fact::shaped(y.dtype, shape)])
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "sums of 8-bit products are exact in f64, and the result is clamped to 8 bits"
    )]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(3)?;
        let scale = inputs.required(6)?;
        let zero_point = inputs.required(7)?;
        let dtype = zero_point.dtype();
        expect_8_bits(dtype)?;
        let product = ProductExtents::new(a.shape(), b.shape(), DataType::Int32)?;
        let shape = &product.shape;
        let a = centred(a, inputs.optional(2), OperandSide::Rows)?;
        let b = centred(b, inputs.optional(5), OperandSide::Columns)?;
        let sums = product.run(&a, &b, |sum, x, y| sum + x * y);
        let scale_a = scales(inputs.required(1)?, OperandSide::Rows, shape)?;
        let scale_b = scales(inputs.required(4)?, OperandSide::Columns, shape)?;
        let scale_y = scales(scale, OperandSide::Rows, shape)?;
        let zero_points = integers(&spread(zero_point, OperandSide::Rows, shape)?)?;
        let (low, high) = integer_range(dtype).unwrap_or_default();
        let scaled = scale_a.iter().zip(&scale_b).zip(&scale_y).map(|((a, b), y)| a * b / y);
        let all: Vec<i128> = sums
            .iter()
            .zip(scaled)
            .zip(zero_points)
            .map(|((&sum, scale), zero_point)| {
                let rounded = (sum as f64 * scale).round_ties_even() as i64;
                i128::from(rounded).saturating_add(zero_point).clamp(low, high)
            })
            .collect();
        Ok(vec![from_integers(dtype, shape, &all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, tensor};

    #[test]
    fn the_result_is_scaled_rounded_to_even_and_clamped() {
        let a = tensor(&[1, 2], &[3_u8, 5]);
        let b = tensor(&[2, 3], &[1_u8, 200, 0, 1, 200, 0]);
        let one_half = Tensor::scalar(0.5_f32);
        let quarter = Tensor::scalar(0.25_f32);
        let zero = Tensor::scalar(0_u8);
        let two = Tensor::scalar(2_u8);
        // (3 − 2 + 5 − 2) · 0.5 · 0.25 / 0.5 = 1 of the first column; 200 of the second; 0.
        let inputs = [&a, &one_half, &two, &b, &quarter, &zero, &one_half, &two];
        let found = one("QLinearMatMul", 10, &attributes([]), &inputs);
        assert_eq!(found, tensor(&[1, 3], &[3_u8, 202, 2]));
        let fine = Tensor::scalar(0.05_f32);
        let inputs = [&a, &one_half, &two, &b, &quarter, &zero, &fine, &two];
        assert_eq!(
            one("QLinearMatMul", 21, &attributes([]), &inputs),
            tensor(&[1, 3], &[12_u8, 255, 2])
        );
    }
}
