//! Elements of tensors, widened so that the reference of an operator is one plain loop for all of
//! its types: floats are computed in `f64` and rounded once, integers in `i128` and wrapped once.

#![allow(
    clippy::cast_possible_truncation,
    reason = "narrowing to the element type is what this module is for"
)]

use galatea_tensor::{ByteString, DataType, Tensor, bf16, f16};

use crate::error::OpError;
use crate::ops::bounds::bounded;

/// The elements of a tensor in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TensorValues {
    /// Elements of a `BOOL` tensor.
    Bools(Vec<bool>),
    /// Elements of any integer tensor.
    Integers(Vec<i128>),
    /// Elements of any float tensor.
    Floats(Vec<f64>),
    /// Elements of a `BYTES` tensor.
    Strings(Vec<ByteString>),
}

macro_rules! integer_types {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            DataType::Uint8 => {
                type $T = u8;
                $body
            }
            DataType::Uint16 => {
                type $T = u16;
                $body
            }
            DataType::Uint32 => {
                type $T = u32;
                $body
            }
            DataType::Uint64 => {
                type $T = u64;
                $body
            }
            DataType::Int8 => {
                type $T = i8;
                $body
            }
            DataType::Int16 => {
                type $T = i16;
                $body
            }
            DataType::Int32 => {
                type $T = i32;
                $body
            }
            DataType::Int64 => {
                type $T = i64;
                $body
            }
            _ => $other,
        }
    };
}

impl TensorValues {
    /// Reads any tensor.
    pub(crate) fn read(tensor: &Tensor) -> Result<Self, OpError> {
        Ok(match tensor.dtype() {
            DataType::Bool => Self::Bools(tensor.to_vec::<bool>()?),
            DataType::Bytes => Self::Strings(tensor.to_vec::<ByteString>()?),
            dtype if dtype.is_float() => Self::Floats(floats(tensor)?),
            _ => Self::Integers(integers(tensor)?),
        })
    }

    /// Makes a tensor of these elements. Floats are rounded to nearest, integers wrap.
    pub(crate) fn write(self, dtype: DataType, shape: &[usize]) -> Result<Tensor, OpError> {
        match self {
            Self::Bools(all) if dtype == DataType::Bool => Ok(Tensor::from_vec(shape, all)?),
            Self::Strings(all) if dtype == DataType::Bytes => Ok(Tensor::from_vec(shape, all)?),
            Self::Integers(all) => from_integers(dtype, shape, &all),
            Self::Floats(all) => from_floats(dtype, shape, all),
            Self::Bools(_) | Self::Strings(_) => {
                Err(OpError::new(format!("elements do not fit a tensor of type {dtype}")))
            }
        }
    }
}

/// The elements of a float tensor.
pub(crate) fn floats(tensor: &Tensor) -> Result<Vec<f64>, OpError> {
    Ok(match tensor.dtype() {
        DataType::Fp32 => tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        DataType::Fp64 => tensor.to_vec::<f64>()?,
        DataType::Fp16 => tensor.to_vec::<f16>()?.into_iter().map(f64::from).collect(),
        DataType::Bf16 => tensor.to_vec::<bf16>()?.into_iter().map(f64::from).collect(),
        other => return Err(OpError::new(format!("expected a float tensor, found {other}"))),
    })
}

/// The elements of an integer tensor.
pub(crate) fn integers(tensor: &Tensor) -> Result<Vec<i128>, OpError> {
    let dtype = tensor.dtype();
    integer_types!(
        dtype,
        T => Ok(tensor.to_vec::<T>()?.into_iter().map(i128::from).collect()),
        else Err(OpError::new(format!("expected an integer tensor, found {dtype}")))
    )
}

/// The elements of a tensor of a small type, each exact.
pub(crate) fn small(tensor: &Tensor) -> Result<Vec<f64>, OpError> {
    let DataType::Small(small) = tensor.dtype() else {
        return Err(OpError::new(format!("expected a small type, found {}", tensor.dtype())));
    };
    let whole = tensor.contiguous()?;
    Ok(whole.as_bytes()?.iter().map(|&code| small.value(code)).collect())
}

/// The elements of a tensor of floats of any width.
pub(crate) fn floats_of_any_width(tensor: &Tensor) -> Result<Vec<f64>, OpError> {
    match tensor.dtype() {
        DataType::Small(kind) if kind.integer_range().is_none() => small(tensor),
        _ => floats(tensor),
    }
}

/// A float tensor of these elements, rounded to nearest.
pub(crate) fn from_floats(
    dtype: DataType,
    shape: &[usize],
    all: Vec<f64>,
) -> Result<Tensor, OpError> {
    Ok(match dtype {
        DataType::Fp32 => {
            Tensor::from_vec(shape, all.into_iter().map(|v| v as f32).collect::<Vec<_>>())?
        }
        DataType::Fp64 => Tensor::from_vec(shape, all)?,
        DataType::Fp16 => {
            let narrow = |v| f16::from_f32(round_to_odd(v));
            Tensor::from_vec(shape, all.into_iter().map(narrow).collect::<Vec<_>>())?
        }
        DataType::Bf16 => {
            let narrow = |v| bf16::from_f32(round_to_odd(v));
            Tensor::from_vec(shape, all.into_iter().map(narrow).collect::<Vec<_>>())?
        }
        other => return Err(OpError::new(format!("expected a float type, found {other}"))),
    })
}

