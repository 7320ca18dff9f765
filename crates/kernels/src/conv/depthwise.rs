//! Depthwise convolution: every channel by itself, vectors over channels.

use super::rows::ConvWindow;
use crate::KernelContext;
use crate::cell::RealCell;
use crate::gemm::TileFinish;
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Bytes of image rows that a block of channels may span, so that the rows of a window stay in
/// the second-level cache while the window moves.
const WINDOW_BYTES: usize = 512 * 1024;

/// Computes the whole convolution; a task is a run of output rows.
///
/// # Safety
/// `x`, `y` and the finish have the sizes of the window and `batch`; `weights` has one value per
/// tap and channel; nothing else uses `y` meanwhile.
pub(super) unsafe fn run<T: RealCell>(
    exec: KernelContext<'_>,
    window: &ConvWindow,
    x: &[T],
    batch: usize,
    weights: &[f32],
    y: DisjointSlice<T>,
    finish: TileFinish,
) {
    let [od, oh, ow] = window.out;
    let work = ow * window.params.in_channels * window.params.taps();
    exec.pool.run_ranges(batch * od * oh, 65_536usize.div_ceil(work.max(1)), |rows| {
        let x = x.as_ptr();
        let weights = weights.as_ptr();
        exec.isa.run(DepthwiseRows { window, x, kept: usize::MAX, weights, rows, y, finish });
    });
}

/// Some output rows.
pub(super) struct DepthwiseRows<'a, T> {
    pub(super) window: &'a ConvWindow,
    pub(super) x: *const T,
    /// Number of image rows at `x`: row `r` lies where row `r % kept` would.
    pub(super) kept: usize,
    pub(super) weights: *const f32,
    /// Numbers of the rows, image after image.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) y: DisjointSlice<T>,
    pub(super) finish: TileFinish,
}

/// Where a tap reads, for channel 0 of the first of the pixels that share it.
struct DepthwiseTap<T> {
    x: *const T,
    weight: *const f32,
}

impl<T: RealCell> IsaKernel for DepthwiseRows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = self.window;
        let channels = w.params.in_channels;
        let row_bytes = w.params.kernel[1] * w.size[2] * size_of::<f32>();
        let block = (WINDOW_BYTES / row_bytes.max(1)).next_multiple_of(64).max(64);
        let mut taps = Vec::with_capacity(w.params.taps());
        for first in (0..channels).step_by(block) {
            let range = (first, channels.min(first + block));
            for row in self.rows.clone() {
                self.row(s, row, range, &mut taps);
            }
        }
        if let Some(activation) = self.finish.late {
            let columns = channels * w.out[2];
            let data = self.y.at(self.rows.start * columns).ptr();
            // SAFETY: this task alone writes these rows.
            unsafe { T::activate(s, activation, data, self.rows.len() * columns) };
        }
    }
}

/// The taps of dimension `d` that output coordinate `o` has inside the image.
#[inline(always)]
fn inside(w: &ConvWindow, d: usize, o: usize) -> std::ops::Range<usize> {
    let p = &w.params;
    let start = o * p.stride[d];
    let first = p.pads_begin[d].saturating_sub(start).div_ceil(p.dilation[d]);
    let room = (w.size[d] + p.pads_begin[d]).saturating_sub(start);
    let end = room.div_ceil(p.dilation[d]).min(p.kernel[d]);
    first.min(end)..end
}

