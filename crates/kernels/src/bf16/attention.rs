//! Multi-head attention by products of BF16: scores and softmax are FP32, and so are the sums of the
//! product with V; what is rounded are Q, K, V and the exponentials.
//!
//! A task takes some query rows of one head. Keys and values are packed block by block into panels,
//! and the greatest score and the sum of exponentials of each row go on from block to block.
//!
//! Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao and others,
//! FlashAttention, 2022.

use half::bf16;

use super::panels::{PackColumns, PackRows, panel_floats};
use super::write::Bf16ResultCells;
use super::{Bf16Panels, Bf16Product, STEP, multiply_here};
use crate::KernelContext;
use crate::attention::{AttentionSizes, HeadStrides, ScoreMask, VisibleKeys, disjoint};
use crate::cell::{RealCell, RealSlice, RealsMut};
use crate::gemm::{DenseRows, GemmEpilogue, TileFinish};
use crate::isa::{Bf16Isa, Isa, IsaKernel, Simd};
use crate::math;
use crate::matrix::StridedMatrix;
use crate::memory::with_scratch;

/// Keys of a block.
const KEYS: usize = 512;

/// Query rows whose scores are made at once.
const QUERIES: usize = 128;

/// Fewest query rows of a task: fewer are not worth packed keys.
const FEW_ROWS: usize = 32;

/// `Y = softmax(scale Q Kᵀ + mask) V` for every head of every sequence, with operands rounded to
/// BF16 and FP32 sums. A query that sees no key, or only keys at -infinity, gets zeros.
///
/// Shapes: as for [`crate::attention::attention`]; `strides` are those of Q, K and V.
///
/// # Panics
/// Panics like [`crate::attention::attention`]. Also panics when Q, K and V have different types,
/// or when Q is BF16 and the head size or the distance of its rows is odd.
pub fn attention_bf16(
    exec: KernelContext<'_>,
    a: &AttentionSizes,
    qkv: [RealSlice<'_>; 3],
    strides: [HeadStrides; 3],
    mask: Option<ScoreMask<'_>>,
    y: RealsMut<'_>,
    y_strides: HeadStrides,
) {
    let heads = [a.heads, a.kv_heads, a.kv_heads];
    let rows = [a.queries, a.keys, a.keys];
    let sizes = [a.head_size, a.head_size, a.value_size];
    assert!(
        a.heads == 0 || a.kv_heads > 0 && a.heads.is_multiple_of(a.kv_heads),
        "attention: {} heads share {} key heads",
        a.heads,
        a.kv_heads
    );
    for (at, name) in ["Q", "K", "V"].into_iter().enumerate() {
        strides[at].check(name, qkv[at].len(), a.batch, heads[at], rows[at], sizes[at]);
    }
    if let Some(mask) = &mask {
        mask.strides.check("mask", mask.data.len(), a.batch, a.heads, a.queries, a.keys);
    }
    y_strides.check("Y", y.len(), a.batch, a.heads, a.queries, a.value_size);
    assert!(disjoint(a, y_strides), "attention: rows of Y overlap: {y_strides:?}");
    if [a.batch, a.heads, a.queries, a.value_size].contains(&0) {
        return;
    }
    let y = (Bf16ResultCells::of(y), y_strides);
    let kinds = qkv.map(|x| matches!(x, RealSlice::Bf16(_)));
    assert!(kinds[0] == kinds[1] && kinds[1] == kinds[2], "attention: Q, K and V of two types");
    let isa = Bf16Isa::of(exec.isa);
    match qkv {
        [RealSlice::Fp32(q), RealSlice::Fp32(k), RealSlice::Fp32(v)] => {
            let qkv = [q, k, v].map(<[f32]>::as_ptr);
            run(exec, isa, a, Bf16AttentionOperands { qkv, strides, mask, y });
        }
        [RealSlice::Bf16(q), RealSlice::Bf16(k), RealSlice::Bf16(v)] => {
            let pairs = a.head_size.is_multiple_of(2) && strides[0].row.is_multiple_of(2);
            assert!(pairs, "attention: BF16 queries of {} are not pairs", a.head_size);
            let qkv = [q, k, v].map(<[bf16]>::as_ptr);
            run(exec, isa, a, Bf16AttentionOperands { qkv, strides, mask, y });
        }
        // Refused above.
        _ => {}
    }
}

/// Where everything is.
struct Bf16AttentionOperands<'a, T> {
    qkv: [*const T; 3],
    strides: [HeadStrides; 3],
    mask: Option<ScoreMask<'a>>,
    y: (Bf16ResultCells, HeadStrides),
}

