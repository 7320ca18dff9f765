//! `CausalConvWithState`: a convolution along time that looks back only, and remembers its inputs.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{bounded, length, owned};
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `CausalConvWithState`: every channel has a kernel of its own.
///
/// Inputs: `[B, C, T]`, weights `[C, 1, k]`, optionally a bias `[C]` and the last `(k − 1) · dilation` inputs
/// `[B, C, (k − 1) · dilation]` of before (zeros if absent). Outputs: `[B, C, T]` and the last inputs. With the
/// channels last the time is the second axis of inputs, states and outputs, and the axes behind it are channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CausalConvWithState {
    /// True if `x · sigmoid(x)` is applied to the result.
    pub silu: bool,
    /// Distance of a kernel's weights along time.
    pub dilation: usize,
    /// True if the channels are the last axes.
    pub channels_last: bool,
}

/// Batch, channels, length and kernel.
struct ConvExtents {
    batch: usize,
    channels: usize,
    length: usize,
    kernel: usize,
}

impl CausalConvWithState {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read_activation(context)?))
    }

    fn read_activation(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let choice = context.attributes.choice("activation", &["none", "silu", "swish"], 0)?;
        Ok(Self { silu: choice != 0, dilation: 1, channels_last: false })
    }

    /// Reads the activation and the attribute `dilation`, which domain `com.microsoft` has beyond ONNX.
    pub(crate) fn read(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let dilation = context.attributes.int_or("dilation", 1)?;
        let dilation = length(dilation, "attribute 'dilation'")?;
        if dilation == 0 {
            return Err(OpError::new("attribute 'dilation' is 0, expected at least 1"));
        }
        Ok(Self { dilation, ..Self::read_activation(context)? })
    }

    /// Parses the operator of domain `com.microsoft`.
    pub(crate) fn parse_layout(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let channels_last = context.attributes.flag("channels_last", false)?;
        Ok(Box::new(Self { channels_last, ..Self::read(context)? }))
    }

    /// Returns how many inputs of before a kernel sees.
    ///
    /// # Errors
    /// Fails where there are too many to count.
    pub(crate) fn kept(&self, kernel: usize) -> Result<usize, OpError> {
        let kept = kernel.saturating_sub(1).checked_mul(self.dilation);
        kept.ok_or_else(|| OpError::new(format!("a kernel of {kernel} is too long")))
    }

    /// Computes the results of one channel, whose line has the inputs of before and the new ones.
    pub(crate) fn along(&self, line: &[f64], weights: &[f64], bias: f64) -> Vec<f64> {
        let reach = (weights.len() - 1) * self.dilation + 1;
        let result = |window: &[f64]| {
            let taps = window.iter().step_by(self.dilation).zip(weights);
            let sum = bias + taps.map(|(x, w)| x * w).sum::<f64>();
            if self.silu { sum / (1.0 + (-sum).exp()) } else { sum }
        };
        line.windows(reach).map(result).collect()
    }

    fn extents(&self, x: &[usize], w: &[usize]) -> Result<ConvExtents, OpError> {
        let found = match *x {
            [batch, channels, length] if !self.channels_last => Some((batch, channels, length)),
            [batch, length, ref rest @ ..] if self.channels_last && !rest.is_empty() => {
                Some((batch, rest.iter().product(), length))
            }
            _ => None,
        };
        match (found, w) {
            (Some((batch, channels, length)), &[c, 1, kernel]) if c == channels && kernel > 0 => {
                Ok(ConvExtents { batch, channels, length, kernel })
            }
            _ => Err(OpError::new(format!(
                "weights of shape {w:?} for an input of shape {x:?}, expected [C, 1, k] for {}",
                if self.channels_last { "[B, T, C]" } else { "[B, C, T]" }
            ))),
        }
    }

    /// An input or state `[B, C, n]` in one piece, whatever the layout is.
    fn lines(&self, tensor: &Tensor, extents: &ConvExtents) -> Result<Vec<f64>, OpError> {
        if !self.channels_last {
            return floats(tensor);
        }
        let length = tensor.shape().get(1).copied().unwrap_or(0);
        let rows = owned(tensor)?.reshape(&[extents.batch, length, extents.channels])?;
        floats(&rows.permute(&[0, 2, 1])?)
    }

    /// A tensor of this shape from lines `[B, C, n]`.
    fn laid_out(
        &self,
        dtype: DataType,
        shape: &[usize],
        extents: &ConvExtents,
        lines: Vec<f64>,
    ) -> Result<Tensor, OpError> {
        if !self.channels_last {
            return from_floats(dtype, shape, lines);
        }
        let whole = from_floats(dtype, &[extents.batch, extents.channels, shape[1]], lines)?;
        Ok(owned(&whole.permute(&[0, 2, 1])?)?.reshape(shape)?)
    }
}

