//! Products of tiles of AMX: blocks of 2 x 2 tiles, whose operands stay near. While tiles are
//! multiplied, the vectors write the results of the block before.

use crate::isa::{Amx, Extent, TILE_BYTES, Terms, TileBlock};

/// Steps of a panel that stay in the first-level cache while rows of A pass.
const NEAR_STEPS: usize = 24;

/// Steps that a panel is asked for ahead.
const AHEAD: usize = 4;

/// Steps after which some rows of the block before are written: several rows share the constants of
/// an activation.
const AT_ONCE: usize = 4;

/// Bytes of the sums of a block.
pub(crate) const SUMS_BYTES: usize = 4 * TILE_BYTES;

/// Columns of a tile of sums.
pub(crate) const COLUMNS: usize = 16;

/// Sums of a tile.
const SUMS: usize = TILE_BYTES / size_of::<f32>();

/// Where sums become results: a part of C of at most 32 columns. `X` is what writes.
pub(crate) trait Results<X>: Copy {
    /// The same from a row on.
    fn below(&self, rows: usize) -> Self;

    /// Columns of the part.
    fn columns(&self) -> usize;

    /// Writes `rows` rows from sums of 32 bits, of which those of 16 columns are adjacent. The strides
    /// are those between rows and between such runs of a row.
    ///
    /// # Safety
    /// C has the rows; the sums are there.
    unsafe fn write(&self, x: X, rows: usize, sums: *const f32, strides: (usize, usize));

    /// Asks for the lines of some rows, where they may be far.
    fn fetch(&self, amx: Amx, rows: std::ops::Range<usize>);
}

/// A block of A, tiles of which lie in pairs, times the steps of a panel of two tiles.
#[derive(Clone, Copy)]
pub(crate) struct TilesTimesPanel<P> {
    pub(crate) amx: Amx,
    pub(crate) terms: Terms,
    /// Pairs of tiles: step after step, then the next rows.
    pub(crate) a: *const u8,
    pub(crate) b: *const u8,
    pub(crate) steps: usize,
    /// Rows in all.
    pub(crate) rows: usize,
    /// Rows of a tile.
    pub(crate) tile_rows: usize,
    /// Room for the sums of every pair of tiles, [`SUMS_BYTES`] each.
    pub(crate) sums: *mut u8,
    pub(crate) place: P,
}

/// Sums that are not written yet.
#[derive(Clone, Copy)]
pub(crate) struct Pending<P> {
    place: P,
    sums: *const f32,
    rows: usize,
    tile_rows: usize,
    done: usize,
}

impl<P> Pending<P> {
    /// Writes some more rows.
    ///
    /// # Safety
    /// The sums are still there, and C has the rows.
    #[inline(always)]
    pub(crate) unsafe fn advance<X: Copy>(&mut self, x: X, rows: usize)
    where
        P: Results<X>,
    {
        let end = self.rows.min(self.done.saturating_add(rows));
        while self.done < end {
            let (tile, row, left) = match self.done.checked_sub(self.tile_rows) {
                Some(row) => (2, row, end - self.done),
                None => (0, self.done, end.min(self.tile_rows) - self.done),
            };
            let place = self.place.below(self.done);
            let sums = self.sums.wrapping_add(tile * SUMS + row * COLUMNS);
            // SAFETY: rows of the caller's.
            unsafe { place.write(x, left, sums, (COLUMNS, SUMS)) };
            self.done += left;
        }
    }
}

impl<P> TilesTimesPanel<P> {
    /// Asks for a step of the panel.
    #[inline(always)]
    fn fetch_step(&self, step: *const u8) {
        let (rows, stride) = self.terms.step_lines();
        for row in 0..rows {
            let line = step.wrapping_add(row * stride);
            self.amx.prefetch(line);
            self.amx.prefetch(line.wrapping_add(64));
        }
    }

    /// Multiplies, and writes the results but those of the last rows, which are left pending.
    ///
    /// # Safety
    /// Between [`Amx::begin`] with as many rows and [`Amx::end`]; the pointers are valid for rows and
    /// steps; `pending` is of an earlier panel with the same room for sums.
    #[inline(always)]
    pub(crate) unsafe fn run<X: Copy>(&self, x: X, pending: &mut Option<Pending<P>>)
    where
        P: Results<X>,
    {
        let pieces = self.steps.div_ceil(NEAR_STEPS).max(1);
        let pair_rows = 2 * self.tile_rows;
        let pairs = self.rows.div_ceil(pair_rows);
        let b_step = self.terms.step_bytes();
        for piece in 0..pieces {
            let start = self.steps * piece / pieces;
            let steps = self.steps * (piece + 1) / pieces - start;
            let last = piece + 1 == pieces;
            for pair in 0..pairs {
                let rows = (self.rows - pair * pair_rows).min(pair_rows);
                let two_columns = self.place.columns() > COLUMNS;
                let extent = Extent::of(rows > self.tile_rows, two_columns);
                let block = TileBlock { amx: self.amx, terms: self.terms, extent };
                let a = self.a.wrapping_add((pair * self.steps + start) * 2 * TILE_BYTES);
                let b = self.b.wrapping_add(start * b_step);
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
                        let a = a.wrapping_add(step * 2 * TILE_BYTES);
                        block.step(a, b.wrapping_add(step * b_step));
                        if pair == 0 {
                            // The first rows meet a panel that may be far.
                            self.fetch_step(b.wrapping_add((step + AHEAD) * b_step));
                        }
                        if last {
                            place.fetch(self.amx, step * share..rows.min((step + 1) * share));
                        }
                        if let Some(pending) = pending
                            && step % AT_ONCE == 0
                        {
                            pending.advance(x, share * AT_ONCE);
                        }
                    }
                    // What is pending may lie where these sums go.
                    if let Some(mut pending) = pending.take() {
                        pending.advance(x, usize::MAX);
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
}
