//! Products of tiles of AMX: blocks of 2 x 2 tiles, whose operands stay near. While tiles are
//! multiplied, the vectors write the results of the block before.

use crate::isa::{Amx, TILE_BYTES, TileBlock, TileExtent, TileTerms};

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

/// Sums of a part of C, of which those of 16 columns are adjacent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileSums {
    pub(crate) data: *const f32,
    /// Sums between rows.
    pub(crate) stride: usize,
    /// Sums between such runs of a row.
    pub(crate) next: usize,
}

/// Where sums become results: a part of C of at most 32 columns. `X` is what writes.
pub(crate) trait TileResults<X>: Copy {
    /// The same from a row on.
    fn below(&self, rows: usize) -> Self;

    /// Columns of the part.
    fn columns(&self) -> usize;

    /// Writes `rows` rows from sums of 32 bits.
    ///
    /// # Safety
    /// C has the rows; the sums are there.
    unsafe fn write(&self, x: X, rows: usize, sums: TileSums);

    /// Asks for the lines of a row, where they may be far.
    fn fetch(&self, amx: Amx, row: usize);
}

/// A tile of A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTile {
    /// Its first row at the first step.
    pub(crate) a: *const u8,
    /// The row of C that its first row makes.
    pub(crate) row: usize,
    /// How many rows of C it makes, adjacent ones: at most as many as tiles have.
    pub(crate) rows: usize,
}

/// Rows of A in tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTiles<'a> {
    /// Two after each other are multiplied together.
    pub(crate) list: &'a [RowTile],
    /// Bytes from the first step of a tile to each step.
    pub(crate) steps: &'a [usize],
    /// Bytes between the rows of a tile.
    pub(crate) stride: usize,
}

/// The tiles of a block that pairs of them lie in, step by step: `tile_rows` rows each, the last one
/// what is left.
pub(crate) fn tiles_of_block(
    block: *const u8,
    rows: usize,
    tile_rows: usize,
    steps: usize,
) -> (Vec<RowTile>, Vec<usize>) {
    let tile = |at: usize| RowTile {
        a: block.wrapping_add(at / 2 * steps * 2 * TILE_BYTES + at % 2 * TILE_BYTES),
        row: at * tile_rows,
        rows: (rows - at * tile_rows).min(tile_rows),
    };
    let tiles = (0..rows.div_ceil(tile_rows.max(1))).map(tile);
    (tiles.collect(), (0..steps).map(|step| step * 2 * TILE_BYTES).collect())
}

/// Tiles of A times the steps of a panel of two tiles.
#[derive(Clone, Copy)]
pub(crate) struct TilesTimesPanel<'a, P> {
    pub(crate) amx: Amx,
    pub(crate) terms: TileTerms,
    pub(crate) a: RowTiles<'a>,
    pub(crate) b: *const u8,
    /// True if the panel may be far, so that it is asked for ahead.
    pub(crate) far: bool,
    /// Room for the sums of every pair of tiles, [`SUMS_BYTES`] each.
    pub(crate) sums: *mut u8,
    pub(crate) place: P,
}

/// Sums that are not written yet.
#[derive(Clone, Copy)]
pub(crate) struct PendingSums<P> {
    place: P,
    sums: *const f32,
    /// The first row and the number of rows of each tile.
    tiles: [(usize, usize); 2],
    done: usize,
}

impl<P> PendingSums<P> {
    /// Writes some more rows.
    ///
    /// # Safety
    /// The sums are still there, and C has the rows.
    #[inline(always)]
    pub(crate) unsafe fn advance<X: Copy>(&mut self, x: X, rows: usize)
    where
        P: TileResults<X>,
    {
        let [(_, first), (_, second)] = self.tiles;
        let end = (first + second).min(self.done.saturating_add(rows));
        while self.done < end {
            let (tile, inside, left) = match self.done.checked_sub(first) {
                Some(row) => (1, row, end - self.done),
                None => (0, self.done, end.min(first) - self.done),
            };
            let place = self.place.below(self.tiles[tile].0 + inside);
            let data = self.sums.wrapping_add(tile * 2 * SUMS + inside * COLUMNS);
            let sums = TileSums { data, stride: COLUMNS, next: SUMS };
            // SAFETY: rows of the caller's.
            unsafe { place.write(x, left, sums) };
            self.done += left;
        }
    }
}

impl<P> TilesTimesPanel<'_, P> {
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

    /// Asks for some rows of the results of a pair.
    #[inline(always)]
    fn fetch_rows<X>(&self, tiles: [(usize, usize); 2], rows: std::ops::Range<usize>)
    where
        P: TileResults<X>,
    {
        let [(first, count), (second, _)] = tiles;
        for at in rows {
            let row = if at < count { first + at } else { second + at - count };
            self.place.fetch(self.amx, row);
        }
    }

    /// Multiplies, and writes the results but those of the last rows, which are left pending.
    ///
    /// # Safety
    /// Between [`Amx::begin`] with at least as many rows as the tiles have and [`Amx::end`]; the
    /// pointers are valid for rows and steps; `pending` is of an earlier panel with the same room for
    /// sums.
    #[inline(always)]
    pub(crate) unsafe fn run<X: Copy>(&self, x: X, pending: &mut Option<PendingSums<P>>)
    where
        P: TileResults<X>,
    {
        let all = self.a.steps.len();
        let pieces = all.div_ceil(NEAR_STEPS).max(1);
        let b_step = self.terms.step_bytes();
        let two_columns = self.place.columns() > COLUMNS;
        for piece in 0..pieces {
            let start = all * piece / pieces;
            let end = all * (piece + 1) / pieces;
            let last = piece + 1 == pieces;
            for (pair, tiles) in self.a.list.chunks(2).enumerate() {
                let [one, two] = [tiles[0], tiles[tiles.len() - 1]];
                let places =
                    [(one.row, one.rows), (two.row, if tiles.len() > 1 { two.rows } else { 0 })];
                let rows = places[0].1 + places[1].1;
                let extent = TileExtent::of(tiles.len() > 1, two_columns);
                let block = TileBlock { amx: self.amx, terms: self.terms, extent };
                // One piece needs the sums of one pair at a time.
                let at = if pieces == 1 { 0 } else { pair * SUMS_BYTES };
                let sums = self.sums.wrapping_add(at);
                // Rows that a step writes of the block before, and asks for of its own.
                let share = rows.div_ceil((end - start).max(1));
                // SAFETY: the caller vouches for tiles and pointers.
                unsafe {
                    block.start((piece > 0).then_some(sums.cast_const()));
                    for (step, &offset) in self.a.steps[start..end].iter().enumerate() {
                        let b = self.b.wrapping_add((start + step) * b_step);
                        let a = [one.a.wrapping_add(offset), two.a.wrapping_add(offset)];
                        block.step(a, self.a.stride, b);
                        if pair == 0 && self.far {
                            // The first rows meet a panel that may be far.
                            self.fetch_step(b.wrapping_add(AHEAD * b_step));
                        }
                        if last {
                            self.fetch_rows(places, step * share..rows.min((step + 1) * share));
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
                    let place = self.place;
                    let sums = sums.cast_const().cast();
                    *pending = Some(PendingSums { place, sums, tiles: places, done: 0 });
                }
            }
        }
    }
}
