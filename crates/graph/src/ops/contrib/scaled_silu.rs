//! `ScaledSiLU`: a scaled number times its sigmoid.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// `z · sigmoid(z)` with `z = scale · x`, of domain `com.microsoft`; each step is rounded to the type of `x`.
///
/// Inputs: `x` and optionally the scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledSilu {
    /// The scale where it is no input.
    pub alpha: f32,
}

impl ScaledSilu {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { alpha: context.attributes.float_or("alpha", 1.0)? }))
    }
}

impl Operator for ScaledSilu {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let scale = match inputs.optional(1).map(floats).transpose()?.as_deref() {
            None => f64::from(self.alpha),
            Some(&[scale]) => scale,
            Some(all) => return Err(OpError::new(format!("{} scales, expected 1", all.len()))),
        };
        let rounded = |all: Vec<f64>| floats(&from_floats(x.dtype(), x.shape(), all)?);
        let scaled = rounded(floats(x)?.into_iter().map(|x| scale * x).collect())?;
        let sigmoid = rounded(scaled.iter().map(|z| 1.0 / (1.0 + (-z).exp())).collect())?;
        let result = scaled.into_iter().zip(sigmoid).map(|(z, s)| z * s).collect();
        Ok(vec![from_floats(x.dtype(), x.shape(), result)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::AttributeValue;
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn the_input_replaces_the_attribute() {
        let x = tensor(&[2], &[1.0_f32, -2.0]);
        let name = "com.microsoft:ScaledSiLU";
        let list = attributes([("alpha", AttributeValue::Float(0.5))]);
        let silu = |z: f32| z / (1.0 + (-z).exp());
        let near = |found: Tensor, scale: f32| {
            let found = found.to_vec::<f32>().unwrap();
            assert!((found[0] - silu(scale)).abs() < 1e-6, "{found:?}");
            assert!((found[1] - silu(-2.0 * scale)).abs() < 1e-6, "{found:?}");
        };
        near(one(name, 1, &list, &[&x]), 0.5);
        near(one(name, 1, &list, &[&x, &Tensor::scalar(3.0_f32)]), 3.0);
        assert!(run(name, 1, &list, &[Some(&x), Some(&x)], 1).is_err());
    }
}
