//! `Affine`, `Scale`, `ScaledTanh` and `ParametricSoftplus`: a function of a scaled element, scaled again.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// A function of one element `x` with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaledKind {
    /// `alpha · x + beta`
    Affine,
    /// `alpha · tanh(beta · x)`
    Tanh,
    /// `alpha · ln(1 + e^(beta · x))`
    Softplus,
}

/// A function applied to every element. The result has the type and shape of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledFunction {
    /// The function.
    pub kind: ScaledKind,
    /// The factor of the result.
    pub alpha: f32,
    /// Number that is added to it, or the factor of the element.
    pub beta: f32,
}

type ParsedFunction = Result<Box<dyn Operator>, OpError>;

impl ScaledFunction {
    pub(super) fn affine(context: &mut ParseContext<'_>) -> ParsedFunction {
        let alpha = context.attributes.float_or("alpha", 1.0)?;
        let beta = context.attributes.float_or("beta", 0.0)?;
        Ok(Box::new(Self { kind: ScaledKind::Affine, alpha, beta }))
    }

    pub(super) fn scale(context: &mut ParseContext<'_>) -> ParsedFunction {
        let alpha = context.attributes.float_or("scale", 1.0)?;
        Ok(Box::new(Self { kind: ScaledKind::Affine, alpha, beta: 0.0 }))
    }

    pub(super) fn tanh(context: &mut ParseContext<'_>) -> ParsedFunction {
        Self::with_both(context, ScaledKind::Tanh)
    }

    pub(super) fn softplus(context: &mut ParseContext<'_>) -> ParsedFunction {
        Self::with_both(context, ScaledKind::Softplus)
    }

    fn with_both(context: &mut ParseContext<'_>, kind: ScaledKind) -> ParsedFunction {
        let mut given = |name: &'static str| -> Result<f32, OpError> {
            let found = context.attributes.float(name)?;
            found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
        };
        Ok(Box::new(Self { kind, alpha: given("alpha")?, beta: given("beta")? }))
    }

    /// The function of one element.
    #[must_use]
    pub fn apply(&self, x: f64) -> f64 {
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        match self.kind {
            ScaledKind::Affine => alpha * x + beta,
            ScaledKind::Tanh => alpha * (beta * x).tanh(),
            ScaledKind::Softplus => {
                let inner = beta * x;
                // Written such that neither end overflows.
                alpha * (inner.max(0.0) + (-inner.abs()).exp().ln_1p())
            }
        }
    }
}

impl Operator for ScaledFunction {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let all = floats(x)?.into_iter().map(|x| self.apply(x)).collect();
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn elements_are_scaled_before_and_behind_the_function() {
        let x = tensor(&[3], &[0.0_f32, 1.0, -800.0]);
        let both = [("alpha", AttributeValue::Float(2.0)), ("beta", AttributeValue::Float(0.5))];
        let found = |name: &str, list| one(name, 1, &attributes(list), &[&x]).to_vec::<f32>();
        assert_eq!(found("Affine", both.clone()).unwrap(), [0.5, 2.5, -1599.5]);
        assert_eq!(one("Affine", 8, &attributes([]), &[&x]), x);
        let tanh = found("ScaledTanh", both.clone()).unwrap();
        assert!(tanh[0] == 0.0 && (tanh[1] - 0.924_234_3).abs() < 1e-6 && tanh[2] == -2.0);
        let softplus = found("ParametricSoftplus", both).unwrap();
        assert!((softplus[0] - 1.386_294_4).abs() < 1e-6 && softplus[2] == 0.0, "{softplus:?}");
        let scale = attributes([("scale", AttributeValue::Float(3.0))]);
        assert_eq!(one("Scale", 1, &scale, &[&x]), tensor(&[3], &[0.0_f32, 3.0, -2400.0]));
        let error = run("ScaledTanh", 1, &attributes([]), &[Some(&x)], 1).unwrap_err();
        assert!(error.contains("'alpha' is missing"), "{error}");
    }
}
