//! `Pow`: the only arithmetic of two types.

#![allow(
    clippy::cast_possible_truncation,
    reason = "an integer power of a fractional exponent is truncated, as ONNX Runtime does"
)]

use galatea_tensor::{Tensor, broadcast_shapes};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{TensorValues, broadcast, expect_number, integer_range};

/// The first input to the power of the second. The result has the first input's type.
///
/// Shapes: any two that broadcast. Integers to an integer power wrap; a negative power, and one that
/// is a float, is computed as a float, truncated, and limited to the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pow;

fn integer_power(base: i128, exponent: i128, range: (i128, i128)) -> i128 {
    let Ok(mut left) = u64::try_from(exponent) else {
        #[allow(clippy::cast_precision_loss, reason = "only -1, 0 and 1 have non-zero results")]
        return ((base as f64).powf(exponent as f64) as i128).clamp(range.0, range.1);
    };
    let mut result = 1_i128;
    let mut square = base;
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

#[allow(clippy::cast_precision_loss, reason = "the exponent of a float power is a float")]
fn as_floats(values: TensorValues) -> Vec<f64> {
    match values {
        TensorValues::Floats(all) => all,
        TensorValues::Integers(all) => all.into_iter().map(|v| v as f64).collect(),
        TensorValues::Bools(_) | TensorValues::Strings(_) => Vec::new(),
    }
}

impl Operator for Pow {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let base = inputs.required(0)?;
        let exponent = inputs.required(1)?;
        expect_number(base.dtype)?;
        expect_number(exponent.dtype)?;
        let shape = Fact::broadcast(&[base, exponent])?;
        Ok(vec![Fact::shaped(base.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let base = inputs.required(0)?;
        let exponent = inputs.required(1)?;
        expect_number(base.dtype())?;
        expect_number(exponent.dtype())?;
        let shape = broadcast_shapes(base.shape(), exponent.shape())?;
        let a = TensorValues::read(&broadcast(base, &shape)?)?;
        let b = TensorValues::read(&broadcast(exponent, &shape)?)?;
        let range = integer_range(base.dtype()).unwrap_or_default();
        let values = match (a, b) {
            (TensorValues::Integers(a), TensorValues::Integers(b)) => TensorValues::Integers(
                a.into_iter().zip(b).map(|(a, b)| integer_power(a, b, range)).collect(),
            ),
            (a, b) => {
                let integer = matches!(a, TensorValues::Integers(_));
                let pairs = as_floats(a).into_iter().zip(as_floats(b));
                let powers = pairs.map(|(a, b)| a.powf(b));
                if integer {
                    let limited = powers.map(|v| (v as i128).clamp(range.0, range.1));
                    TensorValues::Integers(limited.collect())
                } else {
                    TensorValues::Floats(powers.collect())
                }
            }
        };
        Ok(vec![values.write(base.dtype(), &shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(a: Tensor, b: Tensor) -> Tensor {
        Pow.reference(OperatorInputs::new(&[Some(&a), Some(&b)])).unwrap().remove(0)
    }

    #[test]
    fn the_result_has_the_type_of_the_base() {
        let exponent = Tensor::vector(vec![4_i64, 5, 6]);
        let base = Tensor::vector(vec![1.0_f32, 2.0, 3.0]);
        assert_eq!(run(base, exponent), Tensor::vector(vec![1.0_f32, 32.0, 729.0]));
        let base = Tensor::vector(vec![4_i32, 9, 3]);
        let exponent = Tensor::vector(vec![0.5_f32, 0.5, 2.0]);
        assert_eq!(run(base, exponent), Tensor::vector(vec![2_i32, 3, 9]));
    }

    #[test]
    fn integer_powers_wrap_and_negative_ones_truncate() {
        let base = Tensor::vector(vec![2_i32, 3, 2, -1, 1, 0]);
        let exponent = Tensor::vector(vec![31_i32, 3, -1, -3, -9, -1]);
        assert_eq!(run(base, exponent), Tensor::vector(vec![i32::MIN, 27, 0, -1, 1, i32::MAX]));
        let base = Tensor::vector(vec![10_i32, -10]);
        let exponent = Tensor::vector(vec![99.0_f32, 99.0]);
        assert_eq!(run(base, exponent), Tensor::vector(vec![i32::MAX, i32::MIN]));
    }
}
