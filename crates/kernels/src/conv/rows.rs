//! The rows of a convolution's matrix product: one per output pixel, gathered from the image.

use super::ConvParams;
use crate::gemm::{A_STRIDE, RowSource, copy_run, zero_run};
use crate::isa::Simd;

/// A convolution over an image of a given size.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) params: ConvParams,
    pub(super) size: [usize; 3],
    pub(super) out: [usize; 3],
}

impl Window {
    /// Splits an output pixel's number into batch, depth, row, column.
    #[inline(always)]
    pub(super) fn place(&self, pixel: usize) -> (usize, [usize; 3]) {
        let [od, oh, ow] = self.out;
        let (rest, w) = (pixel / ow, pixel % ow);
        let (rest, h) = (rest / oh, rest % oh);
        (rest / od, [rest % od, h, w])
    }

    /// The image coordinate that tap `tap` of output coordinate `o` sees, if it is not padding.
    #[inline(always)]
    pub(super) fn tap(&self, d: usize, o: usize, tap: usize) -> Option<usize> {
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
pub(super) struct ImageRows {
    window: Window,
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
    pub(super) fn new(window: &Window, image: *const f32) -> Self {
        let p = &window.params;
        let merged = p.groups == 1 && p.dilation[2] == 1;
        Self {
            window: *window,
            image,
            channels: p.in_channels / p.groups,
            taps_per_run: if merged { p.kernel[2] } else { 1 },
        }
    }

    /// Copies terms `from..to` of run `run` of one pixel.
    ///
    /// # Safety
    /// The run belongs to the window, `to` is at most its length, `out` is valid for `to - from`.
    #[inline(always)]
    unsafe fn copy_part<S: Simd>(
        &self,
        s: S,
        (batch, place): (usize, [usize; 3]),
        run: usize,
        from: usize,
        to: usize,
        out: *mut f32,
    ) {
        let w = &self.window;
        let [_, kh, kw] = w.params.kernel;
        let runs_per_row = kw / self.taps_per_run;
        let (row, first_tap) = (run / runs_per_row, run % runs_per_row * self.taps_per_run);
        let (d, h) = (w.tap(0, place[0], row / kh), w.tap(1, place[1], row % kh));
        let n = to - from;
        let (Some(d), Some(h)) = (d, h) else {
            // SAFETY: out has n values.
            unsafe { zero_run(s, n, out) };
            return;
        };
        // Column of the run's first tap, counted from `pads_begin` before the image.
        let column = place[2] * w.params.stride[2] + first_tap * w.params.dilation[2];
        let (pad, width) = (w.params.pads_begin[2], w.size[2]);
        let c = self.channels;
        // Terms below `low` lie before the image, terms from `high` on behind it.
        let low = (pad.saturating_sub(column) * c).clamp(from, to);
        let high = ((pad + width).saturating_sub(column) * c).clamp(low, to);
        // SAFETY: terms low..high are pixels 0..width of image row (batch, d, h).
        unsafe {
            if low > from {
                zero_run(s, low - from, out);
            }
            if high > low {
                let pixel = ((batch * w.size[0] + d) * w.size[1] + h) * width;
                // At `low` the column is inside the image, so the sum is not below `pad`.
                let x = (pixel + column + low / c - pad) * w.params.in_channels + low % c;
                copy_run(s, self.image.add(x), high - low, out.add(low - from));
            }
            if to > high {
                zero_run(s, to - high, out.add(high - from));
            }
        }
    }
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
        let length = self.channels * self.taps_per_run;
        let (mut batch, mut place) = self.window.place(row);
        for r in 0..rows {
            let mut term = k0;
            while term < k0 + k {
                let (run, from) = (term / length, term % length);
                let to = length.min(from + k0 + k - term);
                // SAFETY: the terms are inside the row, and the block row holds k of them.
                unsafe {
                    let out = out.add(r * A_STRIDE + term - k0);
                    self.copy_part(s, (batch, place), run, from, to, out);
                }
                term += to - from;
            }
            for d in [2, 1, 0] {
                place[d] += 1;
                if place[d] < self.window.out[d] {
                    break;
                }
                place[d] = 0;
                batch += usize::from(d == 0);
            }
        }
    }

    fn direct(&self) -> Option<(*const f32, usize)> {
        None
    }
}
