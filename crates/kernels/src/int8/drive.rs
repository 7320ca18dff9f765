//! How an integer product is cut into tasks, and how rows of A come to a tile.

use super::lists::listed_block;
use super::micro::{Int8Step, block};
use super::pack::FLIP;
use super::product::{ByteRows, Int8Product};
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::KernelContext;
use crate::isa::{DotInstructions, DotIsa, DotKernel, LeftTerms, Simd};
use crate::memory::with_scratch;

/// Bytes of A that a task works on at a time where it has one panel of B, so that they stay in the
/// first-level cache.
const NEAR_BYTES: usize = 24 * 1024;

/// The same where it has several: A stays in the second-level cache, and so does each panel while all
/// these rows pass, which then comes from afar once for all of them.
const PANELS_BYTES: usize = 384 * 1024;

/// Rows of A at a time: at least these, at most those.
const ROWS_AT_ONCE: (usize, usize) = (12, 384);

/// Rows that are not cut into chunks where there are panels enough.
const FEW_ROWS: usize = 256;

/// Rows of a chunk, at least: whole tiles of either height.
const CHUNK_ROWS: usize = 24;

/// Sizes of a task's copy of some rows.
#[derive(Clone, Copy)]
struct Int8CopySizes {
    /// Rows at a time.
    rows: usize,
    /// Bytes between rows as copied from A.
    raw: usize,
    /// Bytes between rows as the tile reads them.
    ready: usize,
}

impl Int8CopySizes {
    fn of(k: usize, rows: usize, several: bool) -> Self {
        let (least, most) = ROWS_AT_ONCE;
        let bytes = if several { PANELS_BYTES } else { NEAR_BYTES };
        let rows = (bytes / k.max(1)).clamp(least, most).min(rows.max(1));
        // Room to read a last vector whole; two bytes for each term where they are widened. A stride
        // of many cache lines would put all rows into the same sets.
        let spread = |bytes: usize| bytes.next_multiple_of(64) | 64;
        Self { rows, raw: spread(k + 64), ready: spread(2 * k + 64) }
    }

    /// Bytes for copies, and for a sum of each row.
    fn bytes(self) -> usize {
        self.rows * (self.raw + self.ready + size_of::<i32>()) + 64
    }
}

/// Rows `row..row + rows` times the panels of columns `column..column_end`.
struct Int8ProductPart<'a, A> {
    job: &'a Int8Product<A>,
    row: usize,
    rows: usize,
    column: usize,
    column_end: usize,
    scratch: *mut u8,
    room: Int8CopySizes,
}

impl<A: ByteRows> DotKernel for Int8ProductPart<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let job = self.job;
        let room = self.room;
        let width = D::S::LANES * D::TILE_VECTORS;
        let raw = self.scratch;
        let ready = raw.wrapping_add(room.rows * room.raw);
        let sums = ready.wrapping_add(room.rows * room.ready).cast::<i32>();
        let as_it_is = match D::FORM {
            LeftTerms::Unsigned => !job.signed,
            LeftTerms::Signed => job.signed,
            LeftTerms::Wide => false,
        };
        let direct = job.a.direct().filter(|_| as_it_is && job.k.is_multiple_of(D::GROUP));
        let slices = self.rows.div_ceil(room.rows);
        for slice in 0..slices {
            let row = self.row + self.rows * slice / slices;
            let rows = self.row + self.rows * (slice + 1) / slices - row;
            let (a, a_stride) = match direct {
                Some((a, stride)) => (a.wrapping_add(row * stride), stride),
                // SAFETY: the scratch has room for these rows.
                None => unsafe {
                    job.a.copy(row, rows, raw, room.raw);
                    make_ready::<D>(job, rows, room, raw, ready)
                },
            };
            if !job.columns.zeros.is_null() {
                // SAFETY: the rows are there, and the scratch has a sum for each.
                unsafe { sum_rows::<D>(job.k, rows, a, a_stride, sums) };
            }
            let mut column = self.column;
            while column < self.column_end {
                let step = Int8Step {
                    groups: job.k.div_ceil(D::GROUP),
                    a,
                    a_stride,
                    b: job.b.data.wrapping_add(column * job.b.groups * D::GROUP),
                    columns: job.columns.shifted(column),
                    row_sums: sums,
                    out: job.out.at(row * job.c_stride + column),
                    c_stride: job.c_stride,
                    width: width.min(job.n - column),
                };
                // SAFETY: the panel and the rows are inside the product.
                unsafe {
                    match job.b.lists {
                        Some(lists) => listed_block(d, &step, lists, column / D::S::LANES, rows),
                        None => block(d, &step, rows),
                    }
                }
                column += width;
            }
        }
    }
}

