//! One task: some queries that share a key head, and some positions.

use super::cache::Cache;
use super::{PagedAttention, Places, Tile};
use crate::Isa;
use crate::gemm::{
    A_STRIDE, Ahead, DenseRows, K_BLOCK, RowSource, Step, Trans, block, depth_blocks, pack_panel,
};
use crate::isa::{Kernel, Simd};
use crate::math;
use crate::softmax::{exp_shifted, max, scale};

/// Positions of a span: their values stay in the second-level cache.
const SPAN: usize = 256;

/// Distance between the scores of two queries, which do not fall into the same cache sets.
const STRIDE: usize = SPAN + 16;

/// Positions whose vectors are widened at once where they are read one by one.
const RUN: usize = 32;

/// Up to this many queries, keys are multiplied where they lie instead of packed.
const FEW_FOR_KEYS: usize = 2;

/// Up to this many queries, values are added where they lie instead of by a product of matrices.
const FEW_FOR_VALUES: usize = 8;

/// Floats that a task of so many queries needs.
pub(super) fn scratch_len(isa: Isa, a: &PagedAttention<'_>, queries: usize) -> usize {
    let width = isa.tile_columns();
    let depth = depth_blocks(a.head_size).count();
    let sums = queries * (a.value_size + 2);
    depth * queries * A_STRIDE + queries * STRIDE + K_BLOCK * width + near_len(a, width) + sums
}

fn near_len(a: &PagedAttention<'_>, width: usize) -> usize {
    (width.max(RUN) * a.head_size).max(SPAN * a.value_size)
}

pub(super) struct Task<'a> {
    pub(super) places: Places<'a>,
    pub(super) tile: &'a Tile,
    pub(super) scratch: &'a mut [f32],
}

/// The parts of a task's scratch.
struct Scratch<'a> {
    /// Scaled queries in blocks of depth.
    blocks: &'a mut [f32],
    /// Scores of a span, rows [`STRIDE`] apart.
    scores: &'a mut [f32],
    /// One packed block of a panel.
    panel: &'a mut [f32],
    /// Vectors of a cache, side by side as FP32.
    near: &'a mut [f32],
    /// For each query the weighted sum of values so far.
    sums: &'a mut [f32],
    /// For each query the greatest score so far.
    highest: &'a mut [f32],
    /// For each query the sum of exponentials so far.
    total: &'a mut [f32],
}

/// Positions `first..first + count` of a sequence.
#[derive(Clone, Copy)]
struct Span {
    first: usize,
    count: usize,
}

impl Kernel for Task<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let a = self.places.a;
        let queries = self.queries();
        let width = S::LANES * S::TILE_VECTORS;
        let scratch = std::mem::take(&mut self.scratch);
        let depth = depth_blocks(a.head_size).count();
        let (blocks, rest) = scratch.split_at_mut(depth * queries * A_STRIDE);
        let (scores, rest) = rest.split_at_mut(queries * STRIDE);
        let (panel, rest) = rest.split_at_mut(K_BLOCK * width);
        let (near, rest) = rest.split_at_mut(near_len(a, width));
        let (sums, rest) = rest.split_at_mut(queries * a.value_size);
        let (highest, rest) = rest.split_at_mut(queries);
        let total = &mut rest[..queries];
        let mut scratch = Scratch { blocks, scores, panel, near, sums, highest, total };
        scratch.sums.fill(0.0);
        scratch.highest.fill(f32::NEG_INFINITY);
        scratch.total.fill(0.0);
        if queries > FEW_FOR_KEYS {
            self.copy_queries(s, scratch.blocks);
        }
        let mut first = self.tile.seen.start;
        while first < self.tile.seen.end {
            let span = Span { first, count: SPAN.min(self.tile.seen.end - first) };
            if queries > FEW_FOR_KEYS {
                self.scores(s, span, &mut scratch);
            } else {
                self.few_scores(s, span, &mut scratch);
            }
            for query in 0..queries {
                self.weigh(s, query, span, &mut scratch);
            }
            if queries > FEW_FOR_VALUES {
                self.values(s, span, &mut scratch);
            } else {
                self.few_values(s, span, &mut scratch);
            }
            first += span.count;
        }
        self.finish(s, &mut scratch);
    }
}

