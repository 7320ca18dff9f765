//! Products of bytes by tiles of AMX. Panels are those of the vectors: 16 groups of rows are a tile
//! of B whose rows lie a panel's width apart.

use super::pack::FLIP;
use super::product::{ByteRows, Int8Product};
use super::results::Int8ResultPlace;
use crate::KernelContext;
use crate::isa::{AMX_ROWS, Amx, DotInstructions, DotKernel, Simd, TILE_BYTES, TileTerms, Vnni};
use crate::lines::whole_rows_first;
use crate::memory::{DisjointSlice, with_scratch};
use crate::tiles::{COLUMNS, PendingSums, RowTiles, SUMS_BYTES, TilesTimesPanel, tiles_of_block};
use std::ops::Range;

/// Terms of a step: what a tile holds of a row.
pub(super) const STEP: usize = 64;
/// Columns of a panel.
const PANEL: usize = 64;
/// Most rows of a block of A.
const BLOCK_ROWS: usize = 256;
/// Rows of a task, at least, where a task need not have fewer.
const TASK_ROWS: usize = 32;
/// Most bytes of results that are taken to be near when they are written.
const NEAR_BYTES: usize = 1 << 20;

/// Fewest rows that are worth tiles.
pub(super) const MIN_ROWS: usize = 5;

/// Rows `row..row + rows` times some whole panels of columns.
struct AmxPart<'a, A> {
    job: &'a Int8Product<A>,
    amx: Amx,
    vectors: Vnni,
    row: usize,
    rows: usize,
    columns: Range<usize>,
    scratch: *mut u8,
    room: AmxWorkspace,
    /// All rows in tiles and their sums, where an earlier step has made them.
    made: Option<(DisjointSlice<u8>, DisjointSlice<i32>)>,
}

/// Bytes that a task needs besides its operands.
#[derive(Clone, Copy)]
struct AmxWorkspace {
    /// Bytes between rows as copied.
    raw: usize,
    tile_rows: usize,
    pairs: usize,
    steps: usize,
}

impl AmxWorkspace {
    fn of(rows: usize, k: usize) -> Self {
        let blocks = rows.div_ceil(BLOCK_ROWS);
        let rows = rows.div_ceil(blocks);
        // Tiles of equal height: the time of a product of tiles is that of its rows.
        let tile_rows = rows.div_ceil(rows.div_ceil(AMX_ROWS));
        let steps = k.div_ceil(STEP);
        Self { raw: (steps * STEP) | 64, tile_rows, pairs: rows.div_ceil(2 * tile_rows), steps }
    }

    fn block(self) -> usize {
        self.pairs * self.steps * 2 * TILE_BYTES
    }

    fn row_sums(self) -> usize {
        (self.pairs * 2 * self.tile_rows * size_of::<i32>()).next_multiple_of(64)
    }

    /// Bytes of the rows of a pair of tiles as copied.
    fn raw_pair(self) -> usize {
        2 * self.tile_rows * self.raw
    }

    fn bytes(self) -> usize {
        self.pairs * SUMS_BYTES + self.block() + self.row_sums() + self.raw_pair()
    }
}

impl<A: ByteRows> DotKernel for AmxPart<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let most = self.room.pairs * 2 * self.room.tile_rows;
        let blocks = self.rows.div_ceil(most);
        self.amx.begin(self.room.tile_rows);
        for block in 0..blocks {
            let row = self.rows * block / blocks;
            let rows = self.rows * (block + 1) / blocks - row;
            // SAFETY: the rows are inside the product, and the scratch has room for them.
            unsafe { self.block(d, self.row + row, rows) };
        }
        self.amx.end();
    }
}