// SAFETY: read-only views of slices that the caller holds while tasks run, and places of Y of which
// each task writes its own.
unsafe impl<T> Sync for Bf16AttentionOperands<'_, T> {}

fn run<T: RealCell>(
    exec: KernelContext<'_>,
    isa: Bf16Isa,
    a: &AttentionSizes,
    on: Bf16AttentionOperands<'_, T>,
) {
    let per_batch = a.batch * a.heads;
    // Enough tasks for all threads, but none of only a few rows.
    let wanted = exec.pool.threads().div_ceil(per_batch);
    let parts = wanted.min(a.queries / FEW_ROWS).max(1);
    let on = &on;
    exec.pool.run(per_batch * parts, |task| {
        let head = task / parts;
        let part = task % parts;
        let row = a.queries * part / parts;
        let end = a.queries * (part + 1) / parts;
        let batch = head / a.heads;
        let head = head % a.heads;
        let at =
            |s: HeadStrides, head: usize, row: usize| batch * s.batch + head * s.head + row * s.row;
        let kv = head / (a.heads / a.kv_heads);
        let [q, k, v] = on.qkv;
        let [q_at, k_at, v_at] = on.strides;
        let task = Bf16AttentionTask {
            a,
            row,
            rows: end - row,
            q: q.wrapping_add(at(q_at, head, row)),
            q_row: q_at.row,
            k: k.wrapping_add(at(k_at, kv, 0)),
            k_row: k_at.row,
            v: v.wrapping_add(at(v_at, kv, 0)),
            v_row: v_at.row,
            mask: on
                .mask
                .map(|m| (m.data.as_ptr().wrapping_add(at(m.strides, head, row)), m.strides.row)),
            y: on.y.0.at(at(on.y.1, head, row)),
            y_row: on.y.1.row,
        };
        with_scratch(task.room().total(), |scratch| task.run(exec.isa, isa, scratch));
    });
}

/// Some query rows of one head.
#[derive(Clone, Copy)]
struct Bf16AttentionTask<'a, T> {
    a: &'a AttentionSizes,
    /// Number of the first query row.
    row: usize,
    rows: usize,
    q: *const T,
    q_row: usize,
    k: *const T,
    k_row: usize,
    v: *const T,
    v_row: usize,
    mask: Option<(*const f32, usize)>,
    y: Bf16ResultCells,
    y_row: usize,
}

/// Floats of the parts of a task's scratch.
struct Bf16ScratchSizes {
    keys: usize,
    values: usize,
    scores: usize,
    weights: usize,
    sums: usize,
    state: usize,
}

impl Bf16ScratchSizes {
    fn total(&self) -> usize {
        self.keys + self.values + self.scores + self.weights + self.sums + 2 * self.state
    }
}

/// The parts of a task's scratch.
struct Bf16AttentionScratch<'a> {
    /// Panels of a block of keys and of values.
    keys: &'a mut [f32],
    values: &'a mut [f32],
    /// Scores of some rows.
    scores: &'a mut [f32],
    /// Their exponentials, in pairs of BF16.
    weights: &'a mut [f32],
    /// The product with V so far.
    sums: &'a mut [f32],
    /// Per row: the greatest score and the sum of exponentials so far.
    highest: &'a mut [f32],
    total: &'a mut [f32],
}

