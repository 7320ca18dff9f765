//! Convolutions of images with few channels, such as the first layer of a model: the register tile
//! reads the pixels where they lie.
//!
//! Neighbouring output pixels see windows a fixed, small distance apart, so a tile needs no rows of
//! its own: a few padded rows of the image, at hand in the first-level cache, serve all.

use super::ConvParams;
use super::rows::ConvWindow;
use crate::KernelContext;
use crate::activation::ActivateRows;
use crate::gemm::{GemmStep, PackedB, PrefetchStretch, TileFinish, copy_run, write_tile, zero_run};
use crate::isa::{IsaKernel, Simd};
use crate::memory::{DisjointSlice, with_scratch};

/// Output rows that share padded image rows.
const BAND: usize = 4;

/// Returns whether the register tile can read such images in place.
pub(super) fn fits(p: &ConvParams) -> bool {
    let flat = p.kernel[0] == 1 && p.stride[0] == 1 && p.pads_begin[0] == 0 && p.pads_end[0] == 0;
    let step = p.stride[2].saturating_mul(p.in_channels);
    flat && p.groups == 1 && p.dilation[2] == 1 && matches!(step, 1 | 2 | 3 | 4 | 6 | 8)
}

/// Computes the whole convolution.
///
/// # Safety
/// `x`, `y` and the finish have the sizes of the window and `batch`; nothing else uses `y`
/// meanwhile; the parameters are such as [`fits`] takes, and `weights` are packed for `exec.isa`.
pub(super) unsafe fn run(
    exec: KernelContext<'_>,
    window: &ConvWindow,
    x: &[f32],
    batch: usize,
    weights: &PackedB,
    y: DisjointSlice<f32>,
    finish: TileFinish,
) {
    let p = &window.params;
    let [depth, height, width] = window.out;
    let work = width * p.taps() * p.in_channels * p.out_channels;
    let x = DisjointSlice::from_ptr(x.as_ptr().cast_mut());
    exec.pool.run_ranges(batch * depth * height, 65_536usize.div_ceil(work.max(1)), |range| {
        with_scratch(scratch_len(window), |scratch| {
            let scratch = scratch.as_mut_ptr();
            let x = x.ptr().cast_const();
            exec.isa.run(DirectConvRows { window, x, weights, y, finish, range, scratch });
        });
    });
}

/// Length and number of padded image rows.
fn band(window: &ConvWindow) -> (usize, usize) {
    let p = &window.params;
    let line = ((window.out[2] - 1) * p.stride[2] + p.kernel[2]) * p.in_channels;
    (line, (BAND - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1)
}

/// Floats of scratch that [`DirectConvRows`] needs.
pub(super) fn scratch_len(window: &ConvWindow) -> usize {
    let (line, lines) = band(window);
    line * lines
}

/// Some output rows.
pub(super) struct DirectConvRows<'a> {
    pub(super) window: &'a ConvWindow,
    pub(super) x: *const f32,
    pub(super) weights: &'a PackedB,
    pub(super) y: DisjointSlice<f32>,
    pub(super) finish: TileFinish,
    /// Numbers of the rows, image after image.
    pub(super) range: std::ops::Range<usize>,
    pub(super) scratch: *mut f32,
}

impl IsaKernel for DirectConvRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let height = self.window.out[1];
        let mut row = self.range.start;
        while row < self.range.end {
            let count = BAND.min(self.range.end - row).min(height - row % height);
            // SAFETY: the scratch has a band of rows.
            unsafe { self.fill(s, row, count) };
            self.rows(s, row, count);
            row += count;
        }
    }
}

