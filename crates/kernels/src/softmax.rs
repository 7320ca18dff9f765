//! Softmax and log-softmax over the last axis.

use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::math;
use crate::memory::DisjointSlice;

/// A softmax or its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftmaxForm {
    /// `e^x / sum e^x`.
    Softmax,
    /// `x - ln sum e^x`.
    LogSoftmax,
}

/// An additive mask: rows of the length of a softmax row, used round-robin.
#[derive(Clone, Copy, Debug)]
pub struct RowMask<'a> {
    /// Whole rows.
    pub data: &'a [f32],
    /// How many softmax rows in a run use the same mask row before the next one is used; after
    /// the last mask row the first follows.
    pub repeat: usize,
}

/// Softmax of every row of `columns` values of `x`, in place: the row's greatest value is taken
/// off first, so nothing overflows. A row that is -infinity throughout becomes NaN, as the formula and
/// ONNX Runtime have it.
///
/// # Panics
/// Panics when `x` is not whole rows, or the mask is not whole rows or empty.
pub fn softmax_inplace(
    exec: KernelContext<'_>,
    form: SoftmaxForm,
    x: &mut [f32],
    columns: usize,
    mask: Option<RowMask<'_>>,
) {
    if x.is_empty() {
        return;
    }
    assert!(
        columns > 0 && x.len().is_multiple_of(columns),
        "softmax: {} in rows of {columns}",
        x.len()
    );
    if let Some(mask) = mask {
        let whole = !mask.data.is_empty() && mask.data.len() % columns == 0 && mask.repeat > 0;
        assert!(whole, "softmax: a mask of {} for rows of {columns}", mask.data.len());
    }
    let rows = x.len() / columns;
    let x = DisjointSlice::new(x);
    exec.pool.run_ranges(rows, 4096usize.div_ceil(columns), |range| {
        // SAFETY: ranges are disjoint.
        let x = unsafe { x.range(range.start * columns..range.end * columns) };
        exec.isa.run(SoftmaxTask { form, x, columns, first: range.start, mask });
    });
}

/// Softmax of every row of `columns` values of `x` into `y`; see [`softmax_inplace`].
///
/// # Panics
/// Panics when the lengths differ, or as [`softmax_inplace`].
pub fn softmax(
    exec: KernelContext<'_>,
    form: SoftmaxForm,
    x: &[f32],
    columns: usize,
    y: &mut [f32],
) {
    assert!(x.len() == y.len(), "softmax: {} elements into {}", x.len(), y.len());
    y.copy_from_slice(x);
    softmax_inplace(exec, form, y, columns, None);
}

struct SoftmaxTask<'a> {
    form: SoftmaxForm,
    x: &'a mut [f32],
    columns: usize,
    /// Number of the first row.
    first: usize,
    mask: Option<RowMask<'a>>,
}

impl IsaKernel for SoftmaxTask<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.columns;
        for (i, row) in self.x.chunks_exact_mut(n).enumerate() {
            if let Some(mask) = self.mask {
                let start = (self.first + i) / mask.repeat * n % mask.data.len();
                for (x, m) in row.iter_mut().zip(&mask.data[start..start + n]) {
                    *x += m;
                }
            }
            one_row(s, self.form, row);
        }
    }
}

#[inline(always)]
fn one_row<S: Simd>(s: S, form: SoftmaxForm, row: &mut [f32]) {
    // The difference of infinities is NaN, so that a row of -infinity becomes NaN.
    let shift = max(s, row);
    match form {
        SoftmaxForm::Softmax => {
            let total = exp_shifted(s, row, shift);
            scale(s, row, 1.0 / total);
        }
        SoftmaxForm::LogSoftmax => {
            let off = sum_exp(s, row, shift).ln();
            for x in row {
                // Two steps lose nothing when the shift is large.
                *x = (*x - shift) - off;
            }
        }
    }
}

/// `x *= factor`.
#[inline(always)]
pub(crate) fn scale<S: Simd>(s: S, x: &mut [f32], factor: f32) {
    let p = x.as_mut_ptr();
    let n = x.len();
    let f = s.splat(factor);
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + S::LANES <= n {
            s.store(p.add(i), s.mul(s.load(p.add(i)), f));
            i += S::LANES;
        }
        if i < n {
            let m = s.tail(n - i);
            s.store_tail(p.add(i), m, s.mul(s.load_tail(p.add(i), m), f));
        }
    }
}

/// The greatest value; NaN in a row may be lost, but then the exponentials bring it back.
#[inline(always)]
pub(crate) fn max<S: Simd>(s: S, x: &[f32]) -> f32 {
    let p = x.as_ptr();
    let n = x.len();
    let mut best = [s.splat(f32::NEG_INFINITY); 2];
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + 2 * S::LANES <= n {
            best[0] = s.max(s.load(p.add(i)), best[0]);
            best[1] = s.max(s.load(p.add(i + S::LANES)), best[1]);
            i += 2 * S::LANES;
        }
        while i + S::LANES <= n {
            best[0] = s.max(s.load(p.add(i)), best[0]);
            i += S::LANES;
        }
        if i < n {
            let m = s.tail(n - i);
            let x = s.load_tail(p.add(i), m);
            best[1] = s.max(s.select(m, x, s.splat(f32::NEG_INFINITY)), best[1]);
        }
    }
    s.reduce_max(s.max(best[0], best[1]))
}