impl<T: RealCell> Bf16AttentionTask<'_, T> {
    /// Most keys of a block.
    fn block(&self) -> usize {
        KEYS.min(self.a.keys).next_multiple_of(STEP)
    }

    fn room(&self) -> Bf16ScratchSizes {
        let block = self.block();
        let a = self.a;
        let rows = QUERIES.min(self.rows);
        Bf16ScratchSizes {
            keys: panel_floats(a.head_size, block),
            values: panel_floats(block, a.value_size),
            scores: rows * block,
            weights: rows * block / 2,
            sums: (self.rows * a.value_size).next_multiple_of(16),
            state: self.rows.next_multiple_of(16),
        }
    }

    /// How many keys row `r` of the task sees.
    fn visible(&self, r: usize) -> usize {
        match self.a.sight {
            VisibleKeys::All => self.a.keys,
            VisibleKeys::Causal => {
                (self.row + r + 1 + self.a.keys).saturating_sub(self.a.queries).min(self.a.keys)
            }
        }
    }

    /// Returns whether rows see none of some keys.
    fn hides(&self, row: usize, end: usize, first: usize, keys: usize) -> bool {
        if self.visible(end - 1) <= first {
            return true;
        }
        let Some((mask, stride)) = self.mask else { return false };
        (row..end).all(|r| {
            // SAFETY: the caller has checked the mask for every query and key.
            let row = unsafe { std::slice::from_raw_parts(mask.add(r * stride + first), keys) };
            row.iter().all(|&m| m == f32::NEG_INFINITY)
        })
    }

    fn run(&self, isa: Isa, products: Bf16Isa, scratch: &mut [f32]) {
        let room = self.room();
        let (keys, rest) = scratch.split_at_mut(room.keys);
        let (values, rest) = rest.split_at_mut(room.values);
        let (scores, rest) = rest.split_at_mut(room.scores);
        let (weights, rest) = rest.split_at_mut(room.weights);
        let (sums, rest) = rest.split_at_mut(room.sums);
        let (highest, total) = rest.split_at_mut(room.state);
        highest.fill(f32::NEG_INFINITY);
        total.fill(0.0);
        sums.fill(0.0);
        let mut scratch =
            Bf16AttentionScratch { keys, values, scores, weights, sums, highest, total };
        let seen = self.visible(self.rows - 1);
        let mut started = false;
        for first in (0..seen).step_by(KEYS) {
            let count = KEYS.min(seen - first);
            if self.hides(0, self.rows, first, count) {
                continue;
            }
            let keys = StridedMatrix::new(self.k.wrapping_add(first * self.k_row), self.k_row);
            let (terms, to) = (self.a.head_size, scratch.keys.as_mut_ptr());
            isa.run(PackRows { from: keys, columns: count, terms, to });
            let values = StridedMatrix::new(self.v.wrapping_add(first * self.v_row), self.v_row);
            let (columns, to) = (self.a.value_size, scratch.values.as_mut_ptr());
            isa.run(PackColumns { from: values, columns, terms: count, to });
            for row in (0..self.rows).step_by(QUERIES) {
                let end = self.rows.min(row + QUERIES);
                if self.hides(row, end, first, count) {
                    continue;
                }
                self.scores(products, row, end, count, &mut scratch);
                let range = (row, end);
                let keys = (first, count);
                isa.run(ExponentialRows {
                    task: self,
                    range,
                    keys,
                    started,
                    scratch: &mut scratch,
                });
                self.values(products, row, end, count, &mut scratch);
            }
            started = true;
        }
        isa.run(WeightedResults { task: self, scratch: &scratch });
    }

    /// Scores of some rows and keys, unscaled.
    fn scores(
        &self,
        isa: Bf16Isa,
        row: usize,
        end: usize,
        keys: usize,
        scratch: &mut Bf16AttentionScratch<'_>,
    ) {
        let pairs = size_of::<T>() == size_of::<bf16>();
        let q = self.q.wrapping_add(row * self.q_row).cast::<f32>();
        let job = Bf16Product {
            m: end - row,
            n: keys,
            k: self.a.head_size,
            a: DenseRows::new(q, if pairs { self.q_row / 2 } else { self.q_row }),
            pairs,
            b: Bf16Panels::of(scratch.keys.as_ptr().cast()),
            c: Bf16ResultCells::Fp32(scratch.scores.as_mut_ptr()),
            c_stride: self.block(),
            adds: false,
            finish: TileFinish::new(&GemmEpilogue::default()),
            beside: None,
        };
        // SAFETY: the caller has checked Q, and the scratch has the keys and room for the scores.
        unsafe { multiply_here(isa, &job) };
    }

    /// Adds the product of exponentials and values.
    fn values(
        &self,
        isa: Bf16Isa,
        row: usize,
        end: usize,
        keys: usize,
        scratch: &mut Bf16AttentionScratch<'_>,
    ) {
        let n = self.a.value_size;
        let job = Bf16Product {
            m: end - row,
            n,
            k: keys.next_multiple_of(2),
            a: DenseRows::new(scratch.weights.as_ptr(), self.block() / 2),
            pairs: true,
            b: Bf16Panels::of(scratch.values.as_ptr().cast()),
            c: Bf16ResultCells::Fp32(scratch.sums[row * n..].as_mut_ptr()),
            c_stride: n,
            adds: true,
            finish: TileFinish::new(&GemmEpilogue::default()),
            beside: None,
        };
        // SAFETY: the scratch has exponentials, values and sums.
        unsafe { multiply_here(isa, &job) };
    }
}

