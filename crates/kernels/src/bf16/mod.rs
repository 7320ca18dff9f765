//! Matrix products whose operands are rounded to BF16 and whose sums are FP32.
//!
//! Weights are rounded once, when they are packed; rows of the left-hand matrix are rounded while
//! they are copied into blocks. A BF16 keeps 8 of the 24 significant bits of an FP32 and all of its
//! range, so every product is off by at most 2^-8 of itself; sums, epilogue and result are FP32.
//!
//! Source: Intel, BFLOAT16 - Hardware Numerics Definition, 2018.

mod conv;
mod drive;
mod pack;
mod vectors;
mod write;

use crate::Exec;
use crate::gemm::{DenseRows, Epilogue, Finish, check_matrix};
use crate::isa::Bf16Isa;
use crate::memory::Shared;

pub use conv::{ConvBf16, conv_bf16};
pub(crate) use drive::{Job, multiply};
pub use pack::PackedBf16;
pub(crate) use pack::Panels;
pub(crate) use write::Place;

/// `C = epilogue(A B)` with A and B rounded to BF16, B packed once.
///
/// Shapes: A is `m` rows of `b.k()`, `lda` apart; C is `m` rows of `b.n()`, `ldc` apart.
///
/// # Panics
/// When a slice is shorter than its shape says, or a leading dimension is less than a row.
#[allow(clippy::too_many_arguments, reason = "the arguments of a BLAS product, in its order")]
pub fn gemm_bf16(
    exec: Exec<'_>,
    m: usize,
    a: &[f32],
    lda: usize,
    b: &PackedBf16,
    c: &mut [f32],
    ldc: usize,
    epilogue: &Epilogue<'_>,
) {
    gemm_with(exec, Bf16Isa::of(exec.isa), m, (a, lda), b, (c, ldc), epilogue);
}

/// [`gemm_bf16`] with the instructions named.
fn gemm_with(
    exec: Exec<'_>,
    isa: Bf16Isa,
    m: usize,
    (a, lda): (&[f32], usize),
    b: &PackedBf16,
    (c, ldc): (&mut [f32], usize),
    epilogue: &Epilogue<'_>,
) {
    let (n, k) = (b.n(), b.k());
    check_matrix("A", a.len(), m, k, lda);
    check_matrix("C", c.len(), m, n, ldc);
    epilogue.check(m, n);
    let job = Job {
        m,
        n,
        k,
        a: DenseRows::new(a.as_ptr(), lda),
        b: b.panels(),
        c: Shared::new(c),
        c_stride: ldc,
        finish: Finish::new(epilogue),
    };
    // SAFETY: the lengths are checked above, and C is borrowed exclusively.
    unsafe { multiply(exec, isa, &job) };
}

#[cfg(test)]
mod tests;
