//! One task: some queries that share a key head, and some positions.

use super::cache::PagedCache;
use super::{PagedAttentionBuffers, PagedAttentionStep, PagedTile};
use crate::Isa;
use crate::gemm::{
    A_STRIDE, DenseRows, GemmStep, PrefetchStretch, RowSource, THIN_ROWS, Transposition, block,
    depth_blocks, pack_panel, thin,
};
use crate::isa::{IsaKernel, Simd};
use crate::math;
use crate::matrix::{IndexSpan, StridedMatrix};
use crate::softmax::{exp_shifted, max, scale};

/// Positions of a span: their values stay in the second-level cache.
const SPAN: usize = 256;

/// Distance between the scores of two queries, which do not fall into the same cache sets.
const STRIDE: usize = SPAN + 16;

/// Positions whose values are widened at once for few queries: they stay in the first-level cache.
const NEAR: usize = 64;

/// Blocks that vectors are asked for ahead of their use.
const AHEAD: usize = 2;

/// Up to this many queries, vectors of single precision are multiplied where they lie.
const FEW: usize = 16;

/// Floats that a task of so many queries needs.
pub(super) fn scratch_len(isa: Isa, a: &PagedAttentionStep<'_>, queries: usize) -> usize {
    let width = isa.tile_columns();
    let depth = depth_blocks(a.head_size).count();
    let sums = queries * (a.value_size + 2);
    depth * queries * A_STRIDE
        + queries * STRIDE
        + panel_len(a, width)
        + near_len(a, queries)
        + sums
}

/// Floats of a panel of keys, and of one of values.
fn panel_len(a: &PagedAttentionStep<'_>, width: usize) -> usize {
    width * a.head_size.max(SPAN)
}

/// Floats of values side by side.
fn near_len(a: &PagedAttentionStep<'_>, queries: usize) -> usize {
    a.value_size * if queries <= FEW { NEAR } else { SPAN }
}

pub(super) struct PagedAttentionTask<'a> {
    pub(super) places: PagedAttentionBuffers<'a>,
    pub(super) tile: &'a PagedTile,
    pub(super) scratch: &'a mut [f32],
}

/// The parts of a task's scratch.
struct PagedScratch<'a> {
    /// Scaled queries in blocks of depth.
    blocks: &'a mut [f32],
    /// Scores of a span, rows [`STRIDE`] apart.
    scores: &'a mut [f32],
    /// Keys as the columns of a panel, or some columns of values.
    panel: &'a mut [f32],
    /// Values side by side as FP32.
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
struct PositionSpan {
    first: usize,
    count: usize,
}

impl IsaKernel for PagedAttentionTask<'_> {
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
        let (panel, rest) = rest.split_at_mut(panel_len(a, width));
        let (near, rest) = rest.split_at_mut(near_len(a, queries));
        let (sums, rest) = rest.split_at_mut(queries * a.value_size);
        let (highest, rest) = rest.split_at_mut(queries);
        let total = &mut rest[..queries];
        let mut scratch = PagedScratch { blocks, scores, panel, near, sums, highest, total };
        scratch.sums.fill(0.0);
        scratch.highest.fill(f32::NEG_INFINITY);
        scratch.total.fill(0.0);
        self.copy_queries(s, scratch.blocks);
        let mut first = self.tile.seen.start;
        while first < self.tile.seen.end {
            let span = PositionSpan { first, count: SPAN.min(self.tile.seen.end - first) };
            self.scores(s, span, &mut scratch);
            for query in 0..queries {
                self.weigh(s, query, span, &mut scratch);
            }
            self.values(s, span, &mut scratch);
            first += span.count;
        }
        self.finish(s, &mut scratch);
    }
}

