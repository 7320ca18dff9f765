//! `MeanVarianceNormalization`: over any axes, without scale.

use galatea_tensor::Tensor;

use super::moments::{moments, same_as};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{advance, axes as find_axes};
use crate::ops::values::{expect_float, floats, from_floats};

/// Added to the standard deviation. Source: the function body in ONNX's definition.
const EPSILON: f64 = 1e-9;

/// `(x − mean) / (standard deviation + epsilon)` over some axes.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanVarianceNormalization {
    /// The axes over which elements share a mean; negative ones count from the end.
    pub axes: Vec<i64>,
    /// Number that is added to the standard deviation; absent where only the mean is taken away.
    pub epsilon: Option<f64>,
    /// True for the experimental version, which takes images alone.
    pub images: bool,
}

impl MeanVarianceNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axes = context.attributes.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
        Ok(Box::new(Self { axes, epsilon: Some(EPSILON), images: false }))
    }

    /// Parses the experimental version, of images `[batch, channels, rows, columns]`.
    pub(super) fn parse_images(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let across = context.attributes.flag("across_channels", false)?;
        let divides = context.attributes.flag("normalize_variance", true)?;
        let axes = if across { vec![0, 1, 2, 3] } else { vec![0, 2, 3] };
        Ok(Box::new(Self { axes, epsilon: divides.then_some(0.0), images: true }))
    }

    fn shared_axes(&self, rank: usize) -> Result<Vec<usize>, OpError> {
        if self.images && rank != 4 {
            return Err(OpError::new(format!("images of {rank} axes, expected 4")));
        }
        find_axes(&self.axes, rank)
    }
}

impl Operator for MeanVarianceNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        if let Some(rank) = x.rank() {
            self.shared_axes(rank)?;
        }
        Ok(same_as(x))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let shared = self.shared_axes(x.rank())?;
        let mut all = floats(x)?;
        // Elements of one group have the same index on all axes that are not shared.
        let own: Vec<usize> = (0..x.rank()).filter(|axis| !shared.contains(axis)).collect();
        let count =
            if all.is_empty() { 0 } else { own.iter().map(|&axis| x.shape()[axis]).product() };
        let mut groups = vec![Vec::<usize>::new(); count];
        let mut index = vec![0; x.rank()];
        for position in 0..all.len() {
            let group = own.iter().fold(0, |group, &axis| group * x.shape()[axis] + index[axis]);
            groups[group].push(position);
            advance(&mut index, x.shape());
        }
        for members in &groups {
            let values: Vec<f64> = members.iter().map(|&member| all[member]).collect();
            let (mean, variance) = moments(&values);
            for &member in members {
                let spread = self.epsilon.map_or(1.0, |epsilon| variance.sqrt() + epsilon);
                all[member] = (all[member] - mean) / spread;
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, ints, one, run, tensor};

    #[test]
    fn elements_along_the_axes_share_a_mean() {
        let x = tensor(&[2, 2], &[1.0_f32, 10.0, 3.0, 30.0]);
        let found =
            one("MeanVarianceNormalization", 13, &attributes([("axes", ints(&[0]))]), &[&x]);
        assert_eq!(found, tensor(&[2, 2], &[-1.0_f32, -1.0, 1.0, 1.0]));
    }

    #[test]
    fn images_are_normalised_by_channel_or_as_a_whole() {
        let x = tensor(&[1, 2, 1, 2], &[1.0_f32, 3.0, 10.0, 30.0]);
        let found = |list| one("MeanVarianceNormalization", 8, &list, &[&x]);
        let by_channel = tensor(&[1, 2, 1, 2], &[-1.0_f32, 1.0, -1.0, 1.0]);
        assert_eq!(found(attributes([])), by_channel);
        let list = [("across_channels", int(1)), ("normalize_variance", int(0))];
        let whole = tensor(&[1, 2, 1, 2], &[-10.0_f32, -8.0, -1.0, 19.0]);
        assert_eq!(found(attributes(list)), whole);
        let row = tensor(&[2], &[1.0_f32, 2.0]);
        assert!(run("MeanVarianceNormalization", 1, &attributes([]), &[Some(&row)], 1).is_err());
    }
}
