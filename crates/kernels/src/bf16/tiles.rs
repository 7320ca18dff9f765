//! Products of tiles of AMX: blocks of 2 x 2 tiles, whose operands stay near. While tiles are
//! multiplied, the vectors write the results of the block before.

use super::pack::STEP_BYTES;
use super::write::Place;
use crate::isa::{Amx, Extent, Simd, TILE_BYTES, Terms, TileBlock};

/// Steps of a panel that stay in the first-level cache while rows of A pass.
const NEAR_STEPS: usize = 24;

/// Bytes of the sums of a block.
pub(super) const SUMS_BYTES: usize = 4 * TILE_BYTES;

/// Floats of a tile of sums.
const FLOATS: usize = TILE_BYTES / size_of::<f32>();

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
    /// Whether C is too large to be near.
    pub(super) far: bool,
    pub(super) place: Place,
}

/// Sums that are not written yet.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    place: Place,
    sums: *const f32,
    rows: usize,
    tile_rows: usize,
    done: usize,
}

impl Pending {
    /// Writes some more rows.
    ///
    /// # Safety
    /// The sums are still there, and C has the rows.
    #[inline(always)]
    pub(super) unsafe fn advance<S: Simd>(&mut self, s: S, rows: usize) {
        let end = self.rows.min(self.done.saturating_add(rows));
        while self.done < end {
            let (tile, row, left) = match self.done.checked_sub(self.tile_rows) {
                Some(row) => (2, row, end - self.done),
                None => (0, self.done, end.min(self.tile_rows) - self.done),
            };
            let place = self.place.below(self.done);
            // SAFETY: rows of the caller's.
            unsafe {
                place.write(s, left, self.sums.add(tile * FLOATS + row * 16), (16, FLOATS));
                place.activate(s, left);
            }
            self.done += left;
        }
    }
}

impl TilesTimesPanel {
    /// Multiplies, and writes the results but those of the last rows, which are left pending.
    ///
    /// # Safety
    /// Between [`Amx::begin`] with as many rows and [`Amx::end`]; the pointers are valid for rows and
    /// steps; `pending` is of an earlier panel with the same room for sums.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd>(&self, s: S, pending: &mut Option<Pending>) {
        let pieces = self.steps.div_ceil(NEAR_STEPS).max(1);
        let pair_rows = 2 * self.tile_rows;
        let pairs = self.rows.div_ceil(pair_rows);
        for piece in 0..pieces {
            let start = self.steps * piece / pieces;
            let steps = self.steps * (piece + 1) / pieces - start;
            let last = piece + 1 == pieces;
            for pair in 0..pairs {
                let rows = (self.rows - pair * pair_rows).min(pair_rows);
                let extent = Extent::of(rows > self.tile_rows, self.place.columns > 16);
                let block = TileBlock { amx: self.amx, terms: Terms::Bf16, extent };
                let a = self.a.wrapping_add((pair * self.steps + start) * 2 * TILE_BYTES);
                let b = self.b.wrapping_add(start * STEP_BYTES);
                // One piece needs the sums of one pair at a time.
                let at = if pieces == 1 { 0 } else { pair * SUMS_BYTES };
                let sums = self.sums.wrapping_add(at);
                let place = self.place.below(pair * pair_rows);
                // Rows that a step writes of the block before, and asks for of its own.
                let share = pair_rows.div_ceil(steps.max(1));
                // SAFETY: the caller vouches for tiles and pointers.
                unsafe {
                    block.start((piece > 0).then_some(sums.cast_const()));
                    for step in 0..steps {
                        block.step(
                            a.wrapping_add(step * 2 * TILE_BYTES),
                            b.wrapping_add(step * STEP_BYTES),
                        );
                        if last && self.far {
                            self.fetch(&place, step * share..rows.min((step + 1) * share));
                        }
                        if let Some(pending) = pending {
                            pending.advance(s, share);
                        }
                    }
                    // What is pending may lie where these sums go.
                    if let Some(mut pending) = pending.take() {
                        pending.advance(s, usize::MAX);
                    }
                    block.keep(sums);
                }
                if last {
                    let (sums, tile_rows) = (sums.cast_const().cast(), self.tile_rows);
                    *pending = Some(Pending { place, sums, rows, tile_rows, done: 0 });
                }
            }
        }
    }

    /// Asks for the lines of some rows of C, which are on their way while tiles are multiplied.
    #[inline(always)]
    fn fetch(&self, place: &Place, rows: std::ops::Range<usize>) {
        for row in rows {
            let c = place.c.wrapping_add(row * place.c_stride);
            self.amx.prefetch_to_write(c);
            self.amx.prefetch_to_write(c.wrapping_add(place.columns.min(17) - 1));
            self.amx.prefetch_to_write(c.wrapping_add(place.columns - 1));
        }
    }
}
