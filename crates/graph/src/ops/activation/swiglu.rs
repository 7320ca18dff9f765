//! `SwiGLU`: one tensor gates another.

use galatea_tensor::Tensor;

use super::ActivationKind;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, expect_same, floats, from_floats};

/// `a / (1 + e^(−alpha · a)) · b` of two tensors of one type and shape.
///
/// Source: Shazeer 2020, "GLU Variants Improve Transformer", arXiv 2002.05202.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwiGlu {
    /// Slope inside the sigmoid.
    pub alpha: f32,
}

impl SwiGlu {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { alpha: context.attributes.float_or("alpha", 1.0)? }))
    }
}

fn same_shape<T: PartialEq + std::fmt::Debug>(a: &T, b: &T) -> Result<(), OpError> {
    if a == b {
        return Ok(());
    }
    Err(OpError::new(format!("inputs have shapes {a:?} and {b:?}, expected the same")))
}

impl Operator for SwiGlu {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_float(a.dtype)?;
        expect_same(a.dtype, b.dtype)?;
        if let (Some(a), Some(b)) = (a.known_shape(), b.known_shape()) {
            same_shape(&a, &b)?;
        }
        Ok(vec![Fact { value: None, elements: None, ..a.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_same(a.dtype(), b.dtype())?;
        same_shape(&a.shape(), &b.shape())?;
        let gate = ActivationKind::Swish { alpha: self.alpha };
        let all = floats(a)?.into_iter().zip(floats(b)?).map(|(a, b)| gate.apply(a) * b).collect();
        Ok(vec![from_floats(a.dtype(), a.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn the_first_input_gates_the_second() {
        let a = tensor(&[2], &[0.0_f32, 1000.0]);
        let b = tensor(&[2], &[3.0_f32, 2.0]);
        let found = one("SwiGLU", 28, &attributes([]), &[&a, &b]);
        assert_eq!(found, tensor(&[2], &[0.0_f32, 2000.0]));
        let scalar = Tensor::scalar(1.0_f32);
        assert!(run("SwiGLU", 28, &attributes([]), &[Some(&a), Some(&scalar)], 1).is_err());
    }
}
