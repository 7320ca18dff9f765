//! Fused multi-head attention: softmax(scale Q Kᵀ + mask) V without storing the scores.
//!
//! A task takes some query rows of one head and walks over the keys in blocks, keeping for every
//! row the greatest score and the sum of exponentials so far (online softmax). Scores of a block
//! are written in the form that the matrix product's register tile reads, so the product with V
//! needs no copy of them.

use crate::KernelContext;
use crate::gemm::{
    A_STRIDE, DenseRows, GemmStep, K_BLOCK, PrefetchStretch, RowSource, Transposition, block,
    depth_blocks, pack_panel,
};
use crate::isa::{IsaKernel, Simd};
use crate::memory::{DisjointSlice, with_scratch};
use crate::softmax::{exp_shifted, max};

/// Most query rows of a task: their scores over a block of keys fit the second-level cache.
const QUERY_ROWS: usize = 128;

/// Up to this many query rows, keys are read where they lie instead of packed.
const FEW_ROWS: usize = 4;

/// The sizes and constants of an attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionSizes {
    /// Independent sequences.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; a divisor of `heads`, whose neighbours share one.
    pub kv_heads: usize,
    /// Query rows per head.
    pub queries: usize,
    /// Key and value rows per head.
    pub keys: usize,
    /// Length of a query or key row.
    pub head_size: usize,
    /// Length of a value row.
    pub value_size: usize,
    /// Factor on scores, usually `1 / sqrt(head_size)`.
    pub scale: f32,
    /// Which keys a query sees.
    pub sight: VisibleKeys,
}

/// Which keys a query sees, apart from the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibleKeys {
    /// All.
    All,
    /// Query `i` sees keys up to `i + keys - queries`: those before it and itself, when the
    /// queries are the last rows of the sequence.
    Causal,
}

/// Rows of heads in a slice, by strides in elements; a row itself is dense.
#[derive(Clone, Copy, Debug)]
pub struct HeadRows<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Where the rows lie.
    pub strides: HeadStrides,
}

/// Queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct AttentionRows<T> {
    /// The queries.
    pub q: T,
    /// The keys.
    pub k: T,
    /// The values.
    pub v: T,
}

/// Where the rows of heads lie, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadStrides {
    /// Between sequences.
    pub batch: usize,
    /// Between heads.
    pub head: usize,
    /// Between rows.
    pub row: usize,
}

/// Keys that are weighed together.
#[derive(Clone, Copy)]
struct KeyRange {
    /// The first key.
    first: usize,
    /// Number of keys.
    keys: usize,
}

impl HeadStrides {
    /// Layout `[batch, heads, rows, size]`.
    #[must_use]
    pub fn heads_first(heads: usize, rows: usize, size: usize) -> Self {
        Self { batch: heads * rows * size, head: rows * size, row: size }
    }

    /// Layout `[batch, rows, heads, size]`.
    #[must_use]
    pub fn rows_first(heads: usize, rows: usize, size: usize) -> Self {
        Self { batch: rows * heads * size, head: size, row: heads * size }
    }

    #[track_caller]
    pub(crate) fn check(
        &self,
        name: &str,
        len: usize,
        batch: usize,
        heads: usize,
        rows: usize,
        size: usize,
    ) {
        if [batch, heads, rows, size].contains(&0) {
            return;
        }
        let last = [(batch, self.batch), (heads, self.head), (rows, self.row)]
            .iter()
            .try_fold(0usize, |sum, &(n, stride)| sum.checked_add((n - 1).checked_mul(stride)?));
        let fits = last.and_then(|last| last.checked_add(size)).is_some_and(|end| end <= len);
        assert!(fits, "{name} has {len} elements for {batch}x{heads}x{rows}x{size}");
    }
}

/// Values added to scores, by strides in elements; 0 repeats (broadcasts). Keys are adjacent.
#[derive(Clone, Copy, Debug)]
pub struct ScoreMask<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Batch, head and row stride; the row is the query.
    pub strides: HeadStrides,
}

