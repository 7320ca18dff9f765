//! `SkipLayerNormalization` and `SkipSimplifiedLayerNormalization`: a residual and a normalisation.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// The last axis of `x + skip + bias` brought to mean 0 and deviation 1, times `gamma`, plus
/// `beta`; simplified, to a mean square of 1 and without `beta`.
///
/// Inputs: `x`, `skip` (which broadcasts to it), `gamma`, `beta` (not when simplified), `bias`.
/// Outputs: the result, means and inverse deviations, and the sum before normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkipNormalization {
    /// Added to the variance or the mean square.
    pub epsilon: f32,
    /// True if the mean stays.
    pub simplified: bool,
}

/// A row brought to mean 0 (unless `simplified`) and spread 1: the mean that was taken away, and
/// the inverse deviation.
#[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
pub(super) fn normalise(row: &mut [f64], epsilon: f32, simplified: bool) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = if simplified { 0.0 } else { row.iter().sum::<f64>() / count };
    let square = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let inverse = 1.0 / (square + f64::from(epsilon)).sqrt();
    row.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
    (mean, inverse)
}

/// One element for each of a row.
pub(super) fn row_vector(tensor: &Tensor, len: usize, what: &str) -> Result<Vec<f64>, OpError> {
    if tensor.shape() == [len] {
        return floats(tensor);
    }
    Err(OpError::new(format!("{what} has shape {:?}, expected [{len}]", tensor.shape())))
}

impl SkipNormalization {
    fn read(
        context: &mut ParseContext<'_>,
        simplified: bool,
    ) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-12)?;
        Ok(Box::new(Self { epsilon, simplified }))
    }

    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::read(context, false)
    }

    pub(super) fn parse_simplified(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Self::read(context, true)
    }

    /// The positions of `beta`, which not all forms have, and `bias`.
    #[must_use]
    pub fn optional(self) -> (Option<usize>, usize) {
        if self.simplified { (None, 3) } else { (Some(3), 4) }
    }
}

impl Operator for SkipNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Fact::broadcast(&[x, inputs.required(1)?])?;
        let rows = x.shape.clone().map(|mut dims| {
            if let Some(last) = dims.last_mut() {
                *last = Dim::Known(1);
            }
            dims
        });
        let statistic = Fact::shaped(DataType::Fp32, rows);
        let same = Fact { value: None, elements: None, ..x.clone() };
        Ok(vec![same.clone(), statistic.clone(), statistic, same])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let Some((&width, outer)) = x.shape().split_last() else {
            return Err(OpError::new("the input is a scalar"));
        };
        let vector = |index: Option<usize>, what: &str| {
            let tensor = index.and_then(|index| inputs.optional(index));
            tensor.map(|tensor| row_vector(tensor, width, what)).transpose()
        };
        let (beta, bias) = self.optional();
        let gamma = row_vector(inputs.required(2)?, width, "gamma")?;
        let beta = vector(beta, "beta")?;
        let bias = vector(Some(bias), "the bias")?;
        let skip = floats(&inputs.required(1)?.broadcast_to(x.shape())?)?;
        let add = |vector: &Option<Vec<f64>>, at: usize| vector.as_ref().map_or(0.0, |v| v[at]);
        let sums = floats(x)?.into_iter().zip(skip).enumerate();
        let sums: Vec<f64> =
            sums.map(|(at, (x, skip))| x + skip + add(&bias, at % width.max(1))).collect();
        // The sum is an output of the input's type, and what is normalised is that output.
        let sum = from_floats(x.dtype(), x.shape(), sums)?;
        let mut all = floats(&sum)?;
        let mut means = Vec::new();
        let mut inverses = Vec::new();
        for row in all.chunks_mut(width.max(1)) {
            let (mean, inverse) = normalise(row, self.epsilon, self.simplified);
            means.push(mean);
            inverses.push(inverse);
            for (at, value) in row.iter_mut().enumerate() {
                *value = *value * gamma[at] + add(&beta, at);
            }
        }
        let rows = [outer, &[1]].concat();
        means.resize(outer.iter().product(), 0.0);
        inverses.resize(means.len(), 0.0);
        Ok(vec![
            from_floats(x.dtype(), x.shape(), all)?,
            from_floats(DataType::Fp32, &rows, means)?,
            from_floats(DataType::Fp32, &rows, inverses)?,
            sum,
        ])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, run, tensor};

    #[test]
    fn the_sum_is_normalised_and_given_too() {
        let x = tensor(&[1, 1, 2], &[1.0_f32, 2.0]);
        let skip = tensor(&[1, 2], &[1.0_f32, 4.0]);
        let gamma = tensor(&[2], &[1.0_f32, 10.0]);
        let beta = tensor(&[2], &[0.5_f32, 0.0]);
        let list = attributes([("epsilon", AttributeValue::Float(0.0))]);
        let inputs = [Some(&x), Some(&skip), Some(&gamma), Some(&beta)];
        let all = run("com.microsoft:SkipLayerNormalization", 1, &list, &inputs, 4).unwrap();
        assert_eq!(all[0], tensor(&[1, 1, 2], &[-0.5_f32, 10.0]));
        assert_eq!(all[1], tensor(&[1, 1, 1], &[4.0_f32]));
        assert_eq!(all[3], tensor(&[1, 1, 2], &[2.0_f32, 6.0]));
        let bias = tensor(&[2], &[5.0_f32, -5.0]);
        let inputs = [Some(&x), Some(&skip), Some(&gamma), Some(&bias)];
        let name = "com.microsoft:SkipSimplifiedLayerNormalization";
        let all = run(name, 1, &list, &inputs, 1).unwrap();
        // 7 and 1 over the root of 25.
        assert_eq!(all[0], tensor(&[1, 1, 2], &[1.4_f32, 2.0]));
    }
}
