//! Activation functions of one element.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use galatea_tensor::{DataType, Tensor};

use crate::attribute::{AttributeValue, Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{TensorValues, expect_float, expect_number};

/// An activation function with its parameters; `x` is the element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActivationKind {
    /// `max(x, 0)`
    Relu,
    /// `x < 0 ? alpha · x : x`
    LeakyRelu {
        /// Slope of the negative side.
        alpha: f32,
    },
    /// `x < 0 ? alpha · (eˣ − 1) : x`
    Elu {
        /// Limit of the negative side.
        alpha: f32,
    },
    /// `max(0, x) + min(0, alpha · (e^(x / alpha) − 1))`
    Celu {
        /// Limit of the negative side.
        alpha: f32,
    },
    /// `gamma · (x ≤ 0 ? alpha · (eˣ − 1) : x)`
    Selu {
        /// Limit of the negative side before scaling.
        alpha: f32,
        /// The scale.
        gamma: f32,
    },
    /// `1 / (1 + e⁻ˣ)`
    Sigmoid,
    /// `clamp(alpha · x + beta, 0, 1)`
    HardSigmoid {
        /// Slope.
        alpha: f32,
        /// Value at 0.
        beta: f32,
    },
    /// `x · clamp(x / 6 + 0.5, 0, 1)`
    HardSwish,
    /// Hyperbolic tangent.
    Tanh,
    /// `ln(1 + eˣ)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `x > alpha ? x : 0`
    ThresholdedRelu {
        /// The threshold.
        alpha: f32,
    },
    /// `x · Φ(x)` with the normal distribution Φ, or its approximation by a tangent.
    Gelu {
        /// True to approximate.
        tanh: bool,
    },
    /// `x · tanh(ln(1 + eˣ))`
    Mish,
    /// `x / (1 + e^(−alpha · x))`
    Swish {
        /// Slope inside the sigmoid.
        alpha: f32,
    },
    /// `x < −lambda ? x + bias : x > lambda ? x − bias : 0`
    Shrink {
        /// How far outer values move towards 0.
        bias: f32,
        /// Half the width of the interval that becomes 0.
        lambda: f32,
    },
}

/// An activation function applied to every element. The result has the input's type and shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activation {
    /// The function.
    pub kind: ActivationKind,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Written such that neither end overflows.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Source of the approximation: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
fn gelu(x: f64, tanh: bool) -> f64 {
    if tanh {
        0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
    } else {
        0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2)
    }
}

impl ActivationKind {
    fn check(self, dtype: DataType) -> Result<(), OpError> {
        match self {
            Self::Relu | Self::Shrink { .. } => expect_number(dtype),
            _ => expect_float(dtype),
        }
    }

    /// The function of one element.
    #[must_use]
    pub fn apply(self, x: f64) -> f64 {
        let wide = f64::from;
        match self {
            // Compared such that a NaN stays one.
            Self::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Self::LeakyRelu { alpha } => {
                if x < 0.0 {
                    wide(alpha) * x
                } else {
                    x
                }
            }
            Self::Elu { alpha } => {
                if x < 0.0 {
                    wide(alpha) * x.exp_m1()
                } else {
                    x
                }
            }
            Self::Celu { alpha } => {
                if x < 0.0 {
                    wide(alpha) * (x / wide(alpha)).exp_m1()
                } else {
                    x
                }
            }
            Self::Selu { alpha, gamma } => {
                wide(gamma) * if x <= 0.0 { wide(alpha) * x.exp_m1() } else { x }
            }
            Self::Sigmoid => sigmoid(x),
            Self::HardSigmoid { alpha, beta } => (wide(alpha) * x + wide(beta)).clamp(0.0, 1.0),
            Self::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Self::Tanh => x.tanh(),
            Self::Softplus => softplus(x),
            Self::Softsign => x / (1.0 + x.abs()),
            Self::ThresholdedRelu { alpha } => {
                if x > wide(alpha) {
                    x
                } else {
                    0.0
                }
            }
            Self::Gelu { tanh } => gelu(x, tanh),
            Self::Mish => x * softplus(x).tanh(),
            Self::Swish { alpha } => x * sigmoid(wide(alpha) * x),
            Self::Shrink { bias, lambda } => {
                if x < -wide(lambda) {
                    x + wide(bias)
                } else if x > wide(lambda) {
                    x - wide(bias)
                } else {
                    0.0
                }
            }
        }
    }

