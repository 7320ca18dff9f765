//! Functions of two elements, with broadcasting.

use galatea_tensor::{DataType, Tensor, broadcast_shapes};

use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::carried;
use crate::ops::values::{TensorValues, broadcast, expect_number, expect_same, expect_type};

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ONNX's and say what they compute")]
pub enum BinaryKind {
    Add,
    Sub,
    Mul,
    /// Integers truncate towards zero; an integer divided by zero is an error.
    Div,
    /// The remainder: of the divisor's sign, or with `fmod` of the dividend's, as in C.
    Mod {
        fmod: bool,
    },
    /// Shifts by the width of the type or more give 0; to the right, negative numbers give −1.
    BitShift {
        left: bool,
    },
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
}

/// A function applied to pairs of elements of two tensors of one type.
///
/// Shapes: any two that broadcast; the result has the common shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The function.
    pub kind: BinaryKind,
}

impl Binary {
    pub(super) fn boxed(kind: BinaryKind) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { kind }))
    }
}

impl BinaryKind {
    fn check(self, dtype: DataType) -> Result<(), OpError> {
        let integer = || expect_type("the input", dtype, DataType::is_integer, "an integer type");
        match self {
            Self::BitwiseAnd | Self::BitwiseOr | Self::BitwiseXor | Self::BitShift { .. } => {
                integer()
            }
            _ => expect_number(dtype),
        }
    }

    pub(crate) fn float(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::Mod { fmod: true } => a % b,
            Self::Mod { fmod: false } => floor_remainder(a, b),
            // Refused by `check`.
            Self::BitShift { .. } | Self::BitwiseAnd | Self::BitwiseOr | Self::BitwiseXor => a,
        }
    }

    /// Operands are at most 64 bits wide, so sums and quotients cannot overflow here; a product
    /// wraps, and its low 64 bits are right.
    fn integer(self, a: i128, b: i128) -> Result<i128, OpError> {
        let zero = || OpError::new("integer division by zero");
        Ok(match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a.wrapping_mul(b),
            Self::Div => a.checked_div(b).ok_or_else(zero)?,
            Self::Mod { fmod: true } => a.checked_rem(b).ok_or_else(zero)?,
            Self::Mod { fmod: false } => {
                let rest = a.checked_rem(b).ok_or_else(zero)?;
                if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
            }
            Self::BitShift { left } => shift(a, b, left),
            Self::BitwiseAnd => a & b,
            Self::BitwiseOr => a | b,
            Self::BitwiseXor => a ^ b,
        })
    }

    /// The length that results from two lengths, where it is certain.
    fn length(self, a: &Dim, b: &Dim) -> Dim {
        match (self, a, b) {
            (Self::Div | Self::Mod { .. }, Dim::Known(a), Dim::Known(b)) => {
                let result = if self == Self::Div { a.checked_div(*b) } else { a.checked_rem(*b) };
                result.map_or(Dim::Unknown, Dim::Known)
            }
            (Self::Add, a, b) => length::plus(a, b),
            (Self::Sub, a, b) => length::minus(a, b),
            (Self::Mul, a, b) => length::times(a, b),
            (Self::Div, a, b) => length::over(a, b),
            _ => Dim::Unknown,
        }
    }
}

/// The remainder of a division that rounds down: of the divisor's sign, a zero included.
fn floor_remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        0.0_f64.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

/// A shift by a negative amount is one by more than any width: only the sign of a right shift
/// stays.
fn shift(a: i128, by: i128, left: bool) -> i128 {
    let by = u32::try_from(by).unwrap_or(u32::MAX);
    match left {
        true if by >= 64 => 0,
        true => a << by,
        false => a >> by.min(127),
    }
}

impl Binary {
    /// Elements of the result of two integer scalars or vectors whose elements are lengths.
    fn lengths(&self, a: &Fact, b: &Fact, shape: Option<&Vec<Dim>>) -> Option<Vec<Dim>> {
        if shape?.len() > 1 {
            return None;
        }
        let left = carried(a)?;
        let right = carried(b)?;
        let count = left.len().max(right.len());
        let at = |all: &[Dim], index: usize| {
            if all.len() == 1 { all.first().cloned() } else { all.get(index).cloned() }
        };
        (0..count)
            .map(|index| Some(self.kind.length(&at(&left, index)?, &at(&right, index)?)))
            .collect()
    }
}

