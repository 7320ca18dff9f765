//! `MatMulIntegerToFloat` and `DynamicQuantizeMatMul`: a product of 8-bit matrices as floats.

use galatea_tensor::{DataType, Tensor};

use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::matrix::MatMulInteger;
use crate::ops::quantize::DynamicQuantizeLinear;
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// `(A − zero point) · (B − zero point) · scales + bias`, of domain `com.microsoft`.
///
/// Inputs: `A`, `B`, the scale of `A`, that of `B` (one, or one a column), optionally both zero
/// points and a bias `[columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulIntegerToFloat;

/// The same of an `A` that is quantised to `UINT8` first, with the scale that it needs.
///
/// Inputs: `A`, `B`, the scale of `B`, optionally its zero point and a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicQuantizeMatMul;

fn product_fact(a: &Fact, b: &Fact, dtype: DataType) -> Result<Fact, OpError> {
    let product = MatMulInteger.infer(OperatorInputs::new(&[Some(a), Some(b)]))?.remove(0);
    Ok(Fact::shaped(dtype, product.shape))
}

/// One number for all columns, or one for each.
fn by_column(tensor: &Tensor, columns: usize, what: &str) -> Result<Vec<f64>, OpError> {
    let all = floats(tensor)?;
    match all[..] {
        [one] => Ok(vec![one; columns]),
        _ if all.len() == columns => Ok(all),
        _ => Err(OpError::new(format!("{} {what} for {columns} columns", all.len()))),
    }
}

/// Sums of products as floats.
fn scaled(
    sums: &Tensor,
    a_scale: &Tensor,
    b_scale: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Tensor, OpError> {
    let columns = sums.shape().last().copied().unwrap_or(1);
    let [a_scale] = floats(a_scale)?[..] else {
        return Err(OpError::new("the scale of A has more than one element"));
    };
    let scales = by_column(b_scale, columns, "scales")?;
    let bias = bias.map(|bias| by_column(bias, columns, "biases")).transpose()?;
    #[allow(clippy::cast_precision_loss, reason = "sums have 32 bits")]
    let value = |(at, sum): (usize, i64)| {
        let column = at % columns.max(1);
        let bias = bias.as_ref().map_or(0.0, |bias| bias[column]);
        sum as f64 * a_scale * scales[column] + bias
    };
    let all = sums.to_i64_vec()?.into_iter().enumerate().map(value).collect();
    from_floats(DataType::Fp32, sums.shape(), all)
}

impl Operator for MatMulIntegerToFloat {
    fn attributes(&self) -> Option<Attributes> {
        Some(Attributes::new())
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let scale = inputs.required(2)?.dtype;
        expect_float(scale)?;
        Ok(vec![product_fact(inputs.required(0)?, inputs.required(1)?, scale)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        let operands = [Some(a), Some(b), inputs.optional(4), inputs.optional(5)];
        let sums = MatMulInteger.reference(OperatorInputs::new(&operands))?.remove(0);
        let a_scale = inputs.required(2)?;
        let b_scale = inputs.required(3)?;
        let result = scaled(&sums, a_scale, b_scale, inputs.optional(6))?;
        Ok(vec![from_floats(a_scale.dtype(), result.shape(), floats(&result)?)?])
    }
}

impl Operator for DynamicQuantizeMatMul {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        expect_type("A", a.dtype, |dtype| dtype == DataType::Fp32, "FP32")?;
        let quantised = Fact::shaped(DataType::Uint8, a.shape.clone());
        Ok(vec![product_fact(&quantised, inputs.required(1)?, DataType::Fp32)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let quantised = DynamicQuantizeLinear.reference(OperatorInputs::new(&[Some(a)]))?;
        let [a, a_scale, a_zero] = &quantised[..] else {
            return Err(OpError::new("quantising A gave no scale"));
        };
        let operands = [Some(a), Some(inputs.required(1)?), Some(a_zero), inputs.optional(3)];
        let sums = MatMulInteger.reference(OperatorInputs::new(&operands))?.remove(0);
        Ok(vec![scaled(&sums, a_scale, inputs.required(2)?, inputs.optional(4))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn each_column_has_its_scale() {
        let a = tensor(&[1, 2], &[3_u8, 5]);
        let b = tensor(&[2, 2], &[1_i8, 2, -1, 0]);
        let half = Tensor::scalar(0.5_f32);
        let scales = tensor(&[2], &[1.0_f32, 10.0]);
        let zero_a = Tensor::scalar(1_u8);
        let bias = tensor(&[2], &[0.0_f32, 0.5]);
        let inputs =
            [Some(&a), Some(&b), Some(&half), Some(&scales), Some(&zero_a), None, Some(&bias)];
        let name = "com.microsoft:MatMulIntegerToFloat";
        let found = run(name, 1, &attributes([]), &inputs, 1).unwrap();
        assert_eq!(found[0], tensor(&[1, 2], &[-1.0_f32, 20.5]));
    }

    #[test]
    fn a_is_quantised_to_the_range_that_it_has() {
        let a = tensor(&[1, 2], &[0.0_f32, 2.55]);
        let b = tensor(&[2, 1], &[7_u8, 4]);
        let found = one(
            "com.microsoft:DynamicQuantizeMatMul",
            1,
            &attributes([]),
            &[&a, &b, &Tensor::scalar(0.5_f32)],
        );
        assert!((found.item::<f32>().unwrap() - 5.1).abs() < 1e-5);
    }
}
