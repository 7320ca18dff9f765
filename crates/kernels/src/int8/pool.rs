//! Pooling of bytes over channels-last images.

use crate::Exec;
use crate::conv::{ConvParams, Window, volume};
use crate::isa::{Dot, DotIsa, DotKernel};
use crate::memory::Shared;
use std::ops::Range;

/// The largest byte under each window; `params` has the window, its channels are those of the image.
///
/// Shapes: `x` is `[batch, depth, height, width, channels]` with `size` = depth, height, width; `y`
/// is `[batch, …output_size(size), channels]`. A window that lies wholly in the padding gives the
/// smallest byte.
///
/// # Panics
/// When a slice is shorter than its shape says.
pub fn max_pool_bytes(
    exec: Exec<'_>,
    params: &ConvParams,
    x: &[u8],
    signed: bool,
    (batch, size): (usize, [usize; 3]),
    y: &mut [u8],
) {
    params.check();
    let (out, channels) = (params.output_size(size), params.in_channels);
    let pixels = volume(&[batch, out[0], out[1], out[2]]);
    assert!(x.len() >= volume(&[batch, size[0], size[1], size[2], channels]), "image: {}", x.len());
    assert!(y.len() >= pixels * channels, "result: {}", y.len());
    let window = Window { params: *params, size, out };
    let (y, dot) = (Shared::new(y), DotIsa::of(exec.isa));
    let grain = (1 << 15) / (channels * params.taps()).max(1);
    exec.pool.run_ranges(pixels, grain.max(1), |range| {
        // SAFETY: ranges do not overlap and are inside the result.
        let y = unsafe { y.range(range.start * channels..range.end * channels) };
        dot.run(Pixels { window: &window, x, signed, first: range.start, y });
    });
}

struct Pixels<'a> {
    window: &'a Window,
    x: &'a [u8],
    signed: bool,
    /// Number of the first pixel.
    first: usize,
    y: &'a mut [u8],
}

/// Channels that are compared at a time.
const CHANNELS: usize = 64;

impl DotKernel for Pixels<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, _: D) {
        let w = self.window;
        let p = &w.params;
        let channels = p.in_channels;
        let flip = if self.signed { super::pack::FLIP } else { 0 };
        let (mut batch, mut place) = w.place(self.first);
        for y in self.y.chunks_exact_mut(channels.max(1)) {
            let taps: [Range<usize>; 3] = std::array::from_fn(|d| w.taps(d, place[d]));
            let start = |d: usize, tap: usize| {
                (place[d] * p.stride[d] + tap * p.dilation[d]).wrapping_sub(p.pads_begin[d])
            };
            let (whole, rest) = y.as_chunks_mut::<CHANNELS>();
            let done = channels - rest.len();
            rest.fill(0);
            for (i, y) in whole.iter_mut().enumerate() {
                // Of a known length, so that it stays in registers.
                let mut most = [0_u8; CHANNELS];
                for d in taps[0].clone() {
                    for h in taps[1].clone() {
                        let line = (batch * w.size[0] + start(0, d)) * w.size[1] + start(1, h);
                        for x in taps[2].clone() {
                            let pixel = line * w.size[2] + start(2, x);
                            let from = &self.x[pixel * channels + i * CHANNELS..];
                            let Some(x) = from.first_chunk::<CHANNELS>() else { continue };
                            // A loop, as closures need not be compiled for the vectors.
                            for (most, &x) in most.iter_mut().zip(x) {
                                *most = (*most).max(x ^ flip);
                            }
                        }
                    }
                }
                for (y, most) in y.iter_mut().zip(most) {
                    *y = most ^ flip;
                }
            }
            if !rest.is_empty() {
                for d in taps[0].clone() {
                    for h in taps[1].clone() {
                        let line = (batch * w.size[0] + start(0, d)) * w.size[1] + start(1, h);
                        for x in taps[2].clone() {
                            let pixel = line * w.size[2] + start(2, x);
                            let from = &self.x[pixel * channels + done..(pixel + 1) * channels];
                            for (most, &x) in rest.iter_mut().zip(from) {
                                *most = (*most).max(x ^ flip);
                            }
                        }
                    }
                }
                rest.iter_mut().for_each(|most| *most ^= flip);
            }
            place[2] += 1;
            w.carry(&mut batch, &mut place);
        }
    }
}
