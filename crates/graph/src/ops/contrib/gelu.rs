//! `BiasGelu`, `FastGelu`, `Gelu` and `QuickGelu`: an activation after an optional bias.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::activation::ActivationKind;
use crate::ops::values::{expect_float, expect_same, floats, from_floats};

/// `f(x + bias)`; the optional bias lies along the last axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BiasActivation {
    /// The function.
    pub kind: ActivationKind,
}

impl BiasActivation {
    fn boxed(kind: ActivationKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind }))
    }

    pub(super) fn gelu(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::boxed(ActivationKind::Gelu { tanh: false })
    }

    pub(super) fn fast_gelu(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::boxed(ActivationKind::Gelu { tanh: true })
    }

    pub(super) fn quick_gelu(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let alpha = context.attributes.float_or("alpha", 1.702)?;
        Self::boxed(ActivationKind::Swish { alpha })
    }
}

impl Operator for BiasActivation {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        if let Some(bias) = inputs.optional(1) {
            expect_same(x.dtype, bias.dtype)?;
            Fact::broadcast(&[x, bias])?;
        }
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let mut all = floats(x)?;
        if let Some(bias) = inputs.optional(1) {
            expect_same(x.dtype(), bias.dtype())?;
            let bias = floats(&bias.broadcast_to(x.shape())?)?;
            all.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
        }
        all.iter_mut().for_each(|value| *value = self.kind.apply(*value));
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn the_bias_comes_first() {
        let x = tensor(&[2, 2], &[1.0_f32, -50.0, 3.0, 50.0]);
        let bias = tensor(&[2], &[-1.0_f32, 0.0]);
        let found = one("com.microsoft:BiasGelu", 1, &attributes([]), &[&x, &bias]);
        let found = found.to_vec::<f32>().unwrap();
        assert_eq!((found[0], found[1], found[3]), (0.0, -0.0, 50.0));
        let long = tensor(&[3], &[0.0_f32; 3]);
        let inputs = [Some(&x), Some(&long)];
        assert!(run("com.microsoft:FastGelu", 1, &attributes([]), &inputs, 1).is_err());
    }
}