impl Task<'_> {
    /// How many queries there are: those of the first head, then those of the next.
    #[inline(always)]
    fn queries(&self) -> usize {
        self.tile.rows * self.places.a.group()
    }

    /// Where a query of this row and head of the tile starts in Q.
    #[inline(always)]
    fn query(&self, row: usize, head: usize) -> *const f32 {
        let a = self.places.a;
        let head = self.tile.head * a.group() + head;
        self.places.q.as_ptr().wrapping_add(((self.tile.row + row) * a.heads + head) * a.head_size)
    }

    /// The vector at a position, and how many of `count` lie side by side from there on.
    #[inline(always)]
    fn run_at(&self, position: usize, count: usize) -> (usize, usize) {
        let (vector, side) = self.places.a.vector(self.tile.sequence, self.tile.head, position);
        (vector, side.min(count))
    }

    /// Copies the queries into blocks of depth, scaled.
    #[inline(always)]
    fn copy_queries<S: Simd>(&self, s: S, blocks: &mut [f32]) {
        let a = self.places.a;
        let (rows, queries) = (self.tile.rows, self.queries());
        for (i, (k0, k, ..)) in depth_blocks(a.head_size).enumerate() {
            let out = &mut blocks[i * queries * A_STRIDE..(i + 1) * queries * A_STRIDE];
            for head in 0..a.group() {
                let source = DenseRows::new(self.query(0, head), a.heads * a.head_size);
                let out = &mut out[head * rows * A_STRIDE..];
                // SAFETY: Q has the rows of the tile, and `out` has room for them.
                unsafe { source.copy(s, 0, rows, k0, k, out.as_mut_ptr()) };
            }
            for row in out.chunks_exact_mut(A_STRIDE) {
                scale(s, &mut row[..k], a.scale);
            }
        }
    }

    /// The vectors of a span side by side as FP32: where they lie if they can, else in `near`,
    /// followed by zeros up to `padded` vectors.
    #[inline(always)]
    fn gather<S: Simd>(
        &self,
        s: S,
        cache: Cache,
        span: Span,
        padded: usize,
        near: &mut [f32],
    ) -> *const f32 {
        let (vector, side) = self.run_at(span.first, span.count);
        let size = cache.size;
        assert!(near.len() >= padded.max(span.count) * size, "no room for a span");
        if side == span.count && padded <= span.count && cache.is_plain() {
            // SAFETY: the cache has the vectors of these positions; nothing is copied.
            return unsafe { cache.rows(s, vector, side, near.as_mut_ptr()) };
        }
        let mut done = 0;
        while done < span.count {
            let (vector, side) = self.run_at(span.first + done, span.count - done);
            // SAFETY: the cache has the vectors, and `near` has room for those of the span.
            unsafe { cache.widen(s, vector, side, near.as_mut_ptr().add(done * size)) };
            done += side;
        }
        if padded > span.count {
            near[span.count * size..padded * size].fill(0.0);
        }
        near.as_ptr()
    }

    /// Scores of a span, by products with packed keys.
    #[inline(always)]
    fn scores<S: Simd>(&self, s: S, span: Span, scratch: &mut Scratch<'_>) {
        let width = S::LANES * S::TILE_VECTORS;
        let (queries, size) = (self.queries(), self.places.a.head_size);
        let mut column = 0;
        while column < span.count {
            let columns = width.min(span.count - column);
            let here = Span { first: span.first + column, count: columns };
            // Whole vectors are packed faster than single keys.
            let padded = columns.next_multiple_of(S::LANES);
            let keys = self.gather(s, self.places.keys, here, padded, scratch.near);
            for (i, (k0, k, is_first, _)) in depth_blocks(size).enumerate() {
                // SAFETY: there are `padded` keys; the scratch holds a block of a panel and the
                // task's rows of scores.
                unsafe {
                    let panel = scratch.panel.as_mut_ptr();
                    let b_stride = pack_panel(s, keys.add(k0), size, Trans::Yes, k, padded, panel);
                    let step = Step {
                        k,
                        a: scratch.blocks.as_ptr().add(i * queries * A_STRIDE),
                        a_stride: A_STRIDE,
                        b: panel,
                        b_stride,
                        c: scratch.scores.as_mut_ptr().add(column),
                        c_stride: STRIDE,
                        columns,
                        accumulate: !is_first,
                        finish: None,
                        ahead: Ahead::NOTHING,
                    };
                    block(s, &step, queries);
                }
            }
            column += columns;
        }
    }

    /// As [`Task::scores`], key by key from where they lie.
    #[inline(always)]
    fn few_scores<S: Simd>(&self, s: S, span: Span, scratch: &mut Scratch<'_>) {
        let a = self.places.a;
        let mut done = 0;
        while done < span.count {
            let (vector, side) = self.run_at(span.first + done, (span.count - done).min(RUN));
            // SAFETY: the cache has the vectors, and `near` has room for a run of them.
            let keys = unsafe { self.places.keys.rows(s, vector, side, scratch.near.as_mut_ptr()) };
            for head in 0..a.group() {
                for row in 0..self.tile.rows {
                    let at = (head * self.tile.rows + row) * STRIDE + done;
                    let out = &mut scratch.scores[at..at + side];
                    // SAFETY: Q has the query, and there are as many keys as scores.
                    unsafe { dots(s, self.query(row, head), keys, a.head_size, out) };
                    scale(s, out, a.scale);
                }
            }
            done += side;
        }
    }

    /// Makes one query's scores of a span exponentials, zero where it does not look; scales its sums
    /// so far when the greatest score grows.
    #[inline(always)]
    fn weigh<S: Simd>(&self, s: S, query: usize, span: Span, scratch: &mut Scratch<'_>) {
        let a = self.places.a;
        let end = self.tile.position + query % self.tile.rows + 1;
        let start = if a.window == 0 { 0 } else { end.saturating_sub(a.window) };
        let within = |position: usize| position.saturating_sub(span.first).min(span.count);
        let (start, end) = (within(start), within(end));
        let row = &mut scratch.scores[query * STRIDE..][..span.count];
        row[..start].fill(0.0);
        row[end..].fill(0.0);
        let row = &mut row[start..end];
        if row.is_empty() {
            return;
        }
        if a.softcap > 0.0 {
            cap(s, row, a.softcap);
        }
        let before = scratch.highest[query];
        let highest = max(s, row).max(before);
        // Nothing to take off while all scores are -infinity: their exponentials are zero.
        let shift = if highest == f32::NEG_INFINITY { 0.0 } else { highest };
        let sum = exp_shifted(s, row, shift);
        scratch.highest[query] = highest;
        if before == shift {
            scratch.total[query] += sum;
            return;
        }
        let factor = (before - shift).exp();
        scratch.total[query] = scratch.total[query] * factor + sum;
        scale(s, &mut scratch.sums[query * a.value_size..][..a.value_size], factor);
    }

    /// Adds the weighted values of a span, by products of matrices.
    #[inline(always)]
    fn values<S: Simd>(&self, s: S, span: Span, scratch: &mut Scratch<'_>) {
        let width = S::LANES * S::TILE_VECTORS;
        let (queries, size) = (self.queries(), self.places.a.value_size);
        let values = self.gather(s, self.places.values, span, 0, scratch.near);
        let mut column = 0;
        while column < size {
            let columns = width.min(size - column);
            // SAFETY: there are as many values as the span has positions; the scratch holds a
            // block of a panel and the sums.
            unsafe {
                let values = values.add(column);
                let (b, b_stride) = if columns.is_multiple_of(S::LANES) {
                    (values, size)
                } else {
                    let panel = scratch.panel.as_mut_ptr();
                    let stride = pack_panel(s, values, size, Trans::No, span.count, columns, panel);
                    (panel.cast_const(), stride)
                };
                let step = Step {
                    k: span.count,
                    a: scratch.scores.as_ptr(),
                    a_stride: STRIDE,
                    b,
                    b_stride,
                    c: scratch.sums.as_mut_ptr().add(column),
                    c_stride: size,
                    columns,
                    accumulate: true,
                    finish: None,
                    ahead: Ahead::NOTHING,
                };
                block(s, &step, queries);
            }
            column += columns;
        }
    }

    /// As [`Task::values`], from where they lie.
    #[inline(always)]
    fn few_values<S: Simd>(&self, s: S, span: Span, scratch: &mut Scratch<'_>) {
        let (queries, size) = (self.queries(), self.places.a.value_size);
        let mut done = 0;
        while done < span.count {
            let (vector, side) = self.run_at(span.first + done, (span.count - done).min(RUN));
            // SAFETY: the cache has the vectors, `near` has room for a run of them, and there are
            // scores of these positions and sums for every query.
            unsafe {
                let values = self.places.values.rows(s, vector, side, scratch.near.as_mut_ptr());
                let weights = scratch.scores.as_ptr().add(done);
                add_values(s, weights, queries, (values, side), size, scratch.sums.as_mut_ptr());
            }
            done += side;
        }
    }

    /// Writes the rows of Y, or what the parts of a tile are joined from.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, scratch: &mut Scratch<'_>) {
        let (a, tile) = (self.places.a, self.tile);
        let (queries, size) = (self.queries(), a.value_size);
        if let Some(part) = tile.part {
            // SAFETY: a part has room for the sums of its task, which alone writes them.
            let part = unsafe { self.places.parts.range(part..part + queries * (size + 2)) };
            let (sums, rest) = part.split_at_mut(queries * size);
            let (highest, total) = rest.split_at_mut(queries);
            sums.copy_from_slice(scratch.sums);
            highest.copy_from_slice(scratch.highest);
            total.copy_from_slice(scratch.total);
            return;
        }
        for query in 0..queries {
            let (head, row) =
                (tile.head * a.group() + query / tile.rows, tile.row + query % tile.rows);
            let at = self.places.y_at(row, head);
            // SAFETY: a tile alone has its rows and heads of Y, whose length was checked.
            let y = unsafe { self.places.y.range(at..at + size) };
            let total = scratch.total[query];
            y.copy_from_slice(&scratch.sums[query * size..][..size]);
            scale(s, y, if total == 0.0 { 0.0 } else { 1.0 / total });
        }
    }
}

