//! Depthwise convolution of bytes: every channel by itself, vectors over channels. Sums of a few
//! hundred products of bytes are exact as `f32`.

use super::QuantizedBytes;
use super::micro::{Int8Output, narrowed, store_bytes};
use crate::KernelContext;
use crate::conv::ConvWindow;
use crate::isa::{DotInstructions, DotIsa, DotKernel, Simd};

/// Weights and factors of the channels.
#[derive(Clone, Copy)]
pub(super) struct Int8Channels<'a> {
    /// Tap after tap, one value per channel.
    pub(super) weights: &'a [f32],
    pub(super) offsets: &'a [f32],
    pub(super) scales: &'a [f32],
}

/// Computes the whole convolution; a task is a run of output rows.
///
/// # Safety
/// `x`, the channels and `out` have the sizes of the window and `batch`; nothing else uses `out`
/// meanwhile.
pub(super) unsafe fn run(
    exec: KernelContext<'_>,
    dot: DotIsa,
    window: &ConvWindow,
    x: QuantizedBytes<'_>,
    batch: usize,
    channels: Int8Channels<'_>,
    out: Int8Output,
) {
    let [od, oh, ow] = window.out;
    let work = ow * window.params.in_channels * window.params.taps();
    exec.pool.run_ranges(batch * od * oh, 65_536usize.div_ceil(work.max(1)), |rows| {
        dot.run(Int8DepthwiseRows { window, x, channels, rows, out });
    });
}

/// Some output rows.
struct Int8DepthwiseRows<'a> {
    window: &'a ConvWindow,
    x: QuantizedBytes<'a>,
    channels: Int8Channels<'a>,
    rows: std::ops::Range<usize>,
    out: Int8Output,
}

/// Pixels of an inner part of a row that are computed together.
const TOGETHER: usize = 4;

impl DotKernel for Int8DepthwiseRows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let w = self.window;
        let p = &w.params;
        let span = (p.kernel[2] - 1) * p.dilation[2];
        // Columns whose whole window is inside the image.
        let from = p.pads_begin[2].div_ceil(p.stride[2]).min(w.out[2]);
        let to = (w.size[2] + p.pads_begin[2])
            .checked_sub(span)
            .map_or(0, |room| room.div_ceil(p.stride[2]).min(w.out[2]))
            .max(from);
        let mut taps = Vec::with_capacity(p.taps());
        for row in self.rows.clone() {
            let (batch, place) = w.place(row * w.out[2]);
            for column in (0..from).chain(to..w.out[2]) {
                self.taps(&mut taps, batch, [place[0], place[1], column]);
                let rows = &self;
                let taps = &taps[..];
                let pixel = row * w.out[2] + column;
                d.enter(Int8DepthwisePixels::<1> { rows, taps, skip: 0, pixel });
            }
            if from == to {
                continue;
            }
            self.taps(&mut taps, batch, [place[0], place[1], from]);
            let rows = &self;
            let taps = &taps[..];
            let first = row * w.out[2];
            let done = match (p.kernel[2], p.stride[2], p.dilation[2]) {
                (3, 1, 1) => rows.lines::<D, 3, 1>(d, taps, first, from, to),
                (3, 2, 1) => rows.lines::<D, 3, 2>(d, taps, first, from, to),
                (5, 1, 1) => rows.lines::<D, 5, 1>(d, taps, first, from, to),
                (5, 2, 1) => rows.lines::<D, 5, 2>(d, taps, first, from, to),
                _ => false,
            };
            if done {
                continue;
            }
            let mut column = from;
            while column < to {
                let skip = (column - from) * p.stride[2] * p.in_channels;
                let pixel = row * w.out[2] + column;
                if to - column >= TOGETHER {
                    d.enter(Int8DepthwisePixels::<TOGETHER> { rows, taps, skip, pixel });
                    column += TOGETHER;
                } else {
                    d.enter(Int8DepthwisePixels::<1> { rows, taps, skip, pixel });
                    column += 1;
                }
            }
        }
    }
}

/// Where a tap reads, for channel 0 of the first of the pixels that share it.
#[derive(Clone, Copy)]
struct Int8DepthwiseTap {
    x: *const u8,
    weight: *const f32,
}

/// Pixels of a line that are computed together, where there are so many.
const MOST: usize = 8;

