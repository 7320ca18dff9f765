//! Products with weights of few bits, each block of which has a scale and a zero point: a number
//! `q` stands for `(q - zero) * scale`. Floats of 16 bits lie in the same way, and have no scales.
//!
//! Few rows are multiplied while numbers are taken apart in registers, so that memory brings packed
//! numbers only; for many rows some columns at a time become a matrix that tiles are for.

mod columns;
mod factors;
mod pack;
mod rows;

pub use factors::FactorForm;
pub use pack::{
    BlockColumn, BlockFormat, BlockStorage, HalfKind, PackedBlocks, StoredShift, StoredZeros,
};

use crate::KernelContext;
use crate::activation::ActivationFunction;
use crate::bf16::{self, Bf16Panels};
use crate::gemm::{
    BSource, DenseRows, GemmEpilogue, GemmProduct as Dense, TileFinish, Transposition,
    check_matrix, multiply,
};
use crate::isa::Bf16Isa;
use crate::matrix::StridedMatrix;
use crate::memory::{DisjointSlice, with_scratch};
use columns::{ColumnForm, SliceUnpacker};
use pack::UNIT;
use rows::{FewRows, most_rows};

/// How exact a product must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAccuracy {
    /// Rows and weights are FP32.
    #[default]
    Full,
    /// A few rows are rounded to bytes, one scale a block, where there are instructions for that;
    /// the operands of many rows to BF16.
    Reduced,
}

/// Columns of a slice.
const SLICE: usize = 16;
/// Most bytes of weights that are made whole at a time.
const WHOLE_BYTES: usize = 1 << 20;

/// A product with one of several matrices.
#[derive(Debug)]
pub struct BlockProduct<'a> {
    /// The matrix.
    pub b: &'a PackedBlocks,
    /// Rows of the result, `ldc` apart.
    pub c: &'a mut [f32],
    /// Leading dimension of `c`.
    pub ldc: usize,
    /// Operations on the result before it is stored.
    pub epilogue: GemmEpilogue<'a>,
}

/// A product whose sizes are checked.
#[derive(Clone, Copy)]
struct CheckedBlockProduct<'a> {
    b: &'a PackedBlocks,
    c: DisjointSlice<f32>,
    ldc: usize,
    finish: TileFinish,
}

impl<'a> CheckedBlockProduct<'a> {
    /// # Panics
    /// Panics when a slice is shorter than its shape says.
    fn checked(product: &'a mut BlockProduct<'_>, m: usize, k: usize) -> Self {
        let BlockProduct { b, c, ldc, epilogue } = product;
        assert!(b.k() == k, "B has {} rows for {k} columns of A", b.k());
        check_matrix("C", c.len(), m, b.n(), *ldc);
        epilogue.check(m, b.n());
        Self { b, c: DisjointSlice::new(c), ldc: *ldc, finish: TileFinish::new(epilogue) }
    }
}

/// `C = epilogue(A B)` with B in blocks.
///
/// Shapes: A is `m` rows of `b.k()`; C is `m` rows of `b.n()`.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or a leading dimension is less than a row.
pub fn gemm_blocks(
    exec: KernelContext<'_>,
    m: usize,
    a: StridedMatrix<&[f32]>,
    b: &PackedBlocks,
    c: StridedMatrix<&mut [f32]>,
    epilogue: &GemmEpilogue<'_>,
    accuracy: BlockAccuracy,
) {
    let product = BlockProduct { b, c: c.data, ldc: c.stride, epilogue: *epilogue };
    gemm_blocks_each(exec, m, a, &mut [product], accuracy);
}

/// [`gemm_blocks`] of one A with each of several matrices, which all have as many rows.
///
/// # Panics
/// Panics like [`gemm_blocks`].
pub fn gemm_blocks_each(
    exec: KernelContext<'_>,
    m: usize,
    a: StridedMatrix<&[f32]>,
    products: &mut [BlockProduct<'_>],
    accuracy: BlockAccuracy,
) {
    let Some(k) = products.first().map(|product| product.b.k()) else { return };
    check_matrix("A", a.data.len(), m, k, a.stride);
    let products: Vec<CheckedBlockProduct<'_>> =
        products.iter_mut().map(|product| CheckedBlockProduct::checked(product, m, k)).collect();
    if m == 0 {
        return;
    }
    let most = products.iter().map(|product| most_rows(exec, accuracy, product.b)).min();
    if most.is_some_and(|most| m <= most) {
        let products = &products;
        FewRows { m, a: a.data, lda: a.stride, products, gated: false }.run(exec, accuracy);
        return;
    }
    for product in &products {
        many_rows(exec, m, a, product, accuracy);
    }
}

/// The gate of a product.
#[derive(Clone, Copy, Debug)]
pub struct BlockGate<'a> {
    /// The matrix G, of the shape of the other one.
    pub matrix: &'a PackedBlocks,
    /// The function of its product.
    pub activation: ActivationFunction,
}

