//! How a product is cut into tasks: chunks of rows times groups of panels.

use super::depth::{DepthBlock, depth_blocks};
use super::epilogue::TileFinish;
use super::micro::{A_STRIDE, GemmStep, K_BLOCK, PrefetchStretch, THIN_ROWS, block, thin};
use super::pack::{BSource, DenseRows, PanelBlock, RowSource, SharedPanelBlock};
use super::sparse::{SparseBlock, multiply_sparse, multiply_sparse_thin};
use crate::KernelContext;
use crate::isa::{Isa, IsaKernel, Simd};
use crate::matrix::{IndexSpan, MatrixSize, ProductSize, StridedMatrix};
use crate::memory::{DisjointSlice, with_scratch};
use crate::pieces::WorkPieces;

/// Most rows in a chunk: more would not save much of the reading of B.
const CHUNK_ROWS: usize = 222;

/// Fewest rows in a chunk that is cut so that its whole depth stays near: fewer would read B too
/// often.
const FEW_CHUNK_ROWS: usize = 54;

/// Most bytes that are taken to stay in the second-level cache while they are read again.
const NEAR_BYTES: usize = 1024 * 1024;

/// Bytes of rows of A that stay in the first-level cache beside a panel of B.
const FIRST_LEVEL_BYTES: usize = 20 * 1024;

/// Fewest rows of a part while B stays near: four register tiles.
const FEW_NEAR_ROWS: usize = 24;

/// Below this many multiply-adds a product is not worth waking threads for.
const SERIAL_TERMS: usize = 40_000;

/// One product of a batch.
#[derive(Clone, Copy)]
pub(crate) struct GemmProduct<A> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: A,
    pub(crate) b: BSource,
    pub(crate) c: DisjointSlice<f32>,
    pub(crate) c_stride: usize,
    pub(crate) finish: TileFinish,
}

/// How many blocks of depth of `rows` rows the second-level cache keeps beside a panel of B.
fn near_depth(rows: usize) -> usize {
    (NEAR_BYTES / (rows * A_STRIDE * size_of::<f32>()).max(1)).max(1)
}

/// Rows of a chunk whose whole depth stays near, as far as that is worth it.
fn chunk_rows(k: usize) -> usize {
    let rows = NEAR_BYTES / (k.max(1) * size_of::<f32>());
    // Whole tiles.
    (rows / 6 * 6).clamp(FEW_CHUNK_ROWS, CHUNK_ROWS)
}

/// Rows of depth `k` that stay in the first-level cache where they lie.
fn placed_rows(k: usize, tile_rows: usize) -> usize {
    (FIRST_LEVEL_BYTES / (k * size_of::<f32>()).max(1) / tile_rows * tile_rows).max(4 * tile_rows)
}

/// A part of a product: rows `row..row + rows`, panels of columns `column..column_end`.
struct GemmPart<'a, A> {
    product: &'a GemmProduct<A>,
    row: usize,
    rows: usize,
    column: usize,
    column_end: usize,
    scratch: *mut f32,
    /// The whole of A in blocks, where an earlier step has made them.
    blocks: Option<SharedPanelBlock>,
    /// Row 0 of A and the distance between rows, where they are multiplied as they lie.
    placed: Option<(*const f32, usize)>,
}