impl AttentionSizes {
    fn check(&self, x: &AttentionRows<HeadRows<'_>>, mask: Option<&ScoreMask<'_>>) {
        let a = self;
        assert!(
            a.kv_heads > 0 && a.heads.is_multiple_of(a.kv_heads) || a.heads == 0,
            "attention: {} heads share {} key heads",
            a.heads,
            a.kv_heads
        );
        let check = |name, x: &HeadRows<'_>, heads, rows, size| {
            x.strides.check(name, x.data.len(), a.batch, heads, rows, size);
        };
        check("Q", &x.q, a.heads, a.queries, a.head_size);
        check("K", &x.k, a.kv_heads, a.keys, a.head_size);
        check("V", &x.v, a.kv_heads, a.keys, a.value_size);
        if let Some(m) = mask {
            m.strides.check("mask", m.data.len(), a.batch, a.heads, a.queries, a.keys);
        }
    }
}

/// `Y = softmax(scale Q Kᵀ + mask) V` for every head of every sequence. A query that sees no key,
/// or only keys at -infinity, gets zeros.
///
/// Shapes: Q is `[batch, heads, queries, head_size]`, K and V `[batch, kv_heads, keys, …]`, the
/// mask `[batch, heads, queries, keys]`, Y `[batch, heads, queries, value_size]`, each by its
/// strides.
///
/// # Panics
/// Panics when a slice is shorter than its shape and strides say, `kv_heads` does not divide
/// `heads`, or two rows of Y would overlap.
pub fn attention(
    exec: KernelContext<'_>,
    a: &AttentionSizes,
    x: AttentionRows<HeadRows<'_>>,
    mask: Option<ScoreMask<'_>>,
    y: &mut [f32],
    y_strides: HeadStrides,
) {
    a.check(&x, mask.as_ref());
    y_strides.check("Y", y.len(), a.batch, a.heads, a.queries, a.value_size);
    assert!(disjoint(a, y_strides), "attention: rows of Y overlap: {y_strides:?}");
    if [a.batch, a.heads, a.queries, a.value_size].contains(&0) {
        return;
    }
    let per_batch = a.batch * a.heads;
    let mut blocks = a.queries.div_ceil(QUERY_ROWS);
    // Enough tasks for all threads, but none of only a few rows.
    let wanted = exec.pool.threads().div_ceil(per_batch);
    blocks = blocks.max(wanted.min(a.queries / 16));
    let y = DisjointSlice::new(y);
    let width = exec.isa.tile_columns();
    exec.pool.run(per_batch * blocks, |task| {
        let head = task / blocks;
        let part = task % blocks;
        let row = a.queries * part / blocks;
        let end = a.queries * (part + 1) / blocks;
        let rows = end - row;
        let batch = head / a.heads;
        let head = head % a.heads;
        let depth = depth_blocks(a.head_size).count();
        let len = (depth + 1) * rows * A_STRIDE + K_BLOCK * width + 2 * rows;
        with_scratch(len, |scratch| {
            let at = |s: HeadStrides, head: usize, row: usize| {
                batch * s.batch + head * s.head + row * s.row
            };
            let kv = head / (a.heads / a.kv_heads);
            let task = AttentionTask {
                a,
                row,
                rows,
                q: x.q.data.as_ptr().wrapping_add(at(x.q.strides, head, row)),
                q_row: x.q.strides.row,
                k: x.k.data.as_ptr().wrapping_add(at(x.k.strides, kv, 0)),
                k_row: x.k.strides.row,
                v: x.v.data.as_ptr().wrapping_add(at(x.v.strides, kv, 0)),
                v_row: x.v.strides.row,
                mask: mask.map(|m| {
                    (m.data.as_ptr().wrapping_add(at(m.strides, head, row)), m.strides.row)
                }),
                y: y.at(at(y_strides, head, row)).ptr(),
                y_row: y_strides.row,
                scratch,
            };
            exec.isa.run(task);
        });
    });
}

