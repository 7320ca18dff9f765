//! Matrix products: packed weights, batches of dynamic operands, fused epilogues.
//!
//! The right-hand matrix is cut into panels as wide as the register tile; rows of the left-hand
//! matrix are copied block by block into a buffer whose fixed stride the tile's code knows. The
//! same machine serves dense products, batches with transposes, and convolutions (whose rows are
//! gathered from the image), which differ only in how rows are copied.

mod depth;
mod drive;
mod epilogue;
mod layout;
mod micro;
mod pack;
mod sparse;

use crate::KernelContext;
use crate::matrix::{MatrixSize, ProductSize, StridedMatrix};
use crate::memory::DisjointSlice;

pub(crate) use depth::depth_blocks;
pub use drive::GemmBlocking;
pub(crate) use drive::{GemmProduct, multiply, multiply_here, multiply_panels, panels_scratch};
use drive::{finish_rows, multiply_cut};
pub(crate) use epilogue::TileFinish;
pub use epilogue::{GemmEpilogue, MatrixJoin, ResidualMatrix};
pub use layout::Transposition;
pub(crate) use micro::{
    A_STRIDE, GemmStep, K_BLOCK, PrefetchStretch, THIN_ROWS, block, thin, write_tile,
};
pub(crate) use pack::{
    BSource, DenseRows, RowSource, TransposedRows, copy_rows, copy_run, pack_panel, zero_run,
};
pub use pack::{PackedB, PackedFp16};
pub use sparse::{PackedSparse, PlainMatrix, SparseLayout, ZeroPattern, gemm_sparse};
pub(crate) use sparse::{multiply_packed_sparse, promises_zeros};

/// Checks that `len` elements hold `rows` rows of `columns`, `ld` apart.
#[track_caller]
pub(crate) fn check_matrix(name: &str, len: usize, rows: usize, columns: usize, ld: usize) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(ld >= columns || rows == 1, "{name}: leading dimension {ld} for rows of {columns}");
    let needed = (rows - 1).checked_mul(ld).and_then(|x| x.checked_add(columns));
    assert!(
        needed.is_some_and(|needed| len >= needed),
        "{name}: {len} elements for {rows} rows of {columns}, {ld} apart"
    );
}

/// `C = epilogue(A B)` with B packed once.
///
/// Shapes: A is `m` rows of `b.k()`, `lda` apart; C is `m` rows of `b.n()`, `ldc` apart.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, a leading dimension is less than a row, or B
/// is packed for another instruction set than `exec.isa`.
#[allow(clippy::too_many_arguments, reason = "the arguments of a BLAS product, in its order")]
pub fn gemm(
    exec: KernelContext<'_>,
    m: usize,
    a: &[f32],
    lda: usize,
    b: &PackedB,
    c: &mut [f32],
    ldc: usize,
    epilogue: &GemmEpilogue<'_>,
) {
    let a = StridedMatrix::new(a, lda);
    let c = StridedMatrix::new(c, ldc);
    gemm_cut(exec, GemmBlocking::Usual, m, a, b, c, epilogue);
}

/// Computes like [`gemm`], cut into tasks by `blocking`.
///
/// # Panics
/// Panics like [`gemm`].
pub fn gemm_cut(
    exec: KernelContext<'_>,
    blocking: GemmBlocking,
    m: usize,
    a: StridedMatrix<&[f32]>,
    b: &PackedB,
    c: StridedMatrix<&mut [f32]>,
    epilogue: &GemmEpilogue<'_>,
) {
    let n = b.n();
    let k = b.k();
    assert!(b.isa() == exec.isa, "B is packed for {}, not {}", b.isa().name(), exec.isa.name());
    check_matrix("A", a.data.len(), m, k, a.stride);
    check_matrix("C", c.data.len(), m, n, c.stride);
    epilogue.check(m, n);
    let product = GemmProduct {
        m,
        n,
        k,
        a: DenseRows::new(a.data.as_ptr(), a.stride),
        b: b.as_source(),
        c: DisjointSlice::new(c.data),
        c_stride: c.stride,
        finish: TileFinish::new(epilogue),
    };
    // SAFETY: the lengths are checked above, and C is borrowed exclusively.
    unsafe { multiply_cut(exec, 1, blocking, |_| product) };
}

/// `C = epilogue(C)`, where C holds a product that something else has computed.
///
/// # Panics
/// Panics when the slice is shorter than `size` and its stride say, or the stride is less than a
/// row.
pub fn finish(
    exec: KernelContext<'_>,
    size: MatrixSize,
    c: StridedMatrix<&mut [f32]>,
    epilogue: &GemmEpilogue<'_>,
) {
    check_matrix("C", c.data.len(), size.rows, size.columns, c.stride);
    epilogue.check(size.rows, size.columns);
    let c = StridedMatrix::new(DisjointSlice::new(c.data), c.stride);
    // SAFETY: the lengths are checked above, and C is borrowed exclusively.
    unsafe { finish_rows(exec, size, c, TileFinish::new(epilogue)) };
}

