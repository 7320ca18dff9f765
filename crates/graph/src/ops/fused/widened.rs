//! Elements of float tensors, computed with as `f64`: one plain loop serves all of their types.

use galatea_tensor::{DataType, Element, Tensor, with_float};
use num_traits::NumCast;

use crate::error::OpError;
use crate::ops::values::{expect_same, floats};

/// The elements of an operand, which has the type of the first one.
pub(super) fn widened(tensor: &Tensor, dtype: DataType) -> Result<Vec<f64>, OpError> {
    expect_float(dtype)?;
    expect_same(dtype, tensor.dtype())?;
    floats(tensor)
}

/// A tensor of these elements, rounded to its type.
pub(super) fn narrowed(dtype: DataType, shape: &[usize], all: Vec<f64>) -> Result<Tensor, OpError> {
    with_float!(dtype, T => {
        let all: Vec<T> = all.into_iter().map(narrow).collect();
        Ok(Tensor::from_vec(shape, all)?)
    }, else { Err(float_expected(dtype)) })
}

/// Returns the function that rounds a number to a type.
pub(super) fn rounding(dtype: DataType) -> Result<fn(f64) -> f64, OpError> {
    with_float!(dtype, T => Ok(rounded::<T>), else {
        Err(float_expected(dtype))
    })
}

fn narrow<T: Element + NumCast>(value: f64) -> T {
    T::from(value).unwrap_or_default()
}

fn rounded<T: Element + NumCast + Into<f64>>(value: f64) -> f64 {
    narrow::<T>(value).into()
}

fn expect_float(dtype: DataType) -> Result<(), OpError> {
    if dtype.is_float() { Ok(()) } else { Err(float_expected(dtype)) }
}

fn float_expected(dtype: DataType) -> OpError {
    OpError::new(format!("expected a floating-point type, found {dtype}"))
}
