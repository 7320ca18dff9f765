//! Comparisons of two elements, with broadcasting.

use galatea_tensor::{DataType, Tensor, broadcast_shapes};

use crate::attribute::Attributes;
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::carried;
use crate::ops::values::{TensorValues, broadcast, expect_number, expect_same};

/// A comparison; with a NaN, all are false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ONNX's and say what they compute")]
pub enum CompareKind {
    /// Also of booleans and strings.
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// A comparison of pairs of elements of two tensors of one type; the result is `BOOL`.
///
/// Shapes: any two that broadcast; the result has the common shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The comparison.
    pub kind: CompareKind,
}

impl CompareKind {
    fn check(self, a: DataType, b: DataType) -> Result<(), OpError> {
        if self != Self::Equal {
            expect_number(a)?;
        }
        expect_same(a, b)
    }

    fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Self::Equal => a == b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
        }
    }

    fn zip<T: PartialOrd>(self, a: &[T], b: &[T]) -> Vec<bool> {
        a.iter().zip(b).map(|(a, b)| self.holds(a, b)).collect()
    }
}

impl Compare {
    pub(super) fn boxed(kind: CompareKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind }))
    }
}

impl Compare {
    /// The result for two vectors whose elements are lengths, where each is certain.
    fn of_lengths(&self, a: &Fact, b: &Fact, result: &Fact) -> Option<Tensor> {
        let shape = result.known_shape().filter(|shape| shape.len() <= 1)?;
        if self.kind != CompareKind::Equal {
            return None;
        }
        let a = carried(a)?;
        let b = carried(b)?;
        let at =
            |all: &[Dim], index: usize| all.get(if all.len() == 1 { 0 } else { index }).cloned();
        let count = shape.first().copied().unwrap_or(1);
        let found: Option<Vec<bool>> = collected_some(
            &mut (0..count).map(|index| length::equal(&at(&a, index)?, &at(&b, index)?)),
        );
        Tensor::from_vec(&shape, found?).ok()
    }
}

impl Operator for Compare {
    fn attributes(&self) -> Option<Attributes> {
        Some(Attributes::new())
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        self.kind.check(a.dtype, b.dtype)?;
        let shape = Fact::broadcast(&[a, b])?;
        let fact = Fact::shaped(DataType::Bool, shape);
        Ok(vec![match self.of_lengths(a, b, &fact) {
            Some(found) => Fact { value: Some(found), ..fact },
            None => fact,
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        self.kind.check(a.dtype(), b.dtype())?;
        let shape = broadcast_shapes(a.shape(), b.shape())?;
        let a = broadcast(a, &shape)?;
        let b = broadcast(b, &shape)?;
        let found = match (TensorValues::read(&a)?, TensorValues::read(&b)?) {
            (TensorValues::Floats(a), TensorValues::Floats(b)) => self.kind.zip(&a, &b),
            (TensorValues::Integers(a), TensorValues::Integers(b)) => self.kind.zip(&a, &b),
            (TensorValues::Bools(a), TensorValues::Bools(b)) => self.kind.zip(&a, &b),
            (TensorValues::Strings(a), TensorValues::Strings(b)) => self.kind.zip(&a, &b),
            _ => Vec::new(),
        };
        Ok(vec![Tensor::from_vec(&shape, found)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::ByteString;

    use super::*;
    use crate::ops::testing::one;

    fn run(name: &str, a: &Tensor, b: &Tensor) -> Vec<bool> {
        one(name, 19, &crate::Attributes::new(), &[a, b]).to_vec().unwrap()
    }

    #[test]
    fn numbers_compare_in_their_own_type() {
        let a = Tensor::vector(vec![u64::MAX, 1, 0]);
        let b = Tensor::vector(vec![u64::MAX - 1, 1, 2]);
        assert_eq!(run("Greater", &a, &b), [true, false, false]);
        assert_eq!(run("GreaterOrEqual", &a, &b), [true, true, false]);
        assert_eq!(run("Less", &a, &b), [false, false, true]);
        assert_eq!(run("LessOrEqual", &a, &b), [false, true, true]);
        let nan = Tensor::scalar(f32::NAN);
        assert_eq!(run("Equal", &nan, &nan), [false]);
        assert_eq!(run("GreaterOrEqual", &nan, &nan), [false]);
    }

    #[test]
    fn strings_and_booleans_are_equal_or_not_but_have_no_order() {
        let a = Tensor::vector(vec![ByteString::from("a"), ByteString::from("b")]);
        let b = Tensor::scalar(ByteString::from("b"));
        assert_eq!(run("Equal", &a, &b), [false, true]);
        let less = Compare { kind: CompareKind::Less };
        assert!(less.reference(OperatorInputs::new(&[Some(&a), Some(&b)])).is_err());
    }
}