impl<T: RealCell> DepthwiseRows<'_, T> {
    /// A row of the image, from channel 0 of its first column on.
    #[inline(always)]
    fn image_row(&self, batch: usize, depth: usize, height: usize) -> *const T {
        let w = self.window;
        let row = (batch * w.size[0] + depth) * w.size[1] + height;
        self.x.wrapping_add(row % self.kept * w.size[2] * w.params.in_channels)
    }

    /// One output row, for the channels of `range`.
    #[inline(always)]
    fn row<S: Simd>(
        &self,
        s: S,
        row: usize,
        range: (usize, usize),
        taps: &mut Vec<DepthwiseTap<T>>,
    ) {
        let w = self.window;
        let p = &w.params;
        if p.dilation[2] == 1 && p.kernel[2] <= p.pads_begin[2] + w.size[2] {
            match (p.kernel[2], p.stride[2]) {
                (3, 1) => return self.line::<S, 3, 1>(s, row, range, taps),
                (3, 2) => return self.line::<S, 3, 2>(s, row, range, taps),
                (5, 1) => return self.line::<S, 5, 1>(s, row, range, taps),
                (5, 2) => return self.line::<S, 5, 2>(s, row, range, taps),
                _ => {}
            }
        }
        let (batch, place) = w.place(row * w.out[2]);
        // Columns whose whole window is inside the image.
        let span = (p.kernel[2] - 1) * p.dilation[2];
        let whole_from = p.pads_begin[2].div_ceil(p.stride[2]).min(w.out[2]);
        let whole_to = (w.size[2] + p.pads_begin[2])
            .checked_sub(span)
            .map_or(0, |room| room.div_ceil(p.stride[2]).min(w.out[2]))
            .max(whole_from);
        for column in (0..whole_from).chain(whole_to..w.out[2]) {
            self.taps(taps, batch, [place[0], place[1], column]);
            let pixel = row * w.out[2] + column;
            s.enter(DepthwisePixels::<T, 1> { rows: self, taps, skip: 0, pixel, range });
        }
        self.taps(taps, batch, [place[0], place[1], whole_from]);
        let mut column = whole_from;
        while column < whole_to {
            let skip = (column - whole_from) * p.stride[2] * p.in_channels;
            let rows = self;
            let pixel = row * w.out[2] + column;
            let taps = &taps[..];
            match whole_to - column {
                8.. => s.enter(DepthwisePixels::<T, 8> { rows, taps, skip, pixel, range }),
                6.. => s.enter(DepthwisePixels::<T, 6> { rows, taps, skip, pixel, range }),
                4.. => s.enter(DepthwisePixels::<T, 4> { rows, taps, skip, pixel, range }),
                2.. => s.enter(DepthwisePixels::<T, 2> { rows, taps, skip, pixel, range }),
                _ => s.enter(DepthwisePixels::<T, 1> { rows, taps, skip, pixel, range }),
            }
            column += match whole_to - column {
                8.. => 8,
                6.. => 6,
                4.. => 4,
                2.. => 2,
                _ => 1,
            };
        }
    }

    /// One output row of windows `KW` wide and `SW` apart, for the channels of `range`; the last
    /// pixels may be computed twice.
    #[inline(always)]
    fn line<S: Simd, const KW: usize, const SW: usize>(
        &self,
        s: S,
        row: usize,
        range: (usize, usize),
        lines: &mut Vec<DepthwiseTap<T>>,
    ) {
        let w = self.window;
        let p = &w.params;
        let (batch, place) = w.place(row * w.out[2]);
        lines.clear();
        for d in 0..p.kernel[0] {
            let Some(image_d) = w.tap(0, place[0], d) else { continue };
            for h in inside(w, 1, place[1]) {
                let image_h = place[1] * p.stride[1] + h * p.dilation[1] - p.pads_begin[1];
                let tap = (d * p.kernel[1] + h) * KW;
                lines.push(DepthwiseTap {
                    x: self.image_row(batch, image_d, image_h),
                    weight: self.weights.wrapping_add(tap * p.in_channels),
                });
            }
        }
        let width = w.out[2];
        let lines = &lines[..];
        let most = match width {
            _ if const { !S::FUSED } && width >= 4 => 4,
            _ if width.is_multiple_of(8) => 8,
            _ if width.is_multiple_of(7) => 7,
            8.. => 8,
            4.. => 4,
            _ => 1,
        };
        let mut column = 0;
        while column < width {
            let at = column.min(width - most);
            match most {
                // Instruction sets without enough registers have no long lines to compile.
                8 if const { S::FUSED } => s.enter(DepthwiseLine::<T, 8, KW, SW> {
                    rows: self,
                    lines,
                    row,
                    column: at,
                    range,
                }),
                7 if const { S::FUSED } => s.enter(DepthwiseLine::<T, 7, KW, SW> {
                    rows: self,
                    lines,
                    row,
                    column: at,
                    range,
                }),
                4 => s.enter(DepthwiseLine::<T, 4, KW, SW> {
                    rows: self,
                    lines,
                    row,
                    column: at,
                    range,
                }),
                _ => s.enter(DepthwiseLine::<T, 1, KW, SW> {
                    rows: self,
                    lines,
                    row,
                    column: at,
                    range,
                }),
            }
            column += most;
        }
    }

    /// Lists the taps that the output pixel at `place` has inside the image.
    #[inline(always)]
    fn taps(&self, taps: &mut Vec<DepthwiseTap<T>>, batch: usize, place: [usize; 3]) {
        let w = self.window;
        let p = &w.params;
        let channels = p.in_channels;
        let [kd, kh, kw] = p.kernel;
        let rows = inside(w, 1, place[1]);
        let columns = inside(w, 2, place[2]);
        taps.clear();
        for d in 0..kd {
            let Some(image_d) = w.tap(0, place[0], d) else { continue };
            for h in rows.clone() {
                let image_h = place[1] * p.stride[1] + h * p.dilation[1] - p.pads_begin[1];
                let image_row = self.image_row(batch, image_d, image_h);
                for t in columns.clone() {
                    let image_w = place[2] * p.stride[2] + t * p.dilation[2] - p.pads_begin[2];
                    let tap = (d * kh + h) * kw + t;
                    taps.push(DepthwiseTap {
                        x: image_row.wrapping_add(image_w * channels),
                        weight: self.weights.wrapping_add(tap * channels),
                    });
                }
            }
        }
    }
}

