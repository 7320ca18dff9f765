//! `QLinearConv`: a convolution of quantised values, quantised again.

use galatea_tensor::Tensor;

use super::conv::{Conv, WidenedConv};
use super::conv_integer::centred;
use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_type, floats, from_integers, integer_range};

/// ONNX `QLinearConv`. Inputs: `X`, its scale and zero point, the weights, theirs (one, or one for
/// each output channel), those of the result, and optionally a bias of 32 bits, whose scale is the
/// product of the first two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QLinearConv {
    /// The geometry.
    pub conv: Conv,
}

impl QLinearConv {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { conv: Conv::read(context, false)? }))
    }

    /// Parses `QLinearConv` of domain `com.microsoft`, which may have the channels last.
    pub(crate) fn parse_layout(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let channels_last = context.attributes.flag("channels_last", false)?;
        Ok(Box::new(Self { conv: Conv::read(context, channels_last)? }))
    }
}

/// One number of a scalar or of a vector of one element.
fn single(values: &[f64], what: &str) -> Result<f64, OpError> {
    match values {
        [one] => Ok(*one),
        _ => Err(OpError::new(format!("{what} has {} elements, expected 1", values.len()))),
    }
}

impl Operator for QLinearConv {
    fn attributes(&self) -> Option<Attributes> {
        self.conv.attributes()
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(3)?;
        let zero = inputs.required(7)?;
        for fact in [x, w, zero] {
            let narrow = |dtype: galatea_tensor::DataType| {
                dtype.is_integer() && dtype.size_bytes() == Some(1)
            };
            expect_type("an operand", fact.dtype, narrow, "INT8 or UINT8")?;
        }
        Ok(vec![self.conv.output_fact(x, w, zero.dtype)?])
    }

    #[allow(clippy::cast_possible_truncation, reason = "the result is clamped to 8 bits")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(3)?;
        let zero = inputs.required(7)?;
        let x = &self.conv.image(x)?;
        let channels = w.shape().first().copied().unwrap_or(0);
        let operands = WidenedConv {
            x: centred(x, inputs.optional(2), 1)?,
            x_shape: x.shape().to_vec(),
            w: centred(w, inputs.optional(5), channels)?,
            w_shape: w.shape().to_vec(),
        };
        let bias = inputs.optional(8).map(|bias| bias_of(bias, channels)).transpose()?;
        let (shape, sums) = self.conv.convolve(&operands, bias.as_deref())?;
        let x_scale = single(&floats(inputs.required(1)?)?, "the scale of X")?;
        let y_scale = single(&floats(inputs.required(6)?)?, "the scale of the result")?;
        let w_scales = floats(inputs.required(4)?)?;
        if w_scales.len() != 1 && w_scales.len() != channels {
            return Err(OpError::new(format!(
                "{} scales for {channels} output channels",
                w_scales.len()
            )));
        }
        let [zero_point] = zero.to_i64_vec()?[..] else {
            return Err(OpError::new("the result has more than one zero point"));
        };
        let (low, high) = integer_range(zero.dtype()).unwrap_or_default();
        let plane: usize = shape[2..].iter().product();
        let quantised = |(at, sum): (usize, f64)| {
            let channel = at / plane % channels;
            let w_scale = w_scales[if w_scales.len() == 1 { 0 } else { channel }];
            let rounded = (sum * (x_scale * w_scale / y_scale)).round_ties_even() as i64;
            i128::from(rounded).saturating_add(zero_point.into()).clamp(low, high)
        };
        let all: Vec<i128> = sums.into_iter().enumerate().map(quantised).collect();
        Ok(vec![self.conv.laid_out(&from_integers(zero.dtype(), &shape, &all)?)?])
    }
}

#[allow(clippy::cast_precision_loss, reason = "a bias has 32 bits")]
fn bias_of(bias: &Tensor, channels: usize) -> Result<Vec<f64>, OpError> {
    if bias.shape() != [channels] {
        return Err(OpError::new(format!(
            "a bias of shape {:?}, expected [{channels}]",
            bias.shape()
        )));
    }
    Ok(bias.to_i64_vec()?.into_iter().map(|value| value as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, tensor};

    #[test]
    fn each_channel_has_its_scale_and_the_result_is_clamped() {
        let x = tensor(&[1, 1, 1, 2], &[3_u8, 5]);
        let w = tensor(&[2, 1, 1, 1], &[2_i8, -4]);
        let half = Tensor::scalar(0.5_f32);
        let scales = Tensor::vector(vec![0.5_f32, 1.0]);
        let zero_x = Tensor::scalar(1_u8);
        let zero_y = Tensor::scalar(10_u8);
        let zeros = Tensor::vector(vec![0_i8, 0]);
        let bias = Tensor::vector(vec![2_i32, 0]);
        let inputs = [&x, &half, &zero_x, &w, &scales, &zeros, &half, &zero_y, &bias];
        // (2 · 2 + 2) · 0.5 + 10, (4 · 2 + 2) · 0.5 + 10; 2 · −4 + 10, 4 · −4 + 10.
        let found = one("QLinearConv", 10, &attributes([]), &inputs);
        assert_eq!(found, tensor(&[1, 2, 1, 2], &[13_u8, 15, 2, 0]));
    }
}
