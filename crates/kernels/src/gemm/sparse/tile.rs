//! Register tiles over lists of terms: rows of A times what a sparse matrix keeps.

use super::super::epilogue::TileFinish;
use super::super::micro::{GemmStep, late, write_tile};
use super::data::{GROUPS_PER_WORD, SparseBlock, SparseList, SparsePanels};
use super::pattern::SparseLayout;
use super::plain::{GROUP, KEPT};
use crate::gemm::depth::depth_blocks;
use crate::gemm::layout::LINE;
use crate::isa::{IsaKernel, Simd};

/// Vectors of values that are asked for ahead.
const AHEAD: usize = 32;

/// Rows of A times the rows of a strip that are left, in `U` sets of sums: one sum per element would
/// wait for itself where there are few.
struct StripTile<'a, const R: usize, const V: usize, const U: usize> {
    step: &'a GemmStep,
    list: SparseList,
}

impl<const R: usize, const V: usize, const U: usize> IsaKernel for StripTile<'_, R, V, U> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let t = self.step;
        let mut sums = [[[s.splat(0.0); V]; R]; U];
        let indices = self.list.data.cast::<u32>();
        let count = self.list.count;
        let mut values = self.list.data.wrapping_add(count.next_multiple_of(LINE));
        let mut i = 0;
        while i + U <= count {
            for sums in &mut sums {
                // SAFETY: entry i is below the count; A has the terms that the list names.
                unsafe { strip_term(s, t, *indices.add(i), values, sums) };
                values = values.wrapping_add(V * S::LANES);
                i += 1;
            }
        }
        while i < count {
            // SAFETY: as above.
            unsafe { strip_term(s, t, *indices.add(i), values, &mut sums[0]) };
            values = values.wrapping_add(V * S::LANES);
            i += 1;
        }
        // SAFETY: the step's C, bias and residual cover R rows of `columns`.
        unsafe { write_tile(s, t, &mut total(s, &sums)) };
    }
}

/// The sums of some sets.
#[inline(always)]
fn total<S: Simd, const R: usize, const V: usize, const N: usize>(
    s: S,
    sums: &[[[S::F; V]; R]; N],
) -> [[S::F; V]; R] {
    let mut all = sums[0];
    for set in &sums[1..] {
        for (all, set) in all.iter_mut().zip(set) {
            for (all, &set) in all.iter_mut().zip(set) {
                *all = s.add(*all, set);
            }
        }
    }
    all
}

/// # Safety
/// A has term `index` in each of R rows; `values` has a row of the strip.
#[inline(always)]
unsafe fn strip_term<S: Simd, const R: usize, const V: usize>(
    s: S,
    t: &GemmStep,
    index: u32,
    values: *const f32,
    sums: &mut [[S::F; V]; R],
) {
    // SAFETY: the caller vouches for the term and the values.
    unsafe {
        s.prefetch(values.wrapping_add(AHEAD * V * S::LANES));
        let a = t.a.add(index as usize);
        let mut row = [s.splat(0.0); V];
        for (v, x) in row.iter_mut().enumerate() {
            *x = s.load(values.add(v * S::LANES));
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = s.splat(*a.add(r * t.a_stride));
            for (sum, y) in sums.iter_mut().zip(row) {
                *sum = s.fma(x, y, *sum);
            }
        }
    }
}

/// Rows of A times two of each four terms of a strip, in `U` sets of sums.
struct PairTile<'a, const R: usize, const V: usize, const U: usize> {
    step: &'a GemmStep,
    list: SparseList,
}

impl<const R: usize, const V: usize, const U: usize> IsaKernel for PairTile<'_, R, V, U> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let t = self.step;
        let mut sums = [[[s.splat(0.0); V]; R]; U];
        let mut at = self.list.data;
        let mut a = t.a;
        let mut left = self.list.count;
        while left > 0 {
            let groups = left.min(GROUPS_PER_WORD);
            // SAFETY: vectors of positions and then values of each group; A has four terms for each
            // group in R rows.
            unsafe {
                let mut positions = [s.splat_i(0); V];
                for (v, positions) in positions.iter_mut().enumerate() {
                    *positions = s.bits(s.load(at.add(v * S::LANES)));
                }
                at = at.add(V * S::LANES);
                for _ in 0..groups {
                    pair_terms(s, t, a, at, &mut positions, &mut sums);
                    at = at.add(KEPT * V * S::LANES);
                    a = a.add(GROUP);
                }
            }
            left -= groups;
        }
        // SAFETY: the step's C, bias and residual cover R rows of `columns`.
        unsafe { write_tile(s, t, &mut total(s, &sums)) };
    }
}

