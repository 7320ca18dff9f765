//! How a BF16 product is cut into tasks, and how rows of A become blocks.

use std::ops::Range;

use super::pack::{Bf16Panels, PANEL, STEP, STEP_BYTES};
use super::vectors::{self, RowsTimesPanel};
use super::write::{Bf16ResultCells, JoinedBf16Matrix, ResultPart};
use crate::KernelContext;
use crate::gemm::{A_STRIDE, K_BLOCK, RowSource, TileFinish};
use crate::isa::{
    AMX_ROWS, Amx, Bf16Instructions, Bf16Isa, Bf16Kernel, Simd, TILE_BYTES, TileTerms,
};
use crate::matrix::{IndexSpan, StridedMatrix};
use crate::memory::{DisjointSlice, with_scratch};
use crate::tiles::{PendingSums, RowTiles, SUMS_BYTES, TilesTimesPanel, tiles_of_block};

/// Most rows of a chunk.
const CHUNK_ROWS: usize = 256;

/// Most bytes of a block of A: the second-level cache keeps them beside a panel and sums.
const NEAR_BYTES: usize = 1 << 20;

/// Most rows that are multiplied by vectors where there are tiles.
pub(super) const THIN_ROWS: usize = 4;

/// Below this many multiply-adds a product is not worth waking threads for.
const SERIAL_TERMS: usize = 200_000;

/// One product.
#[derive(Clone, Copy)]
pub(crate) struct Bf16Product<A> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Rows of FP32, or of pairs of BF16 in the places of FP32.
    pub(crate) a: A,
    /// True if A has pairs.
    pub(crate) pairs: bool,
    pub(crate) b: Bf16Panels,
    pub(crate) c: Bf16ResultCells,
    pub(crate) c_stride: usize,
    /// True if the product is added to C, which is FP32 then.
    pub(crate) adds: bool,
    pub(crate) finish: TileFinish,
    /// A matrix of BF16 that joins too.
    pub(crate) beside: Option<JoinedBf16Matrix>,
}

impl<A> Bf16Product<A> {
    /// Returns whether one thread computes it.
    pub(super) fn is_serial(&self, threads: usize) -> bool {
        threads == 1 || self.m.saturating_mul(self.n).saturating_mul(self.k) < SERIAL_TERMS
    }

    /// Returns whether C is too large to be near.
    #[inline(always)]
    pub(super) fn is_far(&self) -> bool {
        self.m * self.n * self.c.size_bytes() > NEAR_BYTES
    }

    /// Places of A that a step takes, and those of a row.
    #[inline(always)]
    fn places(&self) -> (usize, usize) {
        if self.pairs { (STEP / 2, self.k / 2) } else { (STEP, self.k) }
    }
}

/// How some rows of A lie in blocks.
#[derive(Clone, Copy)]
struct Bf16RowBlocks {
    rows: usize,
    /// Steps of all terms.
    steps: usize,
    /// How many blocks the terms are cut into.
    depths: usize,
    /// Rows of a tile; 0 where rows are multiplied by vectors, one after the other.
    tile_rows: usize,
}

impl Bf16RowBlocks {
    /// For `rows` rows; with `whole` the terms are in one block, as C cannot hold sums.
    fn of(rows: usize, k: usize, tiles: bool, whole: bool) -> Self {
        let steps = k.div_ceil(STEP);
        let most = (NEAR_BYTES / (rows.max(1) * STEP * 2)).max(8);
        let depths = if whole { 1 } else { steps.div_ceil(most).max(1) };
        // Tiles of equal height: the time of a product of tiles is that of its rows.
        let tile_rows = if tiles { rows.div_ceil(rows.div_ceil(AMX_ROWS)) } else { 0 };
        Self { rows, steps, depths, tile_rows }
    }

    /// The steps of a block.
    fn depth(&self, at: usize) -> IndexSpan {
        let first = self.steps * at / self.depths;
        IndexSpan { first, count: self.steps * (at + 1) / self.depths - first }
    }

    /// Rows that are converted at once.
    fn group(&self) -> usize {
        if self.tile_rows == 0 { 16 } else { 2 * self.tile_rows }
    }

