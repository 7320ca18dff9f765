//! The largest and the smallest elements of lines: where they are, and the first few in order.
//!
//! Lines lie along an axis of length `len`, with `inner` elements behind each place of it.

use std::cmp::Ordering;

use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::moves::share_runs;
use crate::reduce::{RowReduce, reduce_last};

/// Axis along which lines lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineAxis {
    /// Elements of a line.
    pub len: usize,
    /// Elements between neighbours of a line.
    pub inner: usize,
}

/// Element of a line that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineExtreme {
    /// The largest rather than the smallest.
    pub largest: bool,
    /// The last rather than the first of equal ones.
    pub last: bool,
}

/// `y[line]` = the place of the largest or smallest element of a line. A NaN beats numbers.
///
/// # Panics
/// Panics when `x` is not `y.len()` lines, or lines are empty.
pub fn find_extreme(
    exec: KernelContext<'_>,
    x: &[f32],
    axis: LineAxis,
    wanted: LineExtreme,
    y: &mut [i64],
) {
    let LineAxis { len, inner } = axis;
    assert!(
        len > 0 && inner > 0 && x.len() == y.len() * len && y.len().is_multiple_of(inner),
        "extreme: {} elements over {axis:?} into {}",
        x.len(),
        y.len()
    );
    if inner == 1 {
        find_in_rows(exec, x, len, wanted, y);
        return;
    }
    share_runs(exec, y, inner, |blocks, y| {
        let mut best = vec![0.0; inner];
        for (block, y) in blocks.zip(y.chunks_exact_mut(inner)) {
            let x = &x[block * len * inner..(block + 1) * len * inner];
            exec.isa.run(ExtremeColumns { x, wanted, best: &mut best, y });
        }
    });
}

/// Rows that are lines: their extreme first, then where it is.
fn find_in_rows(
    exec: KernelContext<'_>,
    x: &[f32],
    len: usize,
    wanted: LineExtreme,
    y: &mut [i64],
) {
    let mut best = vec![0.0; y.len()];
    let function = if wanted.largest { RowReduce::Max } else { RowReduce::Min };
    reduce_last(exec, function, x, len, &mut best);
    let is = |x: f32, best: f32| x == best || (best.is_nan() && x.is_nan());
    share_runs(exec, y, 1, |rows, y| {
        for (row, y) in rows.zip(y) {
            let (row, best) = (&x[row * len..(row + 1) * len], best[row]);
            let found = match wanted.last {
                false => row.iter().position(|&x| is(x, best)),
                true => row.iter().rposition(|&x| is(x, best)),
            };
            *y = found.unwrap_or(0) as i64;
        }
    });
}

/// Neighbouring lines, read place by place.
struct ExtremeColumns<'a> {
    x: &'a [f32],
    wanted: LineExtreme,
    best: &'a mut [f32],
    y: &'a mut [i64],
}

impl ExtremeColumns<'_> {
    #[inline(always)]
    fn find(&mut self, beats: impl Fn(f32, f32) -> bool) {
        let inner = self.y.len();
        self.best.copy_from_slice(&self.x[..inner]);
        self.y.fill(0);
        for (at, row) in self.x.chunks_exact(inner).enumerate().skip(1) {
            for ((y, best), &x) in self.y.iter_mut().zip(self.best.iter_mut()).zip(row) {
                let is_nan = best.is_nan();
                let wins =
                    (beats(x, *best) && !is_nan) || (x.is_nan() && (!is_nan || self.wanted.last));
                *best = if wins { x } else { *best };
                *y = if wins { at as i64 } else { *y };
            }
        }
    }
}

impl IsaKernel for ExtremeColumns<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) {
        match self.wanted {
            LineExtreme { largest: true, last: false } => self.find(|x, best| x > best),
            LineExtreme { largest: true, last: true } => self.find(|x, best| x >= best),
            LineExtreme { largest: false, last: false } => self.find(|x, best| x < best),
            LineExtreme { largest: false, last: true } => self.find(|x, best| x <= best),
        }
    }
}

/// Beyond this many elements a line is sorted as a whole.
const FEW: usize = 64;

/// Results of [`take_first`]: values, and the places where they were.
#[derive(Debug)]
pub struct FirstElements<'a> {
    /// Values of `k` elements of each line.
    pub values: &'a mut [f32],
    /// Their places.
    pub places: &'a mut [i64],
}

/// Takes the `k` largest or smallest elements of each line, in order. Of equal ones the first come first; a NaN
/// counts as larger than any number.
///
/// # Panics
/// Panics when a slice does not fit the axis, or lines have fewer than `k` elements.
pub fn take_first(
    exec: KernelContext<'_>,
    x: &[f32],
    axis: LineAxis,
    k: usize,
    largest: bool,
    to: FirstElements<'_>,
) {
    let LineAxis { len, inner } = axis;
    let FirstElements { values, places } = to;
    let lines = x.len() / len.max(1);
    assert!(
        k <= len
            && x.len() == lines * len
            && values.len() == lines * k
            && places.len() == values.len(),
        "first {k}: {} elements over {axis:?} into {}",
        x.len(),
        values.len()
    );
    if k == 0 || lines == 0 {
        return;
    }
    assert!(inner > 0 && lines.is_multiple_of(inner), "{lines} lines, {inner} side by side");
    let outer = lines / inner;
    let values = crate::memory::DisjointSlice::new(values);
    let places = crate::memory::DisjointSlice::new(places);
    exec.pool.run_ranges(outer, 4096usize.div_ceil(len * inner), |range| {
        let mut line = Vec::with_capacity(len);
        let mut chosen = Vec::with_capacity(k.min(FEW) + 1);
        for block in range {
            // SAFETY: blocks have no result in common.
            let (values, places) = unsafe {
                let part = block * k * inner..(block + 1) * k * inner;
                (values.range(part.clone()), places.range(part))
            };
            for column in 0..inner {
                let x = x[block * len * inner + column..].iter().step_by(inner).take(len);
                line.clear();
                line.extend(x.copied());
                choose(&line, k, largest, &mut chosen);
                for (at, &place) in chosen.iter().enumerate() {
                    values[at * inner + column] = line[place];
                    places[at * inner + column] = place as i64;
                }
            }
        }
    });
}

