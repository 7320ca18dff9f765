//! `CausalConvWithState`: a convolution along time that looks back only, and remembers its inputs.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `CausalConvWithState`: every channel has a kernel of its own.
///
/// Inputs: `[B, C, T]`, weights `[C, 1, k]`, optionally a bias `[C]` and the last `k − 1` inputs
/// `[B, C, k − 1]` of before (zeros if absent). Outputs: `[B, C, T]` and the last `k − 1` inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CausalConvWithState {
    /// True if `x · sigmoid(x)` is applied to the result.
    pub silu: bool,
}

impl CausalConvWithState {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let choice = context.attributes.choice("activation", &["none", "silu", "swish"], 0)?;
        Ok(Box::new(Self { silu: choice != 0 }))
    }

    /// Batch, channels, length and kernel.
    fn extents(x: &[usize], w: &[usize]) -> Result<[usize; 4], OpError> {
        match (x, w) {
            ([batch, channels, length], [c, 1, kernel]) if c == channels && *kernel > 0 => {
                Ok([*batch, *channels, *length, *kernel])
            }
            _ => Err(OpError::new(format!(
                "weights of shape {w:?} for an input of shape {x:?}, expected [C, 1, k] for \
                 [B, C, T]"
            ))),
        }
    }
}

impl Operator for CausalConvWithState {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        expect_float(x.dtype)?;
        if let (Some(x), Some(w)) = (x.known_shape(), w.known_shape()) {
            Self::extents(&x, &w)?;
        }
        let dim = |fact: &Fact, axis: usize| {
            let found = fact.shape.as_ref().and_then(|shape| shape.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let kept = match dim(w, 2).known() {
            Some(kernel) => Dim::Known(kernel.saturating_sub(1)),
            None => Dim::Unknown,
        };
        let output = Fact { value: None, elements: None, ..x.clone() };
        Ok(vec![output, Fact::new(x.dtype, vec![dim(x, 0), dim(x, 1), kept])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        let [batch, channels, length, kernel] = Self::extents(x.shape(), w.shape())?;
        let kept = kernel - 1;
        let state_shape = [batch, channels, kept];
        bounded(DataType::Fp64, &state_shape)?;
        let shaped = |tensor: Option<&Tensor>, shape: &[usize], what: &str| match tensor {
            None => Ok(vec![0.0; bounded(DataType::Fp64, shape)?]),
            Some(tensor) if tensor.shape() == shape => floats(tensor),
            Some(tensor) => Err(OpError::new(format!(
                "{what} has shape {:?}, expected {shape:?}",
                tensor.shape()
            ))),
        };
        let bias = shaped(inputs.optional(2), &[channels], "the bias")?;
        let past = shaped(inputs.optional(3), &state_shape, "the state")?;
        let values = floats(x)?;
        let weights = floats(w)?;
        let mut output = Vec::with_capacity(values.len());
        let mut state = Vec::new();
        for row in 0..batch * channels {
            let line = [&past[row * kept..(row + 1) * kept], &values[row * length..][..length]];
            let line = line.concat();
            let channel = row % channels;
            let weights = &weights[channel * kernel..][..kernel];
            output.extend(line.windows(kernel).map(|window| {
                let products = window.iter().zip(weights).map(|(x, w)| x * w);
                let sum = bias[channel] + products.sum::<f64>();
                if self.silu { sum / (1.0 + (-sum).exp()) } else { sum }
            }));
            state.extend_from_slice(&line[line.len() - kept..]);
        }
        Ok(vec![
            from_floats(x.dtype(), x.shape(), output)?,
            from_floats(x.dtype(), &state_shape, state)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, run, tensor};

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
}