/// [`gemm`] with weights of FP16, which are widened: what is lost is their rounding.
///
/// # Panics
/// Panics like [`gemm`].
#[allow(clippy::too_many_arguments, reason = "the arguments of a BLAS product, in its order")]
pub fn gemm_fp16(
    exec: KernelContext<'_>,
    m: usize,
    a: &[f32],
    lda: usize,
    b: &PackedFp16,
    c: &mut [f32],
    ldc: usize,
    epilogue: &GemmEpilogue<'_>,
) {
    let n = b.n();
    let k = b.k();
    assert!(b.isa() == exec.isa, "B is packed for {}, not {}", b.isa().name(), exec.isa.name());
    check_matrix("A", a.len(), m, k, lda);
    check_matrix("C", c.len(), m, n, ldc);
    epilogue.check(m, n);
    let product = GemmProduct {
        m,
        n,
        k,
        a: DenseRows::new(a.as_ptr(), lda),
        b: b.as_source(),
        c: DisjointSlice::new(c),
        c_stride: ldc,
        finish: TileFinish::new(epilogue),
    };
    // SAFETY: the lengths are checked above, and C is borrowed exclusively.
    unsafe { multiply(exec, 1, |_| product) };
}

/// One side of a batched product: matrices of the same size inside a slice.
#[derive(Clone, Copy, Debug)]
pub struct BatchedOperand<'a> {
    /// The elements of all matrices.
    pub data: &'a [f32],
    /// Offsets at which the matrices of the batch start; the same one may repeat (broadcast).
    pub offsets: &'a [usize],
    /// Distance between the rows that lie in memory.
    pub ld: usize,
    /// Transposition of the matrix in the multiplication.
    pub trans: Transposition,
}

impl BatchedOperand<'_> {
    fn check(&self, name: &str, batch: usize, rows: usize, columns: usize) {
        let (rows, columns) =
            if self.trans == Transposition::No { (rows, columns) } else { (columns, rows) };
        assert!(self.offsets.len() == batch, "{name}: {} offsets", self.offsets.len());
        for &offset in self.offsets {
            let len = self.data.len().saturating_sub(offset);
            check_matrix(name, len, rows, columns, self.ld);
        }
    }
}

/// `C[i] = epilogue(A[i] B[i])` for every matrix of a batch.
///
/// Shapes: A is `m` x `k`, B is `k` x `n` (after their transposes); C is `[batch, m, n]`, dense;
/// the batch is the number of offsets of A and B. A residual's rows are those of all products,
/// `batch * m` in all.
///
/// # Panics
/// Panics when A and B have different numbers of offsets, or a slice is shorter than its shape
/// says.
pub fn matmul_batched(
    exec: KernelContext<'_>,
    size: ProductSize,
    a: BatchedOperand<'_>,
    b: BatchedOperand<'_>,
    c: &mut [f32],
    epilogue: &GemmEpilogue<'_>,
) {
    let ProductSize { m, k, n } = size;
    let batch = a.offsets.len();
    a.check("A", batch, m, k);
    b.check("B", batch, k, n);
    check_matrix("C", c.len(), batch.saturating_mul(m), n, n);
    epilogue.check(batch.saturating_mul(m), n);
    let c = DisjointSlice::new(c);
    let a_data = OperandPointer(a.data);
    let b_data = OperandPointer(b.data);
    let finish = TileFinish::new(epilogue);
    match a.trans {
        Transposition::No => {
            let rows = |i: usize| DenseRows::new(a_data.at(a.offsets[i]), a.ld);
            let product = |i| GemmProduct {
                m,
                n,
                k,
                a: rows(i),
                b: BSource::raw(b_data.at(b.offsets[i]), b.ld, b.trans),
                c: c.at(i * m * n),
                c_stride: n,
                finish: finish.shifted(i * m, 0),
            };
            // SAFETY: the lengths are checked above, and C is borrowed exclusively.
            unsafe { multiply(exec, batch, product) };
        }
        Transposition::Yes => {
            let rows = |i: usize| TransposedRows::new(a_data.at(a.offsets[i]), a.ld);
            let product = |i| GemmProduct {
                m,
                n,
                k,
                a: rows(i),
                b: BSource::raw(b_data.at(b.offsets[i]), b.ld, b.trans),
                c: c.at(i * m * n),
                c_stride: n,
                finish: finish.shifted(i * m, 0),
            };
            // SAFETY: the lengths are checked above, and C is borrowed exclusively.
            unsafe { multiply(exec, batch, product) };
        }
    }
}

/// A slice as pointers into it; empty matrices may lie at its end.
#[derive(Clone, Copy)]
struct OperandPointer<'a>(&'a [f32]);

impl OperandPointer<'_> {
    fn at(self, offset: usize) -> *const f32 {
        self.0.as_ptr().wrapping_add(offset)
    }
}

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
pub(crate) use tests::values as test_values;
