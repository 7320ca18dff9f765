//! Matrices as they lie in memory before they are packed.

use crate::StridedMatrix;
use crate::gemm::check_matrix;
use crate::gemm::layout::Transposition;

/// Terms of a group of the 2:4 pattern.
pub(super) const GROUP: usize = 4;

/// Terms of a group that are kept.
pub(super) const KEPT: usize = 2;

/// A `k` x `n` matrix in memory, as [`crate::PackedB::pack`] takes it.
#[derive(Clone, Copy, Debug)]
pub struct PlainMatrix<'a> {
    /// The elements: `k` rows of `n`, or transposed `n` rows of `k`.
    pub data: StridedMatrix<&'a [f32]>,
    /// Rows of the matrix.
    pub k: usize,
    /// Its columns.
    pub n: usize,
    /// How it lies in memory.
    pub trans: Transposition,
}

impl PlainMatrix<'_> {
    #[track_caller]
    pub(super) fn check(&self) {
        let Self { data, k, n, trans } = *self;
        let (rows, columns) = if trans == Transposition::No { (k, n) } else { (n, k) };
        check_matrix("B", data.data.len(), rows, columns, data.stride);
    }

    #[inline]
    pub(super) fn at(&self, row: usize, column: usize) -> f32 {
        let stride = self.data.stride;
        let at = match self.trans {
            Transposition::No => row * stride + column,
            Transposition::Yes => column * stride + row,
        };
        self.data.data[at]
    }
}
