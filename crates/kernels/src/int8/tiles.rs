//! Products of bytes by tiles of AMX. Panels are those of the vectors: 16 groups of rows are a tile
//! of B whose rows lie a panel's width apart.

use super::drive::{ByteRows, Job};
use super::micro::{Out, finish};
use super::pack::{ColumnPointers, FLIP};
use crate::Exec;
use crate::isa::{AMX_ROWS, Amx, Dot, DotKernel, Simd, TILE_BYTES, Terms, Vnni};
use crate::memory::with_scratch;
use crate::tiles::{COLUMNS, Pending, Results, SUMS_BYTES, TilesTimesPanel};

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
pub(super) const LEAST_ROWS: usize = 5;

/// Where sums become results.
#[derive(Clone, Copy)]
struct Place {
    columns: ColumnPointers,
    row_sums: *const i32,
    out: Out,
    c_stride: usize,
    width: usize,
    far: bool,
}

impl<D: Dot> Results<D> for Place {
    #[inline(always)]
    fn below(&self, rows: usize) -> Self {
        Self {
            row_sums: self.row_sums.wrapping_add(rows),
            out: self.out.at(rows * self.c_stride),
            ..*self
        }
    }

    #[inline(always)]
    fn columns(&self) -> usize {
        self.width
    }

    #[inline(always)]
    unsafe fn write(&self, d: D, rows: usize, sums: *const f32, (stride, next): (usize, usize)) {
        let s = d.simd();
        let mut column = 0;
        while column < self.width {
            let columns = self.columns.shifted(column);
            let here = (self.width - column).min(D::S::LANES);
            for row in 0..rows {
                let at = row * stride + column / COLUMNS * next + column % COLUMNS;
                let out = self.out.at(row * self.c_stride + column);
                // SAFETY: the caller vouches for the rows.
                unsafe {
                    let sum = s.bits(s.load(sums.add(at)));
                    finish(d, &columns, self.row_sums.wrapping_add(row), out, sum, here);
                }
            }
            column += D::S::LANES;
        }
    }

    #[inline(always)]
    fn fetch(&self, amx: Amx, rows: std::ops::Range<usize>) {
        if !self.far {
            return;
        }
        let start: *const f32 = match self.out {
            Out::Bytes { .. } => return,
            Out::Floats(c) => c.ptr(),
            Out::Sums(c) => c.ptr().cast(),
        };
        for row in rows {
            let start = start.wrapping_add(row * self.c_stride);
            amx.prefetch_to_write(start);
            amx.prefetch_to_write(start.wrapping_add(self.width - 1));
        }
    }
}

/// Rows `row..row + rows` times the panels of columns `column..column_end`.
struct Part<'a, A> {
    job: &'a Job<A>,
    amx: Amx,
    row: usize,
    rows: usize,
    column: usize,
    column_end: usize,
    scratch: *mut u8,
    room: Room,
}

/// What a task needs besides its operands, in bytes.
#[derive(Clone, Copy)]
struct Room {
    /// Bytes between rows as copied.
    raw: usize,
    tile_rows: usize,
    pairs: usize,
    steps: usize,
}

impl Room {
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

    fn bytes(self) -> usize {
        self.pairs * SUMS_BYTES + self.block() + self.row_sums() + 2 * self.tile_rows * self.raw
    }
}

impl<A: ByteRows> DotKernel for Part<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
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

