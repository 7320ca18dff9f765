//! Activation functions and the functions that make a distribution of a row.

mod elementwise;
mod prelu;
mod softmax;
mod swiglu;

pub use elementwise::{Activation, ActivationKind};
pub use prelu::PRelu;
pub use softmax::{Hardmax, LogSoftmax, Softmax};
pub use swiglu::SwiGlu;

use crate::operator::{Arity, OpDef, ParseContext};
use crate::ops::legacy::AlongAxis;
use crate::{OpError, Operator};

type ParsedActivation = Result<Box<dyn Operator>, OpError>;

const fn unary(name: &'static str, since: i64, parse: crate::ops::AttributeParser) -> OpDef {
    OpDef::onnx(name, since, Arity::exactly(1), Arity::exactly(1), parse)
}

/// An operator of parameters `alpha` and `beta` with these defaults.
fn with_alpha(
    context: &mut ParseContext<'_>,
    default: f32,
    kind: impl FnOnce(f32) -> ActivationKind,
) -> ParsedActivation {
    Activation::boxed(kind(context.attributes.float_or("alpha", default)?))
}

/// The constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017), as ONNX has them.
fn selu(context: &mut ParseContext<'_>) -> ParsedActivation {
    // Version 1 gave fewer digits.
    let (alpha, gamma) =
        if context.opset < 6 { (1.673_2, 1.050_7) } else { (1.673_263_2, 1.050_701) };
    let alpha = context.attributes.float_or("alpha", alpha)?;
    let gamma = context.attributes.float_or("gamma", gamma)?;
    Activation::boxed(ActivationKind::Selu { alpha, gamma })
}

fn hard_sigmoid(context: &mut ParseContext<'_>) -> ParsedActivation {
    let alpha = context.attributes.float_or("alpha", 0.2)?;
    let beta = context.attributes.float_or("beta", 0.5)?;
    Activation::boxed(ActivationKind::HardSigmoid { alpha, beta })
}

fn gelu(context: &mut ParseContext<'_>) -> ParsedActivation {
    let choice = context.attributes.choice("approximate", &["none", "tanh"], 0)?;
    Activation::boxed(ActivationKind::Gelu { tanh: choice == 1 })
}

fn shrink(context: &mut ParseContext<'_>) -> ParsedActivation {
    let bias = context.attributes.float_or("bias", 0.0)?;
    let lambda = context.attributes.float_or("lambd", 0.5)?;
    Activation::boxed(ActivationKind::Shrink { bias, lambda })
}

/// Version 13 made the axis a single one; before, all axes from it on were one row.
fn row_axis(context: &mut ParseContext<'_>, flatten: bool) -> Result<i64, OpError> {
    context.attributes.int_or("axis", if flatten { 1 } else { -1 })
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    unary("Relu", 1, |_| Activation::boxed(ActivationKind::Relu)).elementwise_of_first(),
    unary("LeakyRelu", 1, |c| with_alpha(c, 0.01, |alpha| ActivationKind::LeakyRelu { alpha }))
        .elementwise_of_first()
        .transcendental(),
    unary("Elu", 1, |c| with_alpha(c, 1.0, |alpha| ActivationKind::Elu { alpha }))
        .elementwise_of_first()
        .transcendental(),
    unary("Celu", 12, |c| with_alpha(c, 1.0, |alpha| ActivationKind::Celu { alpha }))
        .elementwise_of_first()
        .transcendental(),
    unary("Selu", 1, selu).elementwise_of_first().transcendental(),
    unary("Sigmoid", 1, |_| Activation::boxed(ActivationKind::Sigmoid))
        .elementwise_of_first()
        .transcendental(),
    unary("HardSigmoid", 1, hard_sigmoid).elementwise_of_first().transcendental(),
    unary("HardSwish", 14, |_| Activation::boxed(ActivationKind::HardSwish))
        .elementwise_of_first()
        .transcendental(),
    unary("Tanh", 1, |_| Activation::boxed(ActivationKind::Tanh))
        .elementwise_of_first()
        .transcendental(),
    unary("Softplus", 1, |_| Activation::boxed(ActivationKind::Softplus))
        .elementwise_of_first()
        .transcendental(),
    unary("Softsign", 1, |_| Activation::boxed(ActivationKind::Softsign))
        .elementwise_of_first()
        .transcendental(),
    // Version 1 is ONNX Runtime's, of before ONNX had it.
    unary("ThresholdedRelu", 1, |c| {
        with_alpha(c, 1.0, |alpha| ActivationKind::ThresholdedRelu { alpha })
    })
    .elementwise_of_first()
    .transcendental(),
    unary("ThresholdedRelu", 10, |c| {
        with_alpha(c, 1.0, |alpha| ActivationKind::ThresholdedRelu { alpha })
    })
    .elementwise_of_first()
    .transcendental(),
    unary("Gelu", 20, gelu).elementwise_of_first().transcendental(),
    unary("Mish", 18, |_| Activation::boxed(ActivationKind::Mish))
        .elementwise_of_first()
        .transcendental(),
    unary("Swish", 24, |c| with_alpha(c, 1.0, |alpha| ActivationKind::Swish { alpha }))
        .elementwise_of_first()
        .transcendental(),
    unary("Shrink", 9, shrink).elementwise_of_first(),
    OpDef::onnx("SwiGLU", 28, Arity::exactly(2), Arity::exactly(1), SwiGlu::parse).transcendental(),
    // One slope, or one for each channel.
    OpDef::onnx("PRelu", 1, Arity::exactly(2), Arity::exactly(1), |_| {
        Ok(AlongAxis::boxed(Box::new(PRelu), 1))
    })
    .elementwise()
    .transcendental(),
    OpDef::onnx("PRelu", 7, Arity::exactly(2), Arity::exactly(1), |_| Ok(Box::new(PRelu)))
        .elementwise()
        .transcendental(),
    unary("Softmax", 1, |c| Ok(Box::new(Softmax { axis: row_axis(c, true)?, flatten: true })))
        .accumulating(),
    unary("Softmax", 13, |c| Ok(Box::new(Softmax { axis: row_axis(c, false)?, flatten: false })))
        .accumulating(),
    unary("LogSoftmax", 1, |c| {
        Ok(Box::new(LogSoftmax { axis: row_axis(c, true)?, flatten: true }))
    })
    .accumulating(),
    unary("LogSoftmax", 13, |c| {
        Ok(Box::new(LogSoftmax { axis: row_axis(c, false)?, flatten: false }))
    })
    .accumulating(),
    unary("Hardmax", 1, |c| Ok(Box::new(Hardmax { axis: row_axis(c, true)?, flatten: true }))),
    unary("Hardmax", 13, |c| Ok(Box::new(Hardmax { axis: row_axis(c, false)?, flatten: false }))),
];