/// Scores of some rows become exponentials.
struct ExponentialRows<'a, 'b, T> {
    task: &'a Bf16AttentionTask<'a, T>,
    range: (usize, usize),
    keys: (usize, usize),
    started: bool,
    scratch: &'a mut Bf16AttentionScratch<'b>,
}

impl<T: RealCell> IsaKernel for ExponentialRows<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (task, (first, keys)) = (self.task, self.keys);
        let stride = task.block();
        let n = task.a.value_size;
        let scratch = self.scratch;
        for (at, r) in (self.range.0..self.range.1).enumerate() {
            let seen = task.visible(r).saturating_sub(first).min(keys);
            let row = &mut scratch.scores[at * stride..at * stride + seen];
            let mask = task.mask.map(|(mask, stride)| mask.wrapping_add(r * stride + first));
            let before = scratch.highest[r];
            // SAFETY: the caller has checked the mask for every query and key.
            let highest = unsafe { scale(s, row, task.a.scale, mask) }.max(before);
            // Nothing to take off while all scores are -infinity: their exponentials are zero.
            let shift = if highest == f32::NEG_INFINITY { 0.0 } else { highest };
            let weights = scratch.weights[at * stride / 2..].as_mut_ptr().cast::<bf16>();
            // SAFETY: a row of weights has room for the keys of a block.
            let sum = unsafe { exponentials(s, row, shift, weights) };
            for unseen in seen..keys.next_multiple_of(2) {
                // SAFETY: as above.
                unsafe { *weights.add(unseen) = bf16::ZERO };
            }
            let factor = if before == highest { 1.0 } else { (before - shift).exp() };
            scratch.total[r] = scratch.total[r] * factor + sum;
            scratch.highest[r] = highest;
            if self.started && factor.to_bits() != 1.0_f32.to_bits() {
                crate::softmax::scale(s, &mut scratch.sums[r * n..(r + 1) * n], factor);
            }
        }
    }
}

