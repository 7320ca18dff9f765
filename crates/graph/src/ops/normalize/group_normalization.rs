//! `GroupNormalization`: groups of channels of each item.

use galatea_tensor::Tensor;

use super::moments::{
    channels_first, channels_of, check_per_channel, moments, per_channel, same_as,
};
use super::stash_type;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `(x − mean) / √(variance + epsilon) · scale + bias` over groups of neighbouring channels.
///
/// Inputs: `x` with channels on its second axis, then scale and bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// How many groups the channels make.
    pub num_groups: usize,
    /// True if scale and bias have one element a group, as in version 18, rather than a channel.
    pub per_group: bool,
}

impl GroupNormalization {
    fn parse(context: &mut ParseContext<'_>, per_group: bool) -> Result<Self, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        let groups = context.attributes.int("num_groups")?;
        let groups = groups.ok_or_else(|| OpError::new("attribute 'num_groups' is missing"))?;
        let num_groups = usize::try_from(groups)
            .ok()
            .filter(|&count| count > 0)
            .ok_or_else(|| OpError::new(format!("num_groups is {groups}, expected 1 or more")))?;
        Ok(Self { epsilon, num_groups, per_group })
    }

    pub(super) fn parse_per_group(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::parse(context, true)?))
    }

    pub(super) fn parse_per_channel(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        stash_type(context)?;
        Ok(Box::new(Self::parse(context, false)?))
    }

    fn check(&self, channels: usize) -> Result<(), OpError> {
        if channels.is_multiple_of(self.num_groups) {
            return Ok(());
        }
        let groups = self.num_groups;
        Err(OpError::new(format!("{channels} channels do not make {groups} equal groups")))
    }
}

impl Operator for GroupNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let channels = channels_of(x)?;
        if let Some(channels) = channels {
            self.check(channels)?;
        }
        let count = if self.per_group { Some(self.num_groups) } else { channels };
        check_per_channel(inputs.required(1)?, count, "the scale")?;
        check_per_channel(inputs.required(2)?, count, "the bias")?;
        Ok(same_as(x))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let (_, channels, inner) = channels_first(x.shape())?;
        self.check(channels)?;
        let in_group = channels / self.num_groups;
        let count = if self.per_group { self.num_groups } else { channels };
        let scale = per_channel(inputs.required(1)?, count, "the scale")?;
        let bias = per_channel(inputs.required(2)?, count, "the bias")?;
        let mut all = floats(x)?;
        for (index, group) in all.chunks_mut((in_group * inner).max(1)).enumerate() {
            let group_index = index % self.num_groups;
            let (mean, variance) = moments(group);
            let inverse = (variance + f64::from(self.epsilon)).sqrt().recip();
            for (channel, values) in group.chunks_mut(inner.max(1)).enumerate() {
                let at =
                    if self.per_group { group_index } else { group_index * in_group + channel };
                for value in values {
                    *value = (*value - mean) * inverse * scale[at] + bias[at];
                }
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
    fn scales_are_per_group_then_per_channel() {
        let x = tensor(&[1, 4, 1], &[1.0_f32, 3.0, 10.0, 30.0]);
        let exact = attributes([("epsilon", AttributeValue::Float(0.0)), ("num_groups", int(2))]);
        let run = |opset, scale: &[f32]| {
            let bias = Tensor::vector(vec![0.0_f32; scale.len()]);
            let scale = Tensor::vector(scale.to_vec());
            one("GroupNormalization", opset, &exact, &[&x, &scale, &bias])
        };
        let expected = tensor(&[1, 4, 1], &[-2.0_f32, 2.0, -3.0, 3.0]);
        assert_eq!(run(18, &[2.0, 3.0]), expected);
        assert_eq!(run(21, &[2.0, 2.0, 3.0, 3.0]), expected);
    }

    #[test]
    fn groups_must_be_equal_and_at_least_one() {
        let none = attributes([("num_groups", int(0))]);
        assert!(parse("GroupNormalization", 21, &none, 3, 1).is_err());
        let op = GroupNormalization { epsilon: 0.0, num_groups: 2, per_group: true };
        assert!(op.check(3).is_err());
    }
}
