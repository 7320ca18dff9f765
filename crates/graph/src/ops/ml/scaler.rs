//! `Scaler`: features shifted and scaled.

use galatea_tensor::{DataType, Tensor};

use super::linear_regressor::list;
use super::rows::{expect_numbers, numbers};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::from_floats;

/// ONNX `Scaler`: `(x - offset) * scale` along the last axis. One entry holds for all features.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaler {
    /// Offsets that are subtracted first.
    pub offset: Vec<f64>,
    /// Factors of the difference.
    pub scale: Vec<f64>,
}

impl Scaler {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut offset = list(context, "offset")?;
        let mut scale = list(context, "scale")?;
        if offset.is_empty() {
            offset = vec![0.0; scale.len().max(1)];
        }
        if scale.is_empty() {
            scale = vec![1.0; offset.len()];
        }
        if offset.len() != scale.len() {
            let text = format!("{} offsets and {} scales", offset.len(), scale.len());
            return Err(OpError::new(text));
        }
        Ok(Box::new(Self { offset, scale }))
    }

    fn expect_features(&self, features: usize) -> Result<(), OpError> {
        if self.scale.len() == 1 || self.scale.len() == features {
            return Ok(());
        }
        Err(OpError::new(format!("{} scales for {features} features", self.scale.len())))
    }
}

impl Operator for Scaler {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype)?;
        if let Some(shape) = &x.shape {
            let last = shape.last().map_or(Some(1), |last| last.known());
            last.map_or(Ok(()), |last| self.expect_features(last))?;
        }
        Ok(vec![Fact::shaped(DataType::Fp32, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_numbers(x.dtype())?;
        self.expect_features(x.shape().last().copied().unwrap_or(1))?;
        bounded(DataType::Fp64, x.shape())?;
        let each = self.offset.iter().zip(&self.scale).cycle();
        let scaled = numbers(x)?.into_iter().zip(each);
        let scaled = scaled.map(|(x, (offset, scale))| (x - offset) * scale).collect();
        Ok(vec![from_floats(DataType::Fp32, x.shape(), scaled)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn features_are_shifted_then_scaled() {
        let floats = |all: &[f32]| AttributeValue::Floats(all.to_vec());
        let x = tensor(&[2, 2], &[1_i32, 2, 3, 4]);
        let each = attributes([("offset", floats(&[1.0, 0.0])), ("scale", floats(&[2.0, 0.5]))]);
        let found = one("ai.onnx.ml:Scaler", 1, &each, &[&x]);
        assert_eq!(found, tensor(&[2, 2], &[0.0_f32, 1.0, 4.0, 2.0]));
        let all = attributes([("offset", floats(&[1.0]))]);
        let found = one("ai.onnx.ml:Scaler", 1, &all, &[&x]);
        assert_eq!(found, tensor(&[2, 2], &[0.0_f32, 1.0, 2.0, 3.0]));
        let wide = tensor(&[1, 3], &[0.0_f32; 3]);
        assert!(run("ai.onnx.ml:Scaler", 1, &each, &[Some(&wide)], 1).is_err());
    }
}