impl Int8DepthwiseRows<'_> {
    /// Computes the columns `from..to` of a row that starts with pixel `first`, whose windows are `KW`
    /// wide and `SW` apart and inside the image; `taps` are those of the first. Some pixels may be
    /// computed twice. False where they are too few, or channels are left over.
    #[inline(always)]
    fn lines<D: DotInstructions, const KW: usize, const SW: usize>(
        &self,
        d: D,
        taps: &[Int8DepthwiseTap],
        first: usize,
        from: usize,
        to: usize,
    ) -> bool {
        let channels = self.window.params.in_channels;
        let most = match to - from {
            MOST.. => MOST,
            TOGETHER.. => TOGETHER,
            _ => return false,
        };
        if !channels.is_multiple_of(<D::S as Simd>::LANES) {
            return false;
        }
        for column in (from..to).step_by(most) {
            let at = column.min(to - most);
            let skip = (at - from) * SW * channels;
            let pixel = first + at;
            if most == MOST {
                d.enter(Int8DepthwiseLine::<MOST, KW, SW> { rows: self, taps, skip, pixel });
            } else {
                d.enter(Int8DepthwiseLine::<TOGETHER, KW, SW> { rows: self, taps, skip, pixel });
            }
        }
        true
    }

    /// Lists the taps that the output pixel at `place` has inside the image.
    #[inline(always)]
    fn taps(&self, taps: &mut Vec<Int8DepthwiseTap>, batch: usize, place: [usize; 3]) {
        let w = self.window;
        let p = &w.params;
        taps.clear();
        for d in 0..p.kernel[0] {
            let Some(image_d) = w.tap(0, place[0], d) else { continue };
            for h in 0..p.kernel[1] {
                let Some(image_h) = w.tap(1, place[1], h) else { continue };
                for t in 0..p.kernel[2] {
                    let Some(image_w) = w.tap(2, place[2], t) else { continue };
                    let line = (batch * w.size[0] + image_d) * w.size[1] + image_h;
                    let pixel = line * w.size[2] + image_w;
                    let tap = (d * p.kernel[1] + h) * p.kernel[2] + t;
                    taps.push(Int8DepthwiseTap {
                        x: self.x.data.as_ptr().wrapping_add(pixel * p.in_channels),
                        weight: self.channels.weights.as_ptr().wrapping_add(tap * p.in_channels),
                    });
                }
            }
        }
    }
}

/// `P` pixels of an output row whose windows are `KW` wide and `SW` apart: what a pixel of the image
/// gives to all of them is added while it is in a register.
struct Int8DepthwiseLine<'a, const P: usize, const KW: usize, const SW: usize> {
    rows: &'a Int8DepthwiseRows<'a>,
    /// Whole rows of taps, [`Int8DepthwiseLine::skip`] elements before those of the first pixel.
    taps: &'a [Int8DepthwiseTap],
    skip: usize,
    /// Number of the first pixel.
    pixel: usize,
}

impl<const P: usize, const KW: usize, const SW: usize> DotKernel
    for Int8DepthwiseLine<'_, P, KW, SW>
{
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let rows = self.rows;
        let s = d.simd();
        let channels = rows.window.params.in_channels;
        let signed = rows.x.signed;
        let zero = s.splat(rows.x.zero as f32);
        for c in (0..channels).step_by(<D::S as Simd>::LANES) {
            let mut acc = [s.splat(0.0); P];
            let mut total = s.splat(0.0);
            for line in self.taps.chunks_exact(KW) {
                let mut weights = [s.splat(0.0); KW];
                for (t, weight) in weights.iter_mut().enumerate() {
                    // SAFETY: the weights have all channels of the tap.
                    *weight = unsafe { s.load(line[0].weight.add(t * channels + c)) };
                    total = s.add(total, *weight);
                }
                for i in 0..(P - 1) * SW + KW {
                    let at = self.skip + i * channels + c;
                    // SAFETY: the windows are inside the image.
                    let x = unsafe { d.load_bytes(line[0].x.add(at), signed) };
                    let x = s.to_float(x);
                    for (t, &weight) in weights.iter().enumerate() {
                        // Of the pixels, number (i - t) / SW has this column at tap t.
                        if i >= t && (i - t) % SW == 0 && (i - t) / SW < P {
                            let p = (i - t) / SW;
                            acc[p] = s.fma(x, weight, acc[p]);
                        }
                    }
                }
            }
            for acc in &mut acc {
                *acc = s.fnma(zero, total, *acc);
            }
            // SAFETY: the pixels and a vector of channels exist.
            unsafe { rows.store(d, acc, self.pixel, c) };
        }
    }
}