/// `P` adjacent output pixels that have the same taps, `skip` elements after those listed.
struct DepthwisePixels<'a, T, const P: usize> {
    rows: &'a DepthwiseRows<'a, T>,
    taps: &'a [DepthwiseTap<T>],
    skip: usize,
    /// Number of the first pixel.
    pixel: usize,
    /// First and end channel.
    range: (usize, usize),
}

impl<T: RealCell, const P: usize> IsaKernel for DepthwisePixels<'_, T, P> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (mut c, end) = self.range;
        while c + S::LANES <= end {
            // SAFETY: whole vectors of channels.
            unsafe { self.vector(s, c, None) };
            c += S::LANES;
        }
        if c < end {
            // SAFETY: the mask chooses the channels left.
            unsafe { self.vector(s, c, Some(s.tail(end - c))) };
        }
    }
}

impl<T: RealCell, const P: usize> DepthwisePixels<'_, T, P> {
    /// One vector of channels from `c` on.
    ///
    /// # Safety
    /// The vector is whole, or `mask` chooses channels that exist; all taps are inside the image
    /// for all `P` pixels.
    #[inline(always)]
    unsafe fn vector<S: Simd>(&self, s: S, c: usize, mask: Option<S::M>) {
        let rows = self.rows;
        let channels = rows.window.params.in_channels;
        let step = rows.window.params.stride[2] * channels;
        let mut acc = [s.splat(0.0); P];
        for tap in self.taps {
            // SAFETY: the taps are inside the image for all P pixels.
            unsafe {
                let weight = f32::load(s, tap.weight.add(c), mask);
                let x = tap.x.add(self.skip + c);
                for (i, acc) in acc.iter_mut().enumerate() {
                    *acc = s.fma(T::load(s, x.add(i * step), mask), weight, *acc);
                }
            }
        }
        // SAFETY: y and the finish have these pixels and channels.
        unsafe { rows.store(s, acc, self.pixel, c, mask) };
    }
}

/// `P` pixels of an output row whose windows are `KW` wide and `SW` apart: what a pixel of the image
/// gives to all of them is added while it is in a register.
struct DepthwiseLine<'a, T, const P: usize, const KW: usize, const SW: usize> {
    rows: &'a DepthwiseRows<'a, T>,
    /// Image rows from their first column on, with the weights of their taps.
    lines: &'a [DepthwiseTap<T>],
    row: usize,
    /// The first of the pixels.
    column: usize,
    /// First and end channel.
    range: (usize, usize),
}