/// `x = factor x + mask`; gives the greatest, which may leave out a NaN: the exponentials bring it
/// back.
///
/// # Safety
/// The mask has as many values.
#[inline(always)]
unsafe fn scale<S: Simd>(s: S, x: &mut [f32], factor: f32, mask: Option<*const f32>) -> f32 {
    let factor = s.splat(factor);
    let n = x.len();
    let x = x.as_mut_ptr();
    let least = s.splat(f32::NEG_INFINITY);
    let mut best = least;
    for i in (0..n).step_by(S::LANES) {
        let tail = (n - i < S::LANES).then(|| s.tail(n - i));
        // SAFETY: whole vectors, or what the tail chooses.
        unsafe {
            let value = f32::load(s, x.add(i), tail);
            let value = match mask {
                Some(mask) => s.fma(value, factor, f32::load(s, mask.add(i), tail)),
                None => s.mul(value, factor),
            };
            f32::store(s, x.add(i), tail, value);
            let seen = match tail {
                Some(tail) => s.select(tail, value, least),
                None => value,
            };
            best = s.max(seen, best);
        }
    }
    s.reduce_max(best)
}

/// `y = e^(x - shift)`, rounded; gives the sum of what is not rounded.
///
/// # Safety
/// `y` has room for as many.
#[inline(always)]
unsafe fn exponentials<S: Simd>(s: S, x: &[f32], shift: f32, y: *mut bf16) -> f32 {
    let n = x.len();
    let x = x.as_ptr();
    let shift = s.splat(shift);
    let mut sums = [s.splat(0.0); 2];
    let mut i = 0;
    // SAFETY: whole vectors, or what the tail chooses.
    unsafe {
        while i + 2 * S::LANES <= n {
            // Two at a time: their long chains of operations overlap.
            let e = math::exp_short(s, s.sub(s.load(x.add(i)), shift));
            let f = math::exp_short(s, s.sub(s.load(x.add(i + S::LANES)), shift));
            bf16::store(s, y.add(i), None, e);
            bf16::store(s, y.add(i + S::LANES), None, f);
            sums = [s.add(sums[0], e), s.add(sums[1], f)];
            i += 2 * S::LANES;
        }
        while i < n {
            let tail = s.tail(n - i);
            let e = math::exp_short(s, s.sub(s.load_tail(x.add(i), tail), shift));
            bf16::store(s, y.add(i), Some(tail), e);
            sums[0] = s.add(sums[0], s.select(tail, e, s.splat(0.0)));
            i += S::LANES;
        }
    }
    s.reduce_add(s.add(sums[0], sums[1]))
}

/// The results: sums over the sums of exponentials.
struct WeightedResults<'a, 'b, T> {
    task: &'a Bf16AttentionTask<'a, T>,
    scratch: &'a Bf16AttentionScratch<'b>,
}

impl<T: RealCell> IsaKernel for WeightedResults<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let task = self.task;
        let n = self.task.a.value_size;
        for r in 0..task.rows {
            let total = self.scratch.total[r];
            let factor = if total == 0.0 { 0.0 } else { 1.0 / total };
            let from = self.scratch.sums[r * n..(r + 1) * n].as_ptr();
            // SAFETY: the task alone writes its rows of Y, which the caller has checked.
            unsafe {
                match task.y.at(r * task.y_row) {
                    Bf16ResultCells::Fp32(y) => scaled(s, from, factor, y, n),
                    Bf16ResultCells::Bf16(y) => scaled(s, from, factor, y, n),
                }
            }
        }
    }
}

/// `y = factor x` for `n` values.
///
/// # Safety
/// Both are valid for them.
#[inline(always)]
unsafe fn scaled<S: Simd, Y: RealCell>(s: S, x: *const f32, factor: f32, y: *mut Y, n: usize) {
    let factor = s.splat(factor);
    for i in (0..n).step_by(S::LANES) {
        let tail = (n - i < S::LANES).then(|| s.tail(n - i));
        // SAFETY: whole vectors, or what the tail chooses.
        unsafe { Y::store(s, y.add(i), tail, s.mul(f32::load(s, x.add(i), tail), factor)) };
    }
}
