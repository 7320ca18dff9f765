//! Images of another size: every place of an axis becomes a weighted sum of some places.

use crate::KernelContext;
use crate::gemm::{copy_run, zero_run};
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Terms of the places of a resized axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResizeSamples {
    /// Where the terms of each place end.
    ends: Vec<usize>,
    /// Input places with their weights.
    terms: Vec<(usize, f32)>,
    /// Input places that are needed.
    input: usize,
}

impl ResizeSamples {
    /// Adds a place behind those that there are.
    pub fn push(&mut self, terms: impl IntoIterator<Item = (usize, f32)>) {
        self.terms.extend(terms);
        let own = self.ends.last().copied().unwrap_or(0)..;
        self.input = self.terms[own].iter().map(|term| term.0 + 1).fold(self.input, usize::max);
        self.ends.push(self.terms.len());
    }

    /// Places of the result.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the result has no place.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn of(&self, place: usize) -> &[(usize, f32)] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.terms[start..self.ends[place]]
    }
}

/// The axis of length `length` of a tensor `[outer, length, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiddleAxis {
    /// Elements of the axes before it.
    pub outer: usize,
    /// Its own length.
    pub length: usize,
    /// Elements of the axes behind it.
    pub inner: usize,
}

impl MiddleAxis {
    /// Elements of the tensor, where they can be counted.
    #[must_use]
    pub fn elements(&self) -> Option<usize> {
        self.outer.checked_mul(self.length)?.checked_mul(self.inner)
    }
}

/// Resizes the middle axis of `[outer, length, inner]` into `[outer, samples.len(), inner]`.
///
/// # Panics
/// Panics when a slice has not the length that it should, or a sample reads beyond the axis.
pub fn resize_axis(
    exec: KernelContext<'_>,
    samples: &ResizeSamples,
    x: &[f32],
    axis: MiddleAxis,
    y: &mut [f32],
) {
    let MiddleAxis { outer, length, inner } = axis;
    let resized = MiddleAxis { length: samples.len(), ..axis };
    assert!(axis.elements() == Some(x.len()), "resize: {} of {outer}x{length}x{inner}", x.len());
    assert!(resized.elements() == Some(y.len()), "resize: {} values into {}", x.len(), y.len());
    assert!(samples.input <= length, "resize: place {} of {length}", samples.input);
    if y.is_empty() {
        return;
    }
    let y = DisjointSlice::new(y);
    // Long runs are split over threads row by row, short ones by what lies around them.
    let rows = if inner >= exec.isa.lanes() { samples.len() } else { 1 };
    let grain = 16_384usize.div_ceil(samples.len() / rows * inner);
    exec.pool.run_ranges(outer * rows, grain, |range| {
        exec.isa.run(ResizeRows { samples, x, y, length, inner, rows, range });
    });
}

/// Some rows of the result.
struct ResizeRows<'a> {
    samples: &'a ResizeSamples,
    x: &'a [f32],
    y: DisjointSlice<f32>,
    length: usize,
    inner: usize,
    /// Rows of an outer place: all places, or 1 where a row is the whole axis.
    rows: usize,
    range: std::ops::Range<usize>,
}

impl IsaKernel for ResizeRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let block = self.length * self.inner;
        for row in self.range.clone() {
            let outer = row / self.rows;
            let place = row % self.rows;
            let x = &self.x[outer * block..(outer + 1) * block];
            let places = self.samples.len();
            let at = (outer * places + place) * self.inner;
            if self.rows > 1 || places == 1 {
                // SAFETY: rows are disjoint parts of y.
                let y = unsafe { self.y.range(at..at + self.inner) };
                self.long(s, x, place, y);
            } else {
                // SAFETY: rows are disjoint parts of y.
                let y = unsafe { self.y.range(at..at + places * self.inner) };
                self.short(x, y);
            }
        }
    }
}

impl ResizeRows<'_> {
    /// One place, vectors over what is inside.
    #[inline(always)]
    fn long<S: Simd>(&self, s: S, x: &[f32], place: usize, y: &mut [f32]) {
        let n = self.inner;
        let x = x.as_ptr();
        let y = y.as_mut_ptr();
        match self.samples.of(place) {
            // SAFETY: y has a row.
            [] => unsafe { zero_run(s, n, y) },
            // SAFETY: the samples are inside x, and y has a row.
            &[(from, 1.0)] => unsafe { copy_run(s, x.add(from * n), n, y) },
            terms => {
                let mut i = 0;
                while i < n {
                    let m = s.tail(n - i);
                    let mut sum = s.splat(0.0);
                    for &(from, weight) in terms {
                        // SAFETY: the mask chooses values of a row of x.
                        let x = unsafe { s.load_tail(x.add(from * n + i), m) };
                        sum = s.fma(x, s.splat(weight), sum);
                    }
                    // SAFETY: the mask chooses values of the row of y.
                    unsafe { s.store_tail(y.add(i), m, sum) };
                    i += S::LANES;
                }
            }
        }
    }

    /// All places, value by value.
    #[inline(always)]
    fn short(&self, x: &[f32], y: &mut [f32]) {
        for (place, y) in y.chunks_exact_mut(self.inner).enumerate() {
            let terms = self.samples.of(place);
            for (i, y) in y.iter_mut().enumerate() {
                let mut sum = 0.0;
                for &(from, weight) in terms {
                    sum += x[from * self.inner + i] * weight;
                }
                *y = sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    #[test]
    fn every_place_is_the_sum_of_its_terms() {
        let pool = ThreadPool::new(2);
        let mut samples = ResizeSamples::default();
        let terms =
            [vec![(0, 1.0)], vec![(1, 0.25), (2, 0.75)], vec![], vec![(4, 1.0)], vec![(3, 2.0)]];
        terms.iter().for_each(|place| samples.push(place.iter().copied()));
        for (outer, inner) in [(1, 1), (3, 2), (2, 7), (5, 33), (40, 700)] {
            let x = values(outer * 5 * inner, 1);
            for isa in Isa::available() {
                let mut y = vec![f32::NAN; outer * 5 * inner];
                let exec = KernelContext { pool: &pool, isa };
                let axis = MiddleAxis { outer, length: 5, inner };
                resize_axis(exec, &samples, &x, axis, &mut y);
                for (at, got) in y.iter().enumerate() {
                    let o = at / inner / 5;
                    let place = at / inner % 5;
                    let i = at % inner;
                    let term = |&(from, w): &(usize, f32)| x[(o * 5 + from) * inner + i] * w;
                    let want: f32 = terms[place].iter().map(term).sum();
                    assert!((got - want).abs() < 1e-6, "{} {at}: {got} {want}", isa.name());
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "place 3 of 2")]
    fn a_sample_beyond_the_axis_is_refused() {
        let pool = ThreadPool::new(1);
        let mut samples = ResizeSamples::default();
        samples.push([(2, 1.0)]);
        let axis = MiddleAxis { outer: 1, length: 2, inner: 1 };
        resize_axis(KernelContext::new(&pool), &samples, &[0.0; 2], axis, &mut [0.0]);
    }
}
