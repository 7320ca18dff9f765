//! Functions applied where a product is written, in WGSL.

use galatea_graph::ops::activation::ActivationKind;
use galatea_graph::ops::fused::FusedActivation;

/// A function of `v`, four elements at a time, with two parameters: `params.p` and `params.q`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProductActivation {
    /// A word of `activation.wgsl`.
    pub(crate) name: &'static str,
    pub(crate) p: f32,
    pub(crate) q: f32,
}

impl ProductActivation {
    /// The value as it is.
    pub(crate) const NONE: Self = plain("none");

    /// Returns the activation of a fused operator.
    pub(crate) fn fused(activation: FusedActivation) -> Self {
        match activation {
            FusedActivation::None => Self::NONE,
            FusedActivation::Relu => plain("relu"),
            FusedActivation::Clip { min, max } => Self { name: "clip", p: min, q: max },
            FusedActivation::LeakyRelu { alpha } => Self { name: "leaky", p: alpha, q: 0.0 },
            FusedActivation::Sigmoid => plain("sigmoid"),
            FusedActivation::Tanh => plain("tanh"),
            FusedActivation::HardSwish => plain("hard_swish"),
            FusedActivation::Silu => plain("silu"),
            FusedActivation::Gelu => plain("gelu"),
            FusedActivation::GeluTanh => plain("gelu_tanh"),
        }
    }

    /// Returns the activation of an ONNX operator.
    ///
    /// # Errors
    /// Fails when it is not one that matrix multiplications are fused with.
    pub(crate) fn onnx(kind: ActivationKind) -> Result<Self, String> {
        Ok(match kind {
            ActivationKind::Relu => plain("relu"),
            ActivationKind::LeakyRelu { alpha } => Self { name: "leaky", p: alpha, q: 0.0 },
            ActivationKind::Elu { alpha } => Self { name: "elu", p: alpha, q: 1.0 },
            ActivationKind::Selu { alpha, gamma } => Self { name: "elu", p: alpha, q: gamma },
            ActivationKind::Sigmoid => plain("sigmoid"),
            ActivationKind::HardSigmoid { alpha, beta } => {
                Self { name: "hard_sigmoid", p: alpha, q: beta }
            }
            ActivationKind::HardSwish => plain("hard_swish"),
            ActivationKind::Tanh => plain("tanh"),
            ActivationKind::Softplus => plain("softplus"),
            ActivationKind::Softsign => plain("softsign"),
            ActivationKind::ThresholdedRelu { alpha } => {
                Self { name: "threshold", p: alpha, q: 0.0 }
            }
            ActivationKind::Gelu { tanh: false } => plain("gelu"),
            ActivationKind::Gelu { tanh: true } => plain("gelu_tanh"),
            other => return Err(format!("{other:?} does not follow a product")),
        })
    }
}

const fn plain(name: &'static str) -> ProductActivation {
    ProductActivation { name, p: 0.0, q: 0.0 }
}
