//! Matrices whose rows lie apart, and sizes of products.

/// A matrix in memory: its elements, and the distance between its rows.
#[derive(Clone, Copy, Debug)]
pub struct StridedMatrix<T> {
    /// The elements, from the first row on.
    pub data: T,
    /// Elements between the starts of two rows.
    pub stride: usize,
}

impl<T> StridedMatrix<T> {
    /// Rows that lie `stride` elements apart.
    #[must_use]
    #[inline(always)]
    pub const fn new(data: T, stride: usize) -> Self {
        Self { data, stride }
    }
}

/// Numbers of rows and columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixSize {
    /// The rows.
    pub rows: usize,
    /// The columns.
    pub columns: usize,
}

/// The size of a product `C = A B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductSize {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A and rows of B: the length of the sums.
    pub k: usize,
    /// Columns of B and C.
    pub n: usize,
}

/// Adjacent rows, columns or terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexSpan {
    /// The first one.
    pub(crate) first: usize,
    /// Their number.
    pub(crate) count: usize,
}