/// `x = limit · tanh(x / limit)`.
#[inline(always)]
fn cap<S: Simd>(s: S, x: &mut [f32], limit: f32) {
    let (p, n) = (x.as_mut_ptr(), x.len());
    let (limit, part) = (s.splat(limit), s.splat(1.0 / limit));
    let mut i = 0;
    while i < n {
        let m = s.tail(n - i);
        // SAFETY: the mask limits every access to the n values.
        unsafe {
            let x = s.mul(s.load_tail(p.add(i), m), part);
            s.store_tail(p.add(i), m, s.mul(limit, math::tanh(s, x)));
        }
        i += S::LANES;
    }
}

/// Products of a query with as many keys, side by side, as `out` has room for.
///
/// # Safety
/// `q` is valid for `n` values, and `keys` for that many times the length of `out`.
#[inline(always)]
unsafe fn dots<S: Simd>(s: S, q: *const f32, keys: *const f32, n: usize, out: &mut [f32]) {
    let mut quads = out.chunks_exact_mut(4);
    let mut key = keys;
    for quad in &mut quads {
        let mut sums = [s.splat(0.0); 4];
        let mut i = 0;
        // SAFETY: every access is below n of a query or a key.
        unsafe {
            while i + S::LANES <= n {
                let x = s.load(q.add(i));
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum = s.fma(x, s.load(key.add(k * n + i)), *sum);
                }
                i += S::LANES;
            }
            if i < n {
                let m = s.tail(n - i);
                let x = s.load_tail(q.add(i), m);
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum = s.fma(x, s.load_tail(key.add(k * n + i), m), *sum);
                }
            }
        }
        for (out, sum) in quad.iter_mut().zip(sums) {
            *out = s.reduce_add(sum);
        }
        key = key.wrapping_add(4 * n);
    }
    for out in quads.into_remainder() {
        let mut sum = s.splat(0.0);
        let mut i = 0;
        while i < n {
            let m = s.tail(n - i);
            // SAFETY: the mask limits every access to the n values of a query and a key.
            unsafe { sum = s.fma(s.load_tail(q.add(i), m), s.load_tail(key.add(i), m), sum) };
            i += S::LANES;
        }
        *out = s.reduce_add(sum);
        key = key.wrapping_add(n);
    }
}

