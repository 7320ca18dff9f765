//! Operands, sizes and errors of BLAS calls.

use crate::Unavailable;

/// Storage order of an operand. Rows are `stride` elements apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandOrientation {
    /// Stored as the multiplication reads it.
    Plain,
    /// Transposed: its columns are stored as rows.
    Transposed,
}

/// One factor of a product.
#[derive(Debug, Clone, Copy)]
pub struct BlasOperand<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Elements from one stored row to the next.
    pub stride: usize,
    /// Orientation of the stored matrix: plain or transposed.
    pub orientation: OperandOrientation,
}

/// The sizes of `C = alpha * A * B + beta * C`: `A` is `m` by `k`, `B` is `k` by `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlasSizes {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Terms of each sum.
    pub k: usize,
}

/// Factors of a product and of what the result held before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmScaling {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the result's elements before. With 0 they are not read.
    pub beta: f32,
}

/// Reason why a matrix multiplication was not computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SgemmError {
    /// Not on this machine.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A slice is shorter than its matrix.
    #[error("matrix {matrix} has {found} elements, its sizes need {needed}")]
    Short {
        /// `A`, `B` or `C`.
        matrix: char,
        /// Elements found.
        found: usize,
        /// Elements needed.
        needed: usize,
    },
    /// A stride is smaller than a row.
    #[error("matrix {matrix} has stride {stride}, its rows have {columns} elements")]
    Stride {
        /// `A`, `B` or `C`.
        matrix: char,
        /// The stride given.
        stride: usize,
        /// Elements of one stored row.
        columns: usize,
    },
    /// A size, a stride or their product exceeds what BLAS can be told.
    #[error("matrix {matrix} is too large")]
    TooLarge {
        /// `A`, `B` or `C`.
        matrix: char,
    },
}
