//! `Binarizer`: whether numbers are above a threshold.

use galatea_tensor::Tensor;

use super::rows::{expect_numbers, numbers};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::TensorValues;

/// ONNX `Binarizer`: 1 above the threshold, else 0, in the type of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Binarizer {
    /// The threshold.
    pub threshold: f64,
}

impl Binarizer {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let threshold = f64::from(context.attributes.float_or("threshold", 0.0)?);
        Ok(Box::new(Self { threshold }))
    }
}

impl Operator for Binarizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        bounded(x.dtype(), x.shape())?;
        let above = numbers(x)?.into_iter().map(|value| value > self.threshold);
        let result = if x.dtype().is_float() {
            TensorValues::Floats(above.map(|yes| f64::from(u8::from(yes))).collect())
        } else {
            TensorValues::Integers(above.map(i128::from).collect())
        };
        Ok(vec![result.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, one, tensor};

    #[test]
    fn numbers_above_the_threshold_are_1() {
        let list = attributes([("threshold", AttributeValue::Float(1.0))]);
        let name = "ai.onnx.ml:Binarizer";
        let x = tensor(&[4], &[0.5_f32, 1.0, 1.5, f32::NAN]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[4], &[0.0_f32, 0.0, 1.0, 0.0]));
        let x = tensor(&[1, 2], &[1_i64, 2]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[1, 2], &[0_i64, 1]));
    }
}