impl<A: RowSource> IsaKernel for GemmPart<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let p = self.product;
        let width = S::LANES * S::TILE_VECTORS;
        let own = self.scratch.wrapping_add(K_BLOCK * width);
        let b_bytes = (self.column_end - self.column) * p.k * size_of::<f32>();
        // With B at hand in the second-level cache, few rows at a time stay in the first-level
        // cache between their copy and their use.
        let near_b = self.blocks.is_none() && p.b.is_packed() && b_bytes <= NEAR_BYTES;
        let at_once = match self.placed {
            Some(_) => placed_rows(p.k, S::TILE_ROWS),
            None if near_b => 4 * S::TILE_ROWS,
            None => self.rows,
        };
        let slices = self.rows.div_ceil(at_once.max(1));
        let depth = depth_blocks(p.k).count();
        for slice in 0..slices {
            let row = self.row + self.rows * slice / slices;
            let rows = self.row + self.rows * (slice + 1) / slices - row;
            let together = near_depth(rows).min(depth);
            let mut first = 0;
            while first < depth {
                let blocks = depth_blocks(p.k).skip(first).take(together);
                let start = blocks.clone().next().map_or(0, |block| block.start);
                let a = match (self.placed, self.blocks) {
                    (Some((a, stride)), _) => {
                        GemmRows::Placed(a.wrapping_add(row * stride), stride)
                    }
                    (None, Some(blocks)) => {
                        let a = blocks.ptr().wrapping_add((first * p.m + row) * A_STRIDE);
                        GemmRows::Blocks(a.cast_const(), p.m * A_STRIDE)
                    }
                    (None, None) => {
                        for (i, block) in blocks.clone().enumerate() {
                            let out = own.wrapping_add(i * rows * A_STRIDE);
                            // SAFETY: the scratch has room for these blocks of these rows.
                            unsafe { p.a.copy(s, row, rows, block.start, block.terms, out) };
                        }
                        GemmRows::Blocks(own.cast_const(), rows * A_STRIDE)
                    }
                };
                // Panel after panel, so that sums stay near and B is read as one stream.
                let mut column = self.column;
                while column < self.column_end {
                    for (i, block) in blocks.clone().enumerate() {
                        let a = a.block(i, block.start);
                        let is_end = i + 1 == together;
                        let ahead = self.following::<S>(block, is_end, start, column);
                        let rows = IndexSpan { first: row, count: rows };
                        // SAFETY: a panel of this product; A has the rows.
                        unsafe { self.step(s, block, rows, column, a, ahead) };
                    }
                    column += width;
                }
                first += together;
            }
        }
    }
}

/// Rows of A that are multiplied.
#[derive(Clone, Copy)]
enum GemmRows {
    /// In blocks of depth from here on, and the distance between those.
    Blocks(*const f32, usize),
    /// Rows in place: the pointer to the first, and the distance between rows.
    Placed(*const f32, usize),
}

impl GemmRows {
    /// Block `i` of those at hand, which starts with term `start` of the rows.
    #[inline(always)]
    fn block(self, i: usize, start: usize) -> StridedMatrix<*const f32> {
        match self {
            Self::Blocks(a, between) => StridedMatrix::new(a.wrapping_add(i * between), A_STRIDE),
            Self::Placed(a, stride) => StridedMatrix::new(a.wrapping_add(start), stride),
        }
    }
}

