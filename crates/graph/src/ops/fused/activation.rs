//! The function that a fused operator applies to its result.

use crate::attribute::{AttributeValue, Attributes, named};
use crate::error::OpError;
use crate::operator::ParseContext;

/// An elementwise function applied where a matrix product or convolution writes its result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FusedActivation {
    /// The result as it is.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, min), max)`.
    Clip {
        /// Lower bound.
        min: f32,
        /// Upper bound.
        max: f32,
    },
    /// `x` where positive, `alpha · x` elsewhere.
    LeakyRelu {
        /// The slope of the negative side.
        alpha: f32,
    },
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `x · min(max(x / 6 + 1/2, 0), 1)`.
    HardSwish,
    /// `x · sigmoid(x)`.
    Silu,
    /// `x / 2 · (1 + erf(x / √2))`.
    Gelu,
    /// GELU by its tanh approximation (Hendrycks and Gimpel 2016, arXiv 1606.08415).
    GeluTanh,
}

const NAMES: &[&str] =
    &["", "Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Silu", "Gelu", "GeluTanh"];

impl FusedActivation {
    /// Reads the attributes `activation` (a keyword) and `activation_params` (floats: `Clip` has
    /// its bounds, `LeakyRelu` its slope).
    ///
    /// # Errors
    /// Fails when the keyword is unknown or the number of parameters is not the activation's.
    pub fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let choice = context.attributes.choice("activation", NAMES, 0)?;
        let params = context.attributes.floats("activation_params")?.unwrap_or_default();
        Ok(match (NAMES[choice], params.as_slice()) {
            ("", []) => Self::None,
            ("Relu", []) => Self::Relu,
            ("Clip", &[min, max]) => Self::Clip { min, max },
            ("LeakyRelu", &[alpha]) => Self::LeakyRelu { alpha },
            ("Sigmoid", []) => Self::Sigmoid,
            ("Tanh", []) => Self::Tanh,
            ("HardSwish", []) => Self::HardSwish,
            ("Silu", []) => Self::Silu,
            ("Gelu", []) => Self::Gelu,
            ("GeluTanh", []) => Self::GeluTanh,
            (name, params) => {
                return Err(OpError::new(format!(
                    "activation '{name}' cannot have parameters {params:?}"
                )));
            }
        })
    }

    /// The attributes that are read as this.
    #[must_use]
    pub fn attributes(self) -> Attributes {
        let (name, parameters) = match self {
            Self::None => ("", vec![]),
            Self::Relu => ("Relu", vec![]),
            Self::Clip { min, max } => ("Clip", vec![min, max]),
            Self::LeakyRelu { alpha } => ("LeakyRelu", vec![alpha]),
            Self::Sigmoid => ("Sigmoid", vec![]),
            Self::Tanh => ("Tanh", vec![]),
            Self::HardSwish => ("HardSwish", vec![]),
            Self::Silu => ("Silu", vec![]),
            Self::Gelu => ("Gelu", vec![]),
            Self::GeluTanh => ("GeluTanh", vec![]),
        };
        named([
            ("activation", AttributeValue::String(name.into())),
            ("activation_params", AttributeValue::Floats(parameters)),
        ])
    }

    /// The function's value.
    #[must_use]
    pub fn apply(self, x: f64) -> f64 {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        match self {
            Self::None => x,
            // The larger and the smaller of two numbers would lose a NaN.
            Self::Relu | Self::Clip { .. } if x.is_nan() => x,
            Self::Relu if x < 0.0 => 0.0,
            Self::Relu => x,
            Self::Clip { min, max } => x.max(f64::from(min)).min(f64::from(max)),
            Self::LeakyRelu { alpha } if x < 0.0 => x * f64::from(alpha),
            Self::LeakyRelu { .. } => x,
            Self::Sigmoid => sigmoid(x),
            Self::Tanh => x.tanh(),
            Self::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Self::Silu => x * sigmoid(x),
            Self::Gelu => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            Self::GeluTanh => {
                let inner = x + 0.044_715 * x * x * x;
                0.5 * x * (1.0 + (inner * (2.0 / std::f64::consts::PI).sqrt()).tanh())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, params: &[f32]) -> Result<FusedActivation, OpError> {
        let attributes = Attributes::from([
            ("activation".into(), AttributeValue::String(name.into())),
            ("activation_params".into(), AttributeValue::Floats(params.to_vec())),
        ]);
        FusedActivation::parse(&mut ParseContext::new(&attributes, 2, 1, 1))
    }

    #[test]
    fn parameters_must_be_the_activations_own() {
        let clip = FusedActivation::Clip { min: 0.0, max: 6.0 };
        assert_eq!(parse("Clip", &[0.0, 6.0]).unwrap(), clip);
        assert!(parse("Clip", &[0.0]).is_err());
        assert!(parse("Relu", &[1.0]).is_err());
        assert!(parse("Snake", &[]).is_err());
    }

    #[test]
    fn known_points_of_the_functions() {
        assert!((FusedActivation::Gelu.apply(1.0) - 0.841_344_746_068_542_9).abs() < 1e-15);
        assert!((FusedActivation::GeluTanh.apply(1.0) - 0.841_191_990_608_276_2).abs() < 1e-12);
        assert_eq!(FusedActivation::HardSwish.apply(-3.0), 0.0);
        assert_eq!(FusedActivation::LeakyRelu { alpha: 0.5 }.apply(-2.0), -1.0);
        assert_eq!(FusedActivation::Clip { min: -1.0, max: 1.0 }.apply(9.0), 1.0);
    }

    #[test]
    fn every_function_keeps_a_nan_and_is_that_of_its_separate_operator() {
        use crate::ops::activation::ActivationKind;
        let clip = FusedActivation::Clip { min: -1.5, max: 6.0 };
        let pairs = [
            (FusedActivation::None, None),
            (FusedActivation::Relu, Some(ActivationKind::Relu)),
            (clip, None),
            (
                FusedActivation::LeakyRelu { alpha: 0.25 },
                Some(ActivationKind::LeakyRelu { alpha: 0.25 }),
            ),
            (FusedActivation::Sigmoid, Some(ActivationKind::Sigmoid)),
            (FusedActivation::Tanh, Some(ActivationKind::Tanh)),
            (FusedActivation::HardSwish, Some(ActivationKind::HardSwish)),
            (FusedActivation::Silu, Some(ActivationKind::Swish { alpha: 1.0 })),
            (FusedActivation::Gelu, Some(ActivationKind::Gelu { tanh: false })),
            (FusedActivation::GeluTanh, Some(ActivationKind::Gelu { tanh: true })),
        ];
        assert_eq!(pairs.len(), NAMES.len());
        for (fused, separate) in pairs {
            assert!(fused.apply(f64::NAN).is_nan(), "{fused:?}");
            let Some(separate) = separate else { continue };
            for x in [f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.25, -1.25, 700.0] {
                let (one, two) = (fused.apply(x), separate.apply(x));
                let same = one.is_nan() && two.is_nan()
                    || one == two && one.is_sign_negative() == two.is_sign_negative()
                    || (one - two).abs() < 1e-12;
                assert!(same, "{fused:?} of {x}: {one} and {two}");
            }
        }
    }
}