/// The order of floats in which a NaN is the largest.
fn order(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Puts the places of the `k` first elements of a line into `chosen`.
fn choose(line: &[f32], k: usize, largest: bool, chosen: &mut Vec<usize>) {
    let comes_first = |a: usize, b: usize| match largest {
        true => order(line[b], line[a]),
        false => order(line[a], line[b]),
    };
    chosen.clear();
    if k > FEW {
        chosen.extend(0..line.len());
        let ordered = |a: &usize, b: &usize| comes_first(*a, *b).then(a.cmp(b));
        if k < line.len() {
            chosen.select_nth_unstable_by(k - 1, ordered);
            chosen.truncate(k);
        }
        chosen.sort_unstable_by(ordered);
        return;
    }
    // Few elements stay in order while the line passes; most of it is behind the last of them.
    for place in 0..line.len() {
        if chosen.len() == k {
            let last = chosen[k - 1];
            if comes_first(place, last) != Ordering::Less {
                continue;
            }
            chosen.pop();
        }
        let before = chosen.partition_point(|&other| comes_first(place, other) != Ordering::Less);
        chosen.insert(before, place);
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
mod tests {
    use super::*;
    use crate::ThreadPool;
    use crate::gemm::test_values;

    /// Values with many equal ones, some NaN and both zeros.
    fn lines(count: usize) -> Vec<f32> {
        let of = |(at, value): (usize, f32)| match at % 97 {
            13 => f32::NAN,
            14 => -0.0,
            15 => 0.0,
            _ => (value * 20.0).round(),
        };
        test_values(count, 5).into_iter().enumerate().map(of).collect()
    }

    fn line(x: &[f32], axis: LineAxis, number: usize) -> Vec<f32> {
        let (block, column) = (number / axis.inner, number % axis.inner);
        let start = block * axis.len * axis.inner + column;
        (0..axis.len).map(|at| x[start + at * axis.inner]).collect()
    }

    const AXES: [LineAxis; 4] = [
        LineAxis { len: 1, inner: 1 },
        LineAxis { len: 300, inner: 1 },
        LineAxis { len: 70, inner: 33 },
        LineAxis { len: 5, inner: 600 },
    ];

    #[test]
    fn extremes_are_found_where_a_plain_loop_finds_them() {
        let pool = ThreadPool::new(2);
        for isa in crate::Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for (axis, bits) in AXES.into_iter().flat_map(|axis| (0..4).map(move |b| (axis, b))) {
                let wanted = LineExtreme { largest: bits & 1 == 1, last: bits & 2 == 2 };
                let count = 4 * axis.inner;
                let x = lines(count * axis.len);
                let mut y = vec![-1; count];
                find_extreme(exec, &x, axis, wanted, &mut y);
                for (number, &found) in y.iter().enumerate() {
                    let all = line(&x, axis, number);
                    let mut best = 0;
                    for at in 1..all.len() {
                        let (new, old) = (all[at], all[best]);
                        let wins = match (new.is_nan(), old.is_nan()) {
                            (false, false) if wanted.largest => {
                                new > old || (wanted.last && new == old)
                            }
                            (false, false) => new < old || (wanted.last && new == old),
                            (true, old_is_nan) => !old_is_nan || wanted.last,
                            (false, true) => false,
                        };
                        best = if wins { at } else { best };
                    }
                    assert_eq!(found, best as i64, "{axis:?} {wanted:?} line {number}");
                }
            }
        }
    }

    #[test]
    fn first_elements_are_those_of_a_stable_sort() {
        let pool = ThreadPool::new(2);
        let exec = KernelContext::new(&pool);
        for axis in AXES {
            let count = 3 * axis.inner;
            let x = lines(count * axis.len);
            for (k, largest) in [(1, true), (5, false), (64, true), (65, false), (300, true)] {
                let k = k.min(axis.len);
                let (mut values, mut places) = (vec![0.0; count * k], vec![0; count * k]);
                let to = FirstElements { values: &mut values, places: &mut places };
                take_first(exec, &x, axis, k, largest, to);
                for number in 0..count {
                    let all = line(&x, axis, number);
                    let mut want: Vec<usize> = (0..all.len()).collect();
                    want.sort_by(|&a, &b| match largest {
                        true => order(all[b], all[a]),
                        false => order(all[a], all[b]),
                    });
                    let (block, column) = (number / axis.inner, number % axis.inner);
                    for (at, want) in want.into_iter().take(k).enumerate() {
                        let slot = (block * k + at) * axis.inner + column;
                        assert_eq!(places[slot], want as i64, "{axis:?} {k} {largest}");
                        assert_eq!(values[slot].to_bits(), all[want].to_bits());
                    }
                }
            }
        }
    }
}
