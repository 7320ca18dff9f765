//! Depthwise convolution of bytes: every channel by itself, vectors over channels. Sums of a few
//! hundred products of bytes are exact as `f32`.

use super::Bytes;
use super::micro::{Out, narrowed, store_bytes};
use crate::Exec;
use crate::conv::Window;
use crate::isa::{Dot, DotIsa, DotKernel, Simd};

/// What is known of each channel.
#[derive(Clone, Copy)]
pub(super) struct Channels<'a> {
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
    exec: Exec<'_>,
    dot: DotIsa,
    window: &Window,
    x: Bytes<'_>,
    batch: usize,
    channels: Channels<'_>,
    out: Out,
) {
    let [od, oh, ow] = window.out;
    let work = ow * window.params.in_channels * window.params.taps();
    exec.pool.run_ranges(batch * od * oh, 65_536usize.div_ceil(work.max(1)), |rows| {
        dot.run(Rows { window, x, channels, rows, out });
    });
}

/// Some output rows.
struct Rows<'a> {
    window: &'a Window,
    x: Bytes<'a>,
    channels: Channels<'a>,
    rows: std::ops::Range<usize>,
    out: Out,
}

/// Pixels of an inner part of a row that are computed together.
const TOGETHER: usize = 4;

impl DotKernel for Rows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
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
                let (rows, taps, pixel) = (&self, &taps[..], row * w.out[2] + column);
                d.enter(Pixels::<1> { rows, taps, skip: 0, pixel });
            }
            if from == to {
                continue;
            }
            self.taps(&mut taps, batch, [place[0], place[1], from]);
            let (rows, taps) = (&self, &taps[..]);
            let mut column = from;
            while column < to {
                let skip = (column - from) * p.stride[2] * p.in_channels;
                let pixel = row * w.out[2] + column;
                if to - column >= TOGETHER {
                    d.enter(Pixels::<TOGETHER> { rows, taps, skip, pixel });
                    column += TOGETHER;
                } else {
                    d.enter(Pixels::<1> { rows, taps, skip, pixel });
                    column += 1;
                }
            }
        }
    }
}

/// Where a tap reads, for channel 0 of the first of the pixels that share it.
#[derive(Clone, Copy)]
struct Tap {
    x: *const u8,
    weight: *const f32,
}

impl Rows<'_> {
    /// Lists the taps that the output pixel at `place` has inside the image.
    #[inline(always)]
    fn taps(&self, taps: &mut Vec<Tap>, batch: usize, place: [usize; 3]) {
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
                    taps.push(Tap {
                        x: self.x.data.as_ptr().wrapping_add(pixel * p.in_channels),
                        weight: self.channels.weights.as_ptr().wrapping_add(tap * p.in_channels),
                    });
                }
            }
        }
    }
}

/// `P` adjacent output pixels that have the same taps, `skip` elements after those listed.
struct Pixels<'a, const P: usize> {
    rows: &'a Rows<'a>,
    taps: &'a [Tap],
    skip: usize,
    /// Number of the first pixel.
    pixel: usize,
}

impl<const P: usize> DotKernel for Pixels<'_, P> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
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

impl<const P: usize> Pixels<'_, P> {
    /// One vector of channels from `c` on.
    ///
    /// # Safety
    /// The vector is whole; all taps are inside the image for all `P` pixels.
    #[inline(always)]
    unsafe fn vector<D: Dot>(&self, d: D, c: usize) {
        let (rows, s) = (self.rows, d.simd());
        let p = &rows.window.params;
        let step = p.stride[2] * p.in_channels;
        let (signed, zero) = (rows.x.signed, s.splat(rows.x.zero as f32));
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
        // SAFETY: the channels and the result cover these pixels and channels.
        unsafe {
            let offset = s.load(rows.channels.offsets.as_ptr().add(c));
            let scale = s.load(rows.channels.scales.as_ptr().add(c));
            for (i, acc) in acc.into_iter().enumerate() {
                let scaled = s.mul(s.add(acc, offset), scale);
                match rows.out.at((self.pixel + i) * p.in_channels + c) {
                    Out::Bytes { c, zero, low, high } => {
                        store_bytes(d, c.ptr(), narrowed(s, scaled, zero, low, high), D::S::LANES);
                    }
                    Out::Floats(c) => s.store(c.ptr(), scaled),
                    Out::Sums(_) => {}
                }
            }
        }
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
                Out::Bytes { c, zero, low, high } => {
                    let value = (scaled.round_ties_even() as i32).saturating_add(zero);
                    // SAFETY: the result covers the pixel.
                    unsafe { *c.ptr() = value.clamp(low, high) as u8 };
                }
                // SAFETY: the result covers the pixel.
                Out::Floats(c) => unsafe { *c.ptr() = scaled },
                Out::Sums(_) => {}
            }
        }
    }
}