impl<T: RealCell, const P: usize, const KW: usize, const SW: usize> IsaKernel
    for DepthwiseLine<'_, T, P, KW, SW>
{
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = self.rows.window;
        let first = (self.column * SW).wrapping_sub(w.params.pads_begin[2]);
        let whole = first < w.size[2] && first + (P - 1) * SW + KW <= w.size[2];
        let (mut c, end) = self.range;
        while c + S::LANES <= end {
            // SAFETY: whole vectors of channels.
            unsafe {
                if whole {
                    self.vector::<S, false>(s, c, first, None);
                } else {
                    self.vector::<S, true>(s, c, first, None);
                }
            }
            c += S::LANES;
        }
        if c < end {
            // SAFETY: the mask chooses the channels left.
            unsafe { self.vector::<S, true>(s, c, first, Some(s.tail(end - c))) };
        }
    }
}

impl<T: RealCell, const P: usize, const KW: usize, const SW: usize>
    DepthwiseLine<'_, T, P, KW, SW>
{
    /// One vector of channels from `c` on, of windows that start at image column `first`.
    ///
    /// # Safety
    /// The vector is whole, or `mask` chooses channels that exist; all columns of the windows are
    /// inside the image, or with `EDGE` some.
    #[inline(always)]
    unsafe fn vector<S: Simd, const EDGE: bool>(
        &self,
        s: S,
        c: usize,
        first: usize,
        mask: Option<S::M>,
    ) {
        let w = self.rows.window;
        let channels = w.params.in_channels;
        let mut acc = [s.splat(0.0); P];
        for line in self.lines {
            let mut weights = [s.splat(0.0); KW];
            for (t, weight) in weights.iter_mut().enumerate() {
                // SAFETY: the weights have all channels of the tap.
                *weight = unsafe { f32::load(s, line.weight.add(t * channels + c), mask) };
            }
            for i in 0..(P - 1) * SW + KW {
                let column = first.wrapping_add(i);
                if EDGE && column >= w.size[2] {
                    continue;
                }
                // SAFETY: the column is inside the image.
                let x = unsafe { T::load(s, line.x.add(column * channels + c), mask) };
                for (t, &weight) in weights.iter().enumerate() {
                    // Of the pixels, number (i - t) / SW has this column at tap t.
                    if i >= t && (i - t) % SW == 0 && (i - t) / SW < P {
                        let p = (i - t) / SW;
                        acc[p] = s.fma(x, weight, acc[p]);
                    }
                }
            }
        }
        let pixel = self.row * w.out[2] + self.column;
        // SAFETY: y and the finish have these pixels and channels.
        unsafe { self.rows.store(s, acc, pixel, c, mask) };
    }
}

impl<T: RealCell> DepthwiseRows<'_, T> {
    /// Finishes and writes one vector of channels of `P` pixels.
    ///
    /// # Safety
    /// The pixels exist, with a whole vector of channels from `c` on or those that `mask` chooses.
    #[inline(always)]
    unsafe fn store<S: Simd, const P: usize>(
        &self,
        s: S,
        acc: [S::F; P],
        pixel: usize,
        c: usize,
        mask: Option<S::M>,
    ) {
        let channels = self.window.params.in_channels;
        let finish = self.finish.shifted(pixel, c);
        let low = s.splat(finish.low);
        let high = s.splat(finish.high);
        let mut bias = None;
        if let Some(at) = finish.bias_at(0) {
            // SAFETY: the bias has all channels.
            bias = Some(unsafe { f32::load(s, at, mask) });
        }
        for (i, mut acc) in acc.into_iter().enumerate() {
            // SAFETY: residual and y cover these pixels and channels.
            unsafe {
                if let Some(bias) = bias {
                    acc = s.add(acc, bias);
                }
                if let Some(residual) = finish.residual_at(i, 0) {
                    acc = finish.joined(s, acc, f32::load(s, residual, mask));
                }
                acc = s.min(high, s.max(low, acc));
                let y = self.y.ptr().wrapping_add((pixel + i) * channels + c);
                T::store(s, y, mask, acc);
            }
        }
    }
}
