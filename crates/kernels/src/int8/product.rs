//! An integer product: its sizes, its operands and where its result goes.

use super::micro::Int8Output;
use super::pack::{ColumnPointers, Int8Panels};

/// Below this many multiply-adds a product is not worth waking threads for.
const SERIAL_TERMS: usize = 200_000;

/// The left-hand bytes of a product: something that copies rows.
pub(super) trait ByteRows: Copy + Send + Sync {
    /// Copies all terms of `rows` rows from `row` on to `out`, `stride` bytes apart.
    ///
    /// # Safety
    /// The rows exist, and `out` is valid for them.
    unsafe fn copy(&self, row: usize, rows: usize, out: *mut u8, stride: usize);

    /// Rows as they lie in memory, where they do: the pointer to row 0 and the row stride.
    fn direct(&self) -> Option<(*const u8, usize)>;
}

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(super) struct DenseBytes {
    data: *const u8,
    k: usize,
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for DenseBytes {}
// SAFETY: as for Send.
unsafe impl Sync for DenseBytes {}

impl DenseBytes {
    /// Rows of `k`, adjacent.
    pub(super) fn new(data: *const u8, k: usize) -> Self {
        Self { data, k }
    }
}

impl ByteRows for DenseBytes {
    #[inline(always)]
    unsafe fn copy(&self, row: usize, rows: usize, out: *mut u8, stride: usize) {
        for r in 0..rows {
            // SAFETY: the caller vouches for the rows.
            unsafe {
                let from = self.data.add((row + r) * self.k);
                std::ptr::copy_nonoverlapping(from, out.add(r * stride), self.k);
            }
        }
    }

    fn direct(&self) -> Option<(*const u8, usize)> {
        Some((self.data, self.k))
    }
}

/// One product.
#[derive(Clone, Copy)]
pub(super) struct Int8Product<A> {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: A,
    pub(super) signed: bool,
    pub(super) b: Int8Panels,
    pub(super) columns: ColumnPointers,
    pub(super) out: Int8Output,
    /// Elements between rows of C.
    pub(super) c_stride: usize,
}

impl<A> Int8Product<A> {
    /// The same with other rows of A.
    pub(super) fn with<B>(&self, a: B) -> Int8Product<B> {
        let Self { m, n, k, signed, b, columns, out, c_stride, .. } = *self;
        Int8Product { m, n, k, a, signed, b, columns, out, c_stride }
    }

    /// Returns whether one thread computes it.
    pub(super) fn is_serial(&self, threads: usize) -> bool {
        threads == 1 || self.m.saturating_mul(self.n).saturating_mul(self.k) < SERIAL_TERMS
    }
}
