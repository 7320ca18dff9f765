//! `LinearRegressor`: weighted sums of features.

use galatea_tensor::{DataType, Tensor};

use super::post_transform::PostTransform;
use super::rows::{FeatureRows, expect_numbers, expect_width};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::from_floats;

/// Weights of features and what is added, for every target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RegressorWeights {
    /// The coefficients of one target after those of another.
    pub(super) coefficients: Vec<f64>,
    /// One a target, or none.
    pub(super) intercepts: Vec<f64>,
}

impl RegressorWeights {
    /// The sums of a row, one a target.
    pub(super) fn sums<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let targets = self.coefficients.chunks_exact(row.len().max(1)).enumerate();
        targets.map(move |(at, coefficients)| {
            let intercept = self.intercepts.get(at).copied().unwrap_or(0.0);
            coefficients.iter().zip(row).fold(intercept, |sum, (a, x)| sum + a * x)
        })
    }
}

/// ONNX `LinearRegressor`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRegressor {
    weights: RegressorWeights,
    /// Number of sums.
    pub targets: usize,
    /// The transform of the sums.
    pub post_transform: PostTransform,
}

/// A list of floats; empty where it is absent.
pub(super) fn list(
    context: &mut ParseContext<'_>,
    name: &'static str,
) -> Result<Vec<f64>, OpError> {
    let found = context.attributes.floats(name)?.unwrap_or_default();
    Ok(found.into_iter().map(f64::from).collect())
}

impl LinearRegressor {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let post_transform = PostTransform::parse(&mut context.attributes)?;
        let targets = bounds::length(context.attributes.int_or("targets", 1)?, "targets")?;
        let coefficients = list(context, "coefficients")?;
        let intercepts = list(context, "intercepts")?;
        if targets == 0 || coefficients.is_empty() || coefficients.len() % targets != 0 {
            return Err(OpError::new(format!(
                "{} coefficients are not as many for each of {targets} targets",
                coefficients.len()
            )));
        }
        if !intercepts.is_empty() && intercepts.len() != targets {
            let found = intercepts.len();
            return Err(OpError::new(format!("{found} intercepts for {targets} targets")));
        }
        let weights = RegressorWeights { coefficients, intercepts };
        Ok(Box::new(Self { weights, targets, post_transform }))
    }

    fn features(&self) -> usize {
        self.weights.coefficients.len() / self.targets
    }
}

impl Operator for LinearRegressor {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        let (count, width) = FeatureRows::inferred(x)?;
        width.map_or(Ok(()), |width| expect_width(width, self.features()))?;
        Ok(vec![Fact::new(DataType::Fp32, vec![count, Dim::Known(self.targets)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        let rows = FeatureRows::read(x)?;
        expect_width(rows.width, self.features())?;
        let shape = [rows.count, self.targets];
        bounded(DataType::Fp64, &shape)?;
        let mut scores: Vec<f64> = rows.iter().flat_map(|row| self.weights.sums(row)).collect();
        scores.chunks_mut(self.targets).for_each(|row| self.post_transform.apply(row));
        Ok(vec![from_floats(DataType::Fp32, &shape, scores)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, run, tensor, text};

    fn floats(all: &[f32]) -> AttributeValue {
        AttributeValue::Floats(all.to_vec())
    }

    #[test]
    fn features_are_weighed_for_each_target() {
        let mut list = attributes([
            ("targets", int(2)),
            ("coefficients", floats(&[1.0, 2.0, 0.0, -1.0])),
            ("intercepts", floats(&[0.5, 1.0])),
        ]);
        let x = tensor(&[2, 2], &[1_i64, 2, 0, 3]);
        let found = one("ai.onnx.ml:LinearRegressor", 1, &list, &[&x]);
        assert_eq!(found, tensor(&[2, 2], &[5.5_f32, -1.0, 6.5, -2.0]));
        let x = tensor(&[2], &[-0.25_f32, 0.0]);
        let found = one("ai.onnx.ml:LinearRegressor", 1, &list, &[&x]);
        assert_eq!(found, tensor(&[1, 2], &[0.25_f32, 1.0]));
        list.insert("post_transform".to_owned(), text("SOFTMAX"));
        let x = tensor(&[1, 2], &[0.5_f32, 0.0]);
        let found = one("ai.onnx.ml:LinearRegressor", 1, &list, &[&x]);
        assert_eq!(found, tensor(&[1, 2], &[0.5_f32, 0.5]));
        let wide = tensor(&[1, 3], &[0.5_f32; 3]);
        assert!(run("ai.onnx.ml:LinearRegressor", 1, &list, &[Some(&wide)], 1).is_err());
        list.insert("targets".to_owned(), int(3));
        assert!(run("ai.onnx.ml:LinearRegressor", 1, &list, &[Some(&x)], 1).is_err());
    }
}
