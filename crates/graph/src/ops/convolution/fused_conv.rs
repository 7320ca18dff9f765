//! `FusedConv`: a convolution, a residual and an activation in one.

use galatea_tensor::Tensor;

use super::conv::{Conv, WidenedConv, bias};
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::fused::FusedActivation;
use crate::ops::values;

/// `FusedConv` of domain `ai.galatea`: `activation(conv(X, W) + B + Z)` with optional bias `B`
/// `[M]` and optional residual `Z` of the output's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedConv {
    /// The convolution; its layout is that of `X`, `Z` and the output.
    pub conv: Conv,
    /// The activation applied to the sum.
    pub activation: FusedActivation,
}

impl FusedConv {
    /// Reads the attributes: those of `Conv`, `channels_last`, and the activation's.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let channels_last = context.attributes.flag("channels_last", false)?;
        let conv = Conv::read(context, channels_last)?;
        Ok(Box::new(Self { conv, activation: FusedActivation::parse(context)? }))
    }
}

impl Operator for FusedConv {
    fn attributes(&self) -> Option<Attributes> {
        let mut all = self.conv.attributes()?;
        all.extend(named([("channels_last", self.conv.channels_last.into())]));
        all.extend(self.activation.attributes());
        Some(all)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.conv.infer(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = self.conv.image(inputs.required(0)?)?;
        let w = inputs.required(1)?;
        let bias = bias(inputs.optional(2), w.shape().first().copied().unwrap_or(0))?;
        let operands = WidenedConv {
            x: values::floats(&x)?,
            x_shape: x.shape().to_vec(),
            w: values::floats(w)?,
            w_shape: w.shape().to_vec(),
        };
        let (shape, mut result) = self.conv.convolve(&operands, bias.as_deref())?;
        if let Some(residual) = inputs.optional(3) {
            let residual = self.conv.image(residual)?;
            if residual.shape() != shape {
                return Err(OpError::new(format!(
                    "a residual of shape {:?}, expected {shape:?} (channels first)",
                    residual.shape()
                )));
            }
            for (sum, term) in result.iter_mut().zip(values::floats(&residual)?) {
                *sum += term;
            }
        }
        for value in &mut result {
            *value = self.activation.apply(*value);
        }
        Ok(vec![self.conv.laid_out(&values::from_floats(x.dtype(), &shape, result)?)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, run, tensor, text};

    #[test]
    fn the_activation_comes_after_bias_and_residual() {
        let x = counting(&[1, 2, 1, 1]);
        let w = tensor(&[2, 2, 1, 1], &[1_f32, 1.0, 1.0, -1.0]);
        let bias = tensor(&[2], &[0.5_f32, 0.0]);
        let residual = tensor(&[1, 2, 1, 1], &[1_f32, 0.25]);
        let relu = attributes([("activation", text("Relu"))]);
        let inputs = [Some(&x), Some(&w), Some(&bias), Some(&residual)];
        let result = run("ai.galatea:FusedConv", 1, &relu, &inputs, 1).unwrap();
        assert_eq!(result[0].to_vec::<f32>().unwrap(), [2.5, 0.0]);
        let inputs = [Some(&x), Some(&w), None, Some(&residual)];
        let plain = run("ai.galatea:FusedConv", 1, &attributes([]), &inputs, 1).unwrap();
        assert_eq!(plain[0].to_vec::<f32>().unwrap(), [2.0, -0.75]);
    }

    #[test]
    fn channels_last_applies_to_the_residual_too() {
        let x = counting(&[1, 2, 2, 1]);
        let w = tensor(&[2, 1, 1, 1], &[1_f32, -1.0]);
        let residual = counting(&[1, 2, 2, 2]);
        let last = attributes([("channels_last", int(1))]);
        let inputs = [Some(&x), Some(&w), None, Some(&residual)];
        let result = run("ai.galatea:FusedConv", 1, &last, &inputs, 1).unwrap();
        let expected = [0_f32, 1.0, 3.0, 2.0, 6.0, 3.0, 9.0, 4.0];
        assert_eq!(result[0], tensor(&[1, 2, 2, 2], &expected));
        let wrong = [Some(&x), Some(&w), None, Some(&x)];
        assert!(run("ai.galatea:FusedConv", 1, &last, &wrong, 1).is_err());
    }
}
