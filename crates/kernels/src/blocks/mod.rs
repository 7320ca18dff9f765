//! Products with weights of few bits, each block of which has a scale and a zero point: a number
//! `q` stands for `(q - zero) * scale`.
//!
//! Few rows are multiplied while numbers are taken apart in registers, so that memory brings packed
//! numbers only; for many rows some columns at a time become a matrix that tiles are for.

mod columns;
mod pack;
mod rows;

pub use pack::{BlockFormat, PackedBlocks, Zeros};

use crate::Exec;
use crate::bf16::{self, Panels};
use crate::gemm::{BSource, DenseRows, Epilogue, Finish, Product, Trans, check_matrix, multiply};
use crate::isa::Bf16Isa;
use crate::memory::{Shared, with_scratch};
use columns::{Form, Unpack};
use pack::{SLICE, UNIT};
use rows::FewRows;

/// How exact a product must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accuracy {
    /// Rows and weights are FP32.
    #[default]
    Full,
    /// A few rows are rounded to bytes, one scale a block, where there are instructions for that;
    /// the operands of many rows to BF16.
    Reduced,
}

/// Most rows that numbers are taken apart for in registers.
const FEW_ROWS: usize = 4;

/// Most bytes of weights that are made whole at a time.
const WHOLE_BYTES: usize = 1 << 20;

/// `C = epilogue(A B)` with B in blocks.
///
/// Shapes: A is `m` rows of `b.k()`, `lda` apart; C is `m` rows of `b.n()`, `ldc` apart.
///
/// # Panics
/// When a slice is shorter than its shape says, or a leading dimension is less than a row.
pub fn gemm_blocks(
    exec: Exec<'_>,
    m: usize,
    (a, lda): (&[f32], usize),
    b: &PackedBlocks,
    (c, ldc): (&mut [f32], usize),
    epilogue: &Epilogue<'_>,
    accuracy: Accuracy,
) {
    let (n, k) = (b.n(), b.k());
    check_matrix("A", a.len(), m, k, lda);
    check_matrix("C", c.len(), m, n, ldc);
    epilogue.check(m, n);
    if m == 0 || n == 0 {
        return;
    }
    let (c, finish) = (Shared::new(c), Finish::new(epilogue));
    if m <= FEW_ROWS {
        FewRows { m, a, lda, b, c, ldc, finish }.run(exec, accuracy);
        return;
    }
    let form = if accuracy == Accuracy::Full { Form::Floats } else { Form::Bf16 };
    let width = if form == Form::Floats { size_of::<f32>() } else { size_of::<u16>() };
    let padded = k.next_multiple_of(UNIT).max(UNIT);
    let most = (WHOLE_BYTES / (padded * width)).next_multiple_of(128);
    for start in (0..n).step_by(most) {
        let columns = most.min(n - start);
        // Whole panels of BF16: two slices.
        let room = columns.next_multiple_of(2 * SLICE);
        with_scratch((room * padded * width).div_ceil(size_of::<f32>()), |scratch| {
            let to = Shared::<u8>::from_ptr(scratch.as_mut_ptr().cast());
            exec.pool.run_ranges(room / SLICE, 2, |slices| {
                exec.isa.run(Unpack { b, form, first: start / SLICE, slices, stride: room, to });
            });
            let (c, finish) = (c.at(start), finish.shifted(0, start));
            let a = DenseRows::new(a.as_ptr(), lda);
            match form {
                Form::Floats => {
                    let b = BSource::raw(to.ptr().cast(), room, Trans::No);
                    let product = Product { m, n: columns, k, a, b, c, c_stride: ldc, finish };
                    // SAFETY: the lengths are checked above, B is in the scratch, and C is
                    // borrowed exclusively.
                    unsafe { multiply(exec, 1, |_| product) };
                }
                Form::Bf16 => {
                    let b = Panels::of(to.ptr());
                    let (n, c) = (columns, bf16::Cells::Fp32(c.ptr()));
                    let (pairs, c_stride, adds, beside) = (false, ldc, false, None);
                    let job = bf16::Job { m, n, k, a, pairs, b, c, c_stride, adds, finish, beside };
                    // SAFETY: as above.
                    unsafe { bf16::multiply(exec, Bf16Isa::of(exec.isa), &job) };
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
