//! The register tile of vectors: a few rows of A times a panel.

use super::pack::{PANEL, STEP, STEP_BYTES, TILE};
use super::passing::{PassingRows, passing_tile};
use super::write::ResultPart;
use crate::isa::{Bf16Instructions, Bf16Kernel, PairInstructions, Simd};
use crate::tiles::TileSums;

/// Some rows of a block of A times the steps of a panel.
#[derive(Clone, Copy)]
pub(super) struct RowsTimesPanel {
    /// Rows of BF16, whole steps long.
    pub(super) a: *const u8,
    /// Bytes between rows of A.
    pub(super) a_stride: usize,
    pub(super) b: *const u8,
    /// Bits of the pairs of terms that are multiplied, for both tiles of each step; null: all are.
    pub(super) full: *const u16,
    pub(super) steps: usize,
    pub(super) place: ResultPart,
}

/// A register tile of `R` rows and `V` vectors.
struct Bf16Tile<'a, const R: usize, const V: usize> {
    on: &'a RowsTimesPanel,
    /// The first of its columns: 0 or 16.
    column: usize,
    /// Sums of the tile, [`PANEL`] columns in each row.
    sums: *mut f32,
}

impl<const R: usize, const V: usize> Bf16Kernel for Bf16Tile<'_, R, V> {
    type Output = ();
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, d: D) {
        let on = self.on;
        let s = d.simd();
        let mut sums = [[s.splat(0.0); V]; R];
        // SAFETY: A and B have that many steps; a step of B is two tiles of 16 pairs of rows.
        unsafe {
            for step in 0..on.steps {
                let a = on.a.add(step * STEP * 2);
                let b = on.b.add(step * STEP_BYTES + self.column / TILE * (STEP_BYTES / 2));
                for pair in 0..STEP / 2 {
                    let b = b.add(pair * TILE * 4).cast::<f32>();
                    let mut right = [s.splat_i(0); V];
                    for (v, right) in right.iter_mut().enumerate() {
                        let column = v * D::S::LANES;
                        let next = column / TILE * (STEP_BYTES / 8) + column % TILE;
                        *right = s.bits(s.load(b.add(next)));
                    }
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let left = a.add(r * on.a_stride + pair * 4).cast::<i32>();
                        let left = s.splat_i(left.read_unaligned());
                        for (sum, right) in sums.iter_mut().zip(right) {
                            *sum = d.dot(*sum, left, right);
                        }
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                for (v, &sum) in sums.iter().enumerate() {
                    s.store(self.sums.add(r * PANEL + self.column + v * D::S::LANES), sum);
                }
            }
        }
    }
}

/// A register tile of `P` pairs of rows and [`PAIR_VECTORS`] vectors of columns.
struct Bf16PairTile<'a, const P: usize> {
    on: &'a RowsTimesPanel,
    /// Twice as many as pairs, or one less.
    rows: usize,
    /// The first of its columns, of [`PAIR_VECTORS`] vectors.
    column: usize,
    /// Sums of the tile, [`PANEL`] columns in each row.
    sums: *mut f32,
}

/// Vectors of columns of a tile of pairs.
const PAIR_VECTORS: usize = 2;

impl<const P: usize> Bf16Kernel for Bf16PairTile<'_, P> {
    type Output = ();
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, d: D) {
        let on = self.on;
        let s = d.simd();
        let Some(pairs) = d.pairs() else { return };
        let mut squares = [[[s.splat(0.0); 2]; PAIR_VECTORS]; P];
        let mut rows = [[on.a; 2]; P];
        for (p, rows) in rows.iter_mut().enumerate() {
            for (r, row) in rows.iter_mut().enumerate() {
                // A last row without another is a pair with itself.
                *row = on.a.wrapping_add((2 * p + r).min(self.rows - 1) * on.a_stride);
            }
        }
        let start = self.column / TILE * (STEP_BYTES / 2) + self.column % TILE * 4;
        // SAFETY: A and B have that many steps; a step of B is two tiles of 16 pairs of terms.
        unsafe {
            for at in 0..on.steps * (STEP / 4) {
                let step = at / (STEP / 4);
                let four = at % (STEP / 4);
                let mut left = [s.splat_i(0); P];
                for (left, rows) in left.iter_mut().zip(rows) {
                    *left = pairs.load_rows([rows[0].add(at * 8), rows[1].add(at * 8)]);
                }
                let b = on.b.add(step * STEP_BYTES + start + four * 2 * TILE * 4).cast::<f32>();
                for v in 0..PAIR_VECTORS {
                    // Two terms of each column, and the next two.
                    let b = b.add(v * D::S::LANES);
                    let two = s.bits(s.load(b));
                    let next = s.bits(s.load(b.add(TILE)));
                    for (half, right) in pairs.side_by_side(two, next).into_iter().enumerate() {
                        for (squares, left) in squares.iter_mut().zip(left) {
                            let square = &mut squares[v][half];
                            *square = pairs.multiply(*square, left, right);
                        }
                    }
                }
            }
            for (p, squares) in squares.iter().enumerate() {
                for (v, &squares) in squares.iter().enumerate() {
                    for (r, row) in pairs.rows(squares).into_iter().enumerate() {
                        let column = self.column + v * D::S::LANES;
                        s.store(self.sums.add((2 * p + r) * PANEL + column), row);
                    }
                }
            }
        }
    }
}