impl<A: RowSource> GemmPart<'_, A> {
    /// Returns the part of B that the step after a block reads. `is_end` says that the block is the
    /// last of those that stay near together, and `start` is the first term of these.
    #[inline(always)]
    fn following<S: Simd>(
        &self,
        block: DepthBlock,
        is_end: bool,
        start: usize,
        column: usize,
    ) -> PrefetchStretch {
        let width = S::LANES * S::TILE_VECTORS;
        let b = &self.product.b;
        let panel = |column: usize| width.min(self.product.n - column).next_multiple_of(S::LANES);
        // Blocks differ by four terms at most, so the length of this one does for the next.
        if !is_end && !block.is_last {
            b.ahead(block.start + block.terms, block.terms, column, panel(column))
        } else if column + width < self.column_end {
            b.ahead(start, block.terms, column + width, panel(column + width))
        } else {
            PrefetchStretch::NOTHING
        }
    }

    /// Multiplies one block of A with one block of a panel.
    ///
    /// # Safety
    /// `column` starts a panel; `a` holds the rows; the scratch fits a block of
    /// a panel where B is not packed.
    #[inline(always)]
    unsafe fn step<S: Simd>(
        &self,
        s: S,
        depth: DepthBlock,
        rows: IndexSpan,
        column: usize,
        a: StridedMatrix<*const f32>,
        ahead: PrefetchStretch,
    ) {
        let p = self.product;
        let columns = (S::LANES * S::TILE_VECTORS).min(p.n - column);
        // SAFETY: the block is inside B and C, as `multiply`'s callers have checked.
        unsafe {
            let sparse = p.b.as_sparse();
            let panel = match sparse {
                Some(_) => PanelBlock::NOTHING,
                None => p.b.panel(s, depth.start, depth.terms, column, columns, self.scratch),
            };
            let step = GemmStep {
                k: depth.terms,
                a: a.data,
                a_stride: a.stride,
                b: panel.data,
                b_stride: panel.stride,
                c: p.c.ptr().add(rows.first * p.c_stride + column),
                c_stride: p.c_stride,
                columns,
                accumulate: !depth.is_first,
                finish: depth.is_last.then(|| p.finish.shifted(rows.first, column)),
                ahead,
            };
            match sparse {
                Some(panels) => {
                    let panel = column / (S::LANES * S::TILE_VECTORS);
                    let place = SparseBlock { panel, block: depth.index };
                    multiply_sparse(s, panels, place, &step, rows.count);
                }
                None => block(s, &step, rows.count),
            }
        }
    }
}

/// A few rows of A, read where they lie, times some panels of a packed B.
struct ThinPart<'a, A> {
    product: &'a GemmProduct<A>,
    a: *const f32,
    a_stride: usize,
    column: usize,
    column_end: usize,
}

impl<A: RowSource> IsaKernel for ThinPart<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let p = self.product;
        let width = S::LANES * S::TILE_VECTORS;
        let mut column = self.column;
        while column < self.column_end {
            let columns = width.min(p.n - column);
            // SAFETY: the panel is inside B and C, as `multiply`'s callers have checked; a packed
            // B needs no scratch.
            unsafe {
                let sparse = p.b.as_sparse();
                let panel = match sparse {
                    Some(_) => PanelBlock::NOTHING,
                    None => p.b.panel(s, 0, p.k, column, columns, std::ptr::null_mut()),
                };
                let step = GemmStep {
                    k: p.k,
                    a: self.a,
                    a_stride: self.a_stride,
                    b: panel.data,
                    b_stride: panel.stride,
                    c: p.c.ptr().add(column),
                    c_stride: p.c_stride,
                    columns,
                    accumulate: false,
                    finish: Some(p.finish.shifted(0, column)),
                    ahead: PrefetchStretch::NOTHING,
                };
                match sparse {
                    Some(panels) => {
                        multiply_sparse_thin(s, panels, column / width, &step, p.m);
                    }
                    None => thin(s, &step, p.m),
                }
            }
            column += width;
        }
    }
}

/// Floats of scratch that [`multiply_panels`] needs for `m` rows of depth `k`.
pub(crate) fn panels_scratch(isa: Isa, m: usize, k: usize) -> usize {
    let together = near_depth(m).min(depth_blocks(k).count());
    if m <= THIN_ROWS { 0 } else { K_BLOCK * isa.tile_columns() + m * together * A_STRIDE }
}

/// Some columns of a product with a packed B and an A in memory, on this thread.
///
/// # Safety
/// The same as for [`multiply`]; the columns are whole panels; `scratch` has [`panels_scratch`] floats.
#[inline(always)]
pub(crate) unsafe fn multiply_panels<S: Simd>(
    s: S,
    product: &GemmProduct<DenseRows>,
    columns: std::ops::Range<usize>,
    scratch: *mut f32,
) {
    let column = columns.start;
    let column_end = columns.end;
    match product.a.direct() {
        Some((a, a_stride)) if product.m <= THIN_ROWS => {
            ThinPart { product, a, a_stride, column, column_end }.run(s);
        }
        _ => {
            let row = 0;
            let rows = product.m;
            let blocks = None;
            let placed = None;
            GemmPart { product, row, rows, column, column_end, scratch, blocks, placed }.run(s);
        }
    }
}

