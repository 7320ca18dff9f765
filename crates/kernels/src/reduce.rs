//! Reductions over the last axis.

use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Function of the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowReduce {
    /// The sum; 0 for an empty row.
    Sum,
    /// The mean; NaN for an empty row.
    Mean,
    /// The sum of squares; 0 for an empty row.
    SumSquares,
    /// The greatest value, NaN if there is one; -infinity for an empty row.
    Max,
    /// The least value, NaN if there is one; infinity for an empty row.
    Min,
}

/// `y[r] = f(row r of x)` for rows of `columns` values.
///
/// # Panics
/// Panics when `x` has not exactly `y.len()` rows of `columns`.
pub fn reduce_last(
    exec: KernelContext<'_>,
    f: RowReduce,
    x: &[f32],
    columns: usize,
    y: &mut [f32],
) {
    let rows = y.len();
    assert!(
        rows.checked_mul(columns) == Some(x.len()),
        "reduce: {} elements for {rows} rows of {columns}",
        x.len()
    );
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(rows, 16_384usize.div_ceil(columns.max(1)), |range| {
        // SAFETY: ranges are disjoint.
        let y = unsafe { y.range(range.clone()) };
        let x = &x[range.start * columns..range.end * columns];
        exec.isa.run(ReduceRows { f, x, columns, y });
    });
}

struct ReduceRows<'a> {
    f: RowReduce,
    x: &'a [f32],
    columns: usize,
    y: &'a mut [f32],
}

impl IsaKernel for ReduceRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (r, y) in self.y.iter_mut().enumerate() {
            let row = &self.x[r * self.columns..(r + 1) * self.columns];
            *y = match self.f {
                RowReduce::Sum => sum(s, row),
                RowReduce::Mean => sum(s, row) / row.len() as f32,
                RowReduce::SumSquares => sum_squares(s, row),
                RowReduce::Max => extreme(row, f32::NEG_INFINITY, |a, b| a > b),
                RowReduce::Min => extreme(row, f32::INFINITY, |a, b| a < b),
            };
        }
    }
}

#[inline(always)]
fn extreme(row: &[f32], start: f32, better: impl Fn(f32, f32) -> bool) -> f32 {
    row.iter().fold(start, |best, &x| if better(best, x) || best.is_nan() { best } else { x })
}

/// The sum of `row`, in four interleaved vector sums.
#[inline(always)]
pub(crate) fn sum<S: Simd>(s: S, row: &[f32]) -> f32 {
    let mut sums = [s.splat(0.0); 4];
    let p = row.as_ptr();
    let n = row.len();
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + 4 * S::LANES <= n {
            for (u, sum) in sums.iter_mut().enumerate() {
                *sum = s.add(*sum, s.load(p.add(i + u * S::LANES)));
            }
            i += 4 * S::LANES;
        }
        while i < n {
            let m = s.tail(n - i);
            sums[0] = s.add(sums[0], s.load_tail(p.add(i), m));
            i += S::LANES;
        }
    }
    s.reduce_add(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])))
}

/// The sum of the squares of `row`.
#[inline(always)]
pub(crate) fn sum_squares<S: Simd>(s: S, row: &[f32]) -> f32 {
    sum_squared_differences(s, row, 0.0)
}

/// The sum of `(x - mean)^2` over `row`.
#[inline(always)]
pub(crate) fn sum_squared_differences<S: Simd>(s: S, row: &[f32], mean: f32) -> f32 {
    let center = s.splat(mean);
    let mut sums = [s.splat(0.0); 4];
    let p = row.as_ptr();
    let n = row.len();
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + 4 * S::LANES <= n {
            for (u, sum) in sums.iter_mut().enumerate() {
                let d = s.sub(s.load(p.add(i + u * S::LANES)), center);
                *sum = s.fma(d, d, *sum);
            }
            i += 4 * S::LANES;
        }
        while i + S::LANES <= n {
            let d = s.sub(s.load(p.add(i)), center);
            sums[0] = s.fma(d, d, sums[0]);
            i += S::LANES;
        }
    }
    let rest: f32 = row[i..].iter().map(|x| (x - mean) * (x - mean)).sum();
    s.reduce_add(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3]))) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    #[test]
    fn reductions_equal_the_reference_on_every_isa() {
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for (rows, columns) in [(1, 1), (3, 7), (5, 64), (9, 131), (300, 384)] {
                let x = values(rows * columns, 7);
                for f in [
                    RowReduce::Sum,
                    RowReduce::Mean,
                    RowReduce::SumSquares,
                    RowReduce::Max,
                    RowReduce::Min,
                ] {
                    let mut y = vec![0.0; rows];
                    reduce_last(exec, f, &x, columns, &mut y);
                    for (row, &y) in x.chunks(columns).zip(&y) {
                        let wide = row.iter().map(|&v| f64::from(v));
                        let want = match f {
                            RowReduce::Sum => wide.sum::<f64>(),
                            RowReduce::Mean => wide.sum::<f64>() / columns as f64,
                            RowReduce::SumSquares => wide.map(|v| v * v).sum(),
                            RowReduce::Max => wide.fold(f64::NEG_INFINITY, f64::max),
                            RowReduce::Min => wide.fold(f64::INFINITY, f64::min),
                        };
                        let error = (f64::from(y) - want).abs();
                        assert!(error < 1e-7 * columns as f64 + 1e-7, "{f:?} {}", isa.name());
                    }
                }
            }
        }
    }

    #[test]
    fn a_nan_is_the_maximum_of_its_row() {
        let pool = ThreadPool::new(1);
        let mut y = [0.0; 2];
        let x = [1.0, f32::NAN, 0.0, 5.0, 2.0, -1.0];
        reduce_last(KernelContext::new(&pool), RowReduce::Max, &x, 3, &mut y);
        assert!(y[0].is_nan() && y[1] == 5.0);
    }
}
