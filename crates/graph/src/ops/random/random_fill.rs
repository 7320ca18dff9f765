//! `RandomNormal`, `RandomUniform` and their `…Like` forms.

use galatea_tensor::{DataType, Tensor};

use super::generator::RandomSeed;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, from_floats};

/// How numbers are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomDistribution {
    /// Around a mean.
    Normal {
        /// The mean.
        mean: f32,
        /// The deviation.
        scale: f32,
    },
    /// Evenly between two bounds.
    Uniform {
        /// The lower bound, included.
        low: f32,
        /// The upper bound, excluded.
        high: f32,
    },
}

/// A tensor of random numbers, of a given shape or that of the input.
///
/// With a seed every run gives the same numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomFill {
    /// The distribution.
    pub distribution: RandomDistribution,
    /// The seed.
    pub seed: RandomSeed,
    /// The type; that of the input if absent.
    pub dtype: Option<DataType>,
    /// The shape; that of the input if absent.
    pub shape: Option<Vec<usize>>,
}

impl RandomFill {
    fn read(
        context: &mut ParseContext<'_>,
        distribution: RandomDistribution,
        like: bool,
    ) -> Result<Box<dyn Operator>, OpError> {
        let seed = RandomSeed::parse(context)?;
        let dtype = context.data_type("dtype")?.or((!like).then_some(DataType::Fp32));
        let mut shape = None;
        if !like {
            let found = context.attributes.ints("shape")?;
            let found = found.ok_or_else(|| OpError::new("attribute 'shape' is missing"))?;
            shape = Some(bounds::lengths(&found, "attribute 'shape'")?);
        }
        Ok(Box::new(Self { distribution, seed, dtype, shape }))
    }

    /// Reads the attributes of `RandomNormal` and `RandomNormalLike`.
    pub(super) fn normal(
        context: &mut ParseContext<'_>,
        like: bool,
    ) -> Result<Box<dyn Operator>, OpError> {
        let mean = context.attributes.float_or("mean", 0.0)?;
        let scale = context.attributes.float_or("scale", 1.0)?;
        Self::read(context, RandomDistribution::Normal { mean, scale }, like)
    }

    /// Reads the attributes of `RandomUniform` and `RandomUniformLike`.
    pub(super) fn uniform(
        context: &mut ParseContext<'_>,
        like: bool,
    ) -> Result<Box<dyn Operator>, OpError> {
        let low = context.attributes.float_or("low", 0.0)?;
        let high = context.attributes.float_or("high", 1.0)?;
        Self::read(context, RandomDistribution::Uniform { low, high }, like)
    }

    fn dtype(&self, input: Option<DataType>) -> Result<DataType, OpError> {
        let dtype = self.dtype.or(input).unwrap_or(DataType::Fp32);
        expect_float(dtype)?;
        Ok(dtype)
    }
}

impl Operator for RandomFill {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let like = inputs.optional(0);
        let dtype = self.dtype(like.map(|fact| fact.dtype))?;
        Ok(vec![match &self.shape {
            Some(shape) => Fact::fixed(dtype, shape),
            None => Fact::shaped(dtype, inputs.required(0)?.shape.clone()),
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let dtype = self.dtype(inputs.optional(0).map(Tensor::dtype))?;
        let shape = match &self.shape {
            Some(shape) => &shape[..],
            None => inputs.required(0)?.shape(),
        };
        let count = bounded(DataType::Fp64, shape)?;
        let mut generator = self.seed.generator();
        let mut next = || match self.distribution {
            RandomDistribution::Normal { mean, scale } => {
                f64::from(mean) + f64::from(scale) * generator.normal()
            }
            RandomDistribution::Uniform { low, high } => {
                f64::from(low) + (f64::from(high) - f64::from(low)) * generator.uniform()
            }
        };
        Ok(vec![from_floats(dtype, shape, (0..count).map(|_| next()).collect())?])
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, counting, int, ints, one, run};

    #[test]
    fn numbers_have_the_distribution_and_the_seed_repeats_them() {
        let list = attributes([
            ("shape", ints(&[50, 40])),
            ("low", AttributeValue::Float(2.0)),
            ("high", AttributeValue::Float(4.0)),
            ("seed", AttributeValue::Float(5.0)),
        ]);
        let found = one("RandomUniform", 1, &list, &[]);
        let all = found.to_vec::<f32>().unwrap();
        assert!(all.iter().all(|x| (2.0..4.0).contains(x)));
        assert!((all.iter().sum::<f32>() / 2000.0 - 3.0).abs() < 0.1);
        assert_eq!(one("RandomUniform", 1, &list, &[]), found);
    }

    #[test]
    fn shape_and_type_come_from_the_input_unless_given() {
        let x = counting(&[2, 3]);
        let found = one("RandomNormalLike", 1, &attributes([("dtype", int(11))]), &[&x]);
        assert_eq!((found.dtype(), found.shape()), (galatea_tensor::DataType::Fp64, &[2, 3][..]));
        assert!(run("RandomNormal", 1, &attributes([]), &[], 1).is_err());
    }
}
