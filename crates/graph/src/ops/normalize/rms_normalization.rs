//! `RMSNormalization`: over the last axes, without a mean.

use galatea_tensor::Tensor;

use super::layer_normalization::row_parameter;
use super::moments::same_as;
use super::stash_type;
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::axis as find_axis;
use crate::ops::values::{expect_float, floats, from_floats};

/// `x / √(mean of x² + epsilon) · scale` over all axes from `axis` on.
///
/// Inputs: `x` and `scale`, which broadcasts to the normalised axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNormalization {
    /// The first normalised axis; negative ones count from the end.
    pub axis: i64,
    /// Added to the mean of squares.
    pub epsilon: f32,
}

impl RmsNormalization {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        stash_type(context)?;
        let axis = context.attributes.int_or("axis", -1)?;
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        Ok(Box::new(Self { axis, epsilon }))
    }
}

impl Operator for RmsNormalization {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([("axis", self.axis.into()), ("epsilon", self.epsilon.into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let scale = inputs.required(1)?;
        expect_float(x.dtype)?;
        expect_float(scale.dtype)?;
        Fact::broadcast(&[x, scale])?;
        if let Some(rank) = x.rank() {
            find_axis(self.axis, rank)?;
        }
        Ok(same_as(x))
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let axis = find_axis(self.axis, x.rank())?;
        let scale = row_parameter(inputs.required(1)?, &x.shape()[axis..], "the scale")?;
        let mut all = floats(x)?;
        for row in all.chunks_mut(scale.len().max(1)) {
            let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            let root = (mean + f64::from(self.epsilon)).sqrt();
            row.iter_mut().zip(&scale).for_each(|(value, scale)| *value = *value / root * scale);
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
    fn rows_get_a_mean_square_of_one() {
        let x = tensor(&[2, 2], &[7.0_f32, 1.0, -1.0, 1.0]);
        let scale = Tensor::vector(vec![1.0_f32, 10.0]);
        let exact = attributes([("epsilon", AttributeValue::Float(0.0))]);
        let found = one("RMSNormalization", 23, &exact, &[&x, &scale]);
        assert_eq!(found, tensor(&[2, 2], &[1.4_f32, 2.0, -1.0, 10.0]));
    }
}