impl DirectConvRows<'_> {
    /// Copies the image rows that `count` output rows see, with their padding.
    ///
    /// # Safety
    /// The output rows are of one image, and at most [`BAND`].
    #[inline(always)]
    unsafe fn fill<S: Simd>(&self, s: S, row: usize, count: usize) {
        let w = self.window;
        let p = &w.params;
        let (line, _) = band(w);
        let [_, height, width] = w.size;
        let image = row / w.out[1];
        let top = row % w.out[1] * p.stride[1];
        let lines = (count - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
        let left = (p.pads_begin[2] * p.in_channels).min(line);
        let inside = (width * p.in_channels).min(line - left);
        for i in 0..lines {
            let out = self.scratch.wrapping_add(i * line);
            let h = (top + i).wrapping_sub(p.pads_begin[1]);
            // SAFETY: the scratch has the line, and a row inside the image has `inside` values.
            unsafe {
                if h < height {
                    let from = (image * height + h) * width * p.in_channels;
                    zero_run(s, left, out);
                    copy_run(s, self.x.add(from), inside, out.add(left));
                    zero_run(s, line - left - inside, out.add(left + inside));
                } else {
                    zero_run(s, line, out);
                }
            }
        }
    }

    /// Output rows whose image rows are in the scratch.
    #[inline(always)]
    fn rows<S: Simd>(&self, s: S, row: usize, count: usize) {
        let w = self.window;
        let p = &w.params;
        let panel_width = S::LANES * S::TILE_VECTORS;
        let width = w.out[2];
        let channels = p.out_channels;
        let (line, _) = band(w);
        let mut column = 0;
        while column < channels {
            let columns = panel_width.min(channels - column);
            let b = self.weights.as_source();
            let k = self.weights.k();
            // SAFETY: a panel of the weights; a packed B needs no scratch.
            let panel = unsafe { b.panel(s, 0, k, column, columns, std::ptr::null_mut()) };
            for i in 0..count {
                let pixel = (row + i) * width;
                let step = GemmStep {
                    k: p.kernel[2] * p.in_channels,
                    a: self.scratch.wrapping_add(i * p.stride[1] * line).cast_const(),
                    a_stride: line * p.dilation[1],
                    b: panel.data,
                    b_stride: panel.stride,
                    c: self.y.at(pixel * channels + column).ptr(),
                    c_stride: channels,
                    columns,
                    accumulate: false,
                    ahead: PrefetchStretch::NOTHING,
                    finish: Some(self.finish.shifted(pixel, column)),
                };
                self.row(s, &step);
            }
            column += panel_width;
        }
        if let Some(activation) = self.finish.late {
            let columns = count * width * channels;
            let data = self.y.at(row * width * channels).ptr();
            // SAFETY: this task alone writes these rows.
            unsafe {
                ActivateRows { activation, data, rows: 1, columns, stride: columns }.run(s);
            }
        }
    }

    /// The columns of a panel of one output row; the last tile may repeat pixels.
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, step: &GemmStep) {
        let width = self.window.out[2];
        let lines = self.window.params.kernel[1];
        let distance = self.window.params.stride[2] * self.window.params.in_channels;
        let rows = S::tile_rows(step.columns.div_ceil(S::LANES));
        let rows = if width >= rows { rows } else { 1 };
        let mut pixel = 0;
        while pixel < width {
            let at = pixel.min(width - rows);
            let part = GemmStep {
                a: step.a.wrapping_add(at * distance),
                c: step.c.wrapping_add(at * step.c_stride),
                finish: step.finish.map(|finish| finish.shifted(at, 0)),
                ..*step
            };
            // SAFETY: the band, y and the finish have these pixels.
            unsafe { tile(s, &part, rows, lines, distance) };
            pixel += rows;
        }
    }
}

/// A tile of `R` pixels, `D` values apart, and `V` vectors. Of the step, `k` is the length of a
/// window row, and `a_stride` the distance to the next one.
struct DirectConvTile<'a, const R: usize, const V: usize, const D: usize>(&'a GemmStep, usize);

impl<const R: usize, const V: usize, const D: usize> IsaKernel for DirectConvTile<'_, R, V, D> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self(t, lines) = self;
        let mut acc = [[s.splat(0.0); V]; R];
        let mut b = t.b;
        for line in 0..lines {
            let mut a = t.a.wrapping_add(line * t.a_stride);
            for _ in 0..t.k {
                // SAFETY: a line has the windows of R pixels; B has a row for each value.
                unsafe {
                    let mut row = [s.splat(0.0); V];
                    for (v, x) in row.iter_mut().enumerate() {
                        *x = s.load(b.add(v * S::LANES));
                    }
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let x = s.splat(*a.add(r * D));
                        for (acc, y) in acc.iter_mut().zip(row) {
                            *acc = s.fma(x, y, *acc);
                        }
                    }
                    a = a.add(1);
                    b = b.add(t.b_stride);
                }
            }
        }
        // SAFETY: the step's C, bias and residual cover R rows of `columns`.
        unsafe { write_tile(s, t, &mut acc) };
    }
}

macro_rules! by_distance {
    ($s:ident, $step:ident, $lines:ident, $d:ident, $r:literal, $v:literal: $($distance:literal)*) => {
        match $d {
            $($distance => $s.enter(DirectConvTile::<$r, $v, $distance>($step, $lines)),)*
            _ => {}
        }
    };
}

macro_rules! by_rows {
    ($s:ident, $step:ident, $rows:ident, $lines:ident, $d:ident, $v:literal: $($r:literal)*) => {
        match $rows {
            $($r if const { $r == 1 || $r == S::TILE_ROWS_BY_VECTORS[$v - 1] } => {
                by_distance!($s, $step, $lines, $d, $r, $v: 1 2 3 4 6 8);
            })*
            _ => {}
        }
    };
}

/// # Safety
/// The step's pointers are valid for the pixels.
#[inline(always)]
unsafe fn tile<S: Simd>(s: S, step: &GemmStep, rows: usize, lines: usize, d: usize) {
    match step.columns.div_ceil(S::LANES) {
        1 => by_rows!(s, step, rows, lines, d, 1: 1 4 6 12 14),
        2 => by_rows!(s, step, rows, lines, d, 2: 1 4 6 12 14),
        3 if const { S::TILE_VECTORS >= 3 } => by_rows!(s, step, rows, lines, d, 3: 1 6 8),
        4 if const { S::TILE_VECTORS >= 4 } => by_rows!(s, step, rows, lines, d, 4: 1 6),
        _ => {}
    }
}
