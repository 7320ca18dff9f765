//! The register tile: the innermost product of a few rows of A with a panel of B.

use super::epilogue::TileFinish;
use crate::activation::ActivateRows;
use crate::isa::{IsaKernel, Simd};

/// Depth of a block. Sums are kept in registers over a block and in C between blocks, so that a
/// deep block costs C less; a tile of A this deep still fits the first-level cache, and the panel
/// of B streams from the second level ahead of its use.
pub(crate) const K_BLOCK: usize = 512;

/// Distance between rows of a block of A. More than [`K_BLOCK`], so that the rows of a tile do not
/// fall into the same cache sets.
pub(crate) const A_STRIDE: usize = K_BLOCK + 16;

/// One step of a product: `C (+)= A B` over `k` terms, `columns` wide.
#[derive(Clone, Copy)]
pub(crate) struct GemmStep {
    pub(crate) k: usize,
    pub(crate) a: *const f32,
    /// Distance between rows of A; [`A_STRIDE`] in a block.
    pub(crate) a_stride: usize,
    /// `k` rows of a whole panel (tile width), `b_stride` apart.
    pub(crate) b: *const f32,
    pub(crate) b_stride: usize,
    pub(crate) c: *mut f32,
    pub(crate) c_stride: usize,
    /// At most the tile width.
    pub(crate) columns: usize,
    /// True if C already holds the sum of earlier blocks.
    pub(crate) accumulate: bool,
    /// On the last block: bias, residual and clamp, from this step's first row and column on.
    pub(crate) finish: Option<TileFinish>,
    /// The part of B that the step after this one reads, to be prefetched meanwhile.
    pub(crate) ahead: PrefetchStretch,
}

/// A stretch of memory that a later step reads.
#[derive(Clone, Copy)]
pub(crate) struct PrefetchStretch {
    at: *const f32,
    len: usize,
}

/// Floats in a cache line.
const LINE: usize = 16;

impl PrefetchStretch {
    /// Nothing: the step after is not known, or its operand is copied first.
    pub(crate) const NOTHING: Self = Self { at: std::ptr::null(), len: 0 };

    /// The `len` floats from `at` on; any address is allowed.
    pub(crate) fn floats(at: *const f32, len: usize) -> Self {
        Self { at, len }
    }

    /// Part `i` of `parts` equal ones.
    fn part(self, i: usize, parts: usize) -> Self {
        let from = self.len * i / parts;
        let to = self.len * (i + 1) / parts;
        Self { at: self.at.wrapping_add(from), len: to - from }
    }

    /// How far to go with each of `k` terms: asking for a line again costs less than counting, but
    /// more than a line a term would be in the way of the terms.
    fn per_term(self, k: usize) -> usize {
        self.len.div_ceil(k.max(1)).min(LINE)
    }
}

/// A tile of `R` rows and `V` vectors; with `PLACED` the rows of A lie as far apart as the step says,
/// else [`A_STRIDE`].
struct GemmTile<'a, const R: usize, const V: usize, const PLACED: bool>(&'a GemmStep);

impl<const R: usize, const V: usize, const PLACED: bool> IsaKernel for GemmTile<'_, R, V, PLACED> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let t = self.0;
        let a_stride = if PLACED { t.a_stride } else { A_STRIDE };
        let mut acc = [[s.splat(0.0); V]; R];
        // What the tile is added to, or written over, is needed as soon as the sums are there.
        for r in 0..R {
            for v in 0..V {
                s.prefetch_to_write(t.c.wrapping_add(r * t.c_stride + v * S::LANES));
            }
        }
        let forward = t.ahead.per_term(t.k);
        // An address without memory behind it would be looked up again and again.
        let mut ahead = if forward == 0 { t.b } else { t.ahead.at };
        let mut a = t.a;
        let mut b = t.b;
        for _ in 0..t.k {
            s.prefetch(ahead);
            ahead = ahead.wrapping_add(forward);
            // SAFETY: A has k columns in each of R rows, B has k rows of a whole panel.
            unsafe {
                let mut row = [s.splat(0.0); V];
                for (v, x) in row.iter_mut().enumerate() {
                    *x = s.load(b.add(v * S::LANES));
                }
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = s.splat(*a.add(r * a_stride));
                    for (acc, y) in acc.iter_mut().zip(row) {
                        *acc = s.fma(x, y, *acc);
                    }
                }
                a = a.add(1);
                b = b.add(t.b_stride);
            }
        }
        // SAFETY: the step's C, bias and residual cover R rows of `columns`.
        unsafe { write_tile(s, t, &mut acc) };
    }
}

