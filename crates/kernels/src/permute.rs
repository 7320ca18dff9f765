//! Copies with reordered axes: transposes and general permutations.

use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Transposes `batch` matrices of `rows` x `columns`: `y[b, c, r] = x[b, r, c]`. NCHW to NHWC is
/// rows = C, columns = H W; the way back is rows = H W, columns = C.
///
/// # Panics
/// Panics when `x` or `y` has another length than the matrices.
pub fn transpose(
    exec: KernelContext<'_>,
    x: &[f32],
    batch: usize,
    rows: usize,
    columns: usize,
    y: &mut [f32],
) {
    let len = batch.checked_mul(rows).and_then(|n| n.checked_mul(columns));
    assert!(
        len == Some(x.len()) && len == Some(y.len()),
        "transpose: {} into {} for {batch} x {rows} x {columns}",
        x.len(),
        y.len()
    );
    if x.is_empty() {
        return;
    }
    let y = DisjointSlice::new(y);
    // Strips of columns, so that even one matrix is shared.
    const STRIP: usize = 64;
    let strips = columns.div_ceil(STRIP);
    let work = rows * STRIP.min(columns);
    exec.pool.run_ranges(batch * strips, 32_768usize.div_ceil(work), |range| {
        for task in range {
            let matrix = task / strips;
            let first = task % strips * STRIP;
            let end = columns.min(first + STRIP);
            let x = &x[matrix * rows * columns..(matrix + 1) * rows * columns];
            let y = y.at(matrix * rows * columns).ptr();
            exec.isa.run(ColumnStrip { x, rows, columns, first, end, y });
        }
    });
}

/// Columns `first..end` of one matrix.
struct ColumnStrip<'a> {
    x: &'a [f32],
    rows: usize,
    columns: usize,
    first: usize,
    end: usize,
    y: *mut f32,
}

impl IsaKernel for ColumnStrip<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { x, rows, columns, first, end, y } = self;
        let x = x.as_ptr();
        let mut r = 0;
        while r < rows {
            let whole_rows = r + S::LANES <= rows;
            let mut c = first;
            while c < end {
                if whole_rows && c + S::LANES <= end {
                    // SAFETY: a whole block inside both matrices.
                    unsafe {
                        let from = x.add(r * columns + c);
                        s.transpose_block(from, columns, y.add(c * rows + r), rows);
                    }
                } else {
                    for r in r..rows.min(r + S::LANES) {
                        for c in c..end.min(c + S::LANES) {
                            // SAFETY: r and c are inside both matrices.
                            unsafe { *y.add(c * rows + r) = *x.add(r * columns + c) };
                        }
                    }
                }
                c += S::LANES;
            }
            r += S::LANES;
        }
    }
}

/// An axis of the result of a permutation.
#[derive(Clone, Copy)]
struct PermutedAxis {
    size: usize,
    /// Distance between its elements in what is permuted.
    stride: usize,
}

/// Most dimensions of [`permute`].
pub const MAX_RANK: usize = 16;

/// `y` = `x` with its axes reordered: axis `i` of `y` is axis `order[i]` of `x`. `T` is any plain
/// type; pass bytes of other sizes as `u8`, `u16`, `u32` or `u64`.
///
/// # Panics
/// Panics when `order` is not a permutation of the axes of `shape`, there are more than
/// [`MAX_RANK`], or `x` or `y` has another length than `shape` says.
pub fn permute<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    shape: &[usize],
    order: &[usize],
    y: &mut [T],
) {
    check_permutation(shape, order, x.len(), y.len());
    if x.is_empty() {
        return;
    }
    // Axes of y from the last to the first; neighbours that stay neighbours are one.
    let mut stride_in_x = [1usize; MAX_RANK];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        stride_in_x[i] = stride_in_x[i + 1] * shape[i + 1];
    }
    let mut axes: Vec<PermutedAxis> = Vec::with_capacity(order.len());
    for &axis in order.iter().rev().filter(|&&axis| shape[axis] != 1) {
        let size = shape[axis];
        let stride = stride_in_x[axis];
        match axes.last_mut() {
            Some(last) if last.size * last.stride == stride => last.size *= size,
            _ => axes.push(PermutedAxis { size, stride }),
        }
    }
    let y = DisjointSlice::new(y);
    if let [rows, PermutedAxis { size: columns, stride: 1 }, outer @ ..] = &axes[..] {
        interchange(exec, x, *rows, *columns, outer, y);
        return;
    }
    let run = axes.first().copied().unwrap_or(PermutedAxis { size: 1, stride: 1 });
    let outer = &axes[axes.len().min(1)..];
    let runs = x.len() / run.size;
    exec.pool.run_ranges(runs, 16_384usize.div_ceil(run.size), |range| {
        let mut place = [0usize; MAX_RANK];
        let mut from = 0;
        let mut rest = range.start;
        for (at, &PermutedAxis { size, stride }) in place.iter_mut().zip(outer) {
            *at = rest % size;
            rest /= size;
            from += *at * stride;
        }
        for index in range {
            // SAFETY: ranges are disjoint, so runs are.
            let y = unsafe { y.range(index * run.size..(index + 1) * run.size) };
            if run.stride == 1 {
                y.copy_from_slice(&x[from..from + run.size]);
            } else {
                for (i, y) in y.iter_mut().enumerate() {
                    *y = x[from + i * run.stride];
                }
            }
            for (at, &PermutedAxis { size, stride }) in place.iter_mut().zip(outer) {
                *at += 1;
                from += stride;
                if *at < size {
                    break;
                }
                from -= size * stride;
                *at = 0;
            }
        }
    });
}

