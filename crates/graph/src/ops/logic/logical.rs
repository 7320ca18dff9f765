//! Connectives of two truth values, with broadcasting.

use galatea_tensor::{DataType, Tensor, broadcast_shapes};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{broadcast, expect_type};

/// A connective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ONNX's and say what they compute")]
pub enum LogicalKind {
    And,
    Or,
    Xor,
}

/// A connective applied to pairs of elements of two `BOOL` tensors.
///
/// Shapes: any two that broadcast; the result has the common shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logical {
    /// The connective.
    pub kind: LogicalKind,
}

/// Refuses what is not `BOOL`.
pub(super) fn expect_bool(dtype: DataType) -> Result<(), OpError> {
    expect_type("the input", dtype, |found| found == DataType::Bool, "BOOL")
}

impl Logical {
    pub(super) fn boxed(kind: LogicalKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind }))
    }
}

impl Operator for Logical {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_bool(a.dtype)?;
        expect_bool(b.dtype)?;
        let shape = Fact::broadcast(&[a, b])?;
        Ok(vec![Fact::shaped(DataType::Bool, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        expect_bool(a.dtype())?;
        expect_bool(b.dtype())?;
        let shape = broadcast_shapes(a.shape(), b.shape())?;
        let a = broadcast(a, &shape)?.to_vec()?;
        let b = broadcast(b, &shape)?.to_vec()?;
        let join = |(a, b): (bool, bool)| match self.kind {
            LogicalKind::And => a && b,
            LogicalKind::Or => a || b,
            LogicalKind::Xor => a != b,
        };
        let found: Vec<bool> = a.into_iter().zip(b).map(join).collect();
        Ok(vec![Tensor::from_vec(&shape, found)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::one;

    #[test]
    fn connectives_follow_their_truth_tables() {
        let a = Tensor::from_vec(&[2, 1], vec![false, true]).unwrap();
        let b = Tensor::vector(vec![false, true]);
        let run =
            |name| one(name, 7, &crate::Attributes::new(), &[&a, &b]).to_vec::<bool>().unwrap();
        assert_eq!(run("And"), [false, false, false, true]);
        assert_eq!(run("Or"), [false, true, true, true]);
        assert_eq!(run("Xor"), [false, true, true, false]);
    }
}