/// Tile like [`GemmTile`], with any row stride of A and several sums per element: for a few rows, where one
/// sum per element would wait for itself.
struct ThinTile<'a, const R: usize, const V: usize, const U: usize>(&'a GemmStep);

impl<const R: usize, const V: usize, const U: usize> IsaKernel for ThinTile<'_, R, V, U> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let t = self.0;
        let mut sums = [[[s.splat(0.0); V]; R]; U];
        let mut k = 0;
        while k + U <= t.k {
            for (u, sums) in sums.iter_mut().enumerate() {
                // SAFETY: k + u < t.k.
                unsafe { thin_term(s, t, k + u, sums) };
            }
            k += U;
        }
        let mut acc = [[s.splat(0.0); V]; R];
        for sums in &sums {
            for (acc, sum) in acc.iter_mut().zip(sums) {
                for (acc, &sum) in acc.iter_mut().zip(sum) {
                    *acc = s.add(*acc, sum);
                }
            }
        }
        while k < t.k {
            // SAFETY: k < t.k.
            unsafe { thin_term(s, t, k, &mut acc) };
            k += 1;
        }
        // SAFETY: the step's C, bias and residual cover R rows of `columns`.
        unsafe { write_tile(s, t, &mut acc) };
    }
}

/// # Safety
/// `k < t.k`, and the step's pointers are valid.
#[inline(always)]
unsafe fn thin_term<S: Simd, const R: usize, const V: usize>(
    s: S,
    t: &GemmStep,
    k: usize,
    acc: &mut [[S::F; V]; R],
) {
    // SAFETY: A has k columns in each of R rows, B has k rows of a whole panel.
    unsafe {
        let b = t.b.add(k * t.b_stride);
        s.prefetch(b.wrapping_add(8 * t.b_stride));
        for (r, acc) in acc.iter_mut().enumerate() {
            let x = s.splat(*t.a.add(r * t.a_stride + k));
            for (v, acc) in acc.iter_mut().enumerate() {
                *acc = s.fma(x, s.load(b.add(v * S::LANES)), *acc);
            }
        }
    }
}

/// Adds what the step asks for and stores the tile.
///
/// # Safety
/// The step's C, bias and residual cover `R` rows of `columns`, of which the last is in vector
/// `V - 1`.
#[inline(always)]
pub(crate) unsafe fn write_tile<S: Simd, const R: usize, const V: usize>(
    s: S,
    t: &GemmStep,
    acc: &mut [[S::F; V]; R],
) {
    let last = t.columns - (V - 1) * S::LANES;
    if last == S::LANES {
        // SAFETY: every vector is whole.
        unsafe { write_vectors(s, t, acc, V, None) };
    } else {
        // SAFETY: all but the last vector are whole, and the mask covers that one.
        unsafe { write_vectors(s, t, acc, V - 1, Some(s.tail(last))) };
    }
}

/// Loads vector `v` of a row: whole, or what the mask chooses of the last one.
///
/// # Safety
/// `p` is valid for `whole` vectors and then what `mask` chooses.
#[inline(always)]
unsafe fn load_part<S: Simd>(
    s: S,
    p: *const f32,
    v: usize,
    whole: usize,
    mask: Option<S::M>,
) -> S::F {
    // SAFETY: the vector is whole or the mask limits it.
    unsafe {
        let p = p.add(v * S::LANES);
        match mask {
            Some(m) if v >= whole => s.load_tail(p, m),
            _ => s.load(p),
        }
    }
}