    fn groups(&self) -> usize {
        self.rows.div_ceil(self.group())
    }

    /// Bytes between rows of a block of so many steps; those of adjacent rows must not fall into the
    /// same sets of the first-level cache.
    fn stride(steps: usize) -> usize {
        (steps * STEP * 2) | 64
    }

    /// Where a block starts.
    fn offset(&self, at: usize) -> usize {
        (0..at).map(|at| self.block_bytes(self.depth(at).count)).sum()
    }

    fn block_bytes(&self, steps: usize) -> usize {
        if self.tile_rows == 0 {
            self.rows * Self::stride(steps)
        } else {
            self.groups() * steps * 2 * TILE_BYTES
        }
    }

    /// Bytes of the largest block.
    fn most_bytes(&self) -> usize {
        (0..self.depths).map(|at| self.block_bytes(self.depth(at).count)).max().unwrap_or(0)
    }

    /// Bytes for the sums of tiles.
    fn sums_bytes(&self) -> usize {
        if self.tile_rows == 0 { 0 } else { self.groups() * SUMS_BYTES }
    }
}

/// Floats of the rows of a group before they are converted.
const GATHER: usize = 2 * AMX_ROWS * A_STRIDE;

/// Converts the rows of some groups to blocks: block `depth` only, or all.
struct Bf16RowCopy<'a, A> {
    job: &'a Bf16Product<A>,
    layout: Bf16RowBlocks,
    /// The row of the product that is row 0 of the layout.
    row: usize,
    groups: Range<usize>,
    depth: usize,
    out: *mut u8,
    /// [`GATHER`] floats.
    gather: *mut f32,
}

impl<A: RowSource> Bf16Kernel for Bf16RowCopy<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, d: D) {
        let layout = self.layout;
        let depth = layout.depth(self.depth);
        for group in self.groups.clone() {
            let row = group * layout.group();
            let rows = IndexSpan { first: row, count: layout.group().min(layout.rows - row) };
            // SAFETY: the rows exist, and the block has room for them.
            unsafe {
                match self.job.a.direct() {
                    Some((a, stride)) => {
                        let (step, row_places) = self.job.places();
                        let a = a.wrapping_add((self.row + row) * stride + depth.first * step);
                        let a = StridedMatrix::new(a, stride);
                        let places = row_places - depth.first * step;
                        let steps = IndexSpan { first: 0, ..depth };
                        self.convert(d, a, rows, steps, places);
                    }
                    None => self.gather(d, rows, depth),
                }
            }
        }
    }
}

