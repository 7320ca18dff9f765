//! Layer and root-mean-square normalisation over the last axis.

use crate::KernelContext;
use crate::cell::{RealCell, RealSlice, RealsMut, copy_cells};
use crate::isa::{IsaKernel, Simd};
use crate::memory::{DisjointSlice, with_scratch};
use crate::reduce::{sum, sum_squared_differences, sum_squares};

/// Which normalisation, and its constants.
#[derive(Clone, Copy, Debug)]
pub struct RowNormalization<'a> {
    /// Layer or root mean square.
    pub kind: NormKind,
    /// One factor per column.
    pub scale: Option<&'a [f32]>,
    /// One summand per column.
    pub bias: Option<&'a [f32]>,
    /// Added to the variance (or mean square) before its root.
    pub epsilon: f32,
}

/// Norm that divides a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// `(x - mean) / sqrt(variance + epsilon)`, with the variance of the whole row.
    Layer,
    /// `x / sqrt(mean square + epsilon)`.
    RootMeanSquare,
}

/// Residual, bias and sum of a normalisation.
#[derive(Debug, Default)]
pub struct SkipConnection<'a> {
    /// Added to `x` first, of its shape (a residual connection).
    pub residual: Option<&'a [f32]>,
    /// One value per column, added to `x` first.
    pub input_bias: Option<&'a [f32]>,
    /// Receives the sum, of the shape of `x`.
    pub sum: Option<&'a mut [f32]>,
}

/// Normalises every row of `columns` values: `y = norm(x + residual + input_bias)`.
///
/// # Panics
/// Panics when `x` is not whole rows, or another slice has not the length that it should.
pub fn normalize(
    exec: KernelContext<'_>,
    norm: RowNormalization<'_>,
    x: &[f32],
    columns: usize,
    skip: SkipConnection<'_>,
    y: &mut [f32],
) {
    let len = x.len();
    assert!(y.len() == len, "norm: {len} elements into {}", y.len());
    if len == 0 {
        return;
    }
    assert!(
        columns > 0 && len.is_multiple_of(columns),
        "norm: {len} elements in rows of {columns}"
    );
    for per_column in [norm.scale, norm.bias, skip.input_bias].into_iter().flatten() {
        assert!(per_column.len() == columns, "norm: {} values a row", per_column.len());
    }
    let like_x = [skip.residual.map(<[f32]>::len), skip.sum.as_deref().map(<[f32]>::len)];
    for other in like_x.into_iter().flatten() {
        assert!(other == len, "norm: {other} elements beside {len}");
    }
    let y = DisjointSlice::new(y);
    let total = skip.sum.map(DisjointSlice::new);
    let residual = skip.residual;
    let input_bias = skip.input_bias;
    exec.pool.run_ranges(len / columns, 8192usize.div_ceil(columns), |rows| {
        let range = rows.start * columns..rows.end * columns;
        // SAFETY: ranges are disjoint.
        let y = unsafe { y.range(range.clone()) };
        // SAFETY: ranges are disjoint.
        let total = total.map(|t| unsafe { t.range(range.clone()) });
        let residual = residual.map(|r| &r[range.clone()]);
        let x = &x[range];
        exec.isa.run(NormRows { norm, x, residual, input_bias, total, y, columns });
    });
}

/// [`normalize`] of rows of FP32 or BF16, computed in FP32 and rounded once.
///
/// # Panics
/// Panics like [`normalize`].
pub fn normalize_reals(
    exec: KernelContext<'_>,
    norm: RowNormalization<'_>,
    x: RealSlice<'_>,
    columns: usize,
    y: RealsMut<'_>,
) {
    match (x, y) {
        (RealSlice::Fp32(x), RealsMut::Fp32(y)) => {
            normalize(exec, norm, x, columns, SkipConnection::default(), y);
        }
        (RealSlice::Fp32(x), RealsMut::Bf16(y)) => normalize_cells(exec, norm, x, columns, y),
        (RealSlice::Bf16(x), RealsMut::Fp32(y)) => normalize_cells(exec, norm, x, columns, y),
        (RealSlice::Bf16(x), RealsMut::Bf16(y)) => normalize_cells(exec, norm, x, columns, y),
    }
}

