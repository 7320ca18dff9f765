//! Causal attention of several sequences whose keys and values lie in blocks of a cache.
//!
//! First the new rows' keys and values are written to the caches, then the rows are computed. A
//! task takes some rows of a sequence with all query heads that share a key head, so that a block
//! of keys is read once for them, and some of the positions that these rows see; it walks over
//! these in spans and keeps for every query the greatest score and the sum of exponentials so far
//! (online softmax). Where a long sequence has few rows, its positions are split between several
//! tasks (split-K) whose sums are joined at the end.
//!
//! Sources: Kwon et al. 2023, *PagedAttention*, arXiv 2309.06180; Dao et al. 2023, *Flash-Decoding*.

mod cache;
mod task;

use crate::KernelContext;
use crate::attention::AttentionRows;
use crate::memory::{DisjointSlice, with_scratch};

use cache::PagedCache;
pub use cache::PagedCaches;
use task::{PagedAttentionTask, scratch_len};

/// Most queries of a task: rows of a sequence times the heads that share a key head.
const QUERIES: usize = 96;

/// Fewest positions that are a task of their own.
const FEW_POSITIONS: usize = 128;

/// Parts that the work of a step is cut into for each thread, where positions are split.
const PARTS: usize = 4;

/// Below this many multiply-adds a step is not worth waking threads for.
const SERIAL_TERMS: usize = 40_000;

/// The sizes of a step, and where its rows and positions are.
#[derive(Clone, Copy, Debug)]
pub struct PagedAttentionStep<'a> {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; a divisor of `heads`, whose neighbours share one.
    pub kv_heads: usize,
    /// Length of a query or key.
    pub head_size: usize,
    /// Length of a value.
    pub value_size: usize,
    /// Positions of a block.
    pub block_size: usize,
    /// Factor on scores, usually `1 / sqrt(head_size)`.
    pub scale: f32,
    /// How many positions a row sees, its own included; 0 is all.
    pub window: usize,
    /// Scores `x` become `softcap · tanh(x / softcap)`; 0 leaves them.
    pub softcap: f32,
    /// The first row of each sequence, and the number of all rows.
    pub starts: &'a [usize],
    /// Positions of each sequence, its rows included, which are the last ones.
    pub lengths: &'a [usize],
    /// Blocks of each sequence, as many for each.
    pub blocks: &'a [i64],
}