/// The terms of one group.
///
/// # Safety
/// `a` has the four terms in each of R rows; `values` has the two vectors of each vector of columns.
#[inline(always)]
unsafe fn pair_terms<S: Simd, const R: usize, const V: usize, const U: usize>(
    s: S,
    t: &GemmStep,
    a: *const f32,
    values: *const f32,
    positions: &mut [S::I; V],
    sums: &mut [[[S::F; V]; R]; U],
) {
    // SAFETY: the caller vouches for the terms and the values.
    unsafe {
        s.prefetch(values.wrapping_add(AHEAD * V * S::LANES));
        s.prefetch(values.wrapping_add((AHEAD + 1) * V * S::LANES));
        let mut picks = [[s.splat_i(0); V]; KEPT];
        let mut kept = [[s.splat(0.0); V]; KEPT];
        for term in 0..KEPT {
            for v in 0..V {
                picks[term][v] = s.picks(positions[v]);
                positions[v] = s.shift_right(positions[v], 2);
                kept[term][v] = s.load(values.add((term * V + v) * S::LANES));
            }
        }
        for r in 0..R {
            let four = s.load_four(a.add(r * t.a_stride));
            for term in 0..KEPT {
                let sums = &mut sums[term % U][r];
                for v in 0..V {
                    sums[v] = s.fma(s.pick(four, picks[term][v]), kept[term][v], sums[v]);
                }
            }
        }
    }
}

/// Most rows of a tile of pairs.
fn pair_rows<S: Simd>() -> usize {
    if S::TILE_VECTORS >= 4 { 12 } else { 5 }
}

/// Most rows of a tile of a strip.
fn strip_rows<S: Simd>(vectors: usize) -> usize {
    (S::TILE_ROWS * S::TILE_VECTORS / vectors).min(14)
}

macro_rules! by_rows {
    ($s:ident, $tile:ident, $step:ident, $list:ident, $rows:ident, $v:literal: $($r:literal, $u:literal;)*) => {
        match $rows {
            $($r => $s.enter($tile::<$r, $v, $u> { step: $step, list: $list }),)*
            _ => {}
        }
    };
}

/// Runs one tile of at most as many rows as the layout has tiles for.
///
/// # Safety
/// The step's pointers are valid for `rows` rows and `columns` columns; A has the terms of the list.
#[inline(always)]
unsafe fn tile<S: Simd>(
    s: S,
    layout: SparseLayout,
    step: &GemmStep,
    list: SparseList,
    rows: usize,
) {
    match (layout, step.columns.div_ceil(S::LANES)) {
        (SparseLayout::Strips(_), 1) => {
            by_rows!(s, StripTile, step, list, rows, 1: 1, 4; 2, 4; 3, 4; 4, 2; 5, 2; 6, 2; 7, 1; 8, 1; 9, 1; 10, 1; 11, 1; 12, 1; 13, 1; 14, 1;);
        }
        (SparseLayout::Strips(_), _) => {
            by_rows!(s, StripTile, step, list, rows, 2: 1, 4; 2, 2; 3, 2; 4, 1; 5, 1; 6, 1; 7, 1; 8, 1; 9, 1; 10, 1; 11, 1; 12, 1;);
        }
        _ => {
            by_rows!(s, PairTile, step, list, rows, 1: 1, 2; 2, 2; 3, 2; 4, 2; 5, 2; 6, 2; 7, 2; 8, 2; 9, 1; 10, 1; 11, 1; 12, 1;);
        }
    }
}

/// Multiplies a block of rows of A with a panel; what [`super::super::micro::block`] does for a
/// dense one.
///
/// # Safety
/// The step's pointers are valid for `rows` rows, `k` terms and `columns` columns of the panel at
/// `place`.
#[inline(always)]
pub(crate) unsafe fn multiply_sparse<S: Simd>(
    s: S,
    panels: &SparsePanels,
    place: SparseBlock,
    step: &GemmStep,
    rows: usize,
) {
    let width = panels.layout.vectors() * S::LANES;
    let most = match panels.layout {
        SparseLayout::Strips(vectors) => strip_rows::<S>(vectors),
        _ => pair_rows::<S>(),
    };
    let tiles = rows.div_ceil(most);
    let mut start = 0;
    for i in 1..=tiles {
        let end = rows * i / tiles;
        for strip in 0..step.columns.div_ceil(width) {
            let column = strip * width;
            let part = GemmStep {
                a: step.a.wrapping_add(start * step.a_stride),
                c: step.c.wrapping_add(start * step.c_stride + column),
                columns: width.min(step.columns - column),
                finish: step.finish.map(|finish: TileFinish| finish.shifted(start, column)),
                ..*step
            };
            // SAFETY: rows start..end and a strip of the caller's panel.
            unsafe {
                let list = panels.list(place.panel * panels.strips + strip, place.block);
                tile(s, panels.layout, &part, list, end - start);
            }
        }
        start = end;
    }
    // SAFETY: the caller vouches for C.
    unsafe { late(s, step, rows) };
}

/// Multiplies a few rows of A, as they lie in memory, with a panel over its whole depth.
///
/// # Safety
/// The same as for [`multiply_sparse`], where `k` is the whole depth.
#[inline(always)]
pub(crate) unsafe fn multiply_sparse_thin<S: Simd>(
    s: S,
    panels: &SparsePanels,
    panel: usize,
    step: &GemmStep,
    rows: usize,
) {
    for (block, depth) in depth_blocks(step.k).enumerate() {
        let part = GemmStep {
            a: step.a.wrapping_add(depth.start),
            k: depth.terms,
            accumulate: !depth.is_first,
            finish: step.finish.filter(|_| depth.is_last),
            ..*step
        };
        // SAFETY: a block of depth of the caller's.
        unsafe { multiply_sparse(s, panels, SparseBlock { panel, block }, &part, rows) };
    }
}