    /// The functions that are defined on integers; a fractional result is truncated.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "the bias of Shrink is a float, as in ONNX"
    )]
    fn integer(self, x: i128) -> i128 {
        match self {
            Self::Relu => x.max(0),
            _ => self.apply(x as f64) as i128,
        }
    }
}

impl Activation {
    pub(super) fn boxed(kind: ActivationKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind }))
    }
}

impl Operator for Activation {
    fn attributes(&self) -> Option<Attributes> {
        match self.kind {
            ActivationKind::Gelu { tanh } => {
                let form = if tanh { "tanh" } else { "none" };
                Some(named([("approximate", AttributeValue::String(form.into()))]))
            }
            ActivationKind::Swish { alpha } => Some(named([("alpha", alpha.into())])),
            ActivationKind::HardSwish => Some(Attributes::new()),
            // The others are parsed only.
            _ => None,
        }
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        self.kind.check(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        self.kind.check(x.dtype())?;
        let mut values = TensorValues::read(x)?;
        match &mut values {
            TensorValues::Floats(all) => all.iter_mut().for_each(|v| *v = self.kind.apply(*v)),
            TensorValues::Integers(all) => all.iter_mut().for_each(|v| *v = self.kind.integer(*v)),
            TensorValues::Bools(_) | TensorValues::Strings(_) => {}
        }
        Ok(vec![values.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: ActivationKind, x: f32) -> f32 {
        let x = Tensor::scalar(x);
        let outputs = Activation { kind }.reference(OperatorInputs::new(&[Some(&x)])).unwrap();
        outputs[0].item().unwrap()
    }

    #[test]
    fn functions_agree_with_values_computed_by_hand() {
        let near = |kind, x, expected: f32| {
            let found = run(kind, x);
            assert!((found - expected).abs() < 2e-6, "{kind:?}({x}) = {found}, not {expected}");
        };
        near(ActivationKind::Relu, -1.0, 0.0);
        near(ActivationKind::LeakyRelu { alpha: 0.1 }, -2.0, -0.2);
        near(ActivationKind::Elu { alpha: 2.0 }, -1.0, -1.264_241_1);
        near(ActivationKind::Celu { alpha: 2.0 }, -1.0, -0.786_938_7);
        near(ActivationKind::Selu { alpha: 2.0, gamma: 3.0 }, -1.0, -3.792_723_4);
        near(ActivationKind::Sigmoid, 1.0, 0.731_058_6);
        near(ActivationKind::HardSigmoid { alpha: 0.5, beta: 0.6 }, -1.0, 0.1);
        near(ActivationKind::HardSwish, 1.0, 0.666_666_7);
        near(ActivationKind::Tanh, 1.0, 0.761_594_2);
        near(ActivationKind::Softplus, 1.0, 1.313_261_7);
        near(ActivationKind::Softplus, 1000.0, 1000.0);
        near(ActivationKind::Softsign, -1.0, -0.5);
        near(ActivationKind::ThresholdedRelu { alpha: 2.0 }, 1.5, 0.0);
        near(ActivationKind::Gelu { tanh: false }, 1.0, 0.841_344_7);
        near(ActivationKind::Gelu { tanh: true }, 1.0, 0.841_192);
        near(ActivationKind::Mish, 1.0, 0.865_098_4);
        near(ActivationKind::Swish { alpha: 2.0 }, 1.0, 0.880_797);
        near(ActivationKind::Shrink { bias: 1.5, lambda: 1.5 }, -2.0, -0.5);
    }

    #[test]
    fn a_nan_stays_one_and_integers_have_a_relu() {
        assert!(run(ActivationKind::Relu, f32::NAN).is_nan());
        let x = Tensor::vector(vec![-3_i32, 4]);
        let relu = Activation { kind: ActivationKind::Relu };
        let outputs = relu.reference(OperatorInputs::new(&[Some(&x)])).unwrap();
        assert_eq!(outputs[0], Tensor::vector(vec![0_i32, 4]));
        let tanh = Activation { kind: ActivationKind::Tanh };
        assert!(tanh.reference(OperatorInputs::new(&[Some(&x)])).is_err());
    }
}
