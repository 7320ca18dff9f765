//! How alike two vectors are.

use super::linear_regressor::list;
use crate::error::OpError;
use crate::operator::ParseContext;

/// Which function of two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// Their product.
    Linear,
    /// A power of their scaled and shifted product.
    Poly,
    /// The exponential of their negative scaled squared distance.
    Rbf,
    /// The hyperbolic tangent of their scaled and shifted product.
    Sigmoid,
}

/// A kernel of a support vector machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SvmKernel {
    /// The function.
    pub kind: KernelKind,
    /// The scale.
    pub gamma: f64,
    /// The shift.
    pub shift: f64,
    /// The power.
    pub degree: f64,
}

impl SvmKernel {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let names = ["LINEAR", "POLY", "RBF", "SIGMOID"];
        let kinds = [KernelKind::Linear, KernelKind::Poly, KernelKind::Rbf, KernelKind::Sigmoid];
        let kind = kinds[context.attributes.choice("kernel_type", &names, 0)?];
        match list(context, "kernel_params")?[..] {
            [] => Ok(Self { kind, gamma: 0.0, shift: 0.0, degree: 0.0 }),
            [gamma, shift, degree] => Ok(Self { kind, gamma, shift, degree }),
            ref other => Err(OpError::new(format!("{} kernel_params, expected 3", other.len()))),
        }
    }

    /// The kernel of two vectors of one length.
    pub(super) fn of(&self, a: &[f64], b: &[f64]) -> f64 {
        let product = || a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        match self.kind {
            KernelKind::Linear => product(),
            KernelKind::Poly => (self.gamma * product() + self.shift).powf(self.degree),
            KernelKind::Rbf => {
                let distance = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
                (-self.gamma * distance).exp()
            }
            KernelKind::Sigmoid => (self.gamma * product() + self.shift).tanh(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_compare_vectors() {
        let of = |kind| {
            let kernel = SvmKernel { kind, gamma: 0.5, shift: 1.0, degree: 2.0 };
            kernel.of(&[1.0, 2.0], &[3.0, 1.0])
        };
        assert_eq!(of(KernelKind::Linear), 5.0);
        assert_eq!(of(KernelKind::Poly), 12.25);
        assert_eq!(of(KernelKind::Rbf), (-2.5_f64).exp());
        assert_eq!(of(KernelKind::Sigmoid), 3.5_f64.tanh());
    }
}
