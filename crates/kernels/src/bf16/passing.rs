//! The register tile of vectors that passes over pairs of terms that are zero in 16 columns.

use super::pack::{PANEL, STEP, STEP_BYTES, TILE};
use crate::isa::{Bf16Instructions, Bf16Kernel, Simd};

/// Bytes of a pair of terms in the columns of a tile.
const PAIR_BYTES: usize = TILE * 4;

/// Some rows of a block of A times the pairs of a panel that are not zero.
#[derive(Clone, Copy)]
pub(super) struct PassingRows {
    /// Rows of BF16, whole steps long.
    pub(super) a: *const u8,
    /// Bytes between rows of A.
    pub(super) a_stride: usize,
    pub(super) b: *const u8,
    /// Bits of pairs, for both tiles of each step.
    pub(super) full: *const u16,
    pub(super) steps: usize,
    /// At most [`PANEL`].
    pub(super) columns: usize,
}

/// A register tile of `R` rows and `V` vectors of one tile of columns, in `U` sets of sums: one sum per
/// element would wait for itself where there are few.
struct PassingTile<'a, const R: usize, const V: usize, const U: usize> {
    on: &'a PassingRows,
    /// The first of its columns: 0 or 16.
    column: usize,
    /// Sums of the tile, [`PANEL`] columns in each row.
    sums: *mut f32,
}

impl<const R: usize, const V: usize, const U: usize> Bf16Kernel for PassingTile<'_, R, V, U> {
    type Output = ();
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, d: D) {
        let on = self.on;
        let s = d.simd();
        let mut sets = [[[s.splat(0.0); V]; R]; U];
        let half = self.column / TILE;
        // SAFETY: A, B and the bits have that many steps; a step of B is two tiles of 16 pairs.
        unsafe {
            for step in 0..on.steps {
                let mut left = *on.full.add(step * 2 + half);
                let a = on.a.add(step * STEP * 2);
                let b = on.b.add(step * STEP_BYTES + half * (STEP_BYTES / 2));
                while left.count_ones() as usize >= U {
                    for set in &mut sets {
                        let pair = left.trailing_zeros() as usize;
                        left &= left.wrapping_sub(1);
                        full_pair(d, a, on.a_stride, b, pair, set);
                    }
                }
                while left != 0 {
                    let pair = left.trailing_zeros() as usize;
                    left &= left.wrapping_sub(1);
                    full_pair(d, a, on.a_stride, b, pair, &mut sets[0]);
                }
            }
            for r in 0..R {
                for v in 0..V {
                    let mut sum = sets[0][r][v];
                    for set in &sets[1..] {
                        sum = s.add(sum, set[r][v]);
                    }
                    let to = r * PANEL + self.column + v * D::S::LANES;
                    s.store(self.sums.add(to), sum);
                }
            }
        }
    }
}

/// Adds the products of a pair of terms.
///
/// # Safety
/// `a` has a step in each of `R` rows, `b` is a tile.
#[inline(always)]
unsafe fn full_pair<D: Bf16Instructions, const R: usize, const V: usize>(
    d: D,
    a: *const u8,
    a_stride: usize,
    b: *const u8,
    pair: usize,
    sums: &mut [[<D::S as Simd>::F; V]; R],
) {
    let s = d.simd();
    // SAFETY: the caller vouches for the step and the tile.
    unsafe {
        let b = b.add(pair * PAIR_BYTES).cast::<f32>();
        let mut right = [s.splat_i(0); V];
        for (v, right) in right.iter_mut().enumerate() {
            *right = s.bits(s.load(b.add(v * D::S::LANES)));
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let left = a.add(r * a_stride + pair * 4).cast::<i32>();
            let left = s.splat_i(left.read_unaligned());
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = d.dot(*sum, left, right);
            }
        }
    }
}

macro_rules! by_rows {
    ($d:ident, $on:ident, $sums:ident, $rows:ident, $column:expr, $v:literal: $($r:literal, $u:literal;)*) => {
        match $rows {
            $($r if const { $r <= D::TILE_ROWS && $v * D::S::LANES == TILE } => {
                $d.enter(PassingTile::<$r, $v, $u> { on: $on, column: $column, sums: $sums });
            })*
            _ => {}
        }
    };
}

/// Multiplies at most [`Bf16Instructions::TILE_ROWS`] rows with the pairs that are not zero, and leaves
/// their sums, [`PANEL`] in each row.
#[inline(always)]
pub(super) fn passing_tile<D: Bf16Instructions>(
    d: D,
    on: &PassingRows,
    rows: usize,
    sums: *mut f32,
) {
    for column in (0..on.columns).step_by(TILE) {
        match TILE / D::S::LANES {
            1 => {
                by_rows!(d, on, sums, rows, column, 1: 1, 4; 2, 4; 3, 2; 4, 2; 5, 2; 6, 2; 7, 1; 8, 1; 9, 1; 10, 1; 11, 1; 12, 1;)
            }
            2 => by_rows!(d, on, sums, rows, column, 2: 1, 2; 2, 2; 3, 1; 4, 1;),
            4 => by_rows!(d, on, sums, rows, column, 4: 1, 1; 2, 1; 3, 1; 4, 1;),
            _ => {}
        }
    }
}
