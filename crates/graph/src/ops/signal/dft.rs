//! `DFT`: the discrete Fourier transform along an axis.

use galatea_tensor::{DataType, Tensor};

use super::fourier::{ComplexNumber, transform};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `DFT` of signals whose last axis holds real, or real and imaginary parts.
///
/// Inputs: the signal, optionally the length of the transform (the signal is cut or filled up with
/// zeros), and from version 20 on the axis.
/// Output: the spectrum with real and imaginary parts; one-sided, without the half that symmetry
/// gives. The inverse of a one-sided spectrum is a real signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dft {
    /// The axis, where it is no input.
    pub axis: i64,
    /// From a spectrum to a signal.
    pub inverse: bool,
    /// True if spectra lack the half that symmetry gives.
    pub onesided: bool,
}

impl Dft {
    /// Version 17: the axis is an attribute.
    pub(super) fn parse_17(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", 1)?;
        Ok(Box::new(Self { axis, ..Self::flags(context)? }))
    }

    /// Version 20: the axis is an input.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::flags(context)?))
    }

    fn flags(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let inverse = context.attributes.flag("inverse", false)?;
        let onesided = context.attributes.flag("onesided", false)?;
        Ok(Self { axis: -2, inverse, onesided })
    }

    fn find_axis(axis: i64, rank: usize) -> Result<usize, OpError> {
        let found = bounds::axis(axis, rank)?;
        if rank < 2 || found + 1 == rank {
            return Err(OpError::new(format!(
                "axis {axis} of a signal of rank {rank} is the one of real and imaginary parts"
            )));
        }
        Ok(found)
    }

    /// The length of the transform where no input gives it.
    fn default_length(&self, len: usize) -> usize {
        if self.inverse && self.onesided { 2 * len.saturating_sub(1) } else { len }
    }

    /// Length along the axis and number of parts of the result.
    fn result(&self, length: usize) -> (usize, usize) {
        match (self.inverse, self.onesided) {
            (false, true) => (length / 2 + 1, 2),
            (true, true) => (length, 1),
            _ => (length, 2),
        }
    }

    fn lane(&self, mut signal: Vec<ComplexNumber>, length: usize) -> Vec<ComplexNumber> {
        if !(self.inverse && self.onesided) {
            signal.resize(length, (0.0, 0.0));
            return transform(&signal, self.inverse);
        }
        signal.resize(length / 2 + 1, (0.0, 0.0));
        // What mirrors itself is real in the spectrum of a real signal.
        let full: Vec<ComplexNumber> = (0..length)
            .map(|k| match 2 * k {
                double if k == 0 || double == length => (signal[k].0, 0.0),
                double if double < length => signal[k],
                _ => (signal[length - k].0, -signal[length - k].1),
            })
            .collect();
        transform(&full, true)
    }
}

fn scalar(input: Option<&Tensor>, what: &str) -> Result<Option<i64>, OpError> {
    let Some(all) = input.map(Tensor::to_i64_vec).transpose()? else { return Ok(None) };
    match all[..] {
        [one] => Ok(Some(one)),
        _ => Err(OpError::new(format!("{what} has {} elements, expected 1", all.len()))),
    }
}

impl Operator for Dft {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        let axis = match inputs.optional(2) {
            None => Some(self.axis),
            Some(fact) => fact.integers().and_then(|all| all.first().copied()),
        };
        let mut shape = dims.clone();
        if let Some(last) = shape.last_mut() {
            *last = Dim::Known(if self.inverse && self.onesided { 1 } else { 2 });
        }
        let Some(axis) = axis else {
            let last = shape.len().saturating_sub(1);
            shape[..last].fill(Dim::Unknown);
            return Ok(vec![Fact::new(x.dtype, shape)]);
        };
        let axis = Self::find_axis(axis, dims.len())?;
        let length = match inputs.optional(1) {
            None => dims[axis].known().map(|len| self.default_length(len)),
            Some(fact) => fact.lengths().and_then(|all| all.first().and_then(Dim::known)),
        };
        shape[axis] = match length {
            Some(length) => Dim::Known(self.result(length).0),
            None if inputs.optional(1).is_none() && !self.onesided => dims[axis].clone(),
            None => Dim::Unknown,
        };
        Ok(vec![Fact::new(x.dtype, shape)])
    }

    #[allow(clippy::cast_precision_loss, reason = "a signal has fewer than 2^31 elements")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let axis = scalar(inputs.optional(2), "the axis")?.unwrap_or(self.axis);
        let axis = Self::find_axis(axis, x.rank())?;
        let parts = x.shape()[x.rank() - 1];
        if !(1..=2).contains(&parts) {
            return Err(OpError::new(format!("the last axis has length {parts}, expected 1 or 2")));
        }
        let signals = &x.shape()[..x.rank() - 1];
        let lanes = AxisLanes::along(signals, axis);
        let length = match scalar(inputs.optional(1), "dft_length")? {
            Some(length) => bounds::length(length, "dft_length")?,
            None => self.default_length(lanes.len),
        };
        bounded(DataType::Fp64, &[length.saturating_mul(2)])?;
        let (out_len, out_parts) = self.result(length);
        let mut shape = x.shape().to_vec();
        (shape[axis], shape[x.rank() - 1]) = (out_len, out_parts);
        let mut result = vec![0.0; bounded(DataType::Fp64, &shape)?];
        let all = floats(x)?;
        let out = AxisLanes { len: out_len, ..lanes };
        let factor = if self.inverse { 1.0 / length as f64 } else { 1.0 };
        for (start, target) in lanes.starts().zip(out.starts()) {
            let read =
                |at: usize| (all[at * parts], if parts == 2 { all[at * parts + 1] } else { 0.0 });
            let signal = lanes.lane(start).take(length).map(read).collect();
            for (slot, value) in out.lane(target).zip(self.lane(signal, length)) {
                result[slot * out_parts] = value.0 * factor;
                if out_parts == 2 {
                    result[slot * out_parts + 1] = value.1 * factor;
                }
            }
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    fn near(found: &Tensor, shape: &[usize], expected: &[f64]) {
        assert_eq!(found.shape(), shape);
        let pairs = found.to_vec::<f64>().unwrap().into_iter().zip(expected);
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn spectra_of_real_signals_are_cut_filled_or_one_sided() {
        let x = tensor(&[1, 3, 1], &[1.0_f64, 2.0, 5.0]);
        let length = Tensor::scalar(2_i64);
        let cut = one("DFT", 20, &attributes([]), &[&x, &length]);
        near(&cut, &[1, 2, 2], &[3.0, 0.0, -1.0, 0.0]);
        let length = Tensor::scalar(4_i64);
        let half = attributes([("onesided", int(1))]);
        let found = one("DFT", 17, &half, &[&x, &length]);
        near(&found, &[1, 3, 2], &[8.0, 0.0, -4.0, -2.0, 4.0, 0.0]);
        let back = attributes([("onesided", int(1)), ("inverse", int(1))]);
        near(&one("DFT", 17, &back, &[&found]), &[1, 4, 1], &[1.0, 2.0, 5.0, 0.0]);
    }

    #[test]
    fn the_axis_of_parts_is_refused() {
        let x = tensor(&[2, 1], &[1.0_f32, 2.0]);
        let axis = Tensor::scalar(1_i64);
        assert!(run("DFT", 20, &attributes([]), &[Some(&x), None, Some(&axis)], 1).is_err());
        let first = Tensor::scalar(0_i64);
        assert!(run("DFT", 20, &attributes([]), &[Some(&x), None, Some(&first)], 1).is_ok());
    }
}
