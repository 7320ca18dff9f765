//! `LayerNormalization`: over the last axes.

use galatea_tensor::{DataType, Tensor};

use super::moments::moments;
use super::stash_type;
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{axis as find_axis, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// `(x − mean) / √(variance + epsilon) · scale + bias` over all axes from `axis` on.
///
/// Inputs: `x`, `scale` and optionally `bias`, both broadcast to the normalised axes. Outputs: the
/// result, and mean and 1 / standard deviation of each row (`FP32`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNormalization {
    /// The first normalised axis; negative ones count from the end.
    pub axis: i64,
    /// Added to the variance.
    pub epsilon: f32,
}

/// `scale` or `bias` as one value for each element of a row. They broadcast to the whole input, so
/// leading axes of length 1 are allowed.
pub(super) fn row_parameter(
    parameter: &Tensor,
    row: &[usize],
    what: &str,
) -> Result<Vec<f64>, OpError> {
    let extra = parameter.rank().saturating_sub(row.len());
    let (leading, shape) = parameter.shape().split_at(extra);
    if leading.iter().any(|&len| len != 1) {
        return Err(OpError::new(format!(
            "{what} has shape {:?}, expected one that broadcasts to {row:?}",
            parameter.shape()
        )));
    }
    floats(&parameter.reshape(shape)?.broadcast_to(row)?)
}

impl LayerNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        stash_type(context)?;
        let axis = context.attributes.int_or("axis", -1)?;
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        Ok(Box::new(Self { axis, epsilon }))
    }
}

impl Operator for LayerNormalization {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([("axis", self.axis.into()), ("epsilon", self.epsilon.into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        for parameter in [Some(inputs.required(1)?), inputs.optional(2)].into_iter().flatten() {
            expect_float(parameter.dtype)?;
            Fact::broadcast(&[x, parameter])?;
        }
        let statistics = |dims: &Vec<Dim>| {
            let axis = find_axis(self.axis, dims.len())?;
            let kept = dims.iter().enumerate();
            let kept = kept.map(|(at, dim)| if at < axis { dim.clone() } else { Dim::Known(1) });
            Ok::<_, OpError>(kept.collect())
        };
        let shape = x.shape.as_ref().map(statistics).transpose()?;
        let statistic = Fact::shaped(DataType::Fp32, shape);
        let result = Fact { value: None, elements: None, ..x.clone() };
        Ok(vec![result, statistic.clone(), statistic])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let axis = find_axis(self.axis, x.rank())?;
        let (outer, row) = x.shape().split_at(axis);
        let scale = row_parameter(inputs.required(1)?, row, "the scale")?;
        let bias = match inputs.optional(2) {
            Some(bias) => row_parameter(bias, row, "the bias")?,
            None => vec![0.0; scale.len()],
        };
        let mut all = floats(x)?;
        let mut means = Vec::new();
        let mut inverses = Vec::new();
        for values in all.chunks_mut(scale.len().max(1)) {
            let (mean, variance) = moments(values);
            let inverse = (variance + f64::from(self.epsilon)).sqrt().recip();
            for ((value, scale), bias) in values.iter_mut().zip(&scale).zip(&bias) {
                *value = (*value - mean) * inverse * scale + bias;
            }
            means.push(mean);
            inverses.push(inverse);
        }
        let shape: Vec<usize> = outer.iter().copied().chain(row.iter().map(|_| 1)).collect();
        bounded(DataType::Fp32, &shape)?;
        // Rows without elements have no mean.
        means.resize(outer.iter().product(), f64::NAN);
        inverses.resize(means.len(), f64::NAN);
        Ok(vec![
            from_floats(x.dtype(), x.shape(), all)?,
            from_floats(DataType::Fp32, &shape, means)?,
            from_floats(DataType::Fp32, &shape, inverses)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn rows_get_mean_zero_and_spread_one() {
        let x = tensor(&[2, 2], &[1.0_f32, 3.0, -5.0, 5.0]);
        let scale = Tensor::vector(vec![2.0_f32, 1.0]);
        let bias = Tensor::scalar(10.0_f32);
        let exact = attributes([("epsilon", AttributeValue::Float(0.0))]);
        let inputs = [Some(&x), Some(&scale), Some(&bias)];
        let found = run("LayerNormalization", 17, &exact, &inputs, 3).unwrap();
        assert_eq!(found[0], tensor(&[2, 2], &[8.0_f32, 11.0, 8.0, 11.0]));
        assert_eq!(found[1], tensor(&[2, 1], &[2.0_f32, 0.0]));
        assert_eq!(found[2], tensor(&[2, 1], &[1.0_f32, 0.2]));
    }

    #[test]
    fn all_axes_from_the_first_one_on_are_one_row() {
        let x = tensor(&[1, 2, 2], &[1.0_f32, 1.0, 3.0, 3.0]);
        let scale = tensor(&[2, 2], &[1.0_f32; 4]);
        let whole = attributes([("epsilon", AttributeValue::Float(0.0)), ("axis", int(1))]);
        let found = run("LayerNormalization", 17, &whole, &[Some(&x), Some(&scale)], 1).unwrap();
        assert_eq!(found[0], tensor(&[1, 2, 2], &[-1.0_f32, -1.0, 1.0, 1.0]));
        let wrong = tensor(&[3], &[1.0_f32; 3]);
        assert!(run("LayerNormalization", 17, &whole, &[Some(&x), Some(&wrong)], 1).is_err());
    }
}
