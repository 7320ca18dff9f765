//! Pooling of bytes over channels-last images.

use super::pack::FLIP;
use crate::KernelContext;
use crate::conv::{ConvParams, ConvWindow, ImageBatch, volume};
use crate::isa::{DotInstructions, DotIsa, DotKernel};
use crate::memory::{DisjointSlice, with_scratch};

/// Values that one task compares at least.
const GRAIN: usize = 1 << 15;

/// The largest byte under each window; `params` has the window, its channels are those of the image.
///
/// Shapes: `x` is `[batch, depth, height, width, channels]`, as `image` says; `y` is
/// `[batch, …output_size(size), channels]`. A window that lies wholly in the padding gives the
/// smallest byte.
///
/// # Panics
/// Panics when a slice is shorter than its shape says.
pub fn max_pool_bytes(
    exec: KernelContext<'_>,
    params: &ConvParams,
    x: &[u8],
    signed: bool,
    image: ImageBatch,
    y: &mut [u8],
) {
    let ImageBatch { batch, size } = image;
    params.check();
    let out = params.output_size(size);
    let channels = params.in_channels;
    let lines = volume(&[batch, out[0], out[1]]);
    let line = out[2] * channels;
    assert!(x.len() >= volume(&[batch, size[0], size[1], size[2], channels]), "image: {}", x.len());
    assert!(y.len() >= lines * line, "result: {}", y.len());
    if line == 0 {
        return;
    }
    let window = ConvWindow { params: *params, size, out };
    let y = DisjointSlice::new(y);
    let dot = DotIsa::of(exec.isa);
    exec.pool.run_ranges(lines, (GRAIN / (line * params.taps())).max(1), |range| {
        let first = range.start;
        // SAFETY: ranges do not overlap and are inside the result.
        let y = unsafe { y.range(range.start * line..range.end * line) };
        with_scratch((size[2] * channels).div_ceil(size_of::<f32>()), |room| {
            // SAFETY: every float of the room is as many bytes.
            let most = unsafe {
                std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size[2] * channels)
            };
            match signed {
                true => dot.run(Int8PoolLines::<FLIP> { window: &window, x, first, y, most }),
                false => dot.run(Int8PoolLines::<0> { window: &window, x, first, y, most }),
            }
        });
    });
}

/// Lines of the result. Bytes are ordered as they are after a change of the bits `FLIPPED`.
struct Int8PoolLines<'a, const FLIPPED: u8> {
    window: &'a ConvWindow,
    x: &'a [u8],
    /// Number of the first line.
    first: usize,
    y: &'a mut [u8],
    /// Room for the largest bytes of some lines of the image.
    most: &'a mut [u8],
}

impl<const FLIPPED: u8> DotKernel for Int8PoolLines<'_, FLIPPED> {
    type Output = ();
    /// Compares whole lines first, which lie adjacent, and then what is left of each window: a line.
    #[inline(always)]
    fn run<D: DotInstructions>(self, _: D) {
        let w = self.window;
        let p = &w.params;
        let channels = p.in_channels;
        let start = |d: usize, o: usize, tap: usize| {
            (o * p.stride[d] + tap * p.dilation[d]).wrapping_sub(p.pads_begin[d])
        };
        for (line, y) in self.y.chunks_exact_mut(w.out[2] * channels).enumerate() {
            let (batch, [depth, row, _]) = w.place((self.first + line) * w.out[2]);
            self.most.fill(0);
            for d in w.taps(0, depth) {
                for h in w.taps(1, row) {
                    let plane = batch * w.size[0] + start(0, depth, d);
                    let from = (plane * w.size[1] + start(1, row, h)) * self.most.len();
                    // A loop, as closures need not be compiled for the vectors.
                    for (most, &x) in self.most.iter_mut().zip(&self.x[from..]) {
                        *most = (*most).max(x ^ FLIPPED);
                    }
                }
            }
            for (column, y) in y.chunks_exact_mut(channels).enumerate() {
                y.fill(0);
                for tap in w.taps(2, column) {
                    let from = start(2, column, tap) * channels;
                    for (y, &most) in y.iter_mut().zip(&self.most[from..]) {
                        *y = (*y).max(most);
                    }
                }
                for y in y {
                    *y ^= FLIPPED;
                }
            }
        }
    }
}
