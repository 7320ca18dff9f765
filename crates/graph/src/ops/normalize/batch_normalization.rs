//! `BatchNormalization`: with statistics that training has fixed, or with those of the batch.

use galatea_tensor::Tensor;

use super::moments::{check_per_channel, moments, per_channel, same_as};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `(x − mean) / √(variance + epsilon) · scale + bias` for each channel.
///
/// Inputs: `x` with channels on its second axis, then scale, bias, mean and variance, one element
/// a channel. Outputs: the result; in training also mean and variance, moved towards those of the
/// batch, and before version 14 those of the batch themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// In training, how much of the mean and the variance that are inputs stays.
    pub momentum: f32,
    /// How many outputs training gives; 0 outside training, when the statistics are inputs.
    pub training: usize,
    /// True if every element of a channel has parameters of its own (`spatial = 0` before
    /// version 9).
    pub each_element: bool,
}

const PARAMETERS: [&str; 4] = ["the scale", "the bias", "the mean", "the variance"];

impl BatchNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        let momentum = context.attributes.float_or("momentum", 0.9)?;
        let each_element = context.opset < 9 && !context.attributes.flag("spatial", true)?;
        let training = match context.opset {
            ..7 => !context.attributes.flag("is_test", false)? && context.outputs > 1,
            7..14 => context.outputs > 1,
            _ => context.attributes.flag("training_mode", false)?,
        };
        let outputs = if context.opset < 14 { 5 } else { 3 };
        if context.outputs > if training { outputs } else { 1 } {
            return Err(OpError::new(format!(
                "{} outputs, which only training gives",
                context.outputs
            )));
        }
        if training && each_element {
            return Err(OpError::new("training with statistics of single elements (spatial = 0)"));
        }
        let training = if training { outputs } else { 0 };
        Ok(Box::new(Self { epsilon, momentum, training, each_element }))
    }

    fn normalise(&self, x: f64, scale: f64, bias: f64, mean: f64, variance: f64) -> f64 {
        (x - mean) / (variance + f64::from(self.epsilon)).sqrt() * scale + bias
    }

    /// Parameters of the shape of a row: one set for each element.
    fn by_element(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let shape = x.shape().get(1..).unwrap_or_default();
        let parameter = |index: usize| {
            let tensor = inputs.required(index)?;
            if tensor.shape() == shape {
                return floats(tensor);
            }
            let what = PARAMETERS[index - 1];
            let found = tensor.shape();
            Err(OpError::new(format!("{what} has shape {found:?}, expected {shape:?}")))
        };
        let scale = parameter(1)?;
        let bias = parameter(2)?;
        let mean = parameter(3)?;
        let variance = parameter(4)?;
        let mut all = floats(x)?;
        for row in all.chunks_mut(scale.len().max(1)) {
            for (at, value) in row.iter_mut().enumerate() {
                *value = self.normalise(*value, scale[at], bias[at], mean[at], variance[at]);
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

/// Batch, channels and elements of a channel; a single axis is a batch of one channel.
fn extents(shape: &[usize]) -> Result<(usize, usize, usize), OpError> {
    match shape {
        [batch] => Ok((*batch, 1, 1)),
        _ => super::moments::channels_first(shape),
    }
}

/// Mean and variance of each channel of a batch.
fn statistics(all: &[f64], channels: usize, inner: usize) -> (Vec<f64>, Vec<f64>) {
    let of = |channel: usize| {
        let rows = all.chunks(inner.max(1)).skip(channel).step_by(channels);
        moments(&rows.flatten().copied().collect::<Vec<_>>())
    };
    (0..channels).map(of).unzip()
}

impl Operator for BatchNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        if self.each_element {
            return Ok(same_as(x));
        }
        let channels = match x.rank() {
            Some(1) => Some(1),
            _ => super::moments::channels_of(x)?,
        };
        for (index, what) in PARAMETERS.into_iter().enumerate() {
            check_per_channel(inputs.required(index + 1)?, channels, what)?;
        }
        let mut all = same_as(x);
        for output in 1..self.training {
            all.extend(same_as(inputs.required(if output % 2 == 1 { 3 } else { 4 })?));
        }
        Ok(all)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        if self.each_element {
            return self.by_element(inputs);
        }
        let x = inputs.required(0)?;
        let (_, channels, inner) = extents(x.shape())?;
        let parameter =
            |index: usize| per_channel(inputs.required(index)?, channels, PARAMETERS[index - 1]);
        let scale = parameter(1)?;
        let bias = parameter(2)?;
        let mut mean = parameter(3)?;
        let mut variance = parameter(4)?;
        let mut all = floats(x)?;
        let mut outputs = Vec::new();
        if self.training > 0 {
            let (batch_mean, batch_variance) = statistics(&all, channels, inner);
            let stays = f64::from(self.momentum);
            let moved = |old: &[f64], new: &[f64]| -> Vec<f64> {
                old.iter().zip(new).map(|(old, new)| old * stays + new * (1.0 - stays)).collect()
            };
            outputs.push((3, moved(&mean, &batch_mean)));
            outputs.push((4, moved(&variance, &batch_variance)));
            outputs.push((3, batch_mean.clone()));
            outputs.push((4, batch_variance.clone()));
            (mean, variance) = (batch_mean, batch_variance);
        }
        for (index, values) in all.chunks_mut(inner.max(1)).enumerate() {
            let channel = index % channels;
            let factor = scale[channel];
            let mean = mean[channel];
            for value in values {
                *value = self.normalise(*value, factor, bias[channel], mean, variance[channel]);
            }
        }
        let mut results = vec![from_floats(x.dtype(), x.shape(), all)?];
        for (input, values) in outputs.into_iter().take(self.training.saturating_sub(1)) {
            results.push(from_floats(inputs.required(input)?.dtype(), &[channels], values)?);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, parse, run, tensor};

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
    fn training_takes_the_statistics_of_the_batch_and_moves_the_others() {
        let x = tensor(&[2, 1, 2], &[1.0_f32, 3.0, 5.0, 7.0]);
        let of = |value: f32| Tensor::vector(vec![value]);
        let exact =
            [("epsilon", AttributeValue::Float(0.0)), ("momentum", AttributeValue::Float(0.75))];
        let inputs = [Some(&x), Some(&of(5.0)), Some(&of(0.0)), Some(&of(0.0)), Some(&of(1.0))];
        let old = run("BatchNormalization", 9, &attributes(exact.clone()), &inputs, 5).unwrap();
        let root = 5.0_f64.sqrt();
        let expected = [-3.0, -1.0, 1.0, 3.0].map(|value| value * root);
        let found = old[0].to_vec::<f32>().unwrap();
        assert!(found.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6));
        assert_eq!(old[1..], [of(1.0), of(2.0), of(4.0), of(5.0)]);
        let mut list = attributes(exact);
        list.insert("training_mode".to_owned(), int(1));
        assert_eq!(run("BatchNormalization", 15, &list, &inputs, 3).unwrap(), old[..3]);
        assert!(parse("BatchNormalization", 15, &attributes([]), 5, 3).is_err());
    }

    #[test]
    fn single_elements_may_have_their_own() {
        let x = tensor(&[2, 1, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
        let of = |a: f32, b: f32| tensor(&[1, 2], &[a, b]);
        let list = attributes([
            ("epsilon", AttributeValue::Float(0.0)),
            ("spatial", int(0)),
            ("is_test", int(1)),
        ]);
        let inputs = [&x, &of(1.0, 2.0), &of(0.0, 1.0), &of(1.0, 2.0), &of(1.0, 4.0)];
        let found = one("BatchNormalization", 6, &list, &inputs);
        assert_eq!(found, tensor(&[2, 1, 2], &[0.0_f32, 1.0, 2.0, 3.0]));
        assert!(parse("BatchNormalization", 9, &list, 5, 1).is_err());
    }
}