/// An integer tensor of these elements, wrapped.
pub(crate) fn from_integers(
    dtype: DataType,
    shape: &[usize],
    all: &[i128],
) -> Result<Tensor, OpError> {
    integer_types!(
        dtype,
        T => Ok(Tensor::from_vec(shape, all.iter().map(|&v| v as T).collect::<Vec<_>>())?),
        else Err(OpError::new(format!("expected an integer type, found {dtype}")))
    )
}

/// Lowest and highest value of an integer type.
pub(crate) fn integer_range(dtype: DataType) -> Option<(i128, i128)> {
    integer_types!(dtype, T => Some((T::MIN.into(), T::MAX.into())), else None)
}

/// Rounds such that a second rounding, to nearest in a type of at most 22 significant bits, gives
/// what one rounding from `f64` would have given: inexact results get an odd last bit, so that
/// they are never mistaken for a tie.
///
/// Source: Boldo and Melquiond, "When double rounding is odd" (2005).
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let exact = f64::from(nearest) == value || value.is_nan() || value.is_infinite();
    if exact || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // `nearest` is even and inexact: the neighbour on the other side of `value` is odd.
    let away = f64::from(nearest).abs() > value.abs();
    f32::from_bits(if away { nearest.to_bits() - 1 } else { nearest.to_bits() + 1 })
}

/// One operand as the loop over a broadcast result of bounded size reads it.
pub(crate) fn broadcast(tensor: &Tensor, shape: &[usize]) -> Result<Tensor, OpError> {
    bounded(tensor.dtype(), shape)?;
    Ok(tensor.broadcast_to(shape)?)
}

/// Refuses a type that is none of an operator's.
pub(crate) fn expect_type(
    what: &str,
    found: DataType,
    allowed: impl FnOnce(DataType) -> bool,
    expected: &str,
) -> Result<(), OpError> {
    if allowed(found) { Ok(()) } else { Err(wrong_type(what, found, expected)) }
}

fn wrong_type(what: &str, found: DataType, expected: &str) -> OpError {
    OpError::new(format!("{what} has type {found}, expected {expected}"))
}

/// Refuses a second operand of another type.
pub(crate) fn expect_same(first: DataType, other: DataType) -> Result<(), OpError> {
    if first == other {
        return Ok(());
    }
    Err(OpError::new(format!("inputs have types {first} and {other}, expected the same")))
}

/// Refuses what is not a float.
pub(crate) fn expect_float(dtype: DataType) -> Result<(), OpError> {
    expect_type("the input", dtype, DataType::is_float, "a float type")
}

/// Refuses what is not a float of any width.
pub(crate) fn expect_float_of_any_width(dtype: DataType) -> Result<(), OpError> {
    let allowed = |dtype: DataType| match dtype {
        DataType::Small(small) => small.integer_range().is_none(),
        dtype => dtype.is_float(),
    };
    expect_type("the input", dtype, allowed, "a float type")
}

/// Refuses what is neither float nor integer.
pub(crate) fn expect_number(dtype: DataType) -> Result<(), OpError> {
    expect_type("the input", dtype, is_number, "a float or integer type")
}

/// Returns whether arithmetic is defined on a type.
pub(crate) fn is_number(dtype: DataType) -> bool {
    dtype.is_float() || dtype.is_integer()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_once() {
        // Halfway between two f16 neighbours plus less than f32 resolves: must round up.
        let value = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        let tensor = from_floats(DataType::Fp16, &[1], vec![value]).unwrap();
        assert_eq!(tensor.item::<f16>().unwrap().to_f64(), 1.0 + 2f64.powi(-10));
        let tie = from_floats(DataType::Fp16, &[1], vec![1.0 + 2f64.powi(-11)]).unwrap();
        assert_eq!(tie.item::<f16>().unwrap().to_f64(), 1.0);
        let huge = from_floats(DataType::Bf16, &[1], vec![-1e300]).unwrap();
        assert_eq!(huge.item::<bf16>().unwrap(), bf16::NEG_INFINITY);
        let tiny = from_floats(DataType::Fp16, &[1], vec![1e-300]).unwrap();
        assert_eq!(tiny.item::<f16>().unwrap(), f16::ZERO);
    }

    #[test]
    fn integers_wrap_and_64_bits_survive() {
        let all = integers(&Tensor::vector(vec![u64::MAX, 1])).unwrap();
        assert_eq!(from_integers(DataType::Uint64, &[2], &all).unwrap(), {
            Tensor::vector(vec![u64::MAX, 1])
        });
        assert_eq!(
            from_integers(DataType::Int8, &[1], &[200]).unwrap(),
            Tensor::vector(vec![-56_i8])
        );
    }
}
