//! Pooling of bytes over channels-last images.

use crate::Exec;
use crate::conv::{ConvParams, Window, volume};
use crate::isa::{Dot, DotIsa, DotKernel};
use crate::memory::Shared;

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

impl DotKernel for Pixels<'_> {
    type Output = ();
    /// Signed bytes compare as unsigned ones with their highest bit turned.
    #[inline(always)]
    fn run<D: Dot>(self, _: D) {
        let (w, flip) = (self.window, if self.signed { super::pack::FLIP } else { 0 });
        let p = &w.params;
        let channels = p.in_channels;
        for (i, y) in self.y.chunks_exact_mut(channels.max(1)).enumerate() {
            let (batch, place) = w.place(self.first + i);
            y.fill(0);
            for tap in 0..p.taps() {
                let (rest, kw) = (tap / p.kernel[2], tap % p.kernel[2]);
                let (kd, kh) = (rest / p.kernel[1], rest % p.kernel[1]);
                let at = (w.tap(0, place[0], kd), w.tap(1, place[1], kh), w.tap(2, place[2], kw));
                let (Some(d), Some(h), Some(x)) = at else { continue };
                let pixel = ((batch * w.size[0] + d) * w.size[1] + h) * w.size[2] + x;
                let x = &self.x[pixel * channels..(pixel + 1) * channels];
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (*y).max(x ^ flip);
                }
            }
            y.iter_mut().for_each(|y| *y ^= flip);
        }
    }
}