impl<A: ByteRows> AmxPart<'_, A> {
    /// # Safety
    /// The rows exist, no more than the room has.
    #[inline(always)]
    unsafe fn block<D: DotInstructions>(&self, d: D, row: usize, rows: usize) {
        let job = self.job;
        let room = self.room;
        let own = self.scratch.wrapping_add(room.pairs * SUMS_BYTES);
        let own_sums = own.wrapping_add(room.block()).cast::<i32>();
        let (block, row_sums) = match self.made {
            Some((block, row_sums)) => (block.ptr(), row_sums.ptr()),
            None => (own, own_sums),
        };
        if self.made.is_none() {
            let raw = own.wrapping_add(room.block() + room.row_sums());
            for pair in 0..rows.div_ceil(2 * room.tile_rows) {
                let fill = AmxRowCopy { job, room, row, rows, pair, block, row_sums, raw };
                // SAFETY: the rows exist; raw rows have room for a pair of tiles.
                unsafe { fill.pair(d) };
            }
        }
        let (list, steps) = tiles_of_block(block, rows, room.tile_rows, room.steps);
        let a = RowTiles { list: &list, steps: &steps, stride: STEP };
        let columns = self.columns.clone();
        let amx = self.amx;
        let vectors = self.vectors;
        let sums = self.scratch;
        let on = AmxBlock { amx, vectors, a, row, row_sums, sums, columns };
        // SAFETY: the rows are inside the product.
        unsafe { on.multiply(job) };
    }
}

/// Rows of A in tiles, times some columns.
pub(super) struct AmxBlock<'a> {
    pub(super) amx: Amx,
    pub(super) vectors: Vnni,
    pub(super) a: RowTiles<'a>,
    /// The row of the product that is row 0 of the tiles.
    pub(super) row: usize,
    /// The sum of each row; read where columns have zero points.
    pub(super) row_sums: *const i32,
    /// Room for the sums of all pairs of tiles.
    pub(super) sums: *mut u8,
    pub(super) columns: Range<usize>,
}

impl AmxBlock<'_> {
    /// # Safety
    /// Between [`Amx::begin`] for these tiles and [`Amx::end`], where the vectors are entered; A has
    /// the rows, B and C the columns.
    #[inline(always)]
    pub(super) unsafe fn multiply<A>(&self, job: &Int8Product<A>) {
        let d = self.vectors;
        let mut pending: Option<PendingSums<Int8ResultPlace>> = None;
        let columns = self.columns.clone().step_by(2 * COLUMNS);
        let steps = self.a.steps.len();
        let panels_bytes = self.columns.len() * steps * STEP;
        if whole_rows_first(steps, panels_bytes) {
            // Whole rows of C after each other: with so few terms C is most of what moves.
            for list in self.a.list.chunks(2) {
                let a = RowTiles { list, ..self.a };
                for column in columns.clone() {
                    // SAFETY: the panel and the rows are inside the product.
                    unsafe { self.panel(job, a, column, false).run(d, &mut pending) };
                }
            }
        } else {
            for column in columns {
                // SAFETY: as above.
                unsafe { self.panel(job, self.a, column, true).run(d, &mut pending) };
            }
        }
        if let Some(mut pending) = pending {
            // SAFETY: the last rows of the last panel.
            unsafe { pending.advance(d, usize::MAX) };
        }
    }

    /// Some tiles times the panel from a column on.
    #[inline(always)]
    fn panel<'t, A>(
        &self,
        job: &Int8Product<A>,
        a: RowTiles<'t>,
        column: usize,
        far: bool,
    ) -> TilesTimesPanel<'t, Int8ResultPlace> {
        let panel = column / PANEL;
        let inside = column % PANEL;
        let start = panel * PANEL * job.b.groups * Vnni::TERMS + inside * Vnni::TERMS;
        let results = job.m * job.n * size_of::<f32>();
        TilesTimesPanel {
            amx: self.amx,
            terms: TileTerms::Bytes,
            a,
            b: job.b.data.cast::<u8>().wrapping_add(start),
            far,
            sums: self.sums,
            place: Int8ResultPlace {
                columns: job.columns.shifted(column),
                row_sums: self.row_sums,
                out: job.out.at(self.row * job.c_stride + column),
                c_stride: job.c_stride,
                width: (job.n - column).min(2 * COLUMNS),
                far: results > NEAR_BYTES,
            },
        }
    }
}