macro_rules! by_pairs {
    ($d:ident, $on:ident, $sums:ident, $rows:ident, $column:expr, $($p:literal)*) => {
        match $rows.div_ceil(2) {
            $($p => $d.enter(Bf16PairTile::<$p> {
                on: $on, rows: $rows, column: $column, sums: $sums,
            }),)*
            _ => {}
        }
    };
}

macro_rules! by_rows {
    ($d:ident, $on:ident, $sums:ident, $rows:ident, $column:expr, $v:literal: $($r:literal)*) => {
        match $rows {
            $($r if const { $r <= D::TILE_ROWS && $v * D::S::LANES == D::TILE_COLUMNS } => {
                $d.enter(Bf16Tile::<$r, $v> { on: $on, column: $column, sums: $sums });
            })*
            _ => {}
        }
    };
}

/// Multiplies at most [`Bf16Instructions::TILE_ROWS`] rows and leaves their sums, [`PANEL`] in each row.
#[inline(always)]
fn tile<D: Bf16Instructions>(d: D, on: &RowsTimesPanel, rows: usize, sums: *mut f32) {
    let mut column = 0;
    while column < on.place.columns {
        if const { <D::Pairs as PairInstructions>::PRESENT } {
            by_pairs!(d, on, sums, rows, column, 1 2 3 4 5 6);
            column += PAIR_VECTORS * D::S::LANES;
            continue;
        }
        match D::TILE_COLUMNS / D::S::LANES {
            2 => by_rows!(d, on, sums, rows, column, 2: 1 2 3 4 5 6 7 8 9 10 11 12),
            4 => by_rows!(d, on, sums, rows, column, 4: 1 2 3 4),
            1 => by_rows!(d, on, sums, rows, column, 1: 1 2 3 4),
            _ => {}
        }
        column += D::TILE_COLUMNS;
    }
}

/// Multiplies `rows` rows, tile by tile, and writes the results.
///
/// # Safety
/// The pointers are valid for the rows and steps.
#[inline(always)]
pub(super) unsafe fn panel<D: Bf16Instructions>(d: D, on: &RowsTimesPanel, rows: usize) {
    let mut sums = [0.0_f32; 12 * PANEL];
    // Tiles of nearly equal height: a thin last tile would be slow.
    let tiles = rows.div_ceil(D::TILE_ROWS);
    let mut start = 0;
    for i in 1..=tiles {
        let end = rows * i / tiles;
        let place = on.place.below(start);
        let part = RowsTimesPanel { a: on.a.wrapping_add(start * on.a_stride), place, ..*on };
        if on.full.is_null() || const { <D::Pairs as PairInstructions>::PRESENT } {
            tile(d, &part, end - start, sums.as_mut_ptr());
        } else {
            let RowsTimesPanel { a, a_stride, b, full, steps, .. } = part;
            let columns = place.columns;
            let on = PassingRows { a, a_stride, b, full, steps, columns };
            passing_tile(d, &on, end - start, sums.as_mut_ptr());
        }
        let made = TileSums { data: sums.as_ptr(), stride: PANEL, next: TILE };
        // SAFETY: rows start..end of the caller's.
        unsafe { place.write(d.simd(), end - start, made) };
        start = end;
    }
    // SAFETY: the caller vouches for C.
    unsafe { on.place.activate(d.simd(), rows) };
}