impl PagedAttentionStep<'_> {
    /// Query heads that share a key head.
    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The number of the vector of a head at a position of a sequence, and how many positions from
    /// there on lie side by side.
    #[inline(always)]
    fn vector(&self, sequence: usize, head: usize, position: usize) -> (usize, usize) {
        let most = self.blocks.len() / self.lengths.len();
        let block = self.blocks[sequence * most + position / self.block_size];
        let at = position % self.block_size;
        // Blocks were seen to be numbers of some.
        #[allow(clippy::cast_possible_truncation, reason = "checked before")]
        let block = block as usize;
        ((block * self.kv_heads + head) * self.block_size + at, self.block_size - at)
    }

    fn check(&self, x: AttentionRows<&[f32]>, caches: &PagedCaches<'_>, y: &[f32]) {
        let heads = self.heads;
        let kv = self.kv_heads;
        assert!(
            heads > 0 && kv > 0 && heads.is_multiple_of(kv),
            "paged attention: {heads} heads share {kv} key heads"
        );
        let sizes = [self.head_size, self.value_size, self.block_size];
        assert!(!sizes.contains(&0), "paged attention: sizes {sizes:?}");
        let ordered = self.starts.first() == Some(&0) && self.starts.is_sorted();
        let sequences = self.lengths.len();
        assert!(
            ordered && self.starts.len() == sequences + 1,
            "paged attention: starts {:?} of {sequences} sequences",
            self.starts
        );
        let found = [x.q.len(), x.k.len(), x.v.len(), y.len()];
        let columns = [heads * sizes[0], kv * sizes[0], kv * sizes[1], heads * sizes[1]];
        let wanted = columns.map(|columns| self.rows() * columns);
        assert!(found == wanted, "paged attention: {found:?} elements, expected {wanted:?}");
        let (lens, scales) = caches.lens();
        let vectors = lens[0] / sizes[0];
        let whole = lens == [vectors * sizes[0], vectors * sizes[1]];
        assert!(
            whole && scales.is_none_or(|scales| scales == [vectors; 2]),
            "paged attention: caches of {lens:?} elements and {scales:?} scales"
        );
        self.check_blocks(vectors / (kv * self.block_size));
    }

    /// Checks that all blocks of all sequences are among `count`.
    fn check_blocks(&self, count: usize) {
        let most = self.blocks.len().checked_div(self.lengths.len()).unwrap_or(0);
        for (sequence, &length) in self.lengths.iter().enumerate() {
            let rows = self.starts[sequence + 1] - self.starts[sequence];
            let used = length.div_ceil(self.block_size);
            assert!(
                rows <= length && used <= most,
                "paged attention: {rows} rows and {length} positions in {most} blocks"
            );
            let own = &self.blocks[sequence * most..][..used];
            let fits = own.iter().all(|&b| usize::try_from(b).is_ok_and(|b| b < count));
            assert!(fits, "paged attention: blocks {own:?}, the caches have {count}");
        }
    }

    /// The tiles of all rows.
    fn tiles(&self) -> Vec<PagedTile> {
        let mut tiles = Vec::new();
        for (sequence, &length) in self.lengths.iter().enumerate() {
            let start = self.starts[sequence];
            let end = self.starts[sequence + 1];
            let count = end - start;
            let cuts = count.div_ceil((QUERIES / self.group()).max(1));
            for head in 0..self.kv_heads {
                for cut in 0..cuts {
                    let from = count * cut / cuts;
                    let to = count * (cut + 1) / cuts;
                    let position = length - count + from;
                    // Whole blocks are read: what is before the window has no weight.
                    let first = match self.window {
                        0 => 0,
                        window => {
                            let first = (position + 1).saturating_sub(window);
                            first / self.block_size * self.block_size
                        }
                    };
                    let row = start + from;
                    let rows = to - from;
                    let seen = first..position + rows;
                    tiles.push(PagedTile { sequence, head, row, rows, position, seen, part: None });
                }
            }
        }
        tiles
    }

    /// The tiles of a step, where some are cut into parts of their positions; how those are joined,
    /// and the floats that their sums need.
    fn parts(
        &self,
        tiles: Vec<PagedTile>,
        threads: usize,
    ) -> (Vec<PagedTile>, Vec<SplitTileJoin>, usize) {
        let cost = |tile: &PagedTile| (tile.rows * self.group()).max(8) * tile.seen.len();
        let all: usize = tiles.iter().map(cost).sum();
        let share = (all / (threads * PARTS)).max(1);
        let mut parts = Vec::with_capacity(tiles.len());
        let mut joins = Vec::new();
        let mut room = 0;
        for tile in tiles {
            let most = if threads > 1 { tile.seen.len() / FEW_POSITIONS } else { 1 };
            let cuts = cost(&tile).div_ceil(share).min(most);
            if cuts <= 1 {
                parts.push(tile);
                continue;
            }
            let queries = tile.rows * self.group();
            let len = tile.seen.len();
            let each = queries * (self.value_size + 2);
            // Cut between blocks.
            let border = |cut: usize| match len * cut / cuts {
                whole if cut == cuts => tile.seen.start + whole,
                part => tile.seen.start + part / self.block_size * self.block_size,
            };
            for cut in 0..cuts {
                let seen = border(cut)..border(cut + 1);
                parts.push(PagedTile { seen, part: Some(room + cut * each), ..tile.clone() });
            }
            joins.push(SplitTileJoin { first: room, cuts, tile });
            room += cuts * each;
        }
        (parts, joins, room)
    }
}

/// Rows of a sequence with the query heads of a key head, and positions that they see.
#[derive(Clone, Debug)]
struct PagedTile {
    sequence: usize,
    /// The key head.
    head: usize,
    /// The first row, of how many.
    row: usize,
    rows: usize,
    /// The position of the first row.
    position: usize,
    /// The positions to look at.
    seen: std::ops::Range<usize>,
    /// Where the sums go, where others have the rest of the positions.
    part: Option<usize>,
}

/// The parts of a tile whose positions were split.
struct SplitTileJoin {
    /// Where the first one's sums are.
    first: usize,
    cuts: usize,
    tile: PagedTile,
}

/// Where the tasks of a step read and write.
#[derive(Clone, Copy)]
struct PagedAttentionBuffers<'a> {
    a: &'a PagedAttentionStep<'a>,
    q: &'a [f32],
    keys: PagedCache,
    values: PagedCache,
    y: DisjointSlice<f32>,
    /// Sums of parts.
    parts: DisjointSlice<f32>,
}