impl PagedAttentionTask<'_> {
    /// Returns the number of queries: those of the first head, then those of the next.
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

    /// Asks for the vectors of a later block: blocks lie anywhere, so that the processor does not
    /// foresee them.
    #[inline(always)]
    fn foresee<S: Simd>(&self, s: S, cache: PagedCache, position: usize) {
        let block = self.places.a.block_size;
        let position = position / block * block + AHEAD * block;
        if position < self.tile.seen.end {
            let (vector, _) = self.run_at(position, 1);
            cache.prefetch(s, vector, block);
        }
    }

    /// Copies the queries into blocks of depth, scaled.
    #[inline(always)]
    fn copy_queries<S: Simd>(&self, s: S, blocks: &mut [f32]) {
        let a = self.places.a;
        let rows = self.tile.rows;
        let queries = self.queries();
        for (i, block) in depth_blocks(a.head_size).enumerate() {
            let out = &mut blocks[i * queries * A_STRIDE..(i + 1) * queries * A_STRIDE];
            for head in 0..a.group() {
                let source = DenseRows::new(self.query(0, head), a.heads * a.head_size);
                let out = &mut out[head * rows * A_STRIDE..];
                // SAFETY: Q has the rows of the tile, and `out` has room for them.
                unsafe { source.copy(s, 0, rows, block.start, block.terms, out.as_mut_ptr()) };
            }
            for row in out.chunks_exact_mut(A_STRIDE) {
                scale(s, &mut row[..block.terms], a.scale);
            }
        }
    }

    /// Scores of a span: queries times keys, which are the columns of panels.
    #[inline(always)]
    fn scores<S: Simd>(&self, s: S, span: PositionSpan, scratch: &mut PagedScratch<'_>) {
        let a = self.places.a;
        let in_place = self.queries() <= FEW && a.block_size.is_multiple_of(S::LANES);
        let width = S::LANES * S::TILE_VECTORS;
        let mut column = 0;
        while column < span.count {
            let (vector, side) = self.run_at(span.first + column, span.count - column);
            self.foresee(s, self.places.keys, span.first + column);
            if let Some(keys) = self.places.keys.plain(vector)
                && in_place
            {
                let columns = side.min(width);
                let keys = StridedMatrix::new(keys, a.block_size);
                let span = IndexSpan { first: column, count: columns };
                // SAFETY: the cache has the block, whose positions are whole vectors.
                unsafe { self.multiply_keys(s, keys, span, scratch) };
                column += columns;
                continue;
            }
            let columns = width.min(span.count - column);
            // Whole vectors are multiplied; what lies behind the last column is not looked at.
            let stride = columns.next_multiple_of(S::LANES);
            let panel = scratch.panel.as_mut_ptr();
            let mut done = 0;
            while done < columns {
                let (vector, side) = self.run_at(span.first + column + done, columns - done);
                self.foresee(s, self.places.keys, span.first + column + done);
                // SAFETY: the cache has the vectors, and the panel has room for them.
                unsafe {
                    self.places.keys.columns(s, vector, side, panel.add(done), stride);
                }
                done += side;
            }
            let keys = StridedMatrix::new(panel.cast_const(), stride);
            let span = IndexSpan { first: column, count: columns };
            // SAFETY: the panel holds these columns.
            unsafe { self.multiply_keys(s, keys, span, scratch) };
            column += columns;
        }
    }

    /// Some columns of the scores.
    ///
    /// # Safety
    /// `keys` has a row for each element of a key, whole vectors of columns each; the scores have
    /// these columns.
    #[inline(always)]
    unsafe fn multiply_keys<S: Simd>(
        &self,
        s: S,
        keys: StridedMatrix<*const f32>,
        columns: IndexSpan,
        scratch: &mut PagedScratch<'_>,
    ) {
        let queries = self.queries();
        for (i, block) in depth_blocks(self.places.a.head_size).enumerate() {
            let step = GemmStep {
                k: block.terms,
                a: scratch.blocks.as_ptr().wrapping_add(i * queries * A_STRIDE),
                a_stride: A_STRIDE,
                b: keys.data.wrapping_add(block.start * keys.stride),
                b_stride: keys.stride,
                c: scratch.scores.as_mut_ptr().wrapping_add(columns.first),
                c_stride: STRIDE,
                columns: columns.count,
                accumulate: !block.is_first,
                finish: None,
                ahead: PrefetchStretch::NOTHING,
            };
            // SAFETY: as the caller says; the scratch holds the queries' blocks.
            unsafe { product(s, &step, queries) };
        }
    }

    /// Makes one query's scores of a span exponentials, zero where it does not look; scales its sums
    /// so far when the greatest score grows.
    #[inline(always)]
    fn weigh<S: Simd>(
        &self,
        s: S,
        query: usize,
        span: PositionSpan,
        scratch: &mut PagedScratch<'_>,
    ) {
        let a = self.places.a;
        let end = self.tile.position + query % self.tile.rows + 1;
        let start = if a.window == 0 { 0 } else { end.saturating_sub(a.window) };
        let within = |position: usize| position.saturating_sub(span.first).min(span.count);
        let start = within(start);
        let end = within(end);
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

    /// Adds the weighted values of a span.
    #[inline(always)]
    fn values<S: Simd>(&self, s: S, span: PositionSpan, scratch: &mut PagedScratch<'_>) {
        let few = self.queries() <= FEW;
        let size = self.places.a.value_size;
        let mut done = 0;
        while done < span.count {
            let (vector, side) = self.run_at(span.first + done, span.count - done);
            self.foresee(s, self.places.values, span.first + done);
            let plain = self.places.values.plain(vector).filter(|_| few || side == span.count);
            if let Some(values) = plain {
                // SAFETY: the cache has these values.
                unsafe { self.multiply_values(s, values, done, side, scratch) };
                done += side;
                continue;
            }
            let count = if few { NEAR } else { SPAN }.min(span.count - done);
            let near = scratch.near.as_mut_ptr();
            let mut copied = 0;
            while copied < count {
                let (vector, side) = self.run_at(span.first + done + copied, count - copied);
                self.foresee(s, self.places.values, span.first + done + copied);
                // SAFETY: the cache has the vectors, and `near` has room for them.
                unsafe { self.places.values.rows(s, vector, side, near.add(copied * size)) };
                copied += side;
            }
            // SAFETY: these values were copied.
            unsafe { self.multiply_values(s, near, done, count, scratch) };
            done += count;
        }
    }

    /// Adds some weighted values.
    ///
    /// # Safety
    /// `values` has `count` vectors side by side, and the scores have weights of as many positions
    /// from `first` on.
    #[inline(always)]
    unsafe fn multiply_values<S: Simd>(
        &self,
        s: S,
        values: *const f32,
        first: usize,
        count: usize,
        scratch: &mut PagedScratch<'_>,
    ) {
        let width = S::LANES * S::TILE_VECTORS;
        let queries = self.queries();
        let size = self.places.a.value_size;
        let mut column = 0;
        while column < size {
            let columns = width.min(size - column);
            // SAFETY: the caller vouches for values and weights; the scratch holds a panel and the
            // sums.
            unsafe {
                let values = values.add(column);
                let (b, b_stride) = if columns.is_multiple_of(S::LANES) {
                    (values, size)
                } else {
                    let panel = scratch.panel.as_mut_ptr();
                    let stride =
                        pack_panel(s, values, size, Transposition::No, count, columns, panel);
                    (panel.cast_const(), stride)
                };
                let step = GemmStep {
                    k: count,
                    a: scratch.scores.as_ptr().add(first),
                    a_stride: STRIDE,
                    b,
                    b_stride,
                    c: scratch.sums.as_mut_ptr().add(column),
                    c_stride: size,
                    columns,
                    accumulate: true,
                    finish: None,
                    ahead: PrefetchStretch::NOTHING,
                };
                product(s, &step, queries);
            }
            column += columns;
        }
    }

    /// Writes the rows of Y, or what the parts of a tile are joined from.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, scratch: &mut PagedScratch<'_>) {
        let a = self.places.a;
        let tile = self.tile;
        let queries = self.queries();
        let size = a.value_size;
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
            let head = tile.head * a.group() + query / tile.rows;
            let row = tile.row + query % tile.rows;
            let at = self.places.y_at(row, head);
            // SAFETY: a tile alone has its rows and heads of Y, whose length was checked.
            let y = unsafe { self.places.y.range(at..at + size) };
            let total = scratch.total[query];
            y.copy_from_slice(&scratch.sums[query * size..][..size]);
            scale(s, y, if total == 0.0 { 0.0 } else { 1.0 / total });
        }
    }
}

/// Multiplies a step over `rows` rows.
///
/// # Safety
/// The same as for [`block`].
#[inline(always)]
unsafe fn product<S: Simd>(s: S, step: &GemmStep, rows: usize) {
    // SAFETY: as the caller says.
    unsafe {
        if rows <= THIN_ROWS {
            thin(s, step, rows);
        } else {
            block(s, step, rows);
        }
    }
}

/// `x = limit · tanh(x / limit)`.
#[inline(always)]
fn cap<S: Simd>(s: S, x: &mut [f32], limit: f32) {
    let p = x.as_mut_ptr();
    let n = x.len();
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