/// `C = activation(A G) * (A B)`, element by element: the inside of a gated network.
///
/// Shapes: the gate's matrix and `b` have the same; C is `m` rows of `b.n()`.
///
/// # Panics
/// Panics like [`gemm_blocks`].
pub fn gemm_blocks_gated(
    exec: KernelContext<'_>,
    m: usize,
    a: StridedMatrix<&[f32]>,
    gate: BlockGate<'_>,
    b: &PackedBlocks,
    c: StridedMatrix<&mut [f32]>,
    accuracy: BlockAccuracy,
) {
    let n = b.n();
    let k = b.k();
    let BlockGate { matrix: gate, activation } = gate;
    assert!(gate.n() == n, "a gate of {} columns for {n}", gate.n());
    check_matrix("A", a.data.len(), m, k, a.stride);
    if m == 0 || n == 0 {
        return;
    }
    let epilogue = GemmEpilogue::default().with_activation(activation);
    if m <= most_rows(exec, accuracy, gate).min(most_rows(exec, accuracy, b)) {
        // The gate stays with the thread that has its columns: C stands for it.
        let mut own = [0.0; 0];
        let first = CheckedBlockProduct {
            b: gate,
            c: DisjointSlice::new(&mut own),
            ldc: 0,
            finish: TileFinish::new(&epilogue),
        };
        assert!(gate.k() == k, "a gate of {} rows for {k}", gate.k());
        let epilogue = GemmEpilogue::default();
        let mut second = BlockProduct { b, c: c.data, ldc: c.stride, epilogue };
        let products = [first, CheckedBlockProduct::checked(&mut second, m, k)];
        let products = &products;
        FewRows { m, a: a.data, lda: a.stride, products, gated: true }.run(exec, accuracy);
        return;
    }
    let mut gates = vec![0.0; m * n];
    let to = StridedMatrix::new(&mut gates[..], n);
    gemm_blocks(exec, m, a, gate, to, &epilogue, accuracy);
    let epilogue = GemmEpilogue::default().with_gate(&gates, n);
    gemm_blocks(exec, m, a, b, c, &epilogue, accuracy);
}

/// A product of rows for which it pays to make numbers whole.
fn many_rows(
    exec: KernelContext<'_>,
    m: usize,
    a: StridedMatrix<&[f32]>,
    product: &CheckedBlockProduct<'_>,
    accuracy: BlockAccuracy,
) {
    let CheckedBlockProduct { b, c, ldc, finish } = *product;
    let n = b.n();
    let k = b.k();
    let form = if accuracy == BlockAccuracy::Full { ColumnForm::Floats } else { ColumnForm::Bf16 };
    let width = if form == ColumnForm::Floats { size_of::<f32>() } else { size_of::<u16>() };
    let padded = k.next_multiple_of(UNIT).max(UNIT);
    let most = (WHOLE_BYTES / (padded * width)).next_multiple_of(128);
    for start in (0..n).step_by(most) {
        let columns = most.min(n - start);
        // Whole panels of BF16: two slices.
        let room = columns.next_multiple_of(2 * SLICE);
        with_scratch((room * padded * width).div_ceil(size_of::<f32>()), |scratch| {
            let to = DisjointSlice::<u8>::from_ptr(scratch.as_mut_ptr().cast());
            exec.pool.run_ranges(room / SLICE, 2, |slices| {
                exec.isa.run(SliceUnpacker {
                    b,
                    form,
                    first: start / SLICE,
                    slices,
                    stride: room,
                    to,
                });
            });
            let c = c.at(start);
            let finish = finish.shifted(0, start);
            let a = DenseRows::new(a.data.as_ptr(), a.stride);
            match form {
                ColumnForm::Floats => {
                    let b = BSource::raw(to.ptr().cast(), room, Transposition::No);
                    let product = Dense { m, n: columns, k, a, b, c, c_stride: ldc, finish };
                    // SAFETY: the lengths are checked above, B is in the scratch, and C is
                    // borrowed exclusively.
                    unsafe { multiply(exec, 1, |_| product) };
                }
                ColumnForm::Bf16 => {
                    let b = Bf16Panels::of(to.ptr());
                    let n = columns;
                    let c = bf16::Bf16ResultCells::Fp32(c.ptr());
                    let pairs = false;
                    let c_stride = ldc;
                    let adds = false;
                    let beside = None;
                    let job = bf16::Bf16Product {
                        m,
                        n,
                        k,
                        a,
                        pairs,
                        b,
                        c,
                        c_stride,
                        adds,
                        finish,
                        beside,
                    };
                    // SAFETY: as above.
                    unsafe { bf16::multiply(exec, Bf16Isa::of(exec.isa), &job) };
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
