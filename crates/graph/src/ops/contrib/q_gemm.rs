//! `QGemm`: `Gemm` of quantised matrices.

use galatea_tensor::{DataType, Tensor};

use super::q_linear::expect_quantised;
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::matrix::{Gemm, MatMulInteger};
use crate::ops::values::{
    expect_type, floats, from_floats, from_integers, integer_range, integers,
};

/// `alpha · (A · B) + C` of domain `com.microsoft`.
///
/// Inputs: `A`, its scale and zero point, `B`, its scale and zero point (one, or one a column),
/// optionally `C` of 32 bits in units of both scales and `alpha`, and scale and zero point of the
/// result, without which it is `FP32`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QGemm {
    /// Factor on the product.
    pub alpha: f32,
    /// True if `A` is transposed.
    pub trans_a: bool,
    /// True if `B` is transposed.
    pub trans_b: bool,
}

impl QGemm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let Gemm { alpha, trans_a, trans_b, .. } = Gemm::read(context)?;
        Ok(Box::new(Self { alpha, trans_a, trans_b }))
    }
}

fn turned(tensor: &Tensor, transposed: bool) -> Result<Tensor, OpError> {
    if tensor.rank() != 2 {
        return Err(OpError::new(format!("an operand of rank {}, expected 2", tensor.rank())));
    }
    Ok(if transposed { tensor.permute(&[1, 0])? } else { tensor.clone() })
}

impl Operator for QGemm {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([
            ("alpha", self.alpha.into()),
            ("transA", self.trans_a.into()),
            ("transB", self.trans_b.into()),
        ]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(3)?;
        expect_quantised(a.dtype)?;
        expect_quantised(b.dtype)?;
        let gemm = Gemm { alpha: 1.0, beta: 1.0, trans_a: self.trans_a, trans_b: self.trans_b };
        let float = |fact: &Fact| Fact::shaped(DataType::Fp32, fact.shape.clone());
        let product =
            gemm.infer(OperatorInputs::new(&[Some(&float(a)), Some(&float(b))]))?.remove(0);
        let dtype = inputs.optional(8).map_or(DataType::Fp32, |zero| zero.dtype);
        Ok(vec![Fact::shaped(dtype, product.shape)])
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "sums have 32 bits, and the result is limited to its type"
    )]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = turned(inputs.required(0)?, self.trans_a)?;
        let b = turned(inputs.required(3)?, self.trans_b)?;
        let operands = [Some(&a), Some(&b), inputs.optional(2), inputs.optional(5)];
        let sums = MatMulInteger.reference(OperatorInputs::new(&operands))?.remove(0);
        let shape = sums.shape();
        let columns = sums.shape()[1];
        let mut sums_all: Vec<f64> = sums.to_i64_vec()?.into_iter().map(|sum| sum as f64).collect();
        if let Some(c) = inputs.optional(6) {
            expect_type("C", c.dtype(), |dtype| dtype == DataType::Int32, "INT32")?;
            let c = c.broadcast_to(shape)?.to_i64_vec()?;
            sums_all.iter_mut().zip(c).for_each(|(sum, c)| *sum += c as f64);
        }
        let [a_scale] = floats(inputs.required(1)?)?[..] else {
            return Err(OpError::new("the scale of A has more than one element"));
        };
        let b_scales = floats(inputs.required(4)?)?;
        if b_scales.len() != 1 && b_scales.len() != columns {
            return Err(OpError::new(format!("{} scales for {columns} columns", b_scales.len())));
        }
        let factor = |at: usize| {
            let column = (at % columns.max(1)).min(b_scales.len() - 1);
            f64::from(self.alpha) * a_scale * b_scales[column]
        };
        let all = sums_all.into_iter().enumerate().map(|(at, sum)| sum * factor(at));
        let (Some(scale), Some(zero)) = (inputs.optional(7), inputs.optional(8)) else {
            return Ok(vec![from_floats(DataType::Fp32, shape, all.collect())?]);
        };
        let (&[scale], &[zero_point]) = (&floats(scale)?[..], &integers(zero)?[..]) else {
            return Err(OpError::new("scale or zero point of the result has several elements"));
        };
        let (low, high) = integer_range(zero.dtype()).unwrap_or_default();
        let quantise = |value: f64| {
            let rounded = i128::from((value / scale).round_ties_even() as i64);
            (rounded + zero_point).clamp(low, high)
        };
        let all: Vec<i128> = all.map(quantise).collect();
        Ok(vec![from_integers(zero.dtype(), shape, &all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};
    use galatea_tensor::Tensor;

    #[test]
    fn the_result_is_a_float_or_quantised() {
        let a = tensor(&[1, 2], &[3_u8, 5]);
        let b = tensor(&[1, 2], &[2_i8, -1]);
        let half = Tensor::scalar(0.5_f32);
        let zero_a = Tensor::scalar(1_u8);
        let one = Tensor::scalar(1.0_f32);
        let zero_b = Tensor::scalar(0_i8);
        let c = tensor(&[1], &[10_i32]);
        let list = attributes([("transB", int(1))]);
        let inputs = [&a, &half, &zero_a, &b, &one, &zero_b, &c].map(Some);
        let found = run("com.microsoft:QGemm", 1, &list, &inputs, 1).unwrap();
        // 2 · 2 − 4 · 1 and 10, by half.
        assert_eq!(found[0], tensor(&[1, 1], &[5.0_f32]));
        let two = Tensor::scalar(2.0_f32);
        let zero_y = Tensor::scalar(7_u8);
        let inputs = [&a, &half, &zero_a, &b, &one, &zero_b, &c, &two, &zero_y].map(Some);
        let found = run("com.microsoft:QGemm", 1, &list, &inputs, 1).unwrap();
        assert_eq!(found[0], tensor(&[1, 1], &[9_u8]));
    }
}
