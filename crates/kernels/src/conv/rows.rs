//! The rows of a convolution's matrix product: one per output pixel, gathered from the image.

use super::ConvParams;
use crate::gemm::{A_STRIDE, RowSource, copy_rows, copy_run, zero_run};
use crate::isa::Simd;

/// A convolution over an image of a given size.
#[derive(Clone, Copy)]
pub(crate) struct ConvWindow {
    pub(crate) params: ConvParams,
    pub(crate) size: [usize; 3],
    pub(crate) out: [usize; 3],
}

impl ConvWindow {
    /// Output pixels of a batch.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn pixels(&self, batch: usize) -> usize {
        batch * self.out.iter().product::<usize>()
    }

    /// Splits an output pixel's number into batch, depth, row, column.
    #[inline(always)]
    pub(crate) fn place(&self, pixel: usize) -> (usize, [usize; 3]) {
        let [od, oh, ow] = self.out;
        let rest = pixel / ow;
        let w = pixel % ow;
        let (rest, h) = (rest / oh, rest % oh);
        (rest / od, [rest % od, h, w])
    }

    /// Makes a place whose column may have reached the end of its row the start of the next.
    #[inline(always)]
    pub(crate) fn carry(&self, batch: &mut usize, place: &mut [usize; 3]) {
        if place[2] == self.out[2] {
            place[2] = 0;
            place[1] += 1;
            if place[1] == self.out[1] {
                place[1] = 0;
                place[0] += 1;
                if place[0] == self.out[0] {
                    place[0] = 0;
                    *batch += 1;
                }
            }
        }
    }

    /// The taps of output coordinate `o` that are no padding.
    pub(crate) fn taps(&self, d: usize, o: usize) -> std::ops::Range<usize> {
        let p = &self.params;
        let start = o * p.stride[d];
        let before = p.pads_begin[d].saturating_sub(start).div_ceil(p.dilation[d]);
        let end = (self.size[d] + p.pads_begin[d]).saturating_sub(start).div_ceil(p.dilation[d]);
        before.min(p.kernel[d])..end.min(p.kernel[d])
    }

    /// The image coordinate that tap `tap` of output coordinate `o` sees, if it is not padding.
    #[inline(always)]
    pub(crate) fn tap(&self, d: usize, o: usize, tap: usize) -> Option<usize> {
        let p = &self.params;
        let x = (o * p.stride[d] + tap * p.dilation[d]).wrapping_sub(p.pads_begin[d]);
        (x < self.size[d]).then_some(x)
    }
}

/// Rows gathered from one group's channels of an image.
///
/// The terms of a row are runs of adjacent values: where the taps of a window row are adjacent
/// pixels and the group has all channels, a run is a whole window row, else one tap.
#[derive(Clone, Copy)]
pub(crate) struct ImageRows {
    window: ConvWindow,
    image: *const f32,
    /// Channels of the group.
    channels: usize,
    /// Taps of the width that make one run.
    taps_per_run: usize,
}

// SAFETY: a read-only view of a slice that the caller of the convolution holds while tasks run.
unsafe impl Send for ImageRows {}
// SAFETY: as for Send.
unsafe impl Sync for ImageRows {}

impl ImageRows {
    pub(crate) fn new(window: &ConvWindow, image: *const f32) -> Self {
        let p = &window.params;
        let merged = p.groups == 1 && p.dilation[2] == 1;
        Self {
            window: *window,
            image,
            channels: p.in_channels / p.groups,
            taps_per_run: if merged { p.kernel[2] } else { 1 },
        }
    }

    /// The part of a run that `terms` terms from `term` on begin with.
    #[inline(always)]
    fn segment(&self, term: usize, terms: usize) -> TermSegment {
        let p = &self.window.params;
        let length = self.channels * self.taps_per_run;
        let run = term / length;
        let from = term % length;
        let runs_per_row = p.kernel[2] / self.taps_per_run;
        let row = run / runs_per_row;
        TermSegment {
            depth: row / p.kernel[1] * p.dilation[0],
            height: row % p.kernel[1] * p.dilation[1],
            width: run % runs_per_row * self.taps_per_run * p.dilation[2],
            from,
            to: length.min(from + terms),
        }
    }

