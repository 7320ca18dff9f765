//! `LRN`: local response normalisation across channels.

use galatea_tensor::Tensor;

use super::moments::{channels_first, channels_of, same_as};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `x / (bias + alpha / size · sum of x² over size neighbouring channels)^beta`.
///
/// Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks"
/// (2012), with ONNX's division of alpha by the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    /// Weight of the squares.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// Added to the weighted squares.
    pub bias: f32,
    /// How many channels count, the own one included; of an even number more follow than precede.
    pub size: usize,
}

impl Lrn {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let alpha = context.attributes.float_or("alpha", 1e-4)?;
        let beta = context.attributes.float_or("beta", 0.75)?;
        let bias = context.attributes.float_or("bias", 1.0)?;
        let size = context.attributes.int("size")?;
        let size = size.ok_or_else(|| OpError::new("attribute 'size' is missing"))?;
        let size = usize::try_from(size)
            .ok()
            .filter(|&size| size > 0)
            .ok_or_else(|| OpError::new(format!("size is {size}, expected 1 or more")))?;
        Ok(Box::new(Self { alpha, beta, bias, size }))
    }
}

impl Operator for Lrn {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        channels_of(x)?;
        Ok(same_as(x))
    }

    #[allow(clippy::cast_precision_loss, reason = "the size is a small count")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let (batch, channels, inner) = channels_first(x.shape())?;
        let before = (self.size - 1) / 2;
        let after = self.size / 2;
        let all = floats(x)?;
        let mut result = Vec::with_capacity(all.len());
        for item in 0..batch {
            for channel in 0..channels {
                let first = channel.saturating_sub(before);
                let last = channel.saturating_add(after).min(channels - 1);
                for position in 0..inner {
                    let at = |channel: usize| (item * channels + channel) * inner + position;
                    let squares: f64 = (first..=last).map(|c| all[at(c)] * all[at(c)]).sum();
                    let weighted = f64::from(self.alpha) / self.size as f64 * squares;
                    let divisor = (f64::from(self.bias) + weighted).powf(f64::from(self.beta));
                    result.push(all[at(channel)] / divisor);
                }
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, tensor};

    #[test]
    fn neighbouring_channels_count() {
        let x = tensor(&[1, 3, 1], &[1.0_f32, 2.0, 3.0]);
        let all = attributes([
            ("size", int(2)),
            ("alpha", AttributeValue::Float(2.0)),
            ("beta", AttributeValue::Float(1.0)),
        ]);
        // Of a size of 2 the next channel counts: 1 + 1 + 4, 1 + 4 + 9 and 1 + 9.
        let found = one("LRN", 13, &all, &[&x]);
        assert_eq!(found, tensor(&[1, 3, 1], &[1.0_f32 / 6.0, 2.0 / 14.0, 0.3]));
    }
}