/// A product with a packed B, on this thread: few columns are not worth a copy of A. A sum is the same
/// however few rows the product has.
///
/// # Safety
/// The same as for [`multiply`].
#[inline(always)]
pub(crate) unsafe fn multiply_here<S: Simd>(s: S, product: &GemmProduct<DenseRows>) {
    let rows = product.m;
    let column_end = product.n;
    let placed = product.a.direct();
    // A packed B needs no scratch, nor does an A that is not copied.
    let scratch = std::ptr::null_mut();
    let blocks = None;
    GemmPart { product, row: 0, rows, column: 0, column_end, scratch, blocks, placed }.run(s);
}

/// Copies some rows of A into shared blocks.
struct SharedBlockFill<'a, A> {
    product: &'a GemmProduct<A>,
    row: usize,
    rows: usize,
    blocks: SharedPanelBlock,
}

impl<A: RowSource> IsaKernel for SharedBlockFill<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let p = self.product;
        for (i, block) in depth_blocks(p.k).enumerate() {
            let out = self.blocks.ptr().wrapping_add((i * p.m + self.row) * A_STRIDE);
            // SAFETY: the blocks have all rows of A, and this task alone writes these.
            unsafe { p.a.copy(s, self.row, self.rows, block.start, block.terms, out) };
        }
    }
}

/// How a product is cut into tasks. Every sum is the same whatever the cut, to the last bit: what
/// differs is what is read how often, and from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GemmBlocking {
    /// Blocking that follows from the lengths.
    #[default]
    Usual,
    /// Every thread multiplies its part of the rows with the whole of B.
    Rows,
    /// The rows of A are copied once by all threads, then each takes panels of B. Where B is not
    /// packed, or for a batch, this is [`GemmBlocking::Usual`].
    Shared,
    /// Chunks of at most so many rows, times groups of panels.
    Chunks(usize),
}

impl GemmBlocking {
    /// Choices with names; the first is the default.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("usual", Self::Usual),
        ("rows", Self::Rows),
        ("shared", Self::Shared),
        ("chunks-56", Self::Chunks(56)),
        ("chunks-112", Self::Chunks(112)),
        ("chunks-224", Self::Chunks(224)),
    ];

    /// Returns whether products of so many rows with a packed B are cut by it: a few rows are dots
    /// of panels, which threads share in one way.
    #[must_use]
    pub fn matters(rows: usize) -> bool {
        rows > THIN_ROWS
    }
}

/// Finishes some rows of C whose sums are there.
struct RowFinishing {
    c: *mut f32,
    c_stride: usize,
    rows: usize,
    n: usize,
    finish: TileFinish,
}

impl IsaKernel for RowFinishing {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = S::LANES * S::TILE_VECTORS;
        let mut column = 0;
        while column < self.n {
            let step = GemmStep {
                // A product of no terms, added to what is there.
                k: 0,
                accumulate: true,
                a: std::ptr::null(),
                a_stride: A_STRIDE,
                b: std::ptr::null(),
                b_stride: width,
                c: self.c.wrapping_add(column),
                c_stride: self.c_stride,
                columns: width.min(self.n - column),
                finish: Some(self.finish.shifted(0, column)),
                ahead: PrefetchStretch::NOTHING,
            };
            // SAFETY: the rows and columns are inside C, as `finish_rows` was told; nothing of A
            // and B is read.
            unsafe { block(s, &step, self.rows) };
            column += width;
        }
    }
}

/// Rows that are finished in one go.
const FINISHED_ROWS: usize = 32;