/// Writes the rows' keys and values to the caches, then `Y = softmax(scale Q Kᵀ) V` for every row
/// and head over the positions up to the row's own.
///
/// Shapes: Q `[rows, heads, head_size]`, K `[rows, kv_heads, head_size]`, V
/// `[rows, kv_heads, value_size]`, Y `[rows, heads, value_size]`.
///
/// # Panics
/// Panics when a slice has another length than its shape says, `kv_heads` does not divide `heads`,
/// or starts, lengths and blocks contradict each other or name blocks that the caches do not have.
pub fn paged_attention(
    exec: KernelContext<'_>,
    a: &PagedAttentionStep<'_>,
    x: AttentionRows<&[f32]>,
    caches: PagedCaches<'_>,
    y: &mut [f32],
) {
    a.check(x, &caches, y);
    let [keys, values] = caches.shared([a.head_size, a.value_size], a.block_size);
    write(exec, a, (keys, x.k), (values, x.v));
    let tiles = a.tiles();
    let queries: usize = tiles.iter().map(|t| t.rows * a.group() * t.seen.len()).sum();
    let serial = queries.saturating_mul(a.head_size + a.value_size) < SERIAL_TERMS;
    let threads = if serial { 1 } else { exec.pool.threads() };
    let (tiles, joins, room) = a.parts(tiles, threads);
    with_scratch(room, |parts| {
        let parts = DisjointSlice::new(parts);
        let places =
            PagedAttentionBuffers { a, q: x.q, keys, values, y: DisjointSlice::new(y), parts };
        let compute = |i: usize| {
            let tile = &tiles[i];
            let len = scratch_len(exec.isa, a, tile.rows * a.group());
            with_scratch(len, |scratch| exec.isa.run(PagedAttentionTask { places, tile, scratch }));
        };
        if serial {
            (0..tiles.len()).for_each(compute);
        } else {
            exec.pool.run(tiles.len(), compute);
        }
        exec.pool.run(joins.len(), |i| places.join(&joins[i]));
    });
}

/// Writes the rows' keys and values, head by head: whatever the blocks are, heads have vectors of
/// their own, so that threads never meet.
fn write(
    exec: KernelContext<'_>,
    a: &PagedAttentionStep<'_>,
    keys: (PagedCache, &[f32]),
    values: (PagedCache, &[f32]),
) {
    let write_head = |head: usize| {
        for (sequence, &length) in a.lengths.iter().enumerate() {
            let start = a.starts[sequence];
            let end = a.starts[sequence + 1];
            for row in start..end {
                let position = length - (end - row);
                let (vector, _) = a.vector(sequence, head, position);
                for (cache, rows) in [keys, values] {
                    let from = &rows[(row * a.kv_heads + head) * cache.size..][..cache.size];
                    // SAFETY: blocks were checked, so the caches have the vector; a task alone
                    // writes the vectors of its head, and nobody reads before all have ended.
                    unsafe { cache.write(vector, from) };
                }
            }
        }
    };
    let elements = a.rows() * a.kv_heads * (a.head_size + a.value_size);
    if elements < SERIAL_TERMS {
        (0..a.kv_heads).for_each(write_head);
    } else {
        exec.pool.run(a.kv_heads, write_head);
    }
}

impl PagedAttentionBuffers<'_> {
    /// Where a row of Y starts, by row and query head.
    #[inline(always)]
    fn y_at(&self, row: usize, head: usize) -> usize {
        (row * self.a.heads + head) * self.a.value_size
    }

    /// Writes the rows of Y of a tile from the sums of its parts.
    fn join(&self, join: &SplitTileJoin) {
        let a = self.a;
        let tile = &join.tile;
        let group = a.group();
        let size = a.value_size;
        let queries = tile.rows * group;
        let each = queries * (size + 2);
        // SAFETY: the tasks that wrote these parts have ended, and nobody else joins them.
        let parts = unsafe { self.parts.range(join.first..join.first + join.cuts * each) };
        for query in 0..queries {
            let head = tile.head * group + query / tile.rows;
            let row = tile.row + query % tile.rows;
            let at = self.y_at(row, head);
            // SAFETY: a tile alone has its rows and heads of Y, whose length was checked.
            let y = unsafe { self.y.range(at..at + size) };
            y.fill(0.0);
            let highest = |part: &[f32]| part[queries * size + query];
            let most = parts.chunks_exact(each).map(highest).fold(f32::NEG_INFINITY, f32::max);
            let shift = if most == f32::NEG_INFINITY { 0.0 } else { most };
            let mut total = 0.0;
            for part in parts.chunks_exact(each) {
                let factor = (highest(part) - shift).exp();
                total += factor * part[queries * (size + 1) + query];
                for (y, x) in y.iter_mut().zip(&part[query * size..][..size]) {
                    *y += factor * x;
                }
            }
            let factor = if total == 0.0 { 0.0 } else { 1.0 / total };
            for y in y {
                *y *= factor;
            }
        }
    }
}

#[cfg(test)]
mod tests;