    /// Copies a segment for some adjacent output pixels, from `place` of an image on. Copies lie
    /// [`A_STRIDE`] apart.
    ///
    /// # Safety
    /// The pixels exist, and `out` is valid for their segments.
    #[inline(always)]
    unsafe fn copy_segment<S: Simd>(
        &self,
        s: S,
        segment: &TermSegment,
        mut batch: usize,
        mut place: [usize; 3],
        rows: usize,
        mut out: *mut f32,
    ) {
        let w = &self.window;
        let mut left = rows;
        while left > 0 {
            // Pixels of one output row see one image row.
            let here = left.min(w.out[2] - place[2]);
            // SAFETY: `here` pixels of this output row.
            unsafe { self.copy_pixels(s, segment, batch, place, here, out) };
            out = out.wrapping_add(here * A_STRIDE);
            left -= here;
            place[2] += here;
            w.carry(&mut batch, &mut place);
        }
    }

    /// [`ImageRows::copy_segment`] for `count` pixels of one output row.
    ///
    /// # Safety
    /// The pixels exist, and `out` is valid for their segments.
    #[inline(always)]
    unsafe fn copy_pixels<S: Simd>(
        &self,
        s: S,
        segment: &TermSegment,
        batch: usize,
        place: [usize; 3],
        count: usize,
        mut out: *mut f32,
    ) {
        let w = &self.window;
        let p = &w.params;
        let width = w.size[2];
        let c = self.channels;
        let pad = p.pads_begin[2];
        let stride = p.stride[2];
        let from = segment.from;
        let to = segment.to;
        // Coordinates wrap below the image, so that one comparison finds both sides.
        let d = (place[0] * p.stride[0] + segment.depth).wrapping_sub(p.pads_begin[0]);
        let h = (place[1] * p.stride[1] + segment.height).wrapping_sub(p.pads_begin[1]);
        if d >= w.size[0] || h >= w.size[1] {
            for _ in 0..count {
                // SAFETY: a segment of a block row.
                unsafe { zero_run(s, to - from, out) };
                out = out.wrapping_add(A_STRIDE);
            }
            return;
        }
        let row = ((batch * w.size[0] + d) * w.size[1] + h) * width;
        // The source of term 0 of a run whose first tap is in column `column`, counted from
        // `pads_begin` before the image; it may lie before the image.
        let source = |column: usize| {
            let first = (row + column).wrapping_sub(pad).wrapping_mul(p.in_channels);
            self.image.wrapping_add(first)
        };
        // Pixels whose whole run is inside the image: pad <= column <= pad + width - taps.
        let start = place[2] * stride + segment.width;
        let before = pad.saturating_sub(start).div_ceil(stride).min(count);
        let room = (pad + width).checked_sub(start + self.taps_per_run);
        let inside = room.map_or(0, |room| (room / stride + 1).min(count)).max(before);
        for i in (0..before).chain(inside..count) {
            let column = start + i * stride;
            // Terms below `low` lie before the image, terms from `high` on behind it.
            let low = (pad.saturating_sub(column) * c).clamp(from, to);
            let high = ((pad + width).saturating_sub(column) * c).clamp(low, to);
            // SAFETY: terms low..high are pixels 0..width of image row (batch, d, h); the block
            // row holds all of from..to.
            unsafe {
                let out = out.add(i * A_STRIDE);
                zero_run(s, low - from, out);
                copy_run(s, source(column).wrapping_add(low), high - low, out.add(low - from));
                zero_run(s, to - high, out.add(high - from));
            }
        }
        if inside > before {
            let x = source(start + before * stride).wrapping_add(from);
            // SAFETY: these runs are inside the image row.
            unsafe {
                let out = out.add(before * A_STRIDE);
                copy_rows(s, x, stride * p.in_channels, inside - before, to - from, out);
            }
        }
    }
}

/// Adjacent terms of a row: a part of one run.
struct TermSegment {
    /// Offsets of the run's first tap in the window, in image coordinates.
    depth: usize,
    height: usize,
    width: usize,
    /// Terms of the run.
    from: usize,
    to: usize,
}

impl RowSource for ImageRows {
    #[inline(always)]
    unsafe fn copy<S: Simd>(
        &self,
        s: S,
        row: usize,
        rows: usize,
        k0: usize,
        k: usize,
        out: *mut f32,
    ) {
        let (batch, place) = self.window.place(row);
        let mut done = 0;
        while done < k {
            let segment = self.segment(k0 + done, k - done);
            // SAFETY: the terms are inside the rows, and the block rows hold k of them.
            unsafe { self.copy_segment(s, &segment, batch, place, rows, out.add(done)) };
            done += segment.to - segment.from;
        }
    }

    fn direct(&self) -> Option<(*const f32, usize)> {
        None
    }
}