fn normalize_cells<X: RealCell, Y: RealCell>(
    exec: KernelContext<'_>,
    norm: RowNormalization<'_>,
    x: &[X],
    columns: usize,
    y: &mut [Y],
) {
    let len = x.len();
    assert!(y.len() == len, "norm: {len} elements into {}", y.len());
    if len == 0 {
        return;
    }
    assert!(columns > 0 && len.is_multiple_of(columns), "norm: {len} in rows of {columns}");
    for per_column in [norm.scale, norm.bias].into_iter().flatten() {
        assert!(per_column.len() == columns, "norm: {} values a row", per_column.len());
    }
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(len / columns, 8192usize.div_ceil(columns), |rows| {
        with_scratch(columns, |wide| {
            let range = rows.start * columns..rows.end * columns;
            // SAFETY: ranges are disjoint.
            let y = unsafe { y.range(range.clone()) };
            exec.isa.run(WideRows { norm, x: &x[range], y, wide });
        });
    });
}

/// Rows that become FP32 one after the other.
struct WideRows<'a, X, Y> {
    norm: RowNormalization<'a>,
    x: &'a [X],
    y: &'a mut [Y],
    /// A row.
    wide: &'a mut [f32],
}

impl<X: RealCell, Y: RealCell> IsaKernel for WideRows<'_, X, Y> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.wide.len();
        for start in (0..self.x.len()).step_by(n) {
            // SAFETY: rows of n values, as scale and bias are.
            unsafe {
                copy_cells(s, self.x.as_ptr().add(start), self.wide.as_mut_ptr(), n);
                self.norm.row(s, self.wide);
                copy_cells(s, self.wide.as_ptr(), self.y.as_mut_ptr().add(start), n);
            }
        }
    }
}

impl RowNormalization<'_> {
    /// Normalises a row in place.
    ///
    /// # Safety
    /// Scale and bias are as long as the row.
    #[inline(always)]
    unsafe fn row<S: Simd>(&self, s: S, y: &mut [f32]) {
        let n = y.len();
        let (mean, square) = match self.kind {
            NormKind::Layer => {
                let mean = sum(s, y) / n as f32;
                (mean, sum_squared_differences(s, y, mean) / n as f32)
            }
            NormKind::RootMeanSquare => (0.0, sum_squares(s, y) / n as f32),
        };
        let factor = 1.0 / (square + self.epsilon).sqrt();
        // SAFETY: the caller vouches for scale and bias.
        unsafe { scale_row(s, y, mean, factor, self.scale, self.bias) };
    }
}

struct NormRows<'a> {
    norm: RowNormalization<'a>,
    x: &'a [f32],
    residual: Option<&'a [f32]>,
    input_bias: Option<&'a [f32]>,
    total: Option<&'a mut [f32]>,
    y: &'a mut [f32],
    columns: usize,
}

impl IsaKernel for NormRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let n = self.columns;
        for start in (0..self.x.len()).step_by(n) {
            let range = start..start + n;
            let y = &mut self.y[range.clone()];
            let x = &self.x[range.clone()];
            let residual = self.residual.map(|r| &r[range.clone()]);
            // SAFETY: x, residual, input_bias and y all have n values.
            unsafe { add_row(s, x, residual, self.input_bias, y) };
            if let Some(total) = &mut self.total {
                total[range].copy_from_slice(y);
            }
            // SAFETY: scale and bias have n values.
            unsafe { self.norm.row(s, y) };
        }
    }
}

/// # Safety
/// All slices are as long as `y`.
#[inline(always)]
unsafe fn add_row<S: Simd>(
    s: S,
    x: &[f32],
    residual: Option<&[f32]>,
    bias: Option<&[f32]>,
    y: &mut [f32],
) {
    let n = y.len();
    let x = x.as_ptr();
    let y = y.as_mut_ptr();
    let mut i = 0;
    // SAFETY: every access is below n, by whole vectors or by the mask.
    unsafe {
        while i + S::LANES <= n {
            let mut v = s.load(x.add(i));
            if let Some(r) = residual {
                v = s.add(v, s.load(r.as_ptr().add(i)));
            }
            if let Some(b) = bias {
                v = s.add(v, s.load(b.as_ptr().add(i)));
            }
            s.store(y.add(i), v);
            i += S::LANES;
        }
        if i < n {
            let m = s.tail(n - i);
            let mut v = s.load_tail(x.add(i), m);
            if let Some(r) = residual {
                v = s.add(v, s.load_tail(r.as_ptr().add(i), m));
            }
            if let Some(b) = bias {
                v = s.add(v, s.load_tail(b.as_ptr().add(i), m));
            }
            s.store_tail(y.add(i), m, v);
        }
    }
}