/// Applies an epilogue to sums that are in C.
///
/// # Safety
/// C has the size, the epilogue covers C, and nothing else uses C meanwhile.
pub(super) unsafe fn finish_rows(
    exec: KernelContext<'_>,
    size: MatrixSize,
    c: StridedMatrix<DisjointSlice<f32>>,
    finish: TileFinish,
) {
    let tasks = size.rows.div_ceil(FINISHED_ROWS);
    let part = |task: usize| {
        let row = task * FINISHED_ROWS;
        exec.isa.run(RowFinishing {
            // The last row ends with its elements, so this address is inside C.
            c: c.data.ptr().wrapping_add(row * c.stride),
            c_stride: c.stride,
            rows: FINISHED_ROWS.min(size.rows - row),
            n: size.columns,
            finish: finish.shifted(row, 0),
        });
    };
    if size.rows.saturating_mul(size.columns) < SERIAL_TERMS {
        (0..tasks).for_each(part);
    } else {
        exec.pool.run(tasks, part);
    }
}

/// The tasks of a product: pieces of its rows times groups of its panels.
struct GemmCut {
    rows: WorkPieces,
    groups: usize,
}

impl GemmCut {
    fn of(size: ProductSize, most: usize, width: usize, batch: usize, threads: usize) -> Self {
        let chunks = size.m.div_ceil(most);
        // Many products even out by themselves.
        let alone = batch * chunks < 2 * threads;
        let threads = if batch >= 4 * threads { 1 } else { threads };
        let near = size.n.saturating_mul(size.k).saturating_mul(size_of::<f32>()) <= NEAR_BYTES;
        let fewest = if near { FEW_NEAR_ROWS } else { FEW_CHUNK_ROWS };
        let rows = WorkPieces { len: size.m, threads, most, fewest: fewest.min(most), unit: 6 };
        // Few rows are not cut small enough for all threads, but columns are.
        let tasks = batch * rows.count();
        let groups = if alone && threads > 1 { (4 * threads).div_ceil(tasks) } else { 1 };
        Self { rows, groups: groups.clamp(1, size.n.div_ceil(width)) }
    }

    /// A part of the rows for each thread, in pieces that stay near.
    fn rows(m: usize, threads: usize) -> Self {
        let fewest = 2 * FEW_NEAR_ROWS;
        let rows = WorkPieces { len: m, threads, most: CHUNK_ROWS, fewest, unit: 6 };
        Self { rows, groups: 1 }
    }
}

/// Computes products of the same size, each written once.
///
/// # Safety
/// For every product: A has `m` rows of `k`, B is `k` x `n`, C has `m` rows of `n`, `c_stride`
/// apart, the epilogue covers C, and nothing else uses C meanwhile. B is packed for `exec.isa`.
pub(crate) unsafe fn multiply<A: RowSource>(
    exec: KernelContext<'_>,
    batch: usize,
    product: impl Fn(usize) -> GemmProduct<A> + Sync,
) {
    // SAFETY: as this function's.
    unsafe { multiply_cut(exec, batch, GemmBlocking::Usual, product) };
}

