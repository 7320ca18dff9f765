//! Functions of one element.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{TensorValues, expect_float, expect_number, expect_type};

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ONNX's and say what they compute")]
pub enum UnaryKind {
    Neg,
    Abs,
    Sqrt,
    Exp,
    Log,
    Erf,
    Reciprocal,
    Floor,
    Ceil,
    /// To the nearest integer, ties to even.
    Round,
    /// -1, 0 or 1; a NaN stays one.
    Sign,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    BitwiseNot,
}

/// A function applied to every element. The result has the input's type and shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unary {
    /// The function.
    pub kind: UnaryKind,
}

impl Unary {
    pub(super) fn boxed(kind: UnaryKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind }))
    }
}

impl UnaryKind {
    fn check(self, dtype: DataType) -> Result<(), OpError> {
        match self {
            Self::Neg | Self::Abs | Self::Sign => expect_number(dtype),
            Self::BitwiseNot => {
                expect_type("the input", dtype, DataType::is_integer, "an integer type")
            }
            _ => expect_float(dtype),
        }
    }

    pub(crate) fn float(self, x: f64) -> f64 {
        match self {
            Self::Neg => -x,
            Self::Abs => x.abs(),
            Self::Sqrt => x.sqrt(),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Erf => libm::erf(x),
            Self::Reciprocal => x.recip(),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Round => x.round_ties_even(),
            Self::Sign if x == 0.0 => 0.0,
            Self::Sign => x.signum(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::Asin => x.asin(),
            Self::Acos => x.acos(),
            Self::Atan => x.atan(),
            Self::Sinh => x.sinh(),
            Self::Cosh => x.cosh(),
            Self::Asinh => x.asinh(),
            Self::Acosh => x.acosh(),
            Self::Atanh => x.atanh(),
            // Refused by `check`.
            Self::BitwiseNot => x,
        }
    }

    fn integer(self, x: i128) -> i128 {
        match self {
            Self::Neg => -x,
            Self::Abs => x.abs(),
            Self::Sign => x.signum(),
            Self::BitwiseNot => !x,
            // Refused by `check`.
            _ => x,
        }
    }
}

impl Operator for Unary {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        self.kind.check(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        self.kind.check(x.dtype())?;
        let values = match TensorValues::read(x)? {
            TensorValues::Floats(all) => {
                TensorValues::Floats(all.into_iter().map(|v| self.kind.float(v)).collect())
            }
            TensorValues::Integers(all) => {
                TensorValues::Integers(all.into_iter().map(|v| self.kind.integer(v)).collect())
            }
            other => other,
        };
        Ok(vec![values.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: UnaryKind, x: Tensor) -> Result<Tensor, OpError> {
        let inputs = [Some(&x)];
        Ok(Unary { kind }.reference(OperatorInputs::new(&inputs))?.remove(0))
    }

    #[test]
    fn ties_round_to_even_and_erf_saturates() {
        let x = Tensor::vector(vec![0.5_f32, 1.5, -2.5, 2.6]);
        assert_eq!(
            run(UnaryKind::Round, x).unwrap(),
            Tensor::vector(vec![0.0_f32, 2.0, -2.0, 3.0])
        );
        let x = Tensor::vector(vec![0.0_f32, 0.5, 10.0]);
        assert_eq!(
            run(UnaryKind::Erf, x).unwrap(),
            Tensor::vector(vec![0.0_f32, 0.520_499_9, 1.0])
        );
    }

    #[test]
    fn integers_wrap_at_the_ends() {
        let x = Tensor::vector(vec![i8::MIN, 5]);
        assert_eq!(run(UnaryKind::Neg, x.clone()).unwrap(), Tensor::vector(vec![i8::MIN, -5]));
        assert_eq!(run(UnaryKind::Abs, x).unwrap(), Tensor::vector(vec![i8::MIN, 5]));
        let x = Tensor::vector(vec![0_u8, 1]);
        assert_eq!(run(UnaryKind::BitwiseNot, x).unwrap(), Tensor::vector(vec![255_u8, 254]));
    }

    #[test]
    fn a_type_that_the_function_is_not_defined_on_is_refused() {
        let error = run(UnaryKind::Sqrt, Tensor::vector(vec![1_i32])).unwrap_err();
        assert!(error.to_string().contains("INT32"), "{error}");
        assert!(run(UnaryKind::Neg, Tensor::vector(vec![true])).is_err());
    }
}