/// Returns whether strides, sorted, each step over all that lies within.
pub(crate) fn disjoint(a: &AttentionSizes, s: HeadStrides) -> bool {
    let mut steps = [(s.batch, a.batch), (s.head, a.heads), (s.row, a.queries)];
    steps.sort_unstable();
    let mut extent = a.value_size;
    steps.iter().filter(|(_, n)| *n > 1).all(|&(stride, n)| {
        let fits = stride >= extent;
        extent = extent.saturating_add(stride.saturating_mul(n - 1));
        fits
    })
}

/// Some query rows of one head.
struct AttentionTask<'a> {
    a: &'a AttentionSizes,
    /// Number of the first query row.
    row: usize,
    rows: usize,
    q: *const f32,
    q_row: usize,
    k: *const f32,
    k_row: usize,
    v: *const f32,
    v_row: usize,
    mask: Option<(*const f32, usize)>,
    y: *mut f32,
    y_row: usize,
    scratch: &'a mut [f32],
}

/// The parts of a task's scratch.
struct AttentionScratch<'a> {
    /// Scaled queries in blocks.
    queries: &'a mut [f32],
    /// Scores of one block of keys, rows [`A_STRIDE`] apart.
    scores: &'a mut [f32],
    /// One packed block of a panel.
    panel: &'a mut [f32],
    /// Per row: the greatest score so far.
    highest: &'a mut [f32],
    /// Per row: the sum of exponentials so far.
    total: &'a mut [f32],
}

impl IsaKernel for AttentionTask<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let scratch = std::mem::take(&mut self.scratch);
        let width = S::LANES * S::TILE_VECTORS;
        let depth = depth_blocks(self.a.head_size).count();
        let (queries, rest) = scratch.split_at_mut(depth * self.rows * A_STRIDE);
        let (scores, rest) = rest.split_at_mut(self.rows * A_STRIDE);
        let (panel, rest) = rest.split_at_mut(K_BLOCK * width);
        let (highest, total) = rest.split_at_mut(self.rows);
        let mut scratch = AttentionScratch { queries, scores, panel, highest, total };
        scratch.highest.fill(f32::NEG_INFINITY);
        scratch.total.fill(0.0);
        for r in 0..self.rows {
            self.y_row(r).fill(0.0);
        }
        let few = self.rows <= FEW_ROWS;
        if !few {
            self.copy_queries(s, scratch.queries);
        }
        // Keys that the last row sees.
        let seen = self.visible(self.rows - 1);
        let mut first = 0;
        let mut started = false;
        while first < seen {
            let keys = K_BLOCK.min(seen - first);
            if self.hides(first, keys) {
                first += keys;
                continue;
            }
            if few {
                self.few_scores(s, first, keys, &mut scratch);
            } else {
                self.scores(s, first, keys, &mut scratch);
            }
            for r in 0..self.rows {
                self.weigh(s, r, KeyRange { first, keys }, started, &mut scratch);
            }
            if few {
                self.few_values(s, first, keys, &scratch);
            } else {
                self.values(s, KeyRange { first, keys }, started, &mut scratch);
            }
            started = true;
            first += keys;
        }
        for r in 0..self.rows {
            let total = scratch.total[r];
            let factor = if total == 0.0 { 0.0 } else { 1.0 / total };
            for y in self.y_row(r) {
                *y *= factor;
            }
        }
    }
}

