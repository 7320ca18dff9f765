//! The input of a model: one row of features per example.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::ops::values::{expect_type, floats};

/// The numbers that scores are summed in. Where scores are equal but for their rounding, the label
/// hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScorePrecision {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl ScorePrecision {
    /// Returns the precision in which ONNX Runtime sums for features of this type.
    pub(super) fn of(features: DataType) -> Self {
        if features == DataType::Fp64 { Self::Double } else { Self::Single }
    }

    /// The sum of two numbers.
    #[allow(clippy::cast_possible_truncation, reason = "a sum in single precision")]
    #[must_use]
    pub fn sum(self, a: f64, b: f64) -> f64 {
        match self {
            // Rounding twice gives what rounding once does: double has twice the digits and more.
            Self::Single => f64::from((a + b) as f32),
            Self::Double => a + b,
        }
    }
}

/// Rows of equal length; one vector is one row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FeatureRows {
    pub(super) count: usize,
    pub(super) width: usize,
    pub(super) precision: ScorePrecision,
    values: Vec<f64>,
}

/// Refuses what is none of the four types that the operators take.
pub(super) fn expect_numbers(dtype: DataType) -> Result<(), OpError> {
    use DataType::{Fp32, Fp64, Int32, Int64};
    let allowed = |found| matches!(found, Fp32 | Fp64 | Int32 | Int64);
    expect_type("the input", dtype, allowed, "FP32, FP64, INT32 or INT64")
}

/// The elements of a tensor of numbers.
#[allow(clippy::cast_precision_loss, reason = "features are computed as floats")]
pub(super) fn numbers(tensor: &Tensor) -> Result<Vec<f64>, OpError> {
    if tensor.dtype().is_float() {
        return floats(tensor);
    }
    Ok(tensor.to_i64_vec()?.into_iter().map(|value| value as f64).collect())
}

fn bad_rank(rank: usize) -> OpError {
    OpError::new(format!("the input has rank {rank}, expected rows of features (rank 1 or 2)"))
}

impl FeatureRows {
    /// Reads a tensor of any number type; which types fit is the operator's matter.
    pub(super) fn read(x: &Tensor) -> Result<Self, OpError> {
        let (count, width) = match *x.shape() {
            [width] => (1, width),
            [count, width] => (count, width),
            _ => return Err(bad_rank(x.rank())),
        };
        Ok(Self { count, width, precision: ScorePrecision::of(x.dtype()), values: numbers(x)? })
    }

    /// The rows in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.count).map(|at| &self.values[at * self.width..(at + 1) * self.width])
    }

    /// Returns the number of rows, and their length where it is known.
    pub(super) fn inferred(x: &Fact) -> Result<(Dim, Option<usize>), OpError> {
        match x.shape.as_deref() {
            None => Ok((Dim::Unknown, None)),
            Some([width]) => Ok((Dim::Known(1), width.known())),
            Some([count, width]) => Ok((count.clone(), width.known())),
            Some(other) => Err(bad_rank(other.len())),
        }
    }
}

/// Refuses rows of another length than the model was made for.
pub(super) fn expect_width(width: usize, expected: usize) -> Result<(), OpError> {
    if width == expected {
        return Ok(());
    }
    Err(OpError::new(format!("rows of {width} features, the model has {expected}")))
}
