//! `HannWindow`, `HammingWindow` and `BlackmanWindow`.

use std::f64::consts::TAU;

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_number, from_floats, from_integers};

/// `a − b · cos(2πn / N) + c · cos(4πn / N)` for each position `n`; the input is the length.
///
/// Source: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier
/// transform".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineWindow {
    /// `a`, `b` and `c`.
    pub terms: [f64; 3],
    /// True if `N` is the length; otherwise one less, so that both ends are equal.
    pub periodic: bool,
    /// The type of the result.
    pub dtype: DataType,
}

impl CosineWindow {
    fn boxed(
        terms: [f64; 3],
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let periodic = context.attributes.flag("periodic", true)?;
        let dtype = context.data_type("output_datatype")?.unwrap_or(DataType::Fp32);
        expect_number(dtype)?;
        Ok(Box::new(Self { terms, periodic, dtype }))
    }

    pub(super) fn hann(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::boxed([0.5, 0.5, 0.0], context)
    }

    pub(super) fn hamming(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::boxed([25.0 / 46.0, 21.0 / 46.0, 0.0], context)
    }

    pub(super) fn blackman(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::boxed([0.42, 0.5, 0.08], context)
    }
}

/// Real numbers as a tensor of any number type; integers are truncated.
#[allow(clippy::cast_possible_truncation, reason = "integers are truncated, as by Cast")]
pub(super) fn numbers(dtype: DataType, shape: &[usize], all: Vec<f64>) -> Result<Tensor, OpError> {
    if dtype.is_float() {
        return from_floats(dtype, shape, all);
    }
    // In single precision the top of a window is exactly 1.
    from_integers(
        dtype,
        shape,
        &all.into_iter().map(|value| value as f32 as i128).collect::<Vec<_>>(),
    )
}

impl Operator for CosineWindow {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let size = inputs.required(0)?.lengths().and_then(|all| all.first().cloned());
        Ok(vec![Fact::new(self.dtype, vec![size.unwrap_or(Dim::Unknown)])])
    }

    #[allow(clippy::cast_precision_loss, reason = "a window has fewer than 2^31 elements")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let [size] = inputs.required(0)?.to_i64_vec()?[..] else {
            return Err(OpError::new("the size is not a single integer"));
        };
        let size = bounds::length(size, "the size")?;
        bounded(DataType::Fp64, &[size])?;
        let period = if self.periodic { size } else { size.saturating_sub(1) };
        let [a, b, c] = self.terms;
        let value = |n: usize| {
            if period == 0 {
                // A window of one position without a period keeps it.
                return 1.0;
            }
            let angle = TAU * n as f64 / period as f64;
            a - b * angle.cos() + c * (2.0 * angle).cos()
        };
        Ok(vec![numbers(self.dtype, &[size], (0..size).map(value).collect())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run};

    fn window(name: &str, periodic: i64) -> Vec<f32> {
        let size = Tensor::scalar(4_i64);
        let found = one(name, 17, &attributes([("periodic", int(periodic))]), &[&size]);
        found.to_vec::<f32>().unwrap()
    }

    #[test]
    fn windows_rise_and_fall() {
        let near = |found: Vec<f32>, expected: [f32; 4]| {
            let pairs = found.iter().zip(expected);
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        };
        near(window("HannWindow", 1), [0.0, 0.5, 1.0, 0.5]);
        near(window("HannWindow", 0), [0.0, 0.75, 0.75, 0.0]);
        near(window("HammingWindow", 1), [0.086_956_52, 0.543_478_26, 1.0, 0.543_478_26]);
        near(window("BlackmanWindow", 1), [0.0, 0.34, 1.0, 0.34]);
    }

    #[test]
    fn integers_are_truncated_and_a_negative_size_is_an_error() {
        let list = attributes([("output_datatype", int(6))]);
        let found = one("HannWindow", 17, &list, &[&Tensor::scalar(2_i32)]);
        assert_eq!(found, Tensor::vector(vec![0_i32, 1]));
        let size = Tensor::scalar(-1_i64);
        assert!(run("HannWindow", 17, &attributes([]), &[Some(&size)], 1).is_err());
    }
}