/// Multiplies like [`multiply`], cut into tasks by `blocking`.
///
/// # Safety
/// The same as for [`multiply`].
pub(crate) unsafe fn multiply_cut<A: RowSource>(
    exec: KernelContext<'_>,
    batch: usize,
    blocking: GemmBlocking,
    product: impl Fn(usize) -> GemmProduct<A> + Sync,
) {
    if batch == 0 {
        return;
    }
    let first = product(0);
    let size = ProductSize { m: first.m, k: first.k, n: first.n };
    let ProductSize { m, k, n } = size;
    if m == 0 || n == 0 {
        return;
    }
    let width = exec.isa.tile_columns();
    let serial = m.saturating_mul(n).saturating_mul(k).saturating_mul(batch) < SERIAL_TERMS;
    let threads = if serial { 1 } else { exec.pool.threads() };
    let panels = n.div_ceil(width);
    let columns = |group: usize, groups: usize| {
        (panels * group / groups * width, (panels * (group + 1) / groups * width).min(n))
    };
    let run = |tasks: usize, body: &(dyn Fn(usize) + Sync)| {
        if serial { (0..tasks).for_each(body) } else { exec.pool.run(tasks, body) }
    };
    if m <= THIN_ROWS && first.b.is_packed() && first.a.direct().is_some() {
        let groups = if threads == 1 { 1 } else { panels.min(threads * 4) };
        run(batch * groups, &|task| {
            let product = product(task / groups);
            let (column, column_end) = columns(task % groups, groups);
            if let Some((a, a_stride)) = product.a.direct() {
                let product = &product;
                exec.isa.run(ThinPart { product, a, a_stride, column, column_end });
            }
        });
        return;
    }
    // With B at hand in every second-level cache, each thread copies what it multiplies.
    let near = n.saturating_mul(k).saturating_mul(size_of::<f32>()) <= NEAR_BYTES;
    let by_rows = batch == 1 && near && m <= CHUNK_ROWS && m >= 2 * FEW_NEAR_ROWS * threads;
    let packed = first.b.is_packed();
    let sharing = match blocking {
        GemmBlocking::Usual => threads > 1 && m <= CHUNK_ROWS && panels >= threads && !by_rows,
        GemmBlocking::Shared => true,
        GemmBlocking::Rows | GemmBlocking::Chunks(_) => false,
    };
    if sharing && batch == 1 && packed {
        // SAFETY: as this function's.
        unsafe { multiply_shared(exec, &first, panels, width) };
        return;
    }
    let cut = match blocking {
        GemmBlocking::Rows => GemmCut::rows(m, threads),
        GemmBlocking::Chunks(rows) => GemmCut::of(size, rows.max(1), width, batch, threads),
        _ if by_rows && packed => GemmCut::rows(m, threads),
        _ => GemmCut::of(size, chunk_rows(k), width, batch, threads),
    };
    let per_product = cut.rows.count() * cut.groups;
    run(batch * per_product, &|task| {
        let product = product(task / per_product);
        let chunk = task % per_product / cut.groups;
        let group = task % cut.groups;
        let piece = cut.rows.get(chunk);
        let row = piece.start;
        let rows = piece.len();
        if rows == 0 {
            return;
        }
        let (column, column_end) = columns(group, cut.groups);
        let together = near_depth(rows).min(depth_blocks(k).count());
        with_scratch(K_BLOCK * width + rows * together * A_STRIDE, |scratch| {
            let scratch = scratch.as_mut_ptr();
            let product = &product;
            let blocks = None;
            let placed = None;
            exec.isa.run(GemmPart {
                product,
                row,
                rows,
                column,
                column_end,
                scratch,
                blocks,
                placed,
            });
        });
    });
}

/// A product with few rows: A is copied into blocks once, by all threads, then each thread takes
/// panels of B, so that B is read once in all.
///
/// # Safety
/// The same as for [`multiply`].
unsafe fn multiply_shared<A: RowSource>(
    exec: KernelContext<'_>,
    product: &GemmProduct<A>,
    panels: usize,
    width: usize,
) {
    let m = product.m;
    let n = product.n;
    let threads = exec.pool.threads();
    let depth = depth_blocks(product.k).count();
    with_scratch(depth * m * A_STRIDE, |blocks| {
        let blocks = DisjointSlice::new(blocks);
        let parts = threads.min(m);
        exec.pool.run(parts, |t| {
            let row = m * t / parts;
            let end = m * (t + 1) / parts;
            exec.isa.run(SharedBlockFill { product, row, rows: end - row, blocks });
        });
        let groups = WorkPieces { len: panels, threads, most: panels, fewest: 1, unit: 1 };
        groups.run(exec.pool, |group| {
            let column = group.start * width;
            let column_end = (group.end * width).min(n);
            exec.isa.run(GemmPart {
                product,
                row: 0,
                rows: m,
                column,
                column_end,
                scratch: std::ptr::null_mut(),
                blocks: Some(blocks),
                placed: None,
            });
        });
    });
}
