//! Convolutions of BF16 by tiles that are read where the image lies.

use super::Bf16Product;
use super::pack::{PANEL, STEP_BYTES};
use super::write::ResultPart;
use crate::KernelContext;
use crate::isa::{Amx, Bf16Instructions, Bf16Isa, Bf16Kernel, TileTerms};
use crate::lines::{LineConv, whole_rows_first};
use crate::memory::with_scratch;
use crate::tiles::{PendingSums, RowTiles, SUMS_BYTES, TilesTimesPanel};
use std::ops::Range;

/// Some tiles times some columns.
struct Bf16LinePart<'a, 'b> {
    job: &'a Bf16Product<LineConv<'b>>,
    amx: Amx,
    tiles: Range<usize>,
    steps: &'a [usize],
    columns: Range<usize>,
    /// Room for sums and copies.
    room: *mut u8,
}

impl Bf16LinePart<'_, '_> {
    fn last_step(&self) -> usize {
        self.steps.last().copied().unwrap_or(0)
    }

    fn sums_bytes(&self) -> usize {
        self.tiles.len().div_ceil(2) * SUMS_BYTES
    }

    /// Runs on vectors and tiles.
    fn start(self, isa: Bf16Isa) {
        let bytes = self.sums_bytes() + self.job.a.copied(&self.tiles, self.last_step());
        with_scratch(bytes.div_ceil(size_of::<f32>()), |room| {
            isa.run(Self { room: room.as_mut_ptr().cast(), ..self });
        });
    }

    /// Some tiles times the panel from a column on.
    #[inline(always)]
    fn panel<'t>(
        &self,
        a: RowTiles<'t>,
        column: usize,
        far: bool,
    ) -> TilesTimesPanel<'t, ResultPart> {
        let job = self.job;
        let panel = column / PANEL * self.steps.len() * STEP_BYTES;
        TilesTimesPanel {
            amx: self.amx,
            terms: TileTerms::Bf16,
            a,
            b: job.b.data.wrapping_add(panel),
            far,
            sums: self.room,
            place: ResultPart {
                c: job.c.at(column),
                c_stride: job.c_stride,
                columns: PANEL.min(job.n - column),
                accumulate: false,
                far: job.is_far(),
                finish: Some(job.finish.shifted(0, column)),
                beside: job.beside.map(|beside| beside.shifted(0, column)),
            },
        }
    }
}

impl Bf16Kernel for Bf16LinePart<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, d: D) {
        let lines = &self.job.a;
        let s = d.simd();
        let copies = self.room.wrapping_add(self.sums_bytes());
        // SAFETY: the caller of the convolution holds the image; the room is as large as asked.
        let list = unsafe { lines.list(self.tiles.clone(), self.last_step(), copies) };
        let a = RowTiles { list: &list, steps: self.steps, stride: lines.stride() };
        let columns = self.columns.clone().step_by(PANEL);
        let panels_bytes = self.columns.len().div_ceil(PANEL) * self.steps.len() * STEP_BYTES;
        let mut pending: Option<PendingSums<ResultPart>> = None;
        self.amx.begin(lines.tile_rows());
        // SAFETY: the tiles make rows of the product, the columns are inside it.
        unsafe {
            if whole_rows_first(self.steps.len(), panels_bytes) {
                // Whole rows of C after each other: with so few terms C is most of what moves.
                for list in a.list.chunks(2) {
                    for column in columns.clone() {
                        self.panel(RowTiles { list, ..a }, column, false).run(s, &mut pending);
                    }
                }
            } else {
                for column in columns {
                    self.panel(a, column, true).run(s, &mut pending);
                }
            }
            if let Some(mut pending) = pending {
                pending.advance(s, usize::MAX);
            }
        }
        self.amx.end();
    }
}

/// Computes a convolution.
///
/// # Safety
/// The same as for [`super::multiply`]; B has the terms of the runs, and the image has the size of the lines.
pub(super) unsafe fn multiply(
    exec: KernelContext<'_>,
    isa: Bf16Isa,
    amx: Amx,
    job: &Bf16Product<LineConv<'_>>,
) {
    let steps = job.a.steps();
    job.a.share(exec, job.is_serial(exec.pool.threads()), job.n, |tiles, columns| {
        let room = std::ptr::null_mut();
        Bf16LinePart { job, amx, tiles, steps: &steps, columns, room }.start(isa);
    });
}