/// Makes copied rows what the instructions take, and gives them and their stride.
///
/// # Safety
/// Both buffers have room for the rows.
#[inline(always)]
unsafe fn make_ready<D: DotInstructions>(
    job: &Int8Product<impl ByteRows>,
    rows: usize,
    room: Int8CopySizes,
    raw: *mut u8,
    ready: *mut u8,
) -> (*const u8, usize) {
    let padded = job.k.next_multiple_of(D::GROUP);
    let flip = match (D::FORM, job.signed) {
        (LeftTerms::Unsigned, true) | (LeftTerms::Signed, false) => FLIP,
        _ => 0,
    };
    for r in 0..rows {
        // SAFETY: the caller vouches for the buffers; they are more than a group longer than a row.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(raw.add(r * room.raw), padded);
            bytes[job.k..].fill(0);
            if flip != 0 {
                bytes.iter_mut().for_each(|byte| *byte ^= flip);
            }
            if D::FORM == LeftTerms::Wide {
                let wide = ready.add(r * room.ready).cast::<[u8; 2]>();
                let wide = std::slice::from_raw_parts_mut(wide, padded);
                for (wide, &byte) in wide.iter_mut().zip(&*bytes) {
                    let value =
                        if job.signed { i16::from(byte.cast_signed()) } else { i16::from(byte) };
                    *wide = value.to_le_bytes();
                }
            }
        }
    }
    if D::FORM == LeftTerms::Wide { (ready, room.ready) } else { (raw, room.raw) }
}

/// # Safety
/// The rows have `k` terms each, and `sums` has room for one for each row.
#[inline(always)]
unsafe fn sum_rows<D: DotInstructions>(
    k: usize,
    rows: usize,
    a: *const u8,
    a_stride: usize,
    sums: *mut i32,
) {
    for r in 0..rows {
        // SAFETY: the caller vouches for the rows and the sums.
        unsafe {
            let row = a.add(r * a_stride);
            let sum = match D::FORM {
                LeftTerms::Unsigned => {
                    let row = std::slice::from_raw_parts(row, k);
                    row.iter().map(|&term| i32::from(term)).sum()
                }
                LeftTerms::Signed => {
                    let row = std::slice::from_raw_parts(row.cast::<i8>(), k);
                    row.iter().map(|&term| i32::from(term)).sum()
                }
                LeftTerms::Wide => {
                    let row = std::slice::from_raw_parts(row.cast::<[u8; 2]>(), k);
                    row.iter().map(|&term| i32::from(i16::from_le_bytes(term))).sum::<i32>()
                }
            };
            sums.add(r).write_unaligned(sum);
        }
    }
}

/// Computes a product.
///
/// # Safety
/// A has `m` rows of `k`, B and the columns have `n` columns, C has `m` rows of `n`, `c_stride`
/// apart, and nothing else uses C meanwhile. B is packed for `dot`.
pub(super) unsafe fn multiply<A: ByteRows>(
    exec: KernelContext<'_>,
    dot: DotIsa,
    job: &Int8Product<A>,
) {
    let m = job.m;
    let n = job.n;
    if m == 0 || n == 0 {
        return;
    }
    let width = dot.run(TileWidthQuery);
    let panels = n.div_ceil(width);
    let threads = exec.pool.threads();
    let serial = job.is_serial(threads);
    // Two tasks a thread even out threads that other programs slow down. Few rows are not cut, so
    // that tiles are whole and B is read once.
    let wanted = if serial { 1 } else { threads * 2 };
    #[cfg(target_arch = "x86_64")]
    if let DotIsa::Amx(amx, vectors) = dot
        && m >= tiles::MIN_ROWS
    {
        // SAFETY: as this function's.
        unsafe { tiles::multiply(exec, amx, vectors, job, wanted) };
        return;
    }
    let chunks = if panels >= wanted && m <= FEW_ROWS { 1 } else { (m / CHUNK_ROWS).max(1) };
    let chunks = if chunks > wanted { chunks.min(wanted * 2) } else { chunks };
    let groups = wanted.div_ceil(chunks).min(panels);
    let task = |task: usize| {
        let chunk = task / groups;
        let group = task % groups;
        let row = m * chunk / chunks;
        let row_end = m * (chunk + 1) / chunks;
        let column = panels * group / groups * width;
        let column_end = (panels * (group + 1) / groups * width).min(n);
        let room = Int8CopySizes::of(job.k, row_end - row, column_end - column > width);
        with_scratch(room.bytes().div_ceil(size_of::<f32>()), |scratch| {
            let scratch = scratch.as_mut_ptr().cast();
            let rows = row_end - row;
            dot.run(Int8ProductPart { job, row, rows, column, column_end, scratch, room });
        });
    };
    if serial { (0..chunks * groups).for_each(task) } else { exec.pool.run(chunks * groups, task) }
}

/// Asks for the tile width.
struct TileWidthQuery;

impl DotKernel for TileWidthQuery {
    type Output = usize;
    #[inline(always)]
    fn run<D: DotInstructions>(self, _: D) -> usize {
        D::S::LANES * D::TILE_VECTORS
    }
}
