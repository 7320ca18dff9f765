//! `Imputer`: numbers in the place of missing ones.

use galatea_tensor::{DataType, Tensor};

use super::rows::expect_numbers;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::TensorValues;

/// The number to replace, and its replacements.
#[derive(Clone, Debug, PartialEq)]
pub enum ImputerRule {
    /// In tensors of floats. NaN stands for every NaN.
    Floats(f64, Vec<f64>),
    /// In tensors of integers.
    Integers(i128, Vec<i128>),
}

/// ONNX `Imputer`. There is one number for all features, or one for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Imputer {
    /// The number to replace, and its replacements.
    pub replacement: ImputerRule,
}

impl Imputer {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let floats = attributes.floats("imputed_value_floats")?.unwrap_or_default();
        let integers = attributes.ints("imputed_value_int64s")?.unwrap_or_default();
        let float = attributes.float_or("replaced_value_float", 0.0)?;
        let integer = attributes.int_or("replaced_value_int64", 0)?;
        let replacement = match (floats.is_empty(), integers.is_empty()) {
            (false, true) => {
                let all = floats.into_iter().map(f64::from).collect();
                ImputerRule::Floats(float.into(), all)
            }
            (true, false) => {
                let all = integers.into_iter().map(i128::from).collect();
                ImputerRule::Integers(integer.into(), all)
            }
            _ => {
                let text = "one of 'imputed_value_floats' and 'imputed_value_int64s' must be given";
                return Err(OpError::new(text));
            }
        };
        Ok(Box::new(Self { replacement }))
    }

    fn expect(&self, dtype: DataType, features: Option<usize>) -> Result<(), OpError> {
        expect_numbers(dtype)?;
        let (is_float, count) = match &self.replacement {
            ImputerRule::Floats(_, all) => (true, all.len()),
            ImputerRule::Integers(_, all) => (false, all.len()),
        };
        if is_float != dtype.is_float() {
            return Err(OpError::new(format!(
                "the values to impute do not fit an input of {dtype}"
            )));
        }
        if count == 1 || features.is_none_or(|features| features == count) {
            return Ok(());
        }
        let features = features.unwrap_or_default();
        Err(OpError::new(format!("{count} values to impute for {features} features")))
    }
}

fn replaced<T: Copy>(all: &mut [T], by: &[T], is_missing: impl Fn(T) -> bool) {
    for (value, by) in all.iter_mut().zip(by.iter().cycle()) {
        if is_missing(*value) {
            *value = *by;
        }
    }
}

impl Operator for Imputer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let last = |shape: &[crate::Dim]| shape.last().map_or(Some(1), |last| last.known());
        self.expect(x.dtype, x.shape.as_deref().and_then(last))?;
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        self.expect(x.dtype(), Some(x.shape().last().copied().unwrap_or(1)))?;
        bounded(x.dtype(), x.shape())?;
        let mut values = TensorValues::read(x)?;
        match (&mut values, &self.replacement) {
            (TensorValues::Floats(all), ImputerRule::Floats(from, by)) => {
                #[allow(clippy::float_cmp, reason = "the very value is replaced")]
                replaced(all, by, |value| value == *from || (value.is_nan() && from.is_nan()));
            }
            (TensorValues::Integers(all), ImputerRule::Integers(from, by)) => {
                replaced(all, by, |value| value == *from);
            }
            _ => return Err(OpError::new("the values to impute do not fit the input")),
        }
        Ok(vec![values.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, ints, one, run, tensor};

    #[test]
    fn missing_numbers_are_replaced() {
        let name = "ai.onnx.ml:Imputer";
        let list = attributes([
            ("imputed_value_floats", AttributeValue::Floats(vec![8.0, 9.0])),
            ("replaced_value_float", AttributeValue::Float(f32::NAN)),
        ]);
        let x = tensor(&[2, 2], &[f32::NAN, 1.0, 2.0, f32::NAN]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[2, 2], &[8.0_f32, 1.0, 2.0, 9.0]));
        let wide = tensor(&[1, 3], &[0.0_f32; 3]);
        assert!(run(name, 1, &list, &[Some(&wide)], 1).unwrap_err().contains("3 features"));
        let integers = tensor(&[1, 2], &[0_i64; 2]);
        assert!(run(name, 1, &list, &[Some(&integers)], 1).is_err());
        let list =
            attributes([("imputed_value_int64s", ints(&[7])), ("replaced_value_int64", int(-1))]);
        let x = tensor(&[3], &[-1_i32, 0, 1]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[3], &[7_i32, 0, 1]));
        assert!(run(name, 1, &attributes([]), &[Some(&x)], 1).is_err());
    }
}
