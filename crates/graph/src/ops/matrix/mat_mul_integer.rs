//! `MatMulInteger`: a product of 8-bit matrices with zero points, summed in 32 bits.

use galatea_tensor::{DataType, Tensor};

use super::product::{ProductExtents, infer_shape};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_same, expect_type, from_integers, integers};

/// The product of `A − zero point` and `B − zero point`, `INT32`.
///
/// Inputs: `A`, `B` (`INT8` or `UINT8` each), optionally the zero points: of `A` one for all or
/// one a row, of `B` one for all or one a column. Shapes otherwise as [`super::MatMul`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulInteger;

/// Refuses what is no 8-bit integer.
pub(super) fn expect_8_bits(dtype: DataType) -> Result<(), OpError> {
    let allowed = |found| matches!(found, DataType::Int8 | DataType::Uint8);
    expect_type("the input", dtype, allowed, "INT8 or UINT8")
}

/// Which operand a parameter (a zero point or a scale) belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandSide {
    /// `A`: one for each row.
    Rows,
    /// `B`: one for each column.
    Columns,
}

/// A parameter of one operand such that it broadcasts to the operand's shape.
pub(super) fn spread(
    parameter: &Tensor,
    side: OperandSide,
    shape: &[usize],
) -> Result<Tensor, OpError> {
    let parameter = match (side, parameter.shape()) {
        (_, []) => parameter.clone(),
        (_, [1]) => parameter.reshape(&[])?,
        (OperandSide::Rows, [rows]) if shape.len() > 1 => parameter.reshape(&[*rows, 1])?,
        _ => parameter.clone(),
    };
    Ok(parameter.broadcast_to(shape)?)
}

/// The elements of an operand relative to its zero point.
pub(super) fn centred(
    operand: &Tensor,
    zero_point: Option<&Tensor>,
    side: OperandSide,
) -> Result<Vec<i128>, OpError> {
    expect_8_bits(operand.dtype())?;
    let mut all = integers(operand)?;
    if let Some(zero_point) = zero_point {
        expect_same(operand.dtype(), zero_point.dtype())?;
        let zero_points = integers(&spread(zero_point, side, operand.shape())?)?;
        all.iter_mut().zip(zero_points).for_each(|(value, zero_point)| *value -= zero_point);
    }
    Ok(all)
}

impl Operator for MatMulInteger {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        for (operand, zero_point) in [(a, inputs.optional(2)), (b, inputs.optional(3))] {
            expect_8_bits(operand.dtype)?;
            if let Some(zero_point) = zero_point {
                expect_same(operand.dtype, zero_point.dtype)?;
            }
        }
        let shape = infer_shape(a, b)?;
        Ok(vec![Fact::shaped(DataType::Int32, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        let product = ProductExtents::new(a.shape(), b.shape(), DataType::Int32)?;
        let a = centred(a, inputs.optional(2), OperandSide::Rows)?;
        let b = centred(b, inputs.optional(3), OperandSide::Columns)?;
        let all = product.run(&a, &b, |sum, x, y| sum + x * y);
        Ok(vec![from_integers(DataType::Int32, &product.shape, &all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, tensor};

    #[test]
    fn zero_points_are_for_all_for_rows_and_for_columns() {
        let a = tensor(&[2, 2], &[11_u8, 7, 10, 6]);
        let b = tensor(&[2, 2], &[1_i8, 4, 2, 5]);
        let run = |inputs: &[&Tensor]| one("MatMulInteger", 10, &attributes([]), inputs);
        assert_eq!(run(&[&a, &b]), tensor(&[2, 2], &[25_i32, 79, 22, 70]));
        let twelve = Tensor::scalar(12_u8);
        assert_eq!(run(&[&a, &b, &twelve]), tensor(&[2, 2], &[-11_i32, -29, -14, -38]));
        let rows = Tensor::vector(vec![11_u8, 10]);
        let columns = Tensor::vector(vec![1_i8, 4]);
        assert_eq!(run(&[&a, &b, &rows, &columns]), tensor(&[2, 2], &[-4_i32, -4, -4, -4]));
    }
}