/// Copies the rows of a pair of tiles.
struct AmxRowCopy<'a, A> {
    job: &'a Int8Product<A>,
    room: AmxWorkspace,
    /// The first row of the block, and how many it has.
    row: usize,
    rows: usize,
    pair: usize,
    block: *mut u8,
    row_sums: *mut i32,
    /// Room for the rows as copied.
    raw: *mut u8,
}

impl<A: ByteRows> DotKernel for AmxRowCopy<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        // SAFETY: whoever makes one vouches for rows and room.
        unsafe { self.pair(d) };
    }
}

impl<A: ByteRows> AmxRowCopy<'_, A> {
    /// # Safety
    /// The rows exist, and there is room for them.
    #[inline(always)]
    unsafe fn pair<D: DotInstructions>(&self, d: D) {
        let job = self.job;
        let room = self.room;
        let pair_rows = 2 * room.tile_rows;
        let start = self.pair * pair_rows;
        let here = (self.rows - start).min(pair_rows);
        // SAFETY: the caller vouches for the rows and the room.
        unsafe {
            let (from, stride) = match job.a.direct() {
                Some((a, stride)) => (a.wrapping_add((self.row + start) * stride), stride),
                None => {
                    job.a.copy(self.row + start, here, self.raw, room.raw);
                    (self.raw.cast_const(), room.raw)
                }
            };
            let to = self.block.wrapping_add(self.pair * room.steps * 2 * TILE_BYTES);
            for r in 0..here {
                let at = r / room.tile_rows * TILE_BYTES + r % room.tile_rows * STEP;
                let from = from.wrapping_add(r * stride);
                let to = to.wrapping_add(at);
                self.tile_row(d, from, to);
                if !job.columns.zeros.is_null() {
                    let sum = self.sum(to);
                    self.row_sums.add(start + r).write_unaligned(sum);
                }
            }
        }
    }

    /// Copies a row to tiles, as unsigned bytes with zeros behind them.
    ///
    /// # Safety
    /// The row has all terms; the tiles have room for it.
    #[inline(always)]
    unsafe fn tile_row<D: DotInstructions>(&self, d: D, from: *const u8, to: *mut u8) {
        let s = d.simd();
        const LANE: usize = size_of::<f32>();
        let flip = if self.job.signed { u32::from(FLIP) * 0x0101_0101 } else { 0 };
        let flip = s.splat_i(flip.cast_signed());
        let whole = self.job.k / STEP;
        let left = self.job.k % STEP;
        let lanes = <D::S as Simd>::LANES;
        // SAFETY: the caller vouches for the row and the tiles.
        unsafe {
            for step in 0..whole {
                let from = from.add(step * STEP);
                let to = to.add(step * 2 * TILE_BYTES);
                for at in (0..STEP / LANE).step_by(lanes) {
                    let terms = s.bits(s.load(from.cast::<f32>().add(at)));
                    s.store(to.cast::<f32>().add(at), s.of_bits(s.xor_i(terms, flip)));
                }
            }
            if left == 0 {
                return;
            }
            let from = from.add(whole * STEP);
            let to = to.add(whole * 2 * TILE_BYTES);
            let mut last = [0_u8; STEP];
            let source = if left.is_multiple_of(LANE) {
                from
            } else {
                std::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), left);
                last.as_ptr()
            };
            for at in (0..STEP / LANE).step_by(lanes) {
                let mask = s.tail(left.div_ceil(LANE).saturating_sub(at));
                let terms = s.load_tail(source.cast::<f32>().wrapping_add(at), mask);
                let terms = s.of_bits(s.xor_i(s.bits(terms), flip));
                // Behind the row only zeros meet what is packed.
                s.store(to.cast::<f32>().add(at), s.select(mask, terms, s.splat(0.0)));
            }
            for behind in left..left.next_multiple_of(LANE) {
                *to.add(behind) = 0;
            }
        }
    }

    /// The sum of a row in tiles.
    ///
    /// # Safety
    /// The row is there.
    #[inline(always)]
    unsafe fn sum(&self, row: *const u8) -> i32 {
        let mut sum = 0_u32;
        for step in 0..self.room.steps {
            // SAFETY: the caller vouches for the tiles.
            let terms = unsafe { &*row.add(step * 2 * TILE_BYTES).cast::<[u8; STEP]>() };
            sum += terms.iter().map(|&term| u32::from(term)).sum::<u32>();
        }
        sum.cast_signed()
    }
}

