//! `STFT`: Fourier transforms of the frames of a signal.

use galatea_tensor::{DataType, Tensor};

use super::fourier::{ComplexNumber, transform};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `STFT`.
///
/// Inputs: the signal `[B, L]`, `[B, L, 1]` or `[B, L, 2]` (real and imaginary parts), the step between
/// frames, optionally a window and the length of a frame (the window's, or the signal's if absent).
/// Output: `[B, frames, frequencies, 2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stft {
    /// True if spectra lack the half that symmetry gives.
    pub onesided: bool,
}

impl Stft {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { onesided: context.attributes.flag("onesided", true)? }))
    }

    fn bins(&self, frame: usize) -> usize {
        if self.onesided { frame / 2 + 1 } else { frame }
    }

    /// How many frames fit a signal.
    fn frames(signal: usize, frame: usize, step: usize) -> Result<usize, OpError> {
        if step == 0 || frame == 0 || frame > signal {
            return Err(OpError::new(format!(
                "frames of {frame} every {step} positions do not fit a signal of {signal}"
            )));
        }
        Ok((signal - frame) / step + 1)
    }
}

fn known(fact: Option<&Fact>) -> Option<usize> {
    fact?.lengths()?.first()?.known()
}

fn scalar(tensor: &Tensor, what: &str) -> Result<usize, OpError> {
    match tensor.to_i64_vec()?[..] {
        [one] => bounds::length(one, what),
        _ => Err(OpError::new(format!(
            "{what} has shape {:?}, expected one element",
            tensor.shape()
        ))),
    }
}

impl Operator for Stft {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let (batch, signal) = match x.shape.as_deref() {
            None => (Dim::Unknown, None),
            Some([batch, length, ..]) if x.rank() <= Some(3) => (batch.clone(), length.known()),
            Some(other) => {
                return Err(OpError::new(format!("rank {}, expected 2 or 3", other.len())));
            }
        };
        let window = inputs.optional(2).map(|window| match window.shape.as_deref() {
            Some([len]) => len.known(),
            _ => None,
        });
        let frame = match (inputs.optional(3), window) {
            (Some(frame), _) => known(Some(frame)),
            (None, Some(window)) => window,
            (None, None) => signal,
        };
        let step = known(Some(inputs.required(1)?));
        let frames = match (signal, frame, step) {
            (Some(signal), Some(frame), Some(step)) => {
                Dim::Known(Self::frames(signal, frame, step)?)
            }
            _ => Dim::Unknown,
        };
        let bins = frame.map_or(Dim::Unknown, |frame| Dim::Known(self.bins(frame)));
        Ok(vec![Fact::new(x.dtype, vec![batch, frames, bins, Dim::Known(2)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        // Real signals come without an axis of parts, too: exporters of PyTorch write them so.
        let (batch, length, parts) = match *x.shape() {
            [batch, length] => (batch, length, 1),
            [batch, length, parts @ 1..=2] => (batch, length, parts),
            _ => {
                return Err(OpError::new(format!(
                    "the signal has shape {:?}, expected [batch, length] or [batch, length, 1 or 2]",
                    x.shape()
                )));
            }
        };
        let step = scalar(inputs.required(1)?, "frame_step")?;
        let window = inputs.optional(2).map(floats).transpose()?;
        let frame = match (inputs.optional(3), &window) {
            (Some(frame), _) => scalar(frame, "frame_length")?,
            (None, Some(window)) => window.len(),
            (None, None) => length,
        };
        if let Some(window) = &window
            && window.len() != frame
        {
            return Err(OpError::new(format!(
                "a window of {} elements for frames of {frame}",
                window.len()
            )));
        }
        let frames = Self::frames(length, frame, step)?;
        let shape = [batch, frames, self.bins(frame), 2];
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let all = floats(x)?;
        for index in 0..batch * frames {
            let start = index / frames * length + index % frames * step;
            let part = |at: usize, part: usize| {
                let weight = window.as_ref().map_or(1.0, |window| window[at]);
                if part < parts { weight * all[(start + at) * parts + part] } else { 0.0 }
            };
            let signal: Vec<ComplexNumber> =
                (0..frame).map(|at| (part(at, 0), part(at, 1))).collect();
            let spectrum = transform(&signal, false);
            result.extend(spectrum.iter().take(shape[2]).flat_map(|bin| [bin.0, bin.1]));
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn frames_are_weighed_and_transformed() {
        let x = tensor(&[1, 4, 1], &[1.0_f32, 2.0, 3.0, 4.0]);
        let step = Tensor::scalar(1_i64);
        let window = Tensor::vector(vec![1.0_f32, 2.0]);
        let found = one("STFT", 17, &attributes([]), &[&x, &step, &window]);
        let expected = [5.0_f32, 0.0, -3.0, 0.0, 8.0, 0.0, -4.0, 0.0, 11.0, 0.0, -5.0, 0.0];
        assert_eq!(found.shape(), [1, 3, 2, 2]);
        let found = found.to_vec::<f32>().unwrap();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn a_real_signal_needs_no_axis_of_parts() {
        let samples = [1.0_f32, 2.0, 3.0, 4.0, 5.0, -1.0];
        let step = Tensor::scalar(1_i64);
        let window = Tensor::vector(vec![1.0_f32, 2.0]);
        let plain = tensor(&[2, 3], &samples);
        let parted = tensor(&[2, 3, 1], &samples);
        for sides in [0, 1] {
            let list = attributes([("onesided", int(sides))]);
            let found = one("STFT", 17, &list, &[&plain, &step, &window]);
            assert_eq!(found, one("STFT", 17, &list, &[&parted, &step, &window]));
        }
        for shape in [&[6_usize][..], &[1, 2, 3], &[1, 2, 3, 1]] {
            let inputs = [Some(&tensor(shape, &samples)), Some(&step), Some(&window)];
            assert!(run("STFT", 17, &attributes([]), &inputs, 1).is_err(), "{shape:?}");
        }
    }

    #[test]
    fn frames_that_do_not_fit_are_an_error() {
        let x = tensor(&[1, 2, 1], &[1.0_f32, 2.0]);
        let frame = Tensor::scalar(3_i64);
        for step in [0_i64, 1, -1] {
            let step = Tensor::scalar(step);
            let inputs = [Some(&x), Some(&step), None, Some(&frame)];
            assert!(run("STFT", 17, &attributes([]), &inputs, 1).is_err());
        }
    }
}
