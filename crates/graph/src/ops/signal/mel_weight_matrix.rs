//! `MelWeightMatrix`: from frequencies to bands as wide as the ear hears them.

use galatea_tensor::{DataType, Tensor};

use super::window::numbers;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_number, floats};

/// ONNX `MelWeightMatrix`: `[dft_length / 2 + 1, bands]`, of which each column is a triangle over
/// the frequencies of a band.
///
/// Inputs: bands, length of the transform, samples a second, lowest and highest frequency in Hz.
///
/// Source of the scale: Stevens, Volkmann and Newman 1937; `2595 · log10(1 + f / 700)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MelWeightMatrix {
    /// The type of the result.
    pub dtype: DataType,
}

impl MelWeightMatrix {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let dtype = context.data_type("output_datatype")?.unwrap_or(DataType::Fp32);
        expect_number(dtype)?;
        Ok(Box::new(Self { dtype }))
    }
}

fn mel(hertz: f64) -> f64 {
    2595.0 * (hertz / 700.0).ln_1p() / std::f64::consts::LN_10
}

fn hertz(mel: f64) -> f64 {
    700.0 * (mel / 2595.0 * std::f64::consts::LN_10).exp_m1()
}

fn integer(inputs: OperatorInputs<'_, Tensor>, index: usize, what: &str) -> Result<usize, OpError> {
    match inputs.required(index)?.to_i64_vec()?[..] {
        [one] => bounds::length(one, what),
        _ => Err(OpError::new(format!("{what} is not a single integer"))),
    }
}

fn real(inputs: OperatorInputs<'_, Tensor>, index: usize, what: &str) -> Result<f64, OpError> {
    match floats(inputs.required(index)?)?[..] {
        [one] => Ok(one),
        _ => Err(OpError::new(format!("{what} is not a single number"))),
    }
}

impl Operator for MelWeightMatrix {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let of = |index: usize| -> Result<Dim, OpError> {
            let found = inputs.required(index)?.lengths().and_then(|all| all.first().cloned());
            Ok(found.unwrap_or(Dim::Unknown))
        };
        let rows = of(1)?.known().map_or(Dim::Unknown, |length| Dim::Known(length / 2 + 1));
        Ok(vec![Fact::new(self.dtype, vec![rows, of(0)?])])
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bins are small numbers, checked against the number of rows"
    )]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let bands = integer(inputs, 0, "num_mel_bins")?;
        let length = integer(inputs, 1, "dft_length")?;
        let rate = integer(inputs, 2, "sample_rate")?;
        let lowest = mel(real(inputs, 3, "lower_edge_hertz")?);
        let highest = mel(real(inputs, 4, "upper_edge_hertz")?);
        let rows = length / 2 + 1;
        let shape = [rows, bands];
        let mut result = vec![0.0; bounded(DataType::Fp64, &shape)?];
        let step = (highest - lowest) / (bands + 2) as f64;
        // The row of the frequency at which a band begins; its peak and end are the next ones.
        let row = |band: usize| {
            let edge = hertz(lowest + step * band as f64);
            let row = ((length + 1) as f64 * edge / rate as f64).floor();
            if row >= 0.0 && row < rows as f64 {
                return Ok(row as usize);
            }
            Err(OpError::new(format!(
                "band {band} begins at {edge} Hz, beyond the {rows} frequencies of {rate} samples \
                 a second"
            )))
        };
        for band in 0..bands {
            let left = row(band)?;
            let peak = row(band + 1)?;
            let right = row(band + 2)?;
            for at in left..=peak {
                let share = (at - left) as f64 / (peak - left) as f64;
                result[at * bands + band] = if left == peak { 1.0 } else { share };
            }
            for at in peak..right {
                result[at * bands + band] = (right - at) as f64 / (right - peak) as f64;
            }
        }
        Ok(vec![numbers(self.dtype, &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, run};

    fn matrix(upper: f32) -> Result<Vec<Tensor>, String> {
        let bands = Tensor::scalar(2_i64);
        let length = Tensor::scalar(16_i64);
        let rate = Tensor::scalar(8192_i64);
        let low = Tensor::scalar(0.0_f32);
        let high = Tensor::scalar(upper);
        let inputs = [Some(&bands), Some(&length), Some(&rate), Some(&low), Some(&high)];
        run("MelWeightMatrix", 17, &attributes([]), &inputs, 1)
    }

    #[test]
    fn bands_are_triangles_that_overlap() {
        let found = matrix(4096.0).unwrap().remove(0);
        assert_eq!(found.shape(), [9, 2]);
        let all = found.to_vec::<f32>().unwrap();
        let peaks = (0..2).map(|band| (0..9).filter(|row| all[row * 2 + band] == 1.0).count());
        assert!(peaks.into_iter().all(|count| count == 1));
    }

    #[test]
    fn frequencies_beyond_the_samples_are_an_error() {
        assert!(matrix(40960.0).unwrap_err().contains("beyond"));
    }
}
