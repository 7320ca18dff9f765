//! Products of tiles of AMX: blocks of 2 x 2 tiles, whose operands stay near.

use super::pack::STEP_BYTES;
use super::write::Place;
use crate::isa::{Amx, Extent, Simd, TILE_BYTES, Terms, TileProduct};

/// Steps of a panel that stay in the first-level cache while rows of A pass.
const NEAR_STEPS: usize = 12;

/// Bytes of the sums of a block.
pub(super) const SUMS_BYTES: usize = 4 * TILE_BYTES;

/// A block of A, tiles of which lie in pairs, times the steps of a panel.
#[derive(Clone, Copy)]
pub(super) struct TilesTimesPanel {
    pub(super) amx: Amx,
    /// Pairs of tiles: step after step, then the next rows.
    pub(super) a: *const u8,
    pub(super) b: *const u8,
    pub(super) steps: usize,
    /// Rows in all.
    pub(super) rows: usize,
    /// Rows of a tile.
    pub(super) tile_rows: usize,
    /// Room for the sums of every pair of tiles, [`SUMS_BYTES`] each.
    pub(super) sums: *mut u8,
    pub(super) place: Place,
}

impl TilesTimesPanel {
    /// Multiplies and writes the results.
    ///
    /// # Safety
    /// Between [`Amx::begin`] with as many rows and [`Amx::end`]; the pointers are valid for rows and steps.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd>(&self, s: S) {
        let pieces = self.steps.div_ceil(NEAR_STEPS).max(1);
        let pair_rows = 2 * self.tile_rows;
        let pairs = self.rows.div_ceil(pair_rows);
        for piece in 0..pieces {
            let start = self.steps * piece / pieces;
            let steps = self.steps * (piece + 1) / pieces - start;
            let last = piece + 1 == pieces;
            for pair in 0..pairs {
                let rows = (self.rows - pair * pair_rows).min(pair_rows);
                // One piece needs the sums of one pair at a time.
                let at = if pieces == 1 { 0 } else { pair * SUMS_BYTES };
                let sums = self.sums.wrapping_add(at);
                let product = TileProduct {
                    a: self.a.wrapping_add((pair * self.steps + start) * 2 * TILE_BYTES),
                    b: self.b.wrapping_add(start * STEP_BYTES),
                    steps,
                    sums,
                    accumulate: piece > 0,
                    extent: Extent {
                        two_rows: rows > self.tile_rows,
                        two_columns: self.place.columns > 16,
                    },
                };
                // SAFETY: the caller vouches for tiles and pointers.
                unsafe {
                    Terms::Bf16.multiply(self.amx, &product);
                    if last {
                        self.write(s, sums.cast(), pair * pair_rows, rows);
                    }
                }
            }
        }
    }

    /// Writes the results of a pair of tiles of rows.
    ///
    /// # Safety
    /// The sums are there, and C has the rows.
    #[inline(always)]
    unsafe fn write<S: Simd>(&self, s: S, sums: *const f32, row: usize, rows: usize) {
        const FLOATS: usize = TILE_BYTES / 4;
        let place = self.place.below(row);
        let first = rows.min(self.tile_rows);
        // SAFETY: the caller vouches for sums and C.
        unsafe {
            place.write(s, first, sums, (16, FLOATS));
            if rows > first {
                place.below(first).write(s, rows - first, sums.add(2 * FLOATS), (16, FLOATS));
            }
            place.activate(s, rows);
        }
    }
}