impl AttentionTask<'_> {
    #[inline(always)]
    fn y_row(&mut self, r: usize) -> &mut [f32] {
        // SAFETY: the task alone writes its rows of Y, which the caller has checked.
        unsafe { std::slice::from_raw_parts_mut(self.y.add(r * self.y_row), self.a.value_size) }
    }

    /// How many keys row `r` of the task sees.
    #[inline(always)]
    fn visible(&self, r: usize) -> usize {
        match self.a.sight {
            VisibleKeys::All => self.a.keys,
            VisibleKeys::Causal => {
                (self.row + r + 1 + self.a.keys).saturating_sub(self.a.queries).min(self.a.keys)
            }
        }
    }

    /// Returns whether the mask hides all of some keys from all rows of the task, as the mask of a
    /// causal model does for about half of all blocks.
    fn hides(&self, first: usize, keys: usize) -> bool {
        let Some((mask, stride)) = self.mask else { return false };
        (0..self.rows).all(|r| {
            // SAFETY: the caller has checked the mask for every query and key.
            let row = unsafe { std::slice::from_raw_parts(mask.add(r * stride + first), keys) };
            row.iter().all(|&m| m == f32::NEG_INFINITY)
        })
    }

    /// Copies the queries into blocks, scaled.
    #[inline(always)]
    fn copy_queries<S: Simd>(&self, s: S, queries: &mut [f32]) {
        let source = DenseRows::new(self.q, self.q_row);
        for (i, block) in depth_blocks(self.a.head_size).enumerate() {
            let out = &mut queries[i * self.rows * A_STRIDE..(i + 1) * self.rows * A_STRIDE];
            // SAFETY: the caller has checked Q, and `out` has the task's rows.
            unsafe { source.copy(s, 0, self.rows, block.start, block.terms, out.as_mut_ptr()) };
            for row in out.chunks_exact_mut(A_STRIDE) {
                for q in &mut row[..block.terms] {
                    *q *= self.a.scale;
                }
            }
        }
    }

    /// Scores of keys `first..first + keys` (at most [`K_BLOCK`]).
    #[inline(always)]
    fn scores<S: Simd>(&self, s: S, first: usize, keys: usize, scratch: &mut AttentionScratch<'_>) {
        let width = S::LANES * S::TILE_VECTORS;
        let mut column = 0;
        while column < keys {
            let columns = width.min(keys - column);
            for (i, depth) in depth_blocks(self.a.head_size).enumerate() {
                // SAFETY: the caller has checked K; the scratch holds a block of a panel and the
                // task's rows of scores.
                unsafe {
                    let b = self.k.add((first + column) * self.k_row + depth.start);
                    let panel = scratch.panel.as_mut_ptr();
                    let k = depth.terms;
                    let b_stride =
                        pack_panel(s, b, self.k_row, Transposition::Yes, k, columns, panel);
                    let step = GemmStep {
                        k,
                        a: scratch.queries.as_ptr().add(i * self.rows * A_STRIDE),
                        a_stride: A_STRIDE,
                        b: panel,
                        b_stride,
                        c: scratch.scores.as_mut_ptr().add(column),
                        c_stride: A_STRIDE,
                        columns,
                        accumulate: !depth.is_first,
                        finish: None,
                        ahead: PrefetchStretch::NOTHING,
                    };
                    block(s, &step, self.rows);
                }
            }
            column += columns;
        }
    }

    /// Adds the mask to one row of scores and makes them exponentials; scales what the row of Y
    /// has so far when the greatest score grows; there is nothing so far unless `started`.
    #[inline(always)]
    fn weigh<S: Simd>(
        &mut self,
        s: S,
        r: usize,
        KeyRange { first, keys }: KeyRange,
        started: bool,
        scratch: &mut AttentionScratch<'_>,
    ) {
        let row = &mut scratch.scores[r * A_STRIDE..r * A_STRIDE + keys];
        let seen = self.visible(r).saturating_sub(first).min(keys);
        let (row, unseen) = row.split_at_mut(seen);
        unseen.fill(0.0);
        if let Some((mask, stride)) = self.mask {
            // SAFETY: the caller has checked the mask for every query and key.
            let mask = unsafe { std::slice::from_raw_parts(mask.add(r * stride + first), seen) };
            for (x, m) in row.iter_mut().zip(mask) {
                *x += m;
            }
        }
        let before = scratch.highest[r];
        let highest = max(s, row).max(before);
        // Nothing to take off while all scores are -infinity: their exponentials are zero.
        let shift = if highest == f32::NEG_INFINITY { 0.0 } else { highest };
        let sum = exp_shifted(s, row, shift);
        scratch.highest[r] = highest;
        if !started {
            scratch.total[r] = sum;
            return;
        }
        let factor = (before - shift).exp();
        scratch.total[r] = scratch.total[r] * factor + sum;
        for y in self.y_row(r) {
            *y *= factor;
        }
    }

    /// Adds the weighted values of a block of keys to Y.
    #[inline(always)]
    fn values<S: Simd>(
        &self,
        s: S,
        KeyRange { first, keys }: KeyRange,
        started: bool,
        scratch: &mut AttentionScratch<'_>,
    ) {
        let width = S::LANES * S::TILE_VECTORS;
        let mut column = 0;
        while column < self.a.value_size {
            let columns = width.min(self.a.value_size - column);
            // SAFETY: the caller has checked V and Y; the scratch holds a block of a panel.
            unsafe {
                let b = self.v.add(first * self.v_row + column);
                let panel = scratch.panel.as_mut_ptr();
                let b_stride =
                    pack_panel(s, b, self.v_row, Transposition::No, keys, columns, panel);
                let step = GemmStep {
                    k: keys,
                    a: scratch.scores.as_ptr(),
                    a_stride: A_STRIDE,
                    b: panel,
                    b_stride,
                    c: self.y.add(column),
                    c_stride: self.y_row,
                    columns,
                    accumulate: started,
                    finish: None,
                    ahead: PrefetchStretch::NOTHING,
                };
                block(s, &step, self.rows);
            }
            column += columns;
        }
    }

    /// Computes [`AttentionTask::scores`] key by key from memory.
    #[inline(always)]
    fn few_scores<S: Simd>(
        &self,
        s: S,
        first: usize,
        keys: usize,
        scratch: &mut AttentionScratch<'_>,
    ) {
        for r in 0..self.rows {
            for i in 0..keys {
                // SAFETY: the caller has checked Q and K.
                let dot = unsafe {
                    let q = self.q.add(r * self.q_row);
                    dot(s, q, self.k.add((first + i) * self.k_row), self.a.head_size)
                };
                scratch.scores[r * A_STRIDE + i] = dot * self.a.scale;
            }
        }
    }

    /// Computes [`AttentionTask::values`] key by key from memory.
    #[inline(always)]
    fn few_values<S: Simd>(&self, s: S, first: usize, keys: usize, scratch: &AttentionScratch<'_>) {
        let n = self.a.value_size;
        for r in 0..self.rows {
            let weights = &scratch.scores[r * A_STRIDE..r * A_STRIDE + keys];
            let mut c = 0;
            while c < n {
                let m = s.tail(n - c);
                // SAFETY: the mask limits every access to n values of rows that exist.
                unsafe {
                    let y = self.y.add(r * self.y_row + c);
                    let v = self.v.add(first * self.v_row + c);
                    let mut sum = s.load_tail(y, m);
                    for (i, &weight) in weights.iter().enumerate() {
                        let v = s.load_tail(v.add(i * self.v_row), m);
                        sum = s.fma(s.splat(weight), v, sum);
                    }
                    s.store_tail(y, m, sum);
                }
                c += S::LANES;
            }
        }
    }
}

