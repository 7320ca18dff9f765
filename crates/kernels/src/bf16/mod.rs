//! Matrix products whose operands are rounded to BF16 and whose sums are FP32.
//!
//! Weights are rounded once, when they are packed; rows of the left-hand matrix are rounded while
//! they are copied into blocks. A BF16 keeps 8 of the 24 significant bits of an FP32 and all of its
//! range, so every product is off by at most 2^-8 of itself; sums, epilogue and result are FP32.
//!
//! Source: Intel, BFLOAT16 - Hardware Numerics Definition, 2018.

mod attention;
mod batched;
mod conv;
mod drive;
#[cfg(target_arch = "x86_64")]
mod lines;
mod pack;
mod panels;
mod passing;
mod vectors;
mod write;
mod zero_pairs;

use half::bf16;

use crate::KernelContext;
use crate::cell::{RealSlice, RealsMut};
use crate::gemm::{DenseRows, GemmEpilogue, MatrixJoin, TileFinish, check_matrix};
use crate::isa::{Bf16Isa, IsaKernel, Simd};
use crate::matrix::{MatrixSize, StridedMatrix};
use crate::tiles::TileSums;

pub use attention::attention_bf16;
pub use batched::{BatchedReals, matmul_batched_bf16};
pub use conv::{ConvBf16, conv_bf16};
pub(crate) use drive::{Bf16Product, multiply, multiply_here};
pub use pack::PackedBf16;
pub(crate) use pack::{Bf16Panels, PANEL, STEP, STEP_BYTES, TILE};
use write::JoinedBf16Matrix;
pub(crate) use write::{Bf16ResultCells, ResultPart};
pub use zero_pairs::{ZERO_PAIRS, passes_over_zeros, sparse_share_bf16};

/// A matrix of BF16 that joins a product before its activation, as a residual of an [`GemmEpilogue`]
/// does.
#[derive(Clone, Copy, Debug)]
pub struct Bf16Summand<'a> {
    /// Rows `ld` apart, of the shape of C; none: what C holds, which is then of BF16.
    pub data: Option<&'a [bf16]>,
    /// Leading dimension.
    pub ld: usize,
    /// How it joins.
    pub join: MatrixJoin,
}

/// `C = epilogue(A B)` with A and B rounded to BF16, B packed once.
///
/// Shapes: A is `m` rows of `b.k()`, `lda` apart; C is `m` rows of `b.n()`, `ldc` apart.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or a leading dimension is less than a row.
#[allow(clippy::too_many_arguments, reason = "the arguments of a BLAS product, in its order")]
pub fn gemm_bf16(
    exec: KernelContext<'_>,
    m: usize,
    a: &[f32],
    lda: usize,
    b: &PackedBf16,
    c: &mut [f32],
    ldc: usize,
    epilogue: &GemmEpilogue<'_>,
) {
    let a = StridedMatrix::new(a.into(), lda);
    let c = StridedMatrix::new(c.into(), ldc);
    gemm_reals(exec, m, a, b, c, epilogue, None);
}

/// [`gemm_bf16`] with operands of FP32 or BF16. Sums are FP32; what
/// is BF16 afterwards is rounded once. `beside` joins as a residual of BF16.
///
/// # Panics
/// Panics like [`gemm_bf16`], or when A is BF16 and its rows or their distance are odd.
pub fn gemm_reals(
    exec: KernelContext<'_>,
    m: usize,
    a: StridedMatrix<RealSlice<'_>>,
    b: &PackedBf16,
    c: StridedMatrix<RealsMut<'_>>,
    epilogue: &GemmEpilogue<'_>,
    beside: Option<Bf16Summand<'_>>,
) {
    gemm_with(exec, Bf16Isa::of(exec.isa), m, a, b, c, Bf16Epilogue { epilogue, beside });
}

/// Operations on a result before it is stored.
#[derive(Clone, Copy)]
pub(super) struct Bf16Epilogue<'a> {
    pub(super) epilogue: &'a GemmEpilogue<'a>,
    /// A matrix of BF16 that joins too.
    pub(super) beside: Option<Bf16Summand<'a>>,
}

impl Bf16Epilogue<'_> {
    /// The matrix that joins an `m` x `n` product, which is written to `c`.
    #[track_caller]
    fn joined(&self, m: usize, n: usize, c: Bf16ResultCells) -> Option<JoinedBf16Matrix> {
        self.beside.map(|beside| JoinedBf16Matrix::of(&beside, m, n, c))
    }
}