impl<A: ByteRows> Part<'_, A> {
    /// # Safety
    /// The rows exist, no more than the room has.
    #[inline(always)]
    unsafe fn block<D: Dot>(&self, d: D, row: usize, rows: usize) {
        let (job, room) = (self.job, self.room);
        let block = self.scratch.wrapping_add(room.pairs * SUMS_BYTES);
        let row_sums = block.wrapping_add(room.block()).cast::<i32>();
        let raw = block.wrapping_add(room.block() + room.row_sums());
        let pair_rows = 2 * room.tile_rows;
        for start in (0..rows).step_by(pair_rows) {
            let here = (rows - start).min(pair_rows);
            // SAFETY: the rows exist; raw rows have room for a pair of tiles.
            unsafe {
                let (from, stride) = match job.a.direct() {
                    Some((a, stride)) => (a.wrapping_add((row + start) * stride), stride),
                    None => {
                        job.a.copy(row + start, here, raw, room.raw);
                        (raw.cast_const(), room.raw)
                    }
                };
                let to = block.wrapping_add(start / pair_rows * room.steps * 2 * TILE_BYTES);
                for r in 0..here {
                    let at = r / room.tile_rows * TILE_BYTES + r % room.tile_rows * STEP;
                    let sum = self.tile_row(from.wrapping_add(r * stride), to.wrapping_add(at));
                    row_sums.add(start + r).write_unaligned(sum);
                }
            }
        }
        let mut pending: Option<Pending<Place>> = None;
        let results = job.m * job.n * size_of::<f32>();
        let mut column = self.column;
        while column < self.column_end {
            let (panel, inside) = (column / PANEL, column % PANEL);
            let on = TilesTimesPanel {
                amx: self.amx,
                terms: Terms::Bytes,
                a: block.cast_const(),
                b: job
                    .b
                    .data
                    .cast::<u8>()
                    .wrapping_add(panel * PANEL * job.b.groups * D::TERMS + inside * D::TERMS),
                steps: room.steps,
                rows,
                tile_rows: room.tile_rows,
                sums: self.scratch,
                place: Place {
                    columns: job.columns.shifted(column),
                    row_sums,
                    out: job.out.at(row * job.c_stride + column),
                    c_stride: job.c_stride,
                    width: (job.n - column).min(2 * COLUMNS),
                    far: results > NEAR_BYTES,
                },
            };
            // SAFETY: the panel and the rows are inside the product.
            unsafe { on.run(d, &mut pending) };
            column += 2 * COLUMNS;
        }
        if let Some(mut pending) = pending {
            // SAFETY: the last rows of the last panel.
            unsafe { pending.advance(d, usize::MAX) };
        }
    }

    /// Copies a row to tiles, as unsigned bytes with zeros behind them, and gives its sum.
    ///
    /// # Safety
    /// The row has all terms; the tiles have room for it.
    #[inline(always)]
    unsafe fn tile_row(&self, from: *const u8, to: *mut u8) -> i32 {
        let flip = if self.job.signed { FLIP } else { 0 };
        let (whole, left) = (self.job.k / STEP, self.job.k % STEP);
        let mut sum = 0_u32;
        for step in 0..self.room.steps {
            let mut terms = [0_u8; STEP];
            // SAFETY: whole steps, then what is left.
            unsafe {
                let from = from.add(step * STEP);
                if step < whole {
                    terms = *from.cast::<[u8; STEP]>();
                } else {
                    std::ptr::copy_nonoverlapping(from, terms.as_mut_ptr(), left);
                }
            }
            let here = if step < whole { STEP } else { left };
            terms[..here].iter_mut().for_each(|term| *term ^= flip);
            sum += terms.iter().map(|&term| u32::from(term)).sum::<u32>();
            // SAFETY: the tiles have room for every step.
            unsafe { *to.add(step * 2 * TILE_BYTES).cast::<[u8; STEP]>() = terms };
        }
        sum.cast_signed()
    }
}

/// Computes a product.
///
/// # Safety
/// As for [`super::drive::multiply`]; B is packed for VNNI.
pub(super) unsafe fn multiply<A: ByteRows>(
    exec: Exec<'_>,
    (amx, vectors): (Amx, Vnni),
    job: &Job<A>,
    wanted: usize,
) {
    let (m, n) = (job.m, job.n);
    let panels = n.div_ceil(2 * COLUMNS);
    // Columns first where rows are few: each task copies its rows of A.
    let groups = if m <= BLOCK_ROWS { wanted.min(panels) } else { 1 };
    let chunks = wanted.div_ceil(groups).min(m.div_ceil(TASK_ROWS)).max(1);
    let task = |task: usize| {
        let (chunk, group) = (task / groups, task % groups);
        let (row, row_end) = (m * chunk / chunks, m * (chunk + 1) / chunks);
        let column = panels * group / groups * 2 * COLUMNS;
        let column_end = (panels * (group + 1) / groups * 2 * COLUMNS).min(n);
        let rows = row_end - row;
        let room = Room::of(rows, job.k);
        with_scratch(room.bytes().div_ceil(size_of::<f32>()), |scratch| {
            let scratch = scratch.as_mut_ptr().cast();
            vectors.enter(Part { job, amx, row, rows, column, column_end, scratch, room });
        });
    };
    let tasks = chunks * groups;
    if wanted == 1 { (0..tasks).for_each(task) } else { exec.pool.run(tasks, task) }
}