impl<A: RowSource> Bf16RowCopy<'_, A> {
    /// Where the rows of a group go.
    #[inline(always)]
    fn target(&self, row: usize) -> Bf16RowTarget {
        let layout = self.layout;
        let steps = self.layout.depth(self.depth).count;
        match layout.tile_rows {
            0 => {
                let row_stride = Bf16RowBlocks::stride(steps);
                let start = self.out.wrapping_add(row * row_stride);
                Bf16RowTarget {
                    start,
                    row_stride,
                    step_stride: STEP * 2,
                    tile: usize::MAX,
                    jump: 0,
                }
            }
            tile => Bf16RowTarget {
                start: self.out.wrapping_add(row / (2 * tile) * steps * 2 * TILE_BYTES),
                row_stride: STEP * 2,
                step_stride: 2 * TILE_BYTES,
                tile,
                jump: TILE_BYTES - tile * STEP * 2,
            },
        }
    }

    /// Converts rows, which lie at `a`, for some steps; `places` of theirs exist.
    ///
    /// # Safety
    /// `a` has the rows; the block has room for them.
    #[inline(always)]
    unsafe fn convert<D: Bf16Instructions>(
        &self,
        d: D,
        a: StridedMatrix<*const f32>,
        rows: IndexSpan,
        steps: IndexSpan,
        places: usize,
    ) {
        let (step_places, _) = self.job.places();
        let whole = (places / step_places).min(steps.count);
        let target = self.target(rows.first);
        // A few steps of all rows: they are adjacent in tiles.
        for i in (0..whole).step_by(4) {
            for r in 0..rows.count {
                let a = a.data.wrapping_add(r * a.stride);
                let to = target.at(r, steps.first);
                for i in i..whole.min(i + 4) {
                    let to = to.wrapping_add(i * target.step_stride);
                    // SAFETY: 32 terms of the row.
                    unsafe { self.step(d, a.add(i * step_places), to) };
                }
            }
        }
        if whole < steps.count {
            let s = d.simd();
            let left = places - whole * step_places;
            let mut last = [0.0_f32; STEP];
            for r in 0..rows.count {
                let from = a.data.wrapping_add(r * a.stride + whole * step_places);
                let to = target.at(r, steps.first + whole);
                let row = if self.job.pairs { to.cast() } else { last.as_mut_ptr() };
                for at in (0..step_places).step_by(<D::S as Simd>::LANES) {
                    let mask = s.tail(left.saturating_sub(at));
                    // SAFETY: what is left of the row, with zeros behind; a step has room.
                    unsafe { s.store(row.add(at), s.load_tail(from.wrapping_add(at), mask)) };
                }
                if !self.job.pairs {
                    // SAFETY: a step, and room for it.
                    unsafe { d.narrow(last.as_ptr(), to.cast()) };
                }
            }
        }
    }

    /// Converts a step of a row, or copies it.
    ///
    /// # Safety
    /// `from` has 32 terms, and `to` has room for them.
    #[inline(always)]
    unsafe fn step<D: Bf16Instructions>(&self, d: D, from: *const f32, to: *mut u8) {
        // SAFETY: the caller vouches for both.
        unsafe {
            if self.job.pairs {
                std::ptr::copy_nonoverlapping(from.cast::<u8>(), to, STEP * 2);
            } else {
                d.narrow(from, to.cast());
            }
        }
    }

    /// Converts rows that are no matrix in memory: what its source copies.
    ///
    /// # Safety
    /// The rows exist, and the block has room for them.
    #[inline(always)]
    unsafe fn gather<D: Bf16Instructions>(&self, d: D, rows: IndexSpan, steps: IndexSpan) {
        // What is gathered must stay in the first-level cache until it is converted.
        const AT_ONCE: usize = 6;
        const { assert!(AT_ONCE * STEP <= K_BLOCK) };
        let (step, row_places) = self.job.places();
        let at_once = AT_ONCE * STEP / step;
        let mut done = 0;
        while done < steps.count {
            let here = at_once.min(steps.count - done);
            let first = (steps.first + done) * step;
            let places = (here * step).min(row_places - first);
            // SAFETY: the caller vouches for rows and block; what is gathered has room for a group.
            unsafe {
                let row = self.row + rows.first;
                self.job.a.copy(d.simd(), row, rows.count, first, places, self.gather);
                let from = StridedMatrix::new(self.gather.cast_const(), A_STRIDE);
                let steps = IndexSpan { first: done, count: here };
                self.convert(d, from, rows, steps, places);
            }
            done += here;
        }
    }
}

/// Where rows of a group go, step by step.
#[derive(Clone, Copy)]
struct Bf16RowTarget {
    start: *mut u8,
    row_stride: usize,
    step_stride: usize,
    /// Rows of a tile; those of the second tile lie `jump` bytes further.
    tile: usize,
    jump: usize,
}

impl Bf16RowTarget {
    #[inline(always)]
    fn at(&self, row: usize, step: usize) -> *mut u8 {
        let jump = if row >= self.tile { self.jump } else { 0 };
        self.start.wrapping_add(row * self.row_stride + step * self.step_stride + jump)
    }
}

/// Rows `row..row + layout.rows` times the panels of columns `column..column_end`.
struct Bf16ProductPart<'a, A> {
    job: &'a Bf16Product<A>,
    amx: Option<Amx>,
    layout: Bf16RowBlocks,
    row: usize,
    column: usize,
    column_end: usize,
    /// Room for a block, sums and gathered rows.
    scratch: *mut u8,
    /// The rows in blocks, where an earlier step has made them.
    blocks: Option<DisjointSlice<u8>>,
}