/// Computes a product.
///
/// # Safety
/// The same as for [`super::drive::multiply`]; B is packed for VNNI.
pub(super) unsafe fn multiply<A: ByteRows>(
    exec: KernelContext<'_>,
    amx: Amx,
    vectors: Vnni,
    job: &Int8Product<A>,
    wanted: usize,
) {
    let m = job.m;
    let n = job.n;
    let panels = n.div_ceil(2 * COLUMNS);
    let columns = |group: usize, groups: usize| {
        let width = 2 * COLUMNS;
        panels * group / groups * width..(panels * (group + 1) / groups * width).min(n)
    };
    if wanted > 1 && m <= BLOCK_ROWS && panels >= wanted {
        // Few rows: all threads make tiles of them once, then each takes panels of B.
        let room = AmxWorkspace::of(m, job.k);
        let bytes = room.block() + room.row_sums();
        with_scratch(bytes.div_ceil(size_of::<f32>()), |made| {
            let block = DisjointSlice::<u8>::from_ptr(made.as_mut_ptr().cast());
            let row_sums = DisjointSlice::<i32>::from_ptr(block.at(room.block()).ptr().cast());
            exec.pool.run(m.div_ceil(2 * room.tile_rows), |pair| {
                with_scratch(room.raw_pair().div_ceil(size_of::<f32>()), |raw| {
                    let block = block.ptr();
                    let row_sums = row_sums.ptr();
                    let raw = raw.as_mut_ptr().cast();
                    let row = 0;
                    let rows = m;
                    vectors.enter(AmxRowCopy { job, room, row, rows, pair, block, row_sums, raw });
                });
            });
            exec.pool.run(wanted, |group| {
                let columns = columns(group, wanted);
                with_scratch((room.pairs * SUMS_BYTES).div_ceil(size_of::<f32>()), |scratch| {
                    let scratch = scratch.as_mut_ptr().cast();
                    let row = 0;
                    let rows = m;
                    let made = Some((block, row_sums));
                    vectors.enter(AmxPart {
                        job,
                        amx,
                        vectors,
                        row,
                        rows,
                        columns,
                        scratch,
                        room,
                        made,
                    });
                });
            });
        });
        return;
    }
    // Columns first where rows are few: each task copies its rows of A.
    let groups = if m <= BLOCK_ROWS { wanted.min(panels) } else { 1 };
    let chunks = wanted.div_ceil(groups).min(m.div_ceil(TASK_ROWS)).max(1);
    let task = |task: usize| {
        let chunk = task / groups;
        let group = task % groups;
        let row = m * chunk / chunks;
        let row_end = m * (chunk + 1) / chunks;
        let columns = columns(group, groups);
        let rows = row_end - row;
        let made = None;
        let room = AmxWorkspace::of(rows, job.k);
        with_scratch(room.bytes().div_ceil(size_of::<f32>()), |scratch| {
            let scratch = scratch.as_mut_ptr().cast();
            vectors.enter(AmxPart { job, amx, vectors, row, rows, columns, scratch, room, made });
        });
    };
    let tasks = chunks * groups;
    if wanted == 1 { (0..tasks).for_each(task) } else { exec.pool.run(tasks, task) }
}