impl Operator for CausalConvWithState {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        expect_float(x.dtype)?;
        if let (Some(x), Some(w)) = (x.known_shape(), w.known_shape()) {
            self.extents(&x, &w)?;
        }
        let kernel = w.shape.as_ref().and_then(|shape| shape.get(2)?.known());
        let kept = match kernel {
            Some(kernel) => Dim::Known(self.kept(kernel)?),
            None => Dim::Unknown,
        };
        let time = if self.channels_last { 1 } else { 2 };
        let state = x.shape.as_ref().filter(|shape| shape.len() > time).map(|shape| {
            let mut state = shape.clone();
            state[time] = kept;
            state
        });
        let output = Fact { value: None, elements: None, ..x.clone() };
        Ok(vec![output, Fact::shaped(x.dtype, state)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        let extents = self.extents(x.shape(), w.shape())?;
        let ConvExtents { batch, channels, length, kernel } = extents;
        let kept = self.kept(kernel)?;
        let mut state_shape = x.shape().to_vec();
        state_shape[if self.channels_last { 1 } else { 2 }] = kept;
        let state_count = bounded(DataType::Fp64, &state_shape)?;
        let expect = |tensor: &Tensor, shape: &[usize], what: &str| {
            let found = tensor.shape();
            let text = format!("{what} has shape {found:?}, expected {shape:?}");
            if found == shape { Ok(()) } else { Err(OpError::new(text)) }
        };
        let bias = match inputs.optional(2) {
            None => vec![0.0; channels],
            Some(bias) => {
                expect(bias, &[channels], "the bias")?;
                floats(bias)?
            }
        };
        let past = match inputs.optional(3) {
            None => vec![0.0; state_count],
            Some(past) => {
                expect(past, &state_shape, "the state")?;
                self.lines(past, &extents)?
            }
        };
        let values = self.lines(x, &extents)?;
        let weights = floats(w)?;
        let mut output = Vec::with_capacity(values.len());
        let mut state = Vec::with_capacity(state_count);
        for row in 0..batch * channels {
            let line = [&past[row * kept..(row + 1) * kept], &values[row * length..][..length]];
            let line = line.concat();
            let channel = row % channels;
            let weights = &weights[channel * kernel..][..kernel];
            output.extend(self.along(&line, weights, bias[channel]));
            state.extend_from_slice(&line[line.len() - kept..]);
        }
        Ok(vec![
            self.laid_out(x.dtype(), x.shape(), &extents, output)?,
            self.laid_out(x.dtype(), &state_shape, &extents, state)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn two_calls_give_what_one_gives() {
        let w = tensor(&[1, 1, 3], &[1.0_f32, 10.0, 100.0]);
        let whole = tensor(&[1, 1, 4], &[1.0_f32, 2.0, 3.0, 4.0]);
        let none = attributes([]);
        let all = run("CausalConvWithState", 27, &none, &[Some(&whole), Some(&w)], 2).unwrap();
        assert_eq!(all[0], tensor(&[1, 1, 4], &[100.0_f32, 210.0, 321.0, 432.0]));
        let first = tensor(&[1, 1, 1], &[1.0_f32]);
        let first = run("CausalConvWithState", 27, &none, &[Some(&first), Some(&w)], 2).unwrap();
        assert_eq!(first[1], tensor(&[1, 1, 2], &[0.0_f32, 1.0]));
        let rest = tensor(&[1, 1, 3], &[2.0_f32, 3.0, 4.0]);
        let inputs = [Some(&rest), Some(&w), None, Some(&first[1])];
        let rest = run("CausalConvWithState", 27, &none, &inputs, 2).unwrap();
        assert_eq!(rest[0], tensor(&[1, 1, 3], &[210.0_f32, 321.0, 432.0]));
        assert_eq!(rest[1], all[1]);
    }

    #[test]
    fn weights_of_other_channels_are_an_error() {
        let x = tensor(&[1, 2, 1], &[1.0_f32; 2]);
        let w = tensor(&[1, 1, 1], &[1.0_f32]);
        let none = attributes([]);
        assert!(run("CausalConvWithState", 27, &none, &[Some(&x), Some(&w)], 2).is_err());
    }

    #[test]
    fn weights_lie_apart_and_channels_may_be_last() {
        let w = tensor(&[2, 1, 2], &[10.0_f32, 1.0, 20.0, 2.0]);
        let rows = tensor(&[1, 3, 2, 1], &[1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let list = attributes([("dilation", int(2)), ("channels_last", int(1))]);
        let inputs = [Some(&rows), Some(&w)];
        let all = run("com.microsoft:CausalConvWithState", 1, &list, &inputs, 2).unwrap();
        assert_eq!(all[0], tensor(&[1, 3, 2, 1], &[1.0_f32, 8.0, 2.0, 10.0, 13.0, 92.0]));
        assert_eq!(all[1], tensor(&[1, 2, 2, 1], &[2.0_f32, 5.0, 3.0, 6.0]));
        let none = attributes([("dilation", int(0))]);
        assert!(run("com.microsoft:CausalConvWithState", 1, &none, &inputs, 2).is_err());
    }
}