/// [`gemm_reals`] with the instructions named.
fn gemm_with(
    exec: KernelContext<'_>,
    isa: Bf16Isa,
    m: usize,
    a: StridedMatrix<RealSlice<'_>>,
    b: &PackedBf16,
    c: StridedMatrix<RealsMut<'_>>,
    ending: Bf16Epilogue<'_>,
) {
    let n = b.n();
    let k = b.k();
    check_matrix("A", a.data.len(), m, k, a.stride);
    check_matrix("C", c.data.len(), m, n, c.stride);
    ending.epilogue.check(m, n);
    let (a, pairs) = rows_of(a, k);
    let c_stride = c.stride;
    let c = Bf16ResultCells::of(c.data);
    let job = Bf16Product {
        m,
        n,
        k,
        a,
        pairs,
        b: b.panels(),
        c,
        c_stride,
        adds: false,
        finish: TileFinish::new(ending.epilogue),
        beside: ending.joined(m, n, c),
    };
    // SAFETY: the lengths are checked above, and C is borrowed exclusively.
    unsafe { multiply(exec, isa, &job) };
}

/// Elements that must follow the sums of [`finish_reals`]: as many as a vector has, at most.
pub const BEHIND_SUMS: usize = 16;

/// `C = epilogue(sums)`, as [`gemm_reals`] does with sums of its own: for a product that something
/// else has computed.
///
/// Shapes: sums and C have the same size; the rows of the sums are adjacent, with [`BEHIND_SUMS`]
/// elements of any value behind.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or the stride of C is less than a row.
pub fn finish_reals(
    exec: KernelContext<'_>,
    size: MatrixSize,
    sums: &[f32],
    c: StridedMatrix<RealsMut<'_>>,
    epilogue: &GemmEpilogue<'_>,
    beside: Option<Bf16Summand<'_>>,
) {
    let m = size.rows;
    let n = size.columns;
    check_matrix("sums", sums.len().saturating_sub(BEHIND_SUMS), m, n, n);
    check_matrix("C", c.data.len(), m, n, c.stride);
    epilogue.check(m, n);
    let ldc = c.stride;
    let c = Bf16ResultCells::of(c.data);
    let from = FinishSums {
        n,
        sums: SharedSums(sums.as_ptr()),
        c,
        ldc,
        finish: TileFinish::new(epilogue),
        beside: beside.map(|beside| JoinedBf16Matrix::of(&beside, m, n, c)),
    };
    let grain = (FINISH_GRAIN / n.max(1)).max(1);
    exec.pool.run_ranges(m, grain, |rows| exec.isa.run(FinishRows { from: &from, rows }));
}

/// Elements that are worth another thread.
const FINISH_GRAIN: usize = 32_768;

/// A matrix of sums, and what becomes of it.
struct FinishSums {
    n: usize,
    sums: SharedSums,
    c: Bf16ResultCells,
    ldc: usize,
    finish: TileFinish,
    beside: Option<JoinedBf16Matrix>,
}

/// A read-only view of sums that the caller holds while tasks run.
#[derive(Clone, Copy)]
struct SharedSums(*const f32);

// SAFETY: nobody writes the sums meanwhile.
unsafe impl Send for SharedSums {}
// SAFETY: as for Send.
unsafe impl Sync for SharedSums {}

/// Some rows of them.
struct FinishRows<'a> {
    from: &'a FinishSums,
    rows: std::ops::Range<usize>,
}

impl IsaKernel for FinishRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let from = self.from;
        let row = self.rows.start;
        let rows = self.rows.len();
        let mut column = 0;
        while column < from.n {
            let place = ResultPart {
                c: from.c.at(row * from.ldc + column),
                c_stride: from.ldc,
                columns: PANEL.min(from.n - column),
                accumulate: false,
                far: false,
                finish: Some(from.finish.shifted(row, column)),
                beside: from.beside.map(|beside| beside.shifted(row, column)),
            };
            let data = from.sums.0.wrapping_add(row * from.n + column);
            let sums = TileSums { data, stride: from.n, next: TILE };
            // SAFETY: the caller has checked the lengths; ranges of rows are disjoint, and behind the
            // last sums there is room for a vector.
            unsafe {
                place.write(s, rows, sums);
                place.activate(s, rows);
            }
            column += PANEL;
        }
    }
}

/// Rows of A for a [`Bf16Product`], and whether they are pairs.
#[track_caller]
fn rows_of(a: StridedMatrix<RealSlice<'_>>, k: usize) -> (DenseRows, bool) {
    let lda = a.stride;
    match a.data {
        RealSlice::Fp32(a) => (DenseRows::new(a.as_ptr(), lda), false),
        RealSlice::Bf16(a) => {
            let pairs = k.is_multiple_of(2) && lda.is_multiple_of(2);
            assert!(pairs, "BF16 rows of {k}, {lda} apart, are not pairs");
            (DenseRows::new(a.as_ptr().cast(), lda / 2), true)
        }
    }
}

#[cfg(test)]
mod tests;
