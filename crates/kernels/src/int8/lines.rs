//! Convolutions of bytes by tiles that are read where the image lies.

use super::product::Int8Product;
use super::tiles::AmxBlock;
use crate::KernelContext;
use crate::isa::{Amx, DotInstructions, DotKernel, Vnni};
use crate::lines::LineConv;
use crate::memory::with_scratch;
use crate::tiles::{RowTiles, SUMS_BYTES};
use std::ops::Range;

/// Some tiles times some columns.
struct Int8LinePart<'a, 'b> {
    job: &'a Int8Product<LineConv<'b>>,
    amx: Amx,
    vectors: Vnni,
    tiles: Range<usize>,
    steps: &'a [usize],
    columns: Range<usize>,
    /// Room for sums and copies.
    room: *mut u8,
}

impl Int8LinePart<'_, '_> {
    fn last_step(&self) -> usize {
        self.steps.last().copied().unwrap_or(0)
    }

    fn sums_bytes(&self) -> usize {
        self.tiles.len().div_ceil(2) * SUMS_BYTES
    }

    /// Runs on vectors and tiles.
    fn start(self) {
        let bytes = self.sums_bytes() + self.job.a.copied(&self.tiles, self.last_step());
        with_scratch(bytes.div_ceil(size_of::<f32>()), |room| {
            self.vectors.enter(Self { room: room.as_mut_ptr().cast(), ..self });
        });
    }
}

impl DotKernel for Int8LinePart<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, _: D) {
        let job = self.job;
        let lines = &self.job.a;
        let tiles = self.tiles.clone();
        let copies = self.room.wrapping_add(self.sums_bytes());
        // SAFETY: the caller of the convolution holds the image; the room is as large as asked.
        let list = unsafe { lines.list(tiles, self.last_step(), copies) };
        let a = RowTiles { list: &list, steps: self.steps, stride: lines.stride() };
        let row = 0;
        let row_sums = std::ptr::null();
        let columns = self.columns;
        let amx = self.amx;
        let vectors = self.vectors;
        let sums = self.room;
        let block = AmxBlock { amx, vectors, a, row, row_sums, sums, columns };
        self.amx.begin(lines.tile_rows());
        // SAFETY: the tiles make rows of the product, the columns are inside it.
        unsafe { block.multiply(job) };
        self.amx.end();
    }
}

/// Computes a convolution.
///
/// # Safety
/// The same as for [`super::drive::multiply`]; B is packed for VNNI with the terms of the runs, its columns
/// have no zero points, and the image has the size of the lines.
pub(super) unsafe fn multiply(
    exec: KernelContext<'_>,
    amx: Amx,
    vectors: Vnni,
    job: &Int8Product<LineConv<'_>>,
) {
    let steps = job.a.steps();
    job.a.share(exec, job.is_serial(exec.pool.threads()), job.n, |tiles, columns| {
        let room = std::ptr::null_mut();
        Int8LinePart { job, amx, vectors, tiles, steps: &steps, columns, room }.start();
    });
}
