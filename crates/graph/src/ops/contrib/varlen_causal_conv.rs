//! `VarlenCausalConvWithState`: a convolution along time over sequences that lie behind each other.

use galatea_tensor::{DataType, Tensor};

use super::joined_rows::JoinedRows;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::transformer::CausalConvWithState;
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// `VarlenCausalConvWithState` of domain `com.microsoft`: every channel has a kernel of its own.
///
/// Inputs: tokens `[T, C]`, weights `[C, 1, k]`, where the sequences begin `[B + 1]`, optionally a bias `[C]`, the
/// inputs of before `[B, C, (k − 1) · dilation]`, and how many inputs of each sequence are reported `[B]`. Outputs:
/// `[T, C]`, the last inputs of each sequence, and the first ones `[B, capacity, C]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VarlenCausalConv {
    /// Activation and distance of the weights.
    pub conv: CausalConvWithState,
    /// Most inputs that are reported for each sequence.
    pub reported: usize,
}

impl VarlenCausalConv {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let reported = context.attributes.int_or("state_update_capacity", 0)?;
        let reported = bounds::length(reported, "attribute 'state_update_capacity'")?;
        if reported > 8 {
            let text = format!("attribute 'state_update_capacity' is {reported}, expected 0 to 8");
            return Err(OpError::new(text));
        }
        // They belong to weights that change with the token, which `check_presence` refuses.
        context.attributes.ignore("delta_offset");
        context.attributes.ignore("group_size");
        Ok(Box::new(Self { conv: CausalConvWithState::read(context)?, reported }))
    }

    fn check_presence<T>(&self, inputs: OperatorInputs<'_, T>) -> Result<(), OpError> {
        if inputs.optional(6).is_some() || inputs.optional(7).is_some() {
            return Err(OpError::new(
                "the inputs kernel_delta and previous_mask are given; weights that change with \
                 the token are not supported",
            ));
        }
        if inputs.optional(5).is_some() != (self.reported > 0) {
            return Err(OpError::new(
                "the input capture_count is given exactly where 'state_update_capacity' is positive",
            ));
        }
        Ok(())
    }
}

impl Operator for VarlenCausalConv {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.check_presence(inputs)?;
        let x = inputs.required(0)?;
        let starts = inputs.required(2)?;
        expect_float(x.dtype)?;
        expect_type("bounds", starts.dtype, |dtype| dtype == DataType::Int32, "INT32")?;
        let state = inputs.required(4)?;
        let at = |fact: &Fact, axis: usize| {
            let found = fact.shape.as_ref().and_then(|shape| shape.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let reports = vec![at(state, 0), Dim::Known(self.reported), at(x, 1)];
        Ok(vec![
            Fact { value: None, elements: None, ..x.clone() },
            Fact { value: None, elements: None, ..state.clone() },
            Fact::new(x.dtype, reports),
        ])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        self.check_presence(inputs)?;
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        let (&[tokens, channels], &[c, 1, kernel]) = (x.shape(), w.shape()) else {
            return Err(OpError::new(format!(
                "weights of shape {:?} for tokens of shape {:?}, expected [C, 1, k] for [T, C]",
                w.shape(),
                x.shape()
            )));
        };
        if c != channels || kernel == 0 {
            return Err(OpError::new(format!("weights {:?} for {channels} channels", w.shape())));
        }
        let rows = JoinedRows::read(Some(inputs.required(2)?), tokens, None)?;
        let kept = self.conv.kept(kernel)?;
        let state = inputs.required(4)?;
        let state_shape = [rows.count(), channels, kept];
        bounded(DataType::Fp64, &state_shape)?;
        if state.shape() != state_shape {
            let found = state.shape();
            let text = format!("the state has shape {found:?}, expected {state_shape:?}");
            return Err(OpError::new(text));
        }
        let bias = match inputs.optional(3) {
            None => vec![0.0; channels],
            Some(bias) if bias.shape() == [channels] => floats(bias)?,
            Some(bias) => {
                let found = bias.shape();
                let text = format!("the bias has shape {found:?}, expected [{channels}]");
                return Err(OpError::new(text));
            }
        };
        let (values, weights, mut state) = (floats(x)?, floats(w)?, floats(state)?);
        let captured = rows.captured(inputs.optional(5), self.reported)?;
        let report_shape = [rows.count(), self.reported, channels];
        let mut reports = vec![0.0; bounded(DataType::Fp64, &report_shape)?];
        let mut output = vec![0.0; values.len()];
        for (sequence, range) in rows.ranges().enumerate() {
            let size = self.reported * channels;
            let first = &values[range.start * channels..][..captured[sequence] * channels];
            reports[sequence * size..][..first.len()].copy_from_slice(first);
            for channel in 0..channels {
                let state = &mut state[(sequence * channels + channel) * kept..][..kept];
                let mut line = state.to_vec();
                line.extend(range.clone().map(|token| values[token * channels + channel]));
                let weights = &weights[channel * kernel..][..kernel];
                let results = self.conv.along(&line, weights, bias[channel]);
                for (token, result) in range.clone().zip(results) {
                    output[token * channels + channel] = result;
                }
                state.copy_from_slice(&line[line.len() - kept..]);
            }
        }
        Ok(vec![
            from_floats(x.dtype(), x.shape(), output)?,
            from_floats(x.dtype(), &state_shape, state)?,
            from_floats(x.dtype(), &report_shape, reports)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn sequences_do_not_see_each_other() {
        let x = tensor(&[3, 1], &[1.0_f32, 2.0, 3.0]);
        let w = tensor(&[1, 1, 2], &[10.0_f32, 1.0]);
        let starts = tensor(&[3], &[0_i32, 2, 3]);
        let state = tensor(&[2, 1, 1], &[5.0_f32, 7.0]);
        let counts = tensor(&[2], &[1_i32, 9]);
        let list = attributes([("state_update_capacity", int(2))]);
        let inputs = [Some(&x), Some(&w), Some(&starts), None, Some(&state), Some(&counts)];
        let all = run("com.microsoft:VarlenCausalConvWithState", 1, &list, &inputs, 3).unwrap();
        assert_eq!(all[0], tensor(&[3, 1], &[51.0_f32, 12.0, 73.0]));
        assert_eq!(all[1], tensor(&[2, 1, 1], &[2.0_f32, 3.0]));
        assert_eq!(all[2], tensor(&[2, 2, 1], &[1.0_f32, 0.0, 3.0, 0.0]));
        let none = attributes([]);
        assert!(run("com.microsoft:VarlenCausalConvWithState", 1, &none, &inputs, 3).is_err());
    }
}