/// `x = e^(x - shift)`; gives the sum.
#[inline(always)]
pub(crate) fn exp_shifted<S: Simd>(s: S, x: &mut [f32], shift: f32) -> f32 {
    let p = x.as_mut_ptr();
    let n = x.len();
    let off = s.splat(shift);
    let mut sum = s.splat(0.0);
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + 2 * S::LANES <= n {
            // Two at a time: their long chains of operations overlap.
            let e = math::exp(s, s.sub(s.load(p.add(i)), off));
            let f = math::exp(s, s.sub(s.load(p.add(i + S::LANES)), off));
            s.store(p.add(i), e);
            s.store(p.add(i + S::LANES), f);
            sum = s.add(sum, s.add(e, f));
            i += 2 * S::LANES;
        }
        while i + S::LANES <= n {
            let e = math::exp(s, s.sub(s.load(p.add(i)), off));
            s.store(p.add(i), e);
            sum = s.add(sum, e);
            i += S::LANES;
        }
        if i < n {
            let m = s.tail(n - i);
            let e = math::exp(s, s.sub(s.load_tail(p.add(i), m), off));
            s.store_tail(p.add(i), m, e);
            sum = s.add(sum, s.select(m, e, s.splat(0.0)));
        }
    }
    s.reduce_add(sum)
}

#[inline(always)]
fn sum_exp<S: Simd>(s: S, x: &[f32], shift: f32) -> f32 {
    let p = x.as_ptr();
    let n = x.len();
    let off = s.splat(shift);
    let mut sum = s.splat(0.0);
    let mut i = 0;
    while i < n {
        let m = s.tail(n - i);
        // SAFETY: the mask chooses at most the n - i values left.
        let e = unsafe { math::exp(s, s.sub(s.load_tail(p.add(i), m), off)) };
        sum = s.add(sum, s.select(m, e, s.splat(0.0)));
        i += S::LANES;
    }
    s.reduce_add(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    #[test]
    fn rows_equal_the_reference_on_every_isa() {
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for (rows, columns) in [(1, 1), (4, 3), (3, 16), (7, 33), (200, 128), (2, 1000)] {
                let x: Vec<f32> = values(rows * columns, 3).iter().map(|v| v * 20.0).collect();
                let mask = values(2 * columns, 4);
                for form in [SoftmaxForm::Softmax, SoftmaxForm::LogSoftmax] {
                    let mut y = x.clone();
                    let used = RowMask { data: &mask, repeat: 3 };
                    softmax_inplace(exec, form, &mut y, columns, Some(used));
                    for (r, row) in x.chunks(columns).enumerate() {
                        let m = &mask[r / 3 % 2 * columns..];
                        let sum: Vec<f64> =
                            row.iter().zip(m).map(|(&a, &b)| f64::from(a + b)).collect();
                        let top = sum.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
                        let total: f64 = sum.iter().map(|v| (v - top).exp()).sum();
                        for (c, v) in sum.iter().enumerate() {
                            let want = match form {
                                SoftmaxForm::Softmax => (v - top).exp() / total,
                                SoftmaxForm::LogSoftmax => v - top - total.ln(),
                            };
                            let got = f64::from(y[r * columns + c]);
                            let error = (got - want).abs();
                            let what = isa.name();
                            // A logarithm near zero is the small difference of larger numbers.
                            let small = if form == SoftmaxForm::Softmax { 1e-9 } else { 3e-7 };
                            assert!(error <= 4e-6 * want.abs() + small, "{what} {got} {want}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_of_minus_infinity_are_nan_and_nan_stays() {
        let pool = ThreadPool::new(1);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for form in [SoftmaxForm::Softmax, SoftmaxForm::LogSoftmax] {
                for columns in [1, 3, 5, 16, 37, 64, 100] {
                    let mut x = vec![1.0; 3 * columns];
                    x[columns..2 * columns].fill(f32::NEG_INFINITY);
                    softmax_inplace(exec, form, &mut x, columns, None);
                    let nan: Vec<bool> = x.iter().map(|v| v.is_nan()).collect();
                    let expected: Vec<bool> = (0..3 * columns).map(|i| i / columns == 1).collect();
                    assert_eq!(nan, expected, "{form:?} {columns} {}", isa.name());
                }
            }
            let mut x = vec![f32::NEG_INFINITY, 1.0, 1.0];
            softmax_inplace(exec, SoftmaxForm::Softmax, &mut x, 3, None);
            assert_eq!(x, [0.0, 0.5, 0.5]);
            let mut x = vec![0.0; 40];
            x[3] = f32::NAN;
            softmax_inplace(exec, SoftmaxForm::Softmax, &mut x, 40, None);
            assert!(x.iter().all(|v| v.is_nan()), "{}", isa.name());
        }
    }
}