/// # Safety
/// The same as for [`write_tile`], with `whole` whole vectors and then one under `mask`.
#[inline(always)]
unsafe fn write_vectors<S: Simd, const R: usize, const V: usize>(
    s: S,
    t: &GemmStep,
    acc: &mut [[S::F; V]; R],
    whole: usize,
    mask: Option<S::M>,
) {
    if t.accumulate {
        for (r, acc) in acc.iter_mut().enumerate() {
            for (v, acc) in acc.iter_mut().enumerate() {
                // SAFETY: the vector is whole or the mask limits it.
                let c = unsafe { load_part(s, t.c.add(r * t.c_stride), v, whole, mask) };
                *acc = s.add(*acc, c);
            }
        }
    }
    if let Some(finish) = &t.finish {
        if let Some(bias) = finish.bias_at(0) {
            for v in 0..V {
                // SAFETY: the vector is whole or the mask limits it.
                let b = unsafe { load_part(s, bias, v, whole, mask) };
                for acc in acc.iter_mut() {
                    acc[v] = s.add(acc[v], b);
                }
            }
        }
        for (r, acc) in acc.iter_mut().enumerate() {
            let residual = finish.residual_at(r, 0);
            for (v, acc) in acc.iter_mut().enumerate() {
                if let Some(residual) = residual {
                    // SAFETY: the vector is whole or the mask limits it.
                    let x = unsafe { load_part(s, residual, v, whole, mask) };
                    *acc = finish.joined(s, *acc, x);
                }
                *acc = s.min(s.splat(finish.high), s.max(s.splat(finish.low), *acc));
            }
        }
    }
    for (r, acc) in acc.iter().enumerate() {
        for (v, &x) in acc.iter().enumerate() {
            // SAFETY: the vector is whole or the mask limits it.
            unsafe {
                let p = t.c.add(r * t.c_stride + v * S::LANES);
                match mask {
                    Some(m) if v >= whole => s.store_tail(p, m, x),
                    _ => s.store(p, x),
                }
            }
        }
    }
}

macro_rules! by_rows {
    ($s:ident, $step:ident, $rows:ident, $v:literal, $placed:literal: $($r:literal)*) => {
        match $rows {
            $($r if const { $r <= S::TILE_ROWS_BY_VECTORS[$v - 1] } => $s.enter(GemmTile::<$r, $v, $placed>($step)),)*
            _ => {}
        }
    };
}

/// Most rows of a tile that reads A where it lies: each needs a register for its address.
const PLACED_ROWS: usize = 8;

/// Most rows of a tile for a step.
fn tile_rows<S: Simd>(step: &GemmStep) -> usize {
    let rows = S::tile_rows(step.columns.div_ceil(S::LANES));
    if step.a_stride == A_STRIDE { rows } else { rows.min(PLACED_ROWS) }
}