impl<A: RowSource> Bf16Kernel for Bf16ProductPart<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, d: D) {
        let amx = self.amx.filter(|_| self.layout.tile_rows > 0);
        if let Some(amx) = amx {
            amx.begin(self.layout.tile_rows);
        }
        self.blocks(d);
        if let Some(amx) = amx {
            amx.end();
        }
    }
}

impl<A: RowSource> Bf16ProductPart<'_, A> {
    #[inline(always)]
    fn blocks<D: Bf16Instructions>(&self, d: D) {
        let job = self.job;
        let layout = self.layout;
        let sums = self.scratch.wrapping_add(GATHER * size_of::<f32>());
        let own = sums.wrapping_add(layout.sums_bytes());
        let mut pending: Option<PendingSums<ResultPart>> = None;
        for depth in 0..layout.depths {
            let block = layout.depth(depth);
            let a = match self.blocks {
                Some(blocks) => blocks.at(layout.offset(depth)).ptr(),
                None => {
                    let groups = 0..layout.groups();
                    let gather = self.scratch.cast();
                    let row = self.row;
                    let out = own;
                    Bf16RowCopy { job, layout, row, groups, depth, out, gather }.run(d);
                    own
                }
            };
            let (tiles, offsets) = match layout.tile_rows {
                0 => Default::default(),
                tile_rows => tiles_of_block(a, layout.rows, tile_rows, block.count),
            };
            let mut column = self.column;
            while column < self.column_end {
                let panel = column / PANEL * layout.steps + block.first;
                let b = job.b.data.wrapping_add(panel * STEP_BYTES);
                let last = depth + 1 == layout.depths;
                let place = ResultPart {
                    c: job.c.at(self.row * job.c_stride + column),
                    c_stride: job.c_stride,
                    columns: PANEL.min(job.n - column),
                    accumulate: job.adds || depth > 0,
                    far: job.is_far(),
                    finish: last.then(|| job.finish.shifted(self.row, column)),
                    beside: job.beside.map(|beside| beside.shifted(self.row, column)),
                };
                // SAFETY: the panel and the rows are inside the product.
                unsafe {
                    match self.amx.filter(|_| layout.tile_rows > 0) {
                        Some(amx) => {
                            let a = RowTiles { list: &tiles, steps: &offsets, stride: STEP * 2 };
                            let terms = TileTerms::Bf16;
                            TilesTimesPanel { amx, terms, a, b, far: true, sums, place }
                                .run(d.simd(), &mut pending);
                        }
                        None => {
                            let steps = block.count;
                            let a_stride = Bf16RowBlocks::stride(steps);
                            let full = job.b.full_at(panel);
                            let on = RowsTimesPanel { a, a_stride, b, full, steps, place };
                            vectors::panel(d, &on, layout.rows);
                        }
                    }
                }
                column += PANEL;
            }
            if let Some(mut pending) = pending.take() {
                // SAFETY: the last rows of the last panel.
                unsafe { pending.advance(d.simd(), usize::MAX) };
            }
        }
    }
}

/// Rows of blocks that have all their terms, at least.
const WHOLE_ROWS: usize = 2 * AMX_ROWS;

