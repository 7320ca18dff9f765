//! `InstanceNormalization`: each channel of each item by itself.

use galatea_tensor::Tensor;

use super::moments::{
    channels_first, channels_of, check_per_channel, moments, per_channel, same_as,
};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `(x − mean) / √(variance + epsilon) · scale + bias` over each channel of each item.
///
/// Inputs: `x` with channels on its second axis, then scale and bias, one element a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceNormalization {
    /// Added to the variance.
    pub epsilon: f32,
}

impl InstanceNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { epsilon: context.attributes.float_or("epsilon", 1e-5)? }))
    }
}

impl Operator for InstanceNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let channels = channels_of(x)?;
        check_per_channel(inputs.required(1)?, channels, "the scale")?;
        check_per_channel(inputs.required(2)?, channels, "the bias")?;
        Ok(same_as(x))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let (_, channels, inner) = channels_first(x.shape())?;
        let scale = per_channel(inputs.required(1)?, channels, "the scale")?;
        let bias = per_channel(inputs.required(2)?, channels, "the bias")?;
        let mut all = floats(x)?;
        for (index, values) in all.chunks_mut(inner.max(1)).enumerate() {
            let channel = index % channels;
            let (mean, variance) = moments(values);
            let factor = scale[channel] / (variance + f64::from(self.epsilon)).sqrt();
            for value in values {
                *value = (*value - mean) * factor + bias[channel];
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, one, tensor};

    #[test]
    fn every_channel_of_every_item_is_its_own_group() {
        let x = tensor(&[2, 1, 2], &[1.0_f32, 3.0, 10.0, 30.0]);
        let scale = Tensor::vector(vec![2.0_f32]);
        let bias = Tensor::vector(vec![0.5_f32]);
        let exact = attributes([("epsilon", AttributeValue::Float(0.0))]);
        let found = one("InstanceNormalization", 22, &exact, &[&x, &scale, &bias]);
        assert_eq!(found, tensor(&[2, 1, 2], &[-1.5_f32, 2.5, -1.5, 2.5]));
    }
}
