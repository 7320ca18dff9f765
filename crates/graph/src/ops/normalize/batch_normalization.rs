//! `BatchNormalization`: with statistics that training has fixed.

use galatea_tensor::Tensor;

use super::moments::{check_per_channel, per_channel, same_as};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Inputs, Operator, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `(x − mean) / √(variance + epsilon) · scale + bias` for each channel.
///
/// Inputs: `x` with channels on its second axis, then scale, bias, mean and variance, one element
/// a channel. Training is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f32,
}

const PARAMETERS: [&str; 4] = ["the scale", "the bias", "the mean", "the variance"];

impl BatchNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        context.attributes.ignore("momentum");
        if context.opset < 9 && !context.attributes.flag("spatial", true)? {
            return Err(OpError::new(
                "statistics of single elements (spatial = 0) are not supported",
            ));
        }
        let training = context.opset >= 14 && context.attributes.flag("training_mode", false)?;
        if training || context.outputs > 1 {
            return Err(OpError::new("training (outputs for running statistics) is not supported"));
        }
        Ok(Box::new(Self { epsilon }))
    }
}

/// Batch, channels and elements of a channel; a single axis is a batch of one channel.
fn extents(shape: &[usize]) -> Result<(usize, usize, usize), OpError> {
    match shape {
        [batch] => Ok((*batch, 1, 1)),
        _ => super::moments::channels_first(shape),
    }
}

impl Operator for BatchNormalization {
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let channels = match x.rank() {
            Some(1) => Some(1),
            _ => super::moments::channels_of(x)?,
        };
        for (index, what) in PARAMETERS.into_iter().enumerate() {
            check_per_channel(inputs.required(index + 1)?, channels, what)?;
        }
        Ok(same_as(x))
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let (_, channels, inner) = extents(x.shape())?;
        let parameter =
            |index: usize| per_channel(inputs.required(index)?, channels, PARAMETERS[index - 1]);
        let (scale, bias) = (parameter(1)?, parameter(2)?);
        let (mean, variance) = (parameter(3)?, parameter(4)?);
        let mut all = floats(x)?;
        for (index, values) in all.chunks_mut(inner.max(1)).enumerate() {
            let channel = index % channels;
            let factor = scale[channel] / (variance[channel] + f64::from(self.epsilon)).sqrt();
            for value in values {
                *value = (*value - mean[channel]) * factor + bias[channel];
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, parse, tensor};

    #[test]
    fn each_channel_has_its_statistics() {
        let x = tensor(&[1, 2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
        let of = |a: f32, b: f32| Tensor::vector(vec![a, b]);
        let exact = attributes([("epsilon", AttributeValue::Float(0.0))]);
        let inputs = [&x, &of(2.0, 1.0), &of(0.0, 1.0), &of(1.0, 3.0), &of(4.0, 1.0)];
        let found = one("BatchNormalization", 15, &exact, &inputs);
        assert_eq!(found, tensor(&[1, 2, 2], &[0.0_f32, 1.0, 1.0, 2.0]));
    }

    #[test]
    fn training_is_refused() {
        let training = attributes([("training_mode", int(1))]);
        assert!(parse("BatchNormalization", 15, &training, 5, 1).unwrap_err().contains("training"));
        assert!(parse("BatchNormalization", 9, &attributes([]), 5, 5).is_err());
        assert!(parse("BatchNormalization", 7, &attributes([("spatial", int(0))]), 5, 1).is_err());
    }
}
