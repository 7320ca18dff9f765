//! `FusedMatMul`, `TransposeMatMul` and `FusedGemm`: products with turned operands, a factor, and
//! an activation.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::activation::ActivationKind;
use crate::ops::matrix::{Gemm, MatMul};
use crate::ops::values::{expect_float, floats, from_floats};

/// How one operand of a product is turned first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperandTransposition {
    /// The last two axes change places.
    pub matrix: bool,
    /// The first axis comes behind all axes but the last, before that.
    pub batch: bool,
}

impl OperandTransposition {
    /// Which axis of the operand each axis of the turned one is.
    fn axes(self, rank: usize) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..rank).collect();
        if self.batch && rank > 2 {
            axes[..rank - 1].rotate_left(1);
        }
        if self.matrix && rank > 1 {
            axes.swap(rank - 2, rank - 1);
        }
        axes
    }

    fn fact(self, fact: &Fact) -> Fact {
        let turned = |dims: &Vec<_>| -> Vec<_> {
            self.axes(dims.len()).into_iter().map(|axis: usize| Clone::clone(&dims[axis])).collect()
        };
        Fact::shaped(fact.dtype, fact.shape.as_ref().map(turned))
    }
}

/// `alpha · A · B` with turned operands, of domain `com.microsoft`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnedMatMul {
    /// How `A` is transposed.
    pub a: OperandTransposition,
    /// How `B` is transposed.
    pub b: OperandTransposition,
    /// The factor.
    pub alpha: f32,
}

impl TurnedMatMul {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut flag = |name: &'static str| context.attributes.flag(name, false);
        let a = OperandTransposition { matrix: flag("transA")?, batch: flag("transBatchA")? };
        let b = OperandTransposition { matrix: flag("transB")?, batch: flag("transBatchB")? };
        Ok(Box::new(Self { a, b, alpha: context.attributes.float_or("alpha", 1.0)? }))
    }
}

impl Operator for TurnedMatMul {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_float(a.dtype)?;
        let a = self.a.fact(a);
        let b = self.b.fact(b);
        MatMul.infer(OperatorInputs::new(&[Some(&a), Some(&b)]))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_float(a.dtype())?;
        let a = a.permute(&self.a.axes(a.rank()))?;
        let b = b.permute(&self.b.axes(b.rank()))?;
        let product = MatMul.reference(OperatorInputs::new(&[Some(&a), Some(&b)]))?.remove(0);
        if self.alpha == 1.0 {
            return Ok(vec![product]);
        }
        let scaled = floats(&product)?.into_iter().map(|x| x * f64::from(self.alpha)).collect();
        Ok(vec![from_floats(product.dtype(), product.shape(), scaled)?])
    }
}

/// `activation(Gemm)`, of domain `com.microsoft`.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedGemm {
    /// The matrix multiplication.
    pub gemm: Gemm,
    /// The activation applied to its result, if any.
    pub activation: Option<ActivationKind>,
}

impl FusedGemm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let gemm = Gemm::read(context)?;
        let name = context.attributes.string("activation")?.unwrap_or_default();
        let alpha = context.attributes.float("activation_alpha")?;
        let beta = context.attributes.float("activation_beta")?;
        let gamma = context.attributes.float("activation_gamma")?;
        let activation = activation(&name, alpha, beta, gamma)?;
        Ok(Box::new(Self { gemm, activation }))
    }
}

/// The activation of a name and its parameters, with ONNX's defaults.
pub(super) fn activation(
    name: &str,
    alpha: Option<f32>,
    beta: Option<f32>,
    gamma: Option<f32>,
) -> Result<Option<ActivationKind>, OpError> {
    Ok(Some(match name {
        "" => return Ok(None),
        "Relu" => ActivationKind::Relu,
        "Sigmoid" => ActivationKind::Sigmoid,
        "Tanh" => ActivationKind::Tanh,
        "Softplus" => ActivationKind::Softplus,
        "Softsign" => ActivationKind::Softsign,
        "HardSwish" => ActivationKind::HardSwish,
        "LeakyRelu" => ActivationKind::LeakyRelu { alpha: alpha.unwrap_or(0.01) },
        "Elu" => ActivationKind::Elu { alpha: alpha.unwrap_or(1.0) },
        "ThresholdedRelu" => ActivationKind::ThresholdedRelu { alpha: alpha.unwrap_or(1.0) },
        "HardSigmoid" => {
            ActivationKind::HardSigmoid { alpha: alpha.unwrap_or(0.2), beta: beta.unwrap_or(0.5) }
        }
        "Selu" => ActivationKind::Selu {
            alpha: alpha.unwrap_or(1.673_263_2),
            gamma: gamma.unwrap_or(1.050_701),
        },
        other => return Err(OpError::new(format!("activation '{other}' is not known"))),
    }))
}

impl Operator for FusedGemm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        expect_float(inputs.required(0)?.dtype)?;
        self.gemm.infer(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        expect_float(inputs.required(0)?.dtype())?;
        let product = self.gemm.reference(inputs)?.remove(0);
        let Some(activation) = self.activation else { return Ok(vec![product]) };
        let all = floats(&product)?.into_iter().map(|x| activation.apply(x)).collect();
        Ok(vec![from_floats(product.dtype(), product.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, counting, int, one, parse, tensor, text};

    #[test]
    fn operands_are_turned_and_the_product_is_scaled() {
        let a = counting(&[2, 3]);
        let b = counting(&[2, 3]);
        let list = attributes([("transB", int(1)), ("alpha", AttributeValue::Float(0.5))]);
        let found = one("com.microsoft:FusedMatMul", 1, &list, &[&a, &b]);
        assert_eq!(found, tensor(&[2, 2], &[2.5_f32, 7.0, 7.0, 25.0]));
        // [M, batch, K] times [batch, K, N].
        let a = counting(&[2, 3, 1]);
        let b = counting(&[3, 1, 1]);
        let found =
            one("com.microsoft:FusedMatMul", 1, &attributes([("transBatchA", int(1))]), &[&a, &b]);
        assert_eq!(found, tensor(&[3, 2, 1], &[0.0_f32, 0.0, 1.0, 4.0, 4.0, 10.0]));
    }

    #[test]
    fn an_activation_comes_last() {
        let a = tensor(&[1, 1], &[2.0_f32]);
        let b = tensor(&[1, 2], &[1.0_f32, -1.0]);
        let leaky = attributes([
            ("activation", text("LeakyRelu")),
            ("activation_alpha", AttributeValue::Float(0.25)),
        ]);
        let found = one("com.microsoft:FusedGemm", 1, &leaky, &[&a, &b]);
        assert_eq!(found, tensor(&[1, 2], &[2.0_f32, -0.5]));
        let list = attributes([("activation", text("Snake"))]);
        assert!(parse("com.microsoft:FusedGemm", 1, &list, 2, 1).is_err());
    }
}