/// Adds `count` weighted values of length `n`, side by side, to the sums of each query.
///
/// # Safety
/// `weights` is valid for `count` values for each query, [`STRIDE`] apart; `values` for `count`
/// times `n`, and `sums` for `n` for each query.
#[inline(always)]
unsafe fn add_values<S: Simd>(
    s: S,
    weights: *const f32,
    queries: usize,
    (values, count): (*const f32, usize),
    n: usize,
    sums: *mut f32,
) {
    let mut done = 0;
    while done < count {
        let here = (count - done).min(4);
        let mut i = 0;
        // SAFETY: the mask limits every access to n values of vectors that there are.
        unsafe {
            let first = values.add(done * n);
            while i < n {
                let m = s.tail(n - i);
                let mut x = [s.splat(0.0); 4];
                for (k, x) in x.iter_mut().enumerate().take(here) {
                    *x = s.load_tail(first.add(k * n + i), m);
                }
                for query in 0..queries {
                    let weights = weights.add(query * STRIDE + done);
                    let at = sums.add(query * n + i);
                    let mut sum = s.load_tail(at, m);
                    if here == 4 {
                        for (k, x) in x.iter().enumerate() {
                            sum = s.fma(s.splat(*weights.add(k)), *x, sum);
                        }
                    } else {
                        for (k, x) in x.iter().enumerate().take(here) {
                            sum = s.fma(s.splat(*weights.add(k)), *x, sum);
                        }
                    }
                    s.store_tail(at, m, sum);
                }
                i += S::LANES;
            }
        }
        done += here;
    }
}
