//! `Dropout`: the input itself or, in training, the input with random elements left out.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::random::RandomSeed;
use crate::ops::values::{TensorValues, expect_float, floats, from_floats};

/// When elements are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DropoutMode {
    /// Never.
    Never,
    /// Always, each with this probability: before opset 7 unless `is_test` is set.
    Always(f32),
    /// Where the third input says so, with the probability that the second one holds.
    ByInput,
}

/// ONNX `Dropout`. Outputs: the input, in which what stays grows in proportion to what is left
/// out, and a mask of what stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout {
    /// True if the mask has the input's type (before opset 10) instead of `BOOL`.
    pub mask_like_input: bool,
    /// When elements are left out.
    pub training: DropoutMode,
    /// Which ones.
    pub seed: RandomSeed,
}

impl Dropout {
    /// Opsets before 7.
    pub(super) fn parse_1(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let ratio = context.attributes.float_or("ratio", 0.5)?;
        let test = context.attributes.flag("is_test", false)?;
        let training = if test { DropoutMode::Never } else { DropoutMode::Always(ratio) };
        Ok(Box::new(Self { mask_like_input: true, training, seed: RandomSeed::Any }))
    }

    /// Opsets 7 to 11, which know no training; the ratio has no effect.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        context.attributes.ignore("ratio");
        let mask_like_input = context.opset < 10;
        Ok(Box::new(Self { mask_like_input, training: DropoutMode::Never, seed: RandomSeed::Any }))
    }

    /// Opset 12 and newer.
    pub(super) fn parse_12(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let seed = context.attributes.int("seed")?;
        let seed = seed.map_or(RandomSeed::Any, |seed| RandomSeed::Fixed(seed.cast_unsigned()));
        let training = if context.inputs > 2 { DropoutMode::ByInput } else { DropoutMode::Never };
        Ok(Box::new(Self { mask_like_input: false, training, seed }))
    }

    fn mask_type(&self, input: DataType) -> DataType {
        if self.mask_like_input { input } else { DataType::Bool }
    }

    /// The probability of being left out in this run.
    fn ratio(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<f64, OpError> {
        let ratio = match self.training {
            DropoutMode::Never => 0.0,
            DropoutMode::Always(ratio) => ratio.into(),
            DropoutMode::ByInput => {
                let training = inputs.optional(2).map_or(Ok(false), Tensor::item::<bool>)?;
                match inputs.optional(1).map(floats).transpose()?.as_deref() {
                    _ if !training => 0.0,
                    None => 0.5,
                    Some(&[ratio]) => ratio,
                    Some(all) => {
                        return Err(OpError::new(format!(
                            "the ratio has {} elements, expected 1",
                            all.len()
                        )));
                    }
                }
            }
        };
        if !(0.0..1.0).contains(&ratio) {
            return Err(OpError::new(format!("ratio {ratio}, expected 0 or more and less than 1")));
        }
        Ok(ratio)
    }

    fn mask(&self, kept: Vec<bool>, data: &Tensor) -> Result<Tensor, OpError> {
        match self.mask_type(data.dtype()) {
            DataType::Bool => Ok(Tensor::from_vec(data.shape(), kept)?),
            dtype => {
                let ones = kept.into_iter().map(|one| f64::from(u8::from(one))).collect();
                TensorValues::Floats(ones).write(dtype, data.shape())
            }
        }
    }
}

impl Operator for Dropout {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        expect_float(data.dtype)?;
        let mask = self.mask_type(data.dtype);
        let mask = Fact::shaped(mask, data.shape.clone());
        let kept = self.training == DropoutMode::Never;
        let value = data.value.clone().filter(|_| kept);
        Ok(vec![Fact { value, elements: None, ..data.clone() }, mask])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        expect_float(data.dtype())?;
        let ratio = self.ratio(inputs)?;
        let count = bounds::bounded(DataType::Fp64, data.shape())?;
        if ratio == 0.0 {
            return Ok(vec![data.clone(), self.mask(vec![true; count], data)?]);
        }
        let mut generator = self.seed.generator();
        let kept: Vec<bool> = (0..count).map(|_| generator.uniform() >= ratio).collect();
        let stays = |(value, kept): (f64, &bool)| if *kept { value / (1.0 - ratio) } else { 0.0 };
        let all = floats(data)?.into_iter().zip(&kept).map(stays).collect();
        Ok(vec![from_floats(data.dtype(), data.shape(), all)?, self.mask(kept, data)?])
    }

    fn is_deterministic(&self) -> bool {
        self.training == DropoutMode::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, run};

    #[test]
    fn outside_training_everything_stays() {
        let data = counting(&[3]);
        let new = run("Dropout", 12, &attributes([]), &[Some(&data)], 2).unwrap();
        assert_eq!(new[0], data);
        assert_eq!(new[1].to_vec::<bool>().unwrap(), [true; 3]);
        let old = run("Dropout", 7, &attributes([]), &[Some(&data)], 2).unwrap();
        assert_eq!(old[1].to_vec::<f32>().unwrap(), [1.0; 3]);
        let test = attributes([("is_test", int(1))]);
        assert_eq!(run("Dropout", 1, &test, &[Some(&data)], 1).unwrap()[0], data);
    }

    #[test]
    fn training_leaves_out_a_share_and_the_rest_grows() {
        let data = Tensor::vector(vec![3.0_f32; 4000]);
        let ratio = Tensor::scalar(0.25_f32);
        let training = Tensor::scalar(true);
        let inputs = [Some(&data), Some(&ratio), Some(&training)];
        let list = attributes([("seed", int(7))]);
        let found = run("Dropout", 13, &list, &inputs, 2).unwrap();
        assert_eq!(run("Dropout", 13, &list, &inputs, 2).unwrap(), found);
        let all = found[0].to_vec::<f32>().unwrap();
        let mask = found[1].to_vec::<bool>().unwrap();
        assert!(all.iter().zip(&mask).all(|(x, kept)| *x == if *kept { 4.0 } else { 0.0 }));
        let kept = mask.iter().filter(|kept| **kept).count();
        assert!((2850..3150).contains(&kept), "{kept}");
        let all = Tensor::scalar(1.0_f32);
        let inputs = [Some(&data), Some(&all), Some(&training)];
        assert!(run("Dropout", 13, &list, &inputs, 1).is_err());
    }
}
