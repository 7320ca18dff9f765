//! `Bernoulli` and `Multinomial`: draws by given probabilities.

use galatea_tensor::{DataType, Tensor};

use super::generator::RandomSeed;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{TensorValues, expect_float, floats, from_integers, is_number};

/// ONNX `Bernoulli`: 1 with the probability that the input holds at each place, else 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bernoulli {
    /// The type of the result; that of the input if absent.
    pub dtype: Option<DataType>,
    /// The seed.
    pub seed: RandomSeed,
}

impl Bernoulli {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let dtype = context.data_type("dtype")?;
        if let Some(dtype) = dtype.filter(|&dtype| !is_number(dtype) && dtype != DataType::Bool) {
            return Err(OpError::new(format!("draws of type {dtype}, expected a number or BOOL")));
        }
        Ok(Box::new(Self { dtype, seed: RandomSeed::parse(context)? }))
    }
}

impl Operator for Bernoulli {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let dtype = self.dtype.unwrap_or(x.dtype);
        Ok(vec![Fact::shaped(dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let dtype = self.dtype.unwrap_or(x.dtype());
        bounded(DataType::Fp64, x.shape())?;
        let mut generator = self.seed.generator();
        let draws: Vec<bool> = floats(x)?.iter().map(|p| generator.uniform() < *p).collect();
        let values = match dtype {
            DataType::Bool => TensorValues::Bools(draws),
            dtype if dtype.is_float() => TensorValues::Floats(
                draws.into_iter().map(|one| f64::from(u8::from(one))).collect(),
            ),
            _ => TensorValues::Integers(draws.into_iter().map(i128::from).collect()),
        };
        Ok(vec![values.write(dtype, x.shape())?])
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

/// ONNX `Multinomial`: for each row of logarithms of probabilities (of any sum), classes drawn by
/// them. Input `[N, C]`, output `[N, sample_size]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multinomial {
    /// The type of the result.
    pub dtype: DataType,
    /// Draws for each row.
    pub sample_size: usize,
    /// The seed.
    pub seed: RandomSeed,
}

impl Multinomial {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let dtype = context.data_type("dtype")?.unwrap_or(DataType::Int32);
        if !matches!(dtype, DataType::Int32 | DataType::Int64) {
            return Err(OpError::new(format!("classes of type {dtype}, expected INT32 or INT64")));
        }
        let size = context.attributes.int_or("sample_size", 1)?;
        let sample_size = bounds::length(size, "attribute 'sample_size'")?;
        Ok(Box::new(Self { dtype, sample_size, seed: RandomSeed::parse(context)? }))
    }
}

impl Operator for Multinomial {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let batch = match x.shape.as_deref() {
            None => Dim::Unknown,
            Some([batch, _]) => batch.clone(),
            Some(other) => return Err(OpError::new(format!("rank {}, expected 2", other.len()))),
        };
        Ok(vec![Fact::new(self.dtype, vec![batch, Dim::Known(self.sample_size)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let &[batch, classes] = x.shape() else {
            return Err(OpError::new(format!("rank {}, expected 2", x.rank())));
        };
        let shape = [batch, self.sample_size];
        let mut draws: Vec<i128> = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        if classes == 0 && draws.capacity() > 0 {
            return Err(OpError::new("there are no classes to draw"));
        }
        let mut generator = self.seed.generator();
        for row in floats(x)?.chunks(classes.max(1)) {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            let edges: Vec<f64> = row
                .iter()
                .map(|log| {
                    sum += (log - max).exp();
                    sum
                })
                .collect();
            draws.extend((0..self.sample_size).map(|_| {
                let place = generator.uniform() * sum;
                // Rounding may leave the last edge below the sum; NaN is below nothing.
                let class = edges.iter().position(|edge| place < *edge).unwrap_or(classes - 1);
                i128::try_from(class).unwrap_or_default()
            }));
        }
        Ok(vec![from_integers(self.dtype, &shape, &draws)?])
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, tensor};

    #[test]
    fn certain_events_happen_and_impossible_ones_do_not() {
        let x = tensor(&[4], &[0.0_f32, 1.0, 0.0, 1.0]);
        let found = one("Bernoulli", 15, &attributes([("dtype", int(9))]), &[&x]);
        assert_eq!(found, tensor(&[4], &[false, true, false, true]));
        assert_eq!(one("Bernoulli", 22, &attributes([]), &[&x]), x);
    }

    #[test]
    fn classes_are_drawn_by_their_probability() {
        let never = f32::NEG_INFINITY;
        let x = tensor(&[2, 3], &[never, 0.0, never, never, 3.0_f32.ln(), 0.0]);
        let list = attributes([("sample_size", int(4000)), ("dtype", int(7))]);
        let found = one("Multinomial", 7, &list, &[&x]).to_i64_vec().unwrap();
        assert!(found[..4000].iter().all(|class| *class == 1));
        let ones = found[4000..].iter().filter(|class| **class == 1).count();
        assert!((2800..3200).contains(&ones), "{ones}");
        assert!(found[4000..].iter().all(|class| *class > 0));
    }
}
