//! Products whose right-hand side is sparse.

use super::columns::multiply_columns;
use super::data::PackedSparse;
use crate::gemm::{
    DenseRows, GemmEpilogue, GemmProduct, RowSource, TileFinish, check_matrix, multiply,
};
use crate::memory::DisjointSlice;
use crate::{KernelContext, StridedMatrix};

/// `C = epilogue(A B)` with a sparse B; arguments like those of [`crate::gemm_cut`].
///
/// # Panics
/// Panics like [`crate::gemm`].
pub fn gemm_sparse(
    exec: KernelContext<'_>,
    m: usize,
    a: StridedMatrix<&[f32]>,
    b: &PackedSparse,
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
    unsafe { multiply_packed_sparse(exec, &product, b) };
}

/// Computes a product whose right-hand side is `b`.
///
/// # Safety
/// The same as for [`multiply`].
pub(crate) unsafe fn multiply_packed_sparse<A: RowSource>(
    exec: KernelContext<'_>,
    product: &GemmProduct<A>,
    b: &PackedSparse,
) {
    if product.m == 0 || product.n == 0 {
        return;
    }
    match b.columns() {
        // SAFETY: as this function's.
        Some(columns) => unsafe { multiply_columns(exec, product, columns) },
        // SAFETY: as this function's.
        None => unsafe { multiply(exec, 1, |_| *product) },
    }
}
