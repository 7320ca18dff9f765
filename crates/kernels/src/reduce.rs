//! Reductions over the last axis, and over one before it.

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
    /// The sum of absolute values; 0 for an empty row.
    SumAbs,
    /// The product; 1 for an empty row.
    Product,
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
                RowReduce::SumAbs => folded(row, 0.0, |y, x| y + x.abs(), |a, b| a + b),
                RowReduce::Product => folded(row, 1.0, |y, x| y * x, |a, b| a * b),
                RowReduce::Max => folded(row, f32::NEG_INFINITY, greater, greater),
                RowReduce::Min => folded(row, f32::INFINITY, smaller, smaller),
            };
        }
    }
}

/// The greater of two, or the one that is NaN.
#[inline(always)]
fn greater(best: f32, x: f32) -> f32 {
    if best >= x || best.is_nan() { best } else { x }
}

/// The smaller of two, or the one that is NaN.
#[inline(always)]
fn smaller(best: f32, x: f32) -> f32 {
    if best <= x || best.is_nan() { best } else { x }
}

/// Interleaved parts of a fold, as many as four vectors of the widest instruction set hold.
const PARTS: usize = 64;

/// Folds a row in interleaved parts, and those into one.
#[inline(always)]
fn folded(
    row: &[f32],
    start: f32,
    with: impl Fn(f32, f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    if row.len() < PARTS {
        return row.iter().fold(start, |y, &x| with(y, x));
    }
    let mut parts = [start; PARTS];
    let chunks = row.chunks_exact(PARTS);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (part, &x) in parts.iter_mut().zip(chunk) {
            *part = with(*part, x);
        }
    }
    for (part, &x) in parts.iter_mut().zip(rest) {
        *part = with(*part, x);
    }
    parts.into_iter().reduce(join).unwrap_or(start)
}

/// Shape of a reduction over an axis that is not the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducedAxis {
    /// Elements of the axis.
    pub len: usize,
    /// Elements of each place of it: the axes behind.
    pub inner: usize,
}

/// `y[o, i] = f(x[o, .., i])`: the terms of neighbouring results are neighbours.
///
/// # Panics
/// Panics when the lengths do not fit the axis.
pub fn reduce_middle(
    exec: KernelContext<'_>,
    f: RowReduce,
    x: &[f32],
    axis: ReducedAxis,
    y: &mut [f32],
) {
    let ReducedAxis { len, inner } = axis;
    assert!(
        inner > 0 && y.len().is_multiple_of(inner) && x.len() == y.len() * len,
        "reduce: {} elements over {axis:?} into {}",
        x.len(),
        y.len()
    );
    // Columns that one thread takes: their results stay in the first-level cache.
    const COLUMNS: usize = 2048;
    let strips = inner.div_ceil(COLUMNS);
    let tasks = y.len() / inner * strips;
    let y = DisjointSlice::new(y);
    let each = COLUMNS.min(inner) * len;
    exec.pool.run_ranges(tasks, 16_384usize.div_ceil(each.max(1)), |range| {
        for task in range {
            let (outer, first) = (task / strips, task % strips * COLUMNS);
            let columns = first..(first + COLUMNS).min(inner);
            // SAFETY: strips have no column in common.
            let y = unsafe { y.range(outer * inner + first..outer * inner + columns.end) };
            let x = &x[outer * len * inner..(outer + 1) * len * inner];
            exec.isa.run(ReduceStrip { f, x, inner, first, y });
        }
    });
}

/// Some neighbouring columns of a matrix whose rows are folded into one.
struct ReduceStrip<'a> {
    f: RowReduce,
    x: &'a [f32],
    inner: usize,
    first: usize,
    y: &'a mut [f32],
}

impl ReduceStrip<'_> {
    #[inline(always)]
    fn fold(&mut self, start: f32, with: impl Fn(f32, f32) -> f32) {
        self.y.fill(start);
        let columns = self.first..self.first + self.y.len();
        for row in self.x.chunks_exact(self.inner) {
            for (y, &x) in self.y.iter_mut().zip(&row[columns.clone()]) {
                *y = with(*y, x);
            }
        }
    }
}

impl IsaKernel for ReduceStrip<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        match self.f {
            RowReduce::Sum => self.fold(0.0, |y, x| y + x),
            RowReduce::Mean => {
                self.fold(0.0, |y, x| y + x);
                let len = (self.x.len() / self.inner) as f32;
                self.y.iter_mut().for_each(|y| *y /= len);
            }
            RowReduce::SumSquares => self.fold(0.0, |y, x| y + x * x),
            RowReduce::SumAbs => self.fold(0.0, |y, x| y + x.abs()),
            RowReduce::Product => self.fold(1.0, |y, x| y * x),
            RowReduce::Max => self.fold(f32::NEG_INFINITY, greater),
            RowReduce::Min => self.fold(f32::INFINITY, smaller),
        }
    }
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
                    RowReduce::SumAbs,
                    RowReduce::Product,
                    RowReduce::Max,
                    RowReduce::Min,
                ] {
                    let mut y = vec![0.0; rows];
                    reduce_last(exec, f, &x, columns, &mut y);
                    for (row, &y) in x.chunks(columns).zip(&y) {
                        check(f, row.iter().copied(), y, isa);
                    }
                    let axis = ReducedAxis { len: rows, inner: columns };
                    let mut y = vec![0.0; columns];
                    reduce_middle(exec, f, &x, axis, &mut y);
                    for (column, &y) in y.iter().enumerate() {
                        check(f, x.iter().skip(column).step_by(columns).copied(), y, isa);
                    }
                }
            }
        }
    }

    fn check(f: RowReduce, terms: impl Iterator<Item = f32>, y: f32, isa: Isa) {
        let all: Vec<f64> = terms.map(f64::from).collect();
        let (len, wide) = (all.len() as f64, all.into_iter());
        let want = match f {
            RowReduce::Sum => wide.sum::<f64>(),
            RowReduce::Mean => wide.sum::<f64>() / len,
            RowReduce::SumSquares => wide.map(|v| v * v).sum(),
            RowReduce::SumAbs => wide.map(f64::abs).sum(),
            RowReduce::Product => wide.product(),
            RowReduce::Max => wide.fold(f64::NEG_INFINITY, f64::max),
            RowReduce::Min => wide.fold(f64::INFINITY, f64::min),
        };
        let error = (f64::from(y) - want).abs();
        assert!(
            error < 1e-6 * want.abs().max(1.0) + 1e-7 * len,
            "{f:?} {}: {y} for {want}",
            isa.name()
        );
    }

    #[test]
    fn reductions_over_a_middle_axis_take_its_blocks_apart() {
        let pool = ThreadPool::new(2);
        let (outer, len, inner) = (3, 5, 2500);
        let x = values(outer * len * inner, 3);
        let mut y = vec![0.0; outer * inner];
        let axis = ReducedAxis { len, inner };
        reduce_middle(KernelContext::new(&pool), RowReduce::Sum, &x, axis, &mut y);
        for (at, &y) in y.iter().enumerate() {
            let (block, column) = (at / inner, at % inner);
            let term = |row: usize| x[(block * len + row) * inner + column];
            check(RowReduce::Sum, (0..len).map(term), y, Isa::detect());
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