/// `y = (y - mean) factor scale + bias`.
///
/// # Safety
/// Scale and bias are as long as `y`.
#[inline(always)]
unsafe fn scale_row<S: Simd>(
    s: S,
    y: &mut [f32],
    mean: f32,
    factor: f32,
    scale: Option<&[f32]>,
    bias: Option<&[f32]>,
) {
    let mean = s.splat(mean);
    let factor = s.splat(factor);
    let n = y.len();
    let p = y.as_mut_ptr();
    let mut i = 0;
    // SAFETY: every access is below n, by whole vectors or by the mask.
    unsafe {
        while i + S::LANES <= n {
            let mut v = s.mul(s.sub(s.load(p.add(i)), mean), factor);
            if let Some(g) = scale {
                v = s.mul(v, s.load(g.as_ptr().add(i)));
            }
            if let Some(b) = bias {
                v = s.add(v, s.load(b.as_ptr().add(i)));
            }
            s.store(p.add(i), v);
            i += S::LANES;
        }
        if i < n {
            let m = s.tail(n - i);
            let mut v = s.mul(s.sub(s.load_tail(p.add(i), m), mean), factor);
            if let Some(g) = scale {
                v = s.mul(v, s.load_tail(g.as_ptr().add(i), m));
            }
            if let Some(b) = bias {
                v = s.add(v, s.load_tail(b.as_ptr().add(i), m));
            }
            s.store_tail(p.add(i), m, v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    #[test]
    fn rows_of_bf16_are_rounded_once() {
        use half::bf16;
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for (rows, n) in [(1, 1), (3, 5), (5, 100), (64, 384)] {
                let half: Vec<bf16> = values(rows * n, 1).into_iter().map(bf16::from_f32).collect();
                let x: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
                let g = values(n, 3);
                let b = values(n, 4);
                for kind in [NormKind::Layer, NormKind::RootMeanSquare] {
                    let norm =
                        RowNormalization { kind, scale: Some(&g), bias: Some(&b), epsilon: 1e-5 };
                    let mut want = vec![0.0; rows * n];
                    normalize(exec, norm, &x, n, SkipConnection::default(), &mut want);
                    let mut y = vec![bf16::ZERO; rows * n];
                    let mut wide = vec![0.0; rows * n];
                    normalize_reals(exec, norm, RealSlice::Bf16(&half), n, RealsMut::Bf16(&mut y));
                    normalize_reals(
                        exec,
                        norm,
                        RealSlice::Bf16(&half),
                        n,
                        RealsMut::Fp32(&mut wide),
                    );
                    assert_eq!(wide, want, "{}", isa.name());
                    let rounded: Vec<bf16> = want.iter().map(|&x| bf16::from_f32(x)).collect();
                    assert_eq!(y, rounded, "{}", isa.name());
                    normalize_reals(exec, norm, RealSlice::Fp32(&x), n, RealsMut::Bf16(&mut y));
                    assert_eq!(y, rounded, "{}", isa.name());
                }
            }
        }
    }

    #[test]
    fn rows_equal_the_reference_on_every_isa() {
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for (rows, n) in [(1, 1), (3, 5), (2, 16), (5, 100), (64, 384)] {
                let x = values(rows * n, 1);
                let r = values(rows * n, 2);
                let g = values(n, 3);
                let b = values(n, 4);
                let ib = values(n, 5);
                for kind in [NormKind::Layer, NormKind::RootMeanSquare] {
                    let norm =
                        RowNormalization { kind, scale: Some(&g), bias: Some(&b), epsilon: 1e-5 };
                    let mut y = vec![0.0; rows * n];
                    let mut total = vec![0.0; rows * n];
                    let skip = SkipConnection {
                        residual: Some(&r),
                        input_bias: Some(&ib),
                        sum: Some(&mut total),
                    };
                    normalize(exec, norm, &x, n, skip, &mut y);
                    for row in 0..rows {
                        let t: Vec<f64> = (0..n)
                            .map(|i| f64::from(x[row * n + i] + r[row * n + i] + ib[i]))
                            .collect();
                        let mean = match kind {
                            NormKind::Layer => t.iter().sum::<f64>() / n as f64,
                            NormKind::RootMeanSquare => 0.0,
                        };
                        let var = t.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
                        for i in 0..n {
                            let want = (t[i] - mean) / (var + 1e-5).sqrt() * f64::from(g[i])
                                + f64::from(b[i]);
                            let got = f64::from(y[row * n + i]);
                            assert!((got - want).abs() < 2e-5, "{} {got} {want}", isa.name());
                            assert!((f64::from(total[row * n + i]) - t[i]).abs() < 1e-6);
                        }
                    }
                }
            }
        }
    }
}