/// Computes a product.
///
/// # Safety
/// A has `m` rows of `k`, B is `k` x `n`, C has `m` rows of `n`, `c_stride` apart, the epilogue and
/// what joins cover C, and nothing else uses C meanwhile.
pub(crate) unsafe fn multiply<A: RowSource>(
    exec: KernelContext<'_>,
    isa: Bf16Isa,
    job: &Bf16Product<A>,
) {
    let m = job.m;
    let n = job.n;
    if m == 0 || n == 0 {
        return;
    }
    let threads = if job.is_serial(exec.pool.threads()) { 1 } else { exec.pool.threads() };
    if threads == 1 {
        // SAFETY: as for this function.
        return unsafe { multiply_here(isa, job) };
    }
    let panels = n.div_ceil(PANEL);
    let columns = |group: usize, groups: usize| {
        panels * group / groups * PANEL..(panels * (group + 1) / groups * PANEL).min(n)
    };
    let most = job.chunk_rows();
    if m <= CHUNK_ROWS && panels >= 4 * threads {
        // Few rows: made into blocks once by all threads, then each thread takes panels of B, so
        // that B is read once in all.
        let layout = job.layout(m, job.amx(isa).is_some());
        let bytes = layout.offset(layout.depths);
        with_scratch(bytes.div_ceil(size_of::<f32>()), |blocks| {
            let blocks = DisjointSlice::<u8>::from_ptr(blocks.as_mut_ptr().cast());
            let groups = layout.groups();
            let parts = threads.min(groups);
            exec.pool.run(parts, |part| {
                with_scratch(GATHER, |gather| {
                    for depth in 0..layout.depths {
                        let groups = groups * part / parts..groups * (part + 1) / parts;
                        let out = blocks.at(layout.offset(depth)).ptr();
                        let gather = gather.as_mut_ptr();
                        isa.run(Bf16RowCopy { job, layout, row: 0, groups, depth, out, gather });
                    }
                });
            });
            let groups = panels.min(threads * 4);
            exec.pool.run(groups, |group| {
                job.part(isa, 0..m, columns(group, groups), Some(blocks));
            });
        });
        return;
    }
    // Two tasks a thread even out threads that other programs slow down.
    let chunks = m.div_ceil(most).next_multiple_of(2 * threads).min(m.div_ceil(AMX_ROWS));
    let groups = if chunks >= threads { 1 } else { threads.div_ceil(chunks).min(panels) };
    exec.pool.run(chunks * groups, |task| {
        let chunk = task / groups;
        let group = task % groups;
        let row = m * chunk / chunks;
        let end = m * (chunk + 1) / chunks;
        job.part(isa, row..end, columns(group, groups), None);
    });
}

/// [`multiply`] on the thread that calls.
///
/// # Safety
/// The same as for [`multiply`].
pub(crate) unsafe fn multiply_here<A: RowSource>(isa: Bf16Isa, job: &Bf16Product<A>) {
    let m = job.m;
    let chunks = m.div_ceil(job.chunk_rows());
    for chunk in 0..chunks {
        let row = m * chunk / chunks;
        let end = m * (chunk + 1) / chunks;
        job.part(isa, row..end, 0..job.n, None);
    }
}

impl<A: RowSource> Bf16Product<A> {
    /// The tiles, where they are for so many rows.
    fn amx(&self, isa: Bf16Isa) -> Option<Amx> {
        isa.amx().filter(|_| self.m > THIN_ROWS)
    }

    fn layout(&self, rows: usize, tiles: bool) -> Bf16RowBlocks {
        Bf16RowBlocks::of(rows, self.k, tiles, self.c.is_half())
    }

    /// Most rows of a chunk.
    fn chunk_rows(&self) -> usize {
        let whole_bytes = self.k.div_ceil(STEP).max(1) * STEP * 2;
        if self.c.is_half() {
            (NEAR_BYTES / whole_bytes).clamp(WHOLE_ROWS, CHUNK_ROWS)
        } else {
            CHUNK_ROWS
        }
    }

    /// Some rows of the product for some columns.
    fn part(
        &self,
        isa: Bf16Isa,
        rows: Range<usize>,
        columns: Range<usize>,
        blocks: Option<DisjointSlice<u8>>,
    ) {
        let amx = self.amx(isa);
        let layout = self.layout(rows.len(), amx.is_some());
        let own = if blocks.is_some() { 0 } else { layout.most_bytes() };
        let bytes = GATHER * size_of::<f32>() + layout.sums_bytes() + own;
        with_scratch(bytes.div_ceil(size_of::<f32>()), |scratch| {
            let scratch = scratch.as_mut_ptr().cast();
            isa.run(Bf16ProductPart {
                job: self,
                amx,
                layout,
                row: rows.start,
                column: columns.start,
                column_end: columns.end,
                scratch,
                blocks,
            });
        });
    }
}