/// Columns of a block that is turned around at once: its lines of `x` and of `y` stay in the
/// first-level cache.
const BLOCK: usize = 32;

/// The same where the lines are so few that they are read side by side.
const FEW_LINES: (usize, usize) = (4, 2048);

/// Turns matrices around: the innermost axis of `y` is `rows`, and the `columns` elements of the next
/// one are adjacent in `x`. `outer` are the other axes of `y`, from the last to the first.
fn interchange<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    rows: PermutedAxis,
    columns: usize,
    outer: &[PermutedAxis],
    y: DisjointSlice<T>,
) {
    let block = if rows.size <= FEW_LINES.0 { FEW_LINES.1 } else { BLOCK };
    let strips = columns.div_ceil(block);
    let matrices: usize = outer.iter().map(|axis| axis.size).product();
    let grain = 16_384usize.div_ceil(rows.size * block.min(columns));
    exec.pool.run_ranges(matrices * strips, grain, |range| {
        for task in range {
            let matrix = task / strips;
            let first = task % strips * block;
            let mut rest = matrix;
            let mut from = first;
            for &PermutedAxis { size, stride } in outer {
                from += rest % size * stride;
                rest /= size;
            }
            let count = block.min(columns - first);
            let start = (matrix * columns + first) * rows.size;
            // SAFETY: strips are disjoint, and inside `y`.
            let y = unsafe { y.range(start..start + count * rows.size) };
            let line = |row: usize| &x[from + row * rows.stride..][..count];
            match rows.size {
                2 => {
                    for (y, (&a, &b)) in
                        y.as_chunks_mut().0.iter_mut().zip(line(0).iter().zip(line(1)))
                    {
                        *y = [a, b];
                    }
                }
                3 => {
                    let lines = line(0).iter().zip(line(1)).zip(line(2));
                    for (y, ((&a, &b), &c)) in y.as_chunks_mut().0.iter_mut().zip(lines) {
                        *y = [a, b, c];
                    }
                }
                4 => {
                    let lines = line(0).iter().zip(line(1)).zip(line(2).iter().zip(line(3)));
                    for (y, ((&a, &b), (&c, &d))) in y.as_chunks_mut().0.iter_mut().zip(lines) {
                        *y = [a, b, c, d];
                    }
                }
                _ => turn(rows.size, line, y),
            }
        }
    });
}

/// Writes the first elements of all lines, then the second ones, and so on, some lines at a time.
fn turn<'a, T: Copy + 'a>(rows: usize, line: impl Fn(usize) -> &'a [T], y: &mut [T]) {
    for first in (0..rows).step_by(BLOCK) {
        for row in first..rows.min(first + BLOCK) {
            for (y, &x) in y.chunks_exact_mut(rows).zip(line(row)) {
                y[row] = x;
            }
        }
    }
}

#[track_caller]
fn check_permutation(shape: &[usize], order: &[usize], x: usize, y: usize) {
    let rank = shape.len();
    assert!(rank <= MAX_RANK, "permute: {rank} axes");
    let mut seen = [false; MAX_RANK];
    let once = order.iter().all(|&axis| axis < rank && !std::mem::replace(&mut seen[axis], true));
    assert!(once && order.len() == rank, "permute: {order:?} of {rank} axes");
    let len = shape.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
    assert!(len == Some(x) && len == Some(y), "permute: {x} into {y} for {shape:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, ThreadPool};
    use proptest::prelude::*;

    #[test]
    fn a_transpose_moves_every_element() {
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for (b, r, c) in [(1, 1, 1), (2, 3, 5), (1, 16, 16), (1, 33, 130), (3, 64, 49)] {
                let x: Vec<f32> = (0..b * r * c).map(|v| v as f32).collect();
                let mut y = vec![-1.0; x.len()];
                transpose(exec, &x, b, r, c, &mut y);
                for (i, &value) in x.iter().enumerate() {
                    let m = i / (r * c);
                    let row = i / c % r;
                    let column = i % c;
                    assert_eq!(y[m * r * c + column * r + row], value, "{}", isa.name());
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn a_permutation_moves_every_element(
            shape in proptest::collection::vec(1usize..6, 0..6),
            seed in 0usize..1000,
        ) {
            let pool = ThreadPool::new(2);
            let mut order: Vec<usize> = (0..shape.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, (seed * 7 + i * 31) % (i + 1));
            }
            let len: usize = shape.iter().product();
            let x: Vec<u16> = (0..u16::MAX).take(len).collect();
            let mut y = vec![u16::MAX; len];
            permute(KernelContext::new(&pool), &x, &shape, &order, &mut y);
            for (i, &got) in y.iter().enumerate() {
                let mut rest = i;
                let mut place = vec![0; shape.len()];
                for &axis in order.iter().rev() {
                    place[axis] = rest % shape[axis];
                    rest /= shape[axis];
                }
                let from = place.iter().zip(&shape).fold(0, |at, (&p, &n)| at * n + p);
                prop_assert_eq!(usize::from(got), from);
            }
        }
    }
}