impl Int8DepthwiseRows<'_> {
    /// Finishes and writes a vector of channels of `P` pixels.
    ///
    /// # Safety
    /// The pixels and the channels exist.
    #[inline(always)]
    unsafe fn store<D: DotInstructions, const P: usize>(
        &self,
        d: D,
        acc: [<D::S as Simd>::F; P],
        pixel: usize,
        c: usize,
    ) {
        let s = d.simd();
        // SAFETY: the channels and the result cover these pixels and channels.
        unsafe {
            let offset = s.load(self.channels.offsets.as_ptr().add(c));
            let scale = s.load(self.channels.scales.as_ptr().add(c));
            for (i, acc) in acc.into_iter().enumerate() {
                let scaled = s.mul(s.add(acc, offset), scale);
                match self.out.at((pixel + i) * self.window.params.in_channels + c) {
                    Int8Output::Bytes { c, limits } => {
                        let bytes = narrowed(s, scaled, limits);
                        store_bytes(d, c.ptr(), bytes, <D::S as Simd>::LANES);
                    }
                    Int8Output::Floats(c) => s.store(c.ptr(), scaled),
                    Int8Output::Sum { .. } | Int8Output::Sums(_) => {}
                }
            }
        }
    }
}

/// `P` adjacent output pixels that have the same taps, `skip` elements after those listed.
struct Int8DepthwisePixels<'a, const P: usize> {
    rows: &'a Int8DepthwiseRows<'a>,
    taps: &'a [Int8DepthwiseTap],
    skip: usize,
    /// Number of the first pixel.
    pixel: usize,
}

impl<const P: usize> DotKernel for Int8DepthwisePixels<'_, P> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let end = self.rows.window.params.in_channels;
        let mut c = 0;
        while c + D::S::LANES <= end {
            // SAFETY: whole vectors of channels.
            unsafe { self.vector(d, c) };
            c += D::S::LANES;
        }
        for c in c..end {
            // SAFETY: one channel.
            unsafe { self.single(c) };
        }
    }
}

impl<const P: usize> Int8DepthwisePixels<'_, P> {
    /// One vector of channels from `c` on.
    ///
    /// # Safety
    /// The vector is whole; all taps are inside the image for all `P` pixels.
    #[inline(always)]
    unsafe fn vector<D: DotInstructions>(&self, d: D, c: usize) {
        let rows = self.rows;
        let s = d.simd();
        let p = &rows.window.params;
        let step = p.stride[2] * p.in_channels;
        let signed = rows.x.signed;
        let zero = s.splat(rows.x.zero as f32);
        let mut acc = [s.splat(0.0); P];
        for tap in self.taps {
            // SAFETY: the taps are inside the image for all P pixels.
            unsafe {
                let weight = s.load(tap.weight.add(c));
                let x = tap.x.add(self.skip + c);
                for (i, acc) in acc.iter_mut().enumerate() {
                    let value = s.to_float(d.load_bytes(x.add(i * step), signed));
                    *acc = s.fma(s.sub(value, zero), weight, *acc);
                }
            }
        }
        // SAFETY: the pixels and a vector of channels exist.
        unsafe { rows.store(d, acc, self.pixel, c) };
    }

    /// One channel.
    ///
    /// # Safety
    /// The channel exists; all taps are inside the image for all `P` pixels.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited to a byte")]
    unsafe fn single(&self, c: usize) {
        let rows = self.rows;
        let p = &rows.window.params;
        let step = p.stride[2] * p.in_channels;
        for i in 0..P {
            let mut sum = 0.0_f32;
            for tap in self.taps {
                // SAFETY: the taps are inside the image for all P pixels.
                unsafe {
                    let byte = *tap.x.add(self.skip + c + i * step);
                    let value: i32 =
                        if rows.x.signed { byte.cast_signed().into() } else { byte.into() };
                    sum += (value - rows.x.zero) as f32 * *tap.weight.add(c);
                }
            }
            let scaled = (sum + rows.channels.offsets[c]) * rows.channels.scales[c];
            match rows.out.at((self.pixel + i) * p.in_channels + c) {
                Int8Output::Bytes { c, limits } => {
                    let value = (scaled.round_ties_even() as i32).saturating_add(limits.zero);
                    // SAFETY: the result covers the pixel.
                    unsafe { *c.ptr() = value.clamp(limits.low, limits.high) as u8 };
                }
                // SAFETY: the result covers the pixel.
                Int8Output::Floats(c) => unsafe { *c.ptr() = scaled },
                Int8Output::Sum { .. } | Int8Output::Sums(_) => {}
            }
        }
    }
}
