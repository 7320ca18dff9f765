//! `ImageScaler`: images times a number, plus a number for each channel.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `scale · x + bias` of images `[batch, channels, rows, columns]`, with a bias for each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledImages {
    /// The factor.
    pub scale: f32,
    /// Numbers that are added, by channel.
    pub bias: Vec<f32>,
}

impl ScaledImages {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let scale = context.attributes.float_or("scale", 1.0)?;
        let bias = context.attributes.floats("bias")?;
        let bias = bias.ok_or_else(|| OpError::new("attribute 'bias' is missing"))?;
        Ok(Box::new(Self { scale, bias }))
    }

    fn check(&self, channels: usize) -> Result<(), OpError> {
        match self.bias.len() == channels {
            true => Ok(()),
            false => Err(OpError::new(format!(
                "attribute 'bias' has {} numbers, expected one for each of {channels} channels",
                self.bias.len()
            ))),
        }
    }
}

impl Operator for ScaledImages {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        if let Some(dims) = &x.shape {
            let [_, channels, _, _] = &dims[..] else {
                return Err(OpError::new(format!("images of {} axes, expected 4", dims.len())));
            };
            channels.known().map_or(Ok(()), |channels| self.check(channels))?;
        }
        let mut shape = x.shape.clone();
        if let Some(channels) = shape.as_mut().and_then(|dims| dims.get_mut(1)) {
            *channels = Dim::Known(self.bias.len());
        }
        Ok(vec![Fact::shaped(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let &[_, channels, rows, columns] = x.shape() else {
            return Err(OpError::new(format!("images of {} axes, expected 4", x.rank())));
        };
        self.check(channels)?;
        let mut all = floats(x)?;
        let pixels = (rows * columns).max(1);
        for (image, bias) in all.chunks_mut(pixels).zip(self.bias.iter().cycle()) {
            for value in image {
                *value = f64::from(self.scale) * *value + f64::from(*bias);
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, counting, one, run, tensor};

    #[test]
    fn channels_have_a_bias_each() {
        let x = counting(&[2, 2, 1, 1]);
        let list = |bias: &[f32]| {
            let bias = ("bias", AttributeValue::Floats(bias.to_vec()));
            attributes([("scale", AttributeValue::Float(2.0)), bias])
        };
        let found = one("ImageScaler", 1, &list(&[0.5, -1.0]), &[&x]);
        assert_eq!(found, tensor(&[2, 2, 1, 1], &[0.5_f32, 1.0, 4.5, 5.0]));
        assert!(run("ImageScaler", 1, &list(&[0.5]), &[Some(&x)], 1).is_err());
        assert!(run("ImageScaler", 1, &attributes([]), &[Some(&x)], 1).is_err());
    }
}