/// Runs one tile: at most as many rows as [`tile_rows`] gives for it.
///
/// # Safety
/// The step's pointers are valid for `rows` rows, `k` terms and `columns` columns.
#[inline(always)]
unsafe fn tile<S: Simd>(s: S, step: &GemmStep, rows: usize) {
    // Narrow panels must not pay for whole ones.
    match (step.a_stride == A_STRIDE, step.columns.div_ceil(S::LANES)) {
        (true, 1) => by_rows!(s, step, rows, 1, false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        (true, 2) => by_rows!(s, step, rows, 2, false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        (true, 3) => by_rows!(s, step, rows, 3, false: 1 2 3 4 5 6 7 8),
        (true, 4) => by_rows!(s, step, rows, 4, false: 1 2 3 4 5 6),
        (false, 1) => by_rows!(s, step, rows, 1, true: 1 2 3 4 5 6 7 8),
        (false, 2) => by_rows!(s, step, rows, 2, true: 1 2 3 4 5 6 7 8),
        (false, 3) => by_rows!(s, step, rows, 3, true: 1 2 3 4 5 6 7 8),
        (false, 4) => by_rows!(s, step, rows, 4, true: 1 2 3 4 5 6),
        _ => {}
    }
}

/// Runs a step over `rows` rows of A, tile by tile, then the activation that tiles cannot do.
///
/// # Safety
/// The step's pointers are valid for `rows` rows, `k` terms and `columns` columns; `columns` is
/// at most the tile width.
#[inline(always)]
pub(crate) unsafe fn block<S: Simd>(s: S, step: &GemmStep, rows: usize) {
    let most = tile_rows::<S>(step);
    // Rows that fit one tile of half the panel, but not one of the whole, read the panel once.
    let half = 2 * S::LANES;
    let left = GemmStep { columns: half.min(step.columns), ..*step };
    if rows > most && rows <= tile_rows::<S>(&left) && step.columns > half {
        let right = GemmStep {
            b: step.b.wrapping_add(half),
            c: step.c.wrapping_add(half),
            columns: step.columns - half,
            finish: step.finish.map(|f| f.shifted(0, half)),
            ..*step
        };
        // SAFETY: halves of the caller's columns.
        unsafe {
            tile(s, &left, rows);
            tile(s, &right, rows);
            late(s, step, rows);
        }
        return;
    }
    // Tiles of nearly equal height: a thin last tile would be slow.
    let tiles = rows.div_ceil(most);
    let mut start = 0;
    for i in 1..=tiles {
        let end = rows * i / tiles;
        let part = GemmStep {
            a: step.a.wrapping_add(start * step.a_stride),
            c: step.c.wrapping_add(start * step.c_stride),
            finish: step.finish.map(|f| f.shifted(start, 0)),
            ahead: step.ahead.part(i - 1, tiles),
            ..*step
        };
        // SAFETY: rows start..end of the caller's.
        unsafe { tile(s, &part, end - start) };
        start = end;
    }
    // SAFETY: the caller vouches for C.
    unsafe { late(s, step, rows) };
}

/// Most rows of [`thin`].
pub(crate) const THIN_ROWS: usize = 4;

/// Runs a step over at most [`THIN_ROWS`] rows of A as they lie in memory.
///
/// # Safety
/// The same as for [`block`], with the step's own row stride of A.
#[inline(always)]
pub(crate) unsafe fn thin<S: Simd>(s: S, step: &GemmStep, rows: usize) {
    // As many sums an element whatever the width: equal columns have equal sums, and a softmax
    // over equal values of many digits stays even.
    match (rows, step.columns.div_ceil(S::LANES)) {
        (1, 1) => s.enter(ThinTile::<1, 1, 4>(step)),
        (2, 1) => s.enter(ThinTile::<2, 1, 2>(step)),
        (3, 1) => s.enter(ThinTile::<3, 1, 1>(step)),
        (4, 1) => s.enter(ThinTile::<4, 1, 1>(step)),
        (1, 2) => s.enter(ThinTile::<1, 2, 4>(step)),
        (2, 2) => s.enter(ThinTile::<2, 2, 2>(step)),
        (3, 2) => s.enter(ThinTile::<3, 2, 1>(step)),
        (4, 2) => s.enter(ThinTile::<4, 2, 1>(step)),
        (1, 3) if const { S::TILE_VECTORS >= 3 } => s.enter(ThinTile::<1, 3, 4>(step)),
        (2, 3) if const { S::TILE_VECTORS >= 3 } => s.enter(ThinTile::<2, 3, 2>(step)),
        (3, 3) if const { S::TILE_VECTORS >= 3 } => s.enter(ThinTile::<3, 3, 1>(step)),
        (4, 3) if const { S::TILE_VECTORS >= 3 } => s.enter(ThinTile::<4, 3, 1>(step)),
        (1, 4) if const { S::TILE_VECTORS >= 4 } => s.enter(ThinTile::<1, 4, 4>(step)),
        (2, 4) if const { S::TILE_VECTORS >= 4 } => s.enter(ThinTile::<2, 4, 2>(step)),
        (3, 4) if const { S::TILE_VECTORS >= 4 } => s.enter(ThinTile::<3, 4, 1>(step)),
        (4, 4) if const { S::TILE_VECTORS >= 4 } => s.enter(ThinTile::<4, 4, 1>(step)),
        _ => {}
    }
    // SAFETY: the caller vouches for C.
    unsafe { late(s, step, rows) };
}

/// # Safety
/// The step's C is valid for `rows` rows of `columns`.
#[inline(always)]
pub(super) unsafe fn late<S: Simd>(s: S, step: &GemmStep, rows: usize) {
    if let Some(activation) = step.finish.and_then(|f| f.late) {
        let on = ActivateRows {
            activation,
            data: step.c,
            rows,
            columns: step.columns,
            stride: step.c_stride,
        };
        // SAFETY: the caller vouches for C.
        unsafe { on.run(s) };
    }
}