impl Operator for Binary {
    fn attributes(&self) -> Option<Attributes> {
        match self.kind {
            BinaryKind::Mod { fmod } => Some(named([("fmod", fmod.into())])),
            BinaryKind::BitShift { .. } => None,
            _ => Some(Attributes::new()),
        }
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        self.kind.check(a.dtype)?;
        expect_same(a.dtype, b.dtype)?;
        let shape = Fact::broadcast(&[a, b])?;
        let elements = self.lengths(a, b, shape.as_ref());
        let fact = Fact::shaped(a.dtype, shape);
        Ok(vec![fact.with_elements(elements)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        self.kind.check(a.dtype())?;
        expect_same(a.dtype(), b.dtype())?;
        let result = elementwise(
            a,
            b,
            a.dtype(),
            |a, b| self.kind.float(a, b),
            |a, b| self.kind.integer(a, b),
        )?;
        Ok(vec![result])
    }
}

/// Applies a function to pairs of elements of two number tensors of one type.
pub(crate) fn elementwise(
    a: &Tensor,
    b: &Tensor,
    dtype: DataType,
    float: impl Fn(f64, f64) -> f64,
    integer: impl Fn(i128, i128) -> Result<i128, OpError>,
) -> Result<Tensor, OpError> {
    let shape = broadcast_shapes(a.shape(), b.shape())?;
    let values = match (
        TensorValues::read(&broadcast(a, &shape)?)?,
        TensorValues::read(&broadcast(b, &shape)?)?,
    ) {
        (TensorValues::Floats(a), TensorValues::Floats(b)) => {
            TensorValues::Floats(a.into_iter().zip(b).map(|(a, b)| float(a, b)).collect())
        }
        (TensorValues::Integers(a), TensorValues::Integers(b)) => TensorValues::Integers(
            a.into_iter().zip(b).map(|(a, b)| integer(a, b)).collect::<Result<_, _>>()?,
        ),
        _ => {
            return Err(OpError::new(format!(
                "inputs have types {} and {}, expected the same float or integer type",
                a.dtype(),
                b.dtype()
            )));
        }
    };
    values.write(dtype, &shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: BinaryKind, a: Tensor, b: Tensor) -> Result<Tensor, OpError> {
        let inputs = [Some(&a), Some(&b)];
        Ok(Binary { kind }.reference(OperatorInputs::new(&inputs))?.remove(0))
    }

    #[test]
    fn operands_broadcast() {
        let column = Tensor::from_vec(&[2, 1], vec![10.0_f32, 20.0]).unwrap();
        let row = Tensor::vector(vec![1.0_f32, 2.0, 3.0]);
        let sum = run(BinaryKind::Add, column, row).unwrap();
        let expected = vec![11.0_f32, 12.0, 13.0, 21.0, 22.0, 23.0];
        assert_eq!(sum, Tensor::from_vec(&[2, 3], expected).unwrap());
    }

    #[test]
    fn integers_wrap_truncate_and_refuse_zero() {
        let of = |all: &[i32]| Tensor::vector(all.to_vec());
        let ends = of(&[i32::MAX, i32::MIN, -7]);
        let run = |kind, b: &[i32]| run(kind, ends.clone(), of(b));
        assert_eq!(run(BinaryKind::Add, &[1]).unwrap(), of(&[i32::MIN, i32::MIN + 1, -6]));
        assert_eq!(run(BinaryKind::Div, &[1, -1, 2]).unwrap(), of(&[i32::MAX, i32::MIN, -3]));
        assert!(run(BinaryKind::Div, &[0]).unwrap_err().to_string().contains("zero"));
        assert!(run(BinaryKind::Mod { fmod: false }, &[0]).is_err());
        let big = Tensor::vector(vec![u64::MAX]);
        let squared = super::tests::run(BinaryKind::Mul, big.clone(), big).unwrap();
        assert_eq!(squared, Tensor::vector(vec![1_u64]));
    }

    #[test]
    fn the_remainder_has_the_sign_of_the_divisor_or_with_fmod_of_the_dividend() {
        let a = Tensor::vector(vec![-4_i64, 7, 5, 4, -7, 8]);
        let b = Tensor::vector(vec![2_i64, -3, 8, -2, 3, 5]);
        assert_eq!(
            run(BinaryKind::Mod { fmod: false }, a.clone(), b.clone()).unwrap(),
            Tensor::vector(vec![0_i64, -2, 5, 0, 2, 3])
        );
        assert_eq!(
            run(BinaryKind::Mod { fmod: true }, a, b).unwrap(),
            Tensor::vector(vec![0_i64, 1, 5, 0, -1, 3])
        );
    }

    #[test]
    fn shifts_drop_what_leaves_the_type() {
        let a = Tensor::vector(vec![16_u8, 255, 1]);
        let b = Tensor::vector(vec![1_u8, 4, 200]);
        let left = run(BinaryKind::BitShift { left: true }, a.clone(), b.clone()).unwrap();
        assert_eq!(left, Tensor::vector(vec![32_u8, 240, 0]));
        let right = run(BinaryKind::BitShift { left: false }, a, b).unwrap();
        assert_eq!(right, Tensor::vector(vec![8_u8, 15, 0]));
        let a = Tensor::vector(vec![-8_i8, 4, -1]);
        let b = Tensor::vector(vec![1_i8, -1, 8]);
        let right = run(BinaryKind::BitShift { left: false }, a.clone(), b.clone()).unwrap();
        assert_eq!(right, Tensor::vector(vec![-4_i8, 0, -1]));
        let left = run(BinaryKind::BitShift { left: true }, a, b).unwrap();
        assert_eq!(left, Tensor::vector(vec![-16_i8, 0, 0]));
    }

    #[test]
    fn lengths_stay_symbolic_where_the_result_is_certain() {
        let batch = Dim::symbol("batch");
        let a = Fact::fixed(DataType::Int64, &[3]).with_elements(Some(vec![
            batch.clone(),
            Dim::Known(6),
            batch.clone(),
        ]));
        let b = Fact::constant(Tensor::vector(vec![1_i64, 2, 5]));
        let infer = |kind, a: &Fact, b: &Fact| {
            let inputs = [Some(a), Some(b)];
            Binary { kind }.infer(OperatorInputs::new(&inputs)).unwrap().remove(0).elements.unwrap()
        };
        let product = infer(BinaryKind::Mul, &a, &b);
        assert_eq!(product, [batch.clone(), Dim::Known(12), Dim::symbol("5*batch")]);
        let quotient = infer(BinaryKind::Div, &a, &b);
        assert_eq!(quotient, [batch, Dim::Known(3), Dim::Unknown]);
    }
}