/// # Safety
/// `a` and `b` are valid for `n` values.
#[inline(always)]
unsafe fn dot<S: Simd>(s: S, a: *const f32, b: *const f32, n: usize) -> f32 {
    let mut sums = [s.splat(0.0); 2];
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + 2 * S::LANES <= n {
            for (u, sum) in sums.iter_mut().enumerate() {
                let at = i + u * S::LANES;
                *sum = s.fma(s.load(a.add(at)), s.load(b.add(at)), *sum);
            }
            i += 2 * S::LANES;
        }
        while i < n {
            let m = s.tail(n - i);
            sums[0] = s.fma(s.load_tail(a.add(i), m), s.load_tail(b.add(i), m), sums[0]);
            i += S::LANES;
        }
    }
    s.reduce_add(s.add(sums[0], sums[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};
    use proptest::prelude::*;

    fn reference(
        a: &AttentionSizes,
        x: &AttentionRows<HeadRows<'_>>,
        mask: Option<ScoreMask<'_>>,
    ) -> Vec<f64> {
        let AttentionRows { q, k, v } = x;
        let at = |h: &HeadRows<'_>, b: usize, head: usize, row: usize, i: usize| {
            let s = h.strides;
            f64::from(h.data[b * s.batch + head * s.head + row * s.row + i])
        };
        let mut y = Vec::new();
        for b in 0..a.batch {
            for head in 0..a.heads {
                let kv = head * a.kv_heads / a.heads;
                for row in 0..a.queries {
                    let seen = match a.sight {
                        VisibleKeys::All => a.keys,
                        VisibleKeys::Causal => (row + 1 + a.keys).saturating_sub(a.queries),
                    };
                    let scores: Vec<f64> = (0..seen)
                        .map(|key| {
                            let dot: f64 = (0..a.head_size)
                                .map(|i| at(q, b, head, row, i) * at(k, b, kv, key, i))
                                .sum();
                            let m = mask.map_or(0.0, |m| {
                                let s = m.strides;
                                let at = b * s.batch + head * s.head + row * s.row + key;
                                f64::from(m.data[at])
                            });
                            dot * f64::from(a.scale) + m
                        })
                        .collect();
                    let top = scores.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
                    let top = if top == f64::NEG_INFINITY { 0.0 } else { top };
                    let e: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
                    let total: f64 = e.iter().sum();
                    for i in 0..a.value_size {
                        let sum: f64 = (0..seen).map(|key| e[key] * at(v, b, kv, key, i)).sum();
                        y.push(if total == 0.0 { 0.0 } else { sum / total });
                    }
                }
            }
        }
        y
    }

    fn check(a: &AttentionSizes, rows_first: bool, masked: bool) {
        let pool = ThreadPool::new(2);
        let strides = |heads, rows, size| {
            if rows_first {
                HeadStrides::rows_first(heads, rows, size)
            } else {
                HeadStrides::heads_first(heads, rows, size)
            }
        };
        let make = |heads: usize, rows: usize, size: usize, seed: u32| {
            (values(a.batch * heads * rows * size, seed), strides(heads, rows, size))
        };
        let q = make(a.heads, a.queries, a.head_size, 1);
        let k = make(a.kv_heads, a.keys, a.head_size, 2);
        let v = make(a.kv_heads, a.keys, a.value_size, 3);
        let x = AttentionRows {
            q: HeadRows { data: &q.0, strides: q.1 },
            k: HeadRows { data: &k.0, strides: k.1 },
            v: HeadRows { data: &v.0, strides: v.1 },
        };
        let mut m = values(a.batch * a.keys, 4);
        for x in m.iter_mut().step_by(5) {
            *x = f32::NEG_INFINITY;
        }
        let mask = masked.then_some(ScoreMask {
            data: &m,
            strides: HeadStrides { batch: a.keys, head: 0, row: 0 },
        });
        let want = reference(a, &x, mask);
        let out = HeadStrides::rows_first(a.heads, a.queries, a.value_size);
        for isa in Isa::available() {
            let mut y = vec![f32::NAN; want.len()];
            attention(KernelContext { pool: &pool, isa }, a, x, mask, &mut y, out);
            let mut want = want.iter();
            for b in 0..a.batch {
                for head in 0..a.heads {
                    for row in 0..a.queries {
                        for i in 0..a.value_size {
                            let at = b * out.batch + head * out.head + row * out.row + i;
                            let got = f64::from(y[at]);
                            let want = *want.next().unwrap();
                            let what = isa.name();
                            assert!((got - want).abs() < 3e-6, "{what} {a:?} {got} {want}");
                        }
                    }
                }
            }
        }
    }

    fn shape(queries: usize, keys: usize, head_size: usize) -> AttentionSizes {
        AttentionSizes {
            batch: 1,
            heads: 2,
            kv_heads: 2,
            queries,
            keys,
            head_size,
            value_size: head_size,
            scale: 1.0 / (head_size as f32).sqrt(),
            sight: VisibleKeys::All,
        }
    }

    #[test]
    fn the_shapes_of_language_models_equal_the_reference() {
        check(&shape(128, 128, 64), true, true);
        check(&shape(12, 12, 32), true, true);
        check(&shape(150, 600, 40), false, true);
        check(&shape(1, 700, 64), false, false);
        check(
            &AttentionSizes { heads: 4, sight: VisibleKeys::Causal, ..shape(300, 300, 32) },
            false,
            false,
        );
        check(
            &AttentionSizes { heads: 4, sight: VisibleKeys::Causal, ..shape(7, 300, 300) },
            true,
            false,
        );
        // The first queries see no key at all.
        check(&AttentionSizes { sight: VisibleKeys::Causal, ..shape(20, 10, 16) }, true, false);
    }

    #[test]
    fn blocks_that_a_mask_hides_are_passed_over() {
        let pool = ThreadPool::new(2);
        for a in [shape(300, 700, 16), shape(3, 700, 16)] {
            let [q, k, v] = [(a.queries, 1), (a.keys, 2), (a.keys, 3)].map(|(rows, seed)| {
                let strides = HeadStrides::heads_first(2, rows, 16);
                (values(2 * rows * 16, seed), strides)
            });
            let x = AttentionRows {
                q: HeadRows { data: &q.0, strides: q.1 },
                k: HeadRows { data: &k.0, strides: k.1 },
                v: HeadRows { data: &v.0, strides: v.1 },
            };
            // Row i sees keys 300 to 300 + i; the first of several blocks is hidden from all.
            let mask: Vec<f32> = (0..a.queries * a.keys)
                .map(|at| (at / a.keys, at % a.keys))
                .map(|(i, j)| if (300..=300 + i).contains(&j) { 0.5 } else { f32::NEG_INFINITY })
                .collect();
            let strides = HeadStrides { batch: 0, head: 0, row: a.keys };
            let mask = Some(ScoreMask { data: &mask, strides });
            let want = reference(&a, &x, mask);
            for isa in Isa::available() {
                let mut y = vec![f32::NAN; want.len()];
                attention(KernelContext { pool: &pool, isa }, &a, x, mask, &mut y, q.1);
                for (got, want) in y.iter().zip(&want) {
                    assert!((f64::from(*got) - want).abs() < 3e-6, "{} {got} {want}", isa.name());
                }
            }
        }
    }

    #[test]
    fn a_row_that_sees_only_masked_keys_is_zero() {
        let pool = ThreadPool::new(1);
        let a = shape(2, 3, 4);
        let data = values(24, 1);
        let strides = HeadStrides::heads_first(2, 3, 4);
        let k = HeadRows { data: &data, strides };
        let q = HeadRows { data: &data, strides: HeadStrides::heads_first(2, 2, 4) };
        let x = AttentionRows { q, k, v: k };
        let all = [f32::NEG_INFINITY; 3];
        let mask = ScoreMask { data: &all, strides: HeadStrides { batch: 0, head: 0, row: 0 } };
        let mut y = [f32::NAN; 16];
        attention(KernelContext::new(&pool), &a, x, Some(mask), &mut y, q.strides);
        assert_eq!(y, [0.0; 16]);
    }

    #[test]
    #[should_panic(expected = "rows of Y overlap")]
    fn overlapping_results_are_refused() {
        let pool = ThreadPool::new(1);
        let data = values(64, 1);
        let strides = HeadStrides::heads_first(2, 3, 4);
        let q = HeadRows { data: &data, strides };
        let x = AttentionRows { q, k: q, v: q };
        let mut y = [0.0; 64];
        let bad = HeadStrides { batch: 24, head: 4, row: 4 };
        attention(KernelContext::new(&pool), &shape(3, 3, 4), x, None, &mut y, bad);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_attention_equals_the_reference(
            batch in 1usize..3, kv_heads in 1usize..3, shared in 1usize..3,
            queries in 1usize..40, keys in 1usize..300,
            head_size in 1usize..70, value_size in 1usize..70,
            causal in proptest::bool::ANY, rows_first in proptest::bool::ANY,
            masked in proptest::bool::ANY,
        ) {
            let sight = if causal { VisibleKeys::Causal } else { VisibleKeys::All };
            let heads = kv_heads * shared;
            let scale = 0.5;
            check(
                &AttentionSizes {
                    batch, heads, kv_heads, queries, keys, head_size, value_size, scale, sight,
                },
                rows_first,
                masked,
            );
        }
    }
}
