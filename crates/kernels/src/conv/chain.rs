//! A depthwise convolution between dense ones, computed in bands of rows.
//!
//! Models for small devices widen an image, filter each channel by itself and narrow the result
//! (Sandler et al., *MobileNetV2: Inverted Residuals and Linear Bottlenecks*, 2018). The wide values
//! are many times the narrow ones and take part in few sums, so that it is their way to memory and
//! back that takes long. Here they never leave a thread's second-level cache: a task computes rows of
//! the result one step after the other, keeps the last rows of the wide image, and makes no row of
//! it twice but those that two tasks see.

use super::depthwise;
use super::direct;
use super::rows::ConvWindow;
use super::{ConvWeights, CpuConvAlgorithm, MOST, PackedConv, volume};
use crate::KernelContext;
use crate::gemm::{
    DenseRows, GemmEpilogue, GemmProduct, PackedB, TileFinish, check_matrix, multiply_here,
};
use crate::isa::{IsaKernel, Simd};
use crate::memory::{DisjointSlice, with_scratch};
use crate::pieces::WorkPieces;

/// Pixels of the result that a step computes: a few register tiles for each product, and little else
/// for the second-level cache.
const STEP_PIXELS: usize = 112;

/// Most bytes between the convolutions of a task: about half of a second-level cache, as the weights
/// are there too.
const BAND_BYTES: usize = 1024 * 1024;

/// Bands pay where for each row of the wide image that is made twice there are so many in all.
const MIN_ROWS: usize = 6;

/// A convolution of a chain.
#[derive(Clone, Copy, Debug)]
pub struct ChainLink<'a> {
    /// Its weights.
    pub packed: &'a PackedConv,
    /// The operations after it; only the last of a chain may have a residual.
    pub epilogue: GemmEpilogue<'a>,
}

/// Convolutions of an image, each of the result of the one before.
#[derive(Clone, Copy, Debug)]
pub struct ConvChainSpec<'a> {
    /// Makes what the depthwise convolution sees: with a window of one pixel, or packed for
    /// [`CpuConvAlgorithm::Direct`].
    pub first: Option<ChainLink<'a>>,
    /// A convolution packed for [`CpuConvAlgorithm::Depthwise`].
    pub depthwise: ChainLink<'a>,
    /// Takes what the depthwise convolution gives, with a window of one pixel.
    pub last: Option<ChainLink<'a>>,
}

/// Geometry of a chain for an image of some size.
#[derive(Clone, Copy)]
struct ChainGeometry {
    /// Window of the first convolution, if there is one.
    first: Option<ConvWindow>,
    depthwise: ConvWindow,
    /// Rows of the result in a step.
    step: usize,
    /// Rows of the wide image that are kept.
    kept: usize,
    /// Floats of those, and of a step's rows behind the depthwise convolution where another follows.
    between: [usize; 2],
}

impl<'a> ConvChainSpec<'a> {
    fn links(&self) -> impl Iterator<Item = ChainLink<'a>> {
        [self.first, Some(self.depthwise), self.last].into_iter().flatten()
    }

    /// Returns whether [`conv_chain`] computes the chain for images of `size` (depth, height, width),
    /// and what a step keeps stays near.
    #[must_use]
    pub fn fits(&self, size: [usize; 3]) -> bool {
        self.geometry(size).is_some_and(|geometry| {
            let floats: usize = geometry.between.iter().sum();
            floats <= BAND_BYTES / size_of::<f32>()
        })
    }

    /// Returns whether bands are likely faster than one convolution after the other, for `batch`
    /// images of `size`: they need no way to memory and back and wait for each other once, but
    /// threads make the rows twice that two of them see.
    #[must_use]
    pub fn pays(&self, threads: usize, batch: usize, size: [usize; 3]) -> bool {
        let Some(geometry) = self.geometry(size).filter(|_| self.fits(size)) else { return false };
        let rows = batch * geometry.depthwise.size[1];
        let cuts = pieces(&geometry, batch, threads);
        let begin = (0..cuts.count()).map(|i| cuts.get(i)).filter(|piece| !piece.is_empty());
        let inside = begin.filter(|piece| piece.start % geometry.depthwise.out[1] != 0).count();
        self.first.is_none() || inside * geometry.seen_twice() * MIN_ROWS <= rows
    }

    fn geometry(&self, size: [usize; 3]) -> Option<ChainGeometry> {
        let p = self.depthwise.packed.params;
        let isa = self.depthwise.packed.isa;
        let flat = p.kernel[0] == 1 && p.stride[0] == 1 && size[0] == 1;
        let unpadded = p.pads_begin[0] == 0 && p.pads_end[0] == 0;
        if !flat || !unpadded || self.depthwise.packed.algorithm != CpuConvAlgorithm::Depthwise {
            return None;
        }
        let mut wide = size;
        let mut window = None;
        if let Some(ChainLink { packed, .. }) = self.first {
            let own = packed.params;
            wide = own.output_size(size);
            let known = packed.algorithm == CpuConvAlgorithm::Direct || is_product(packed);
            if !known || wide[0] != 1 || own.out_channels != p.in_channels || packed.isa != isa {
                return None;
            }
            window = Some(ConvWindow { params: own, size, out: wide });
        }
        if let Some(ChainLink { packed, .. }) = self.last {
            let fits = is_product(packed) && packed.params.in_channels == p.out_channels;
            if !fits || packed.isa != isa {
                return None;
            }
        }
        let out = p.output_size(wide);
        let [_, height, width] = out;
        if volume(&out) == 0 || p.in_channels == 0 {
            return None;
        }
        let step = (STEP_PIXELS / width).clamp(1, height);
        let step = height.div_ceil(height.div_ceil(step));
        let span = (step - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
        let kept = span.min(wide[1]);
        let floats = |rows: usize, width: usize, there: bool| {
            if there { volume(&[rows, width, p.in_channels]).next_multiple_of(16) } else { 0 }
        };
        let between =
            [floats(kept, wide[2], window.is_some()), floats(step, width, self.last.is_some())];
        let depthwise = ConvWindow { params: p, size: wide, out };
        Some(ChainGeometry { first: window, depthwise, step, kept, between })
    }
}

/// Returns whether a convolution is the product of its image with one matrix.
fn is_product(packed: &PackedConv) -> bool {
    matches!(&packed.weights, ConvWeights::Dense(all) if all.len() == 1)
        && packed.params.is_pointwise()
}

/// `y` = the last convolution of a chain of the result of the one before it, and so on; epilogues
/// included.
///
/// Shapes: `x` is `[batch, 1, height, width, channels]` with `size` = 1, height, width; `y` is
/// `[batch, …, channels]` as the last convolution gives. To an epilogue, a result is a matrix of one
/// row per pixel.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, the weights are packed for another
/// instruction set than `exec.isa`, the convolutions are no such chain for images of this size, or
/// an epilogue but the last has a residual.
pub fn conv_chain(
    exec: KernelContext<'_>,
    chain: &ConvChainSpec<'_>,
    x: &[f32],
    batch: usize,
    size: [usize; 3],
    y: &mut [f32],
) {
    assert!(size.iter().all(|&x| x < MOST), "convolution: an image of {size:?}");
    let mut at = size;
    let count = chain.links().count();
    for (i, link) in chain.links().enumerate() {
        let p = &link.packed.params;
        assert!(link.packed.isa == exec.isa, "weights are packed for {}", link.packed.isa.name());
        if i == 0 {
            let pixels = volume(&[batch, at[0], at[1], at[2]]);
            check_matrix("image", x.len(), pixels, p.in_channels, p.in_channels);
        }
        at = p.output_size(at);
        let pixels = volume(&[batch, at[0], at[1], at[2]]);
        link.epilogue.check(pixels, p.out_channels);
        if i + 1 == count {
            check_matrix("result", y.len(), pixels, p.out_channels, p.out_channels);
        } else {
            assert!(link.epilogue.residual.is_none(), "a residual inside a chain");
        }
    }
    if batch == 0 || at.contains(&0) {
        return;
    }
    let geometry = chain.geometry(size);
    assert!(geometry.is_some(), "no chain of convolutions for images of {size:?}");
    let Some(geometry) = geometry else { return };
    let x = DisjointSlice::from_ptr(x.as_ptr().cast_mut());
    let y = DisjointSlice::new(y);
    let picture = geometry.first.filter(|window| !window.params.is_pointwise());
    let behind = picture.map_or(0, |window| direct::scratch_len(&window));
    let scratch_len = geometry.between.iter().sum::<usize>() + behind;
    let height = geometry.depthwise.out[1];
    pieces(&geometry, batch, exec.pool.threads()).run(exec.pool, |rows| {
        with_scratch(scratch_len, |scratch| {
            let scratch = scratch.as_mut_ptr();
            let mut start = rows.start;
            while start < rows.end {
                let image = start / height;
                let end = rows.end.min((image + 1) * height);
                let rows = start - image * height..end - image * height;
                exec.isa.run(ChainBand { chain, geometry: &geometry, image, rows, x, y, scratch });
                start = end;
            }
        });
    });
}

impl ChainGeometry {
    /// Rows of the wide image that two neighbouring tasks see.
    fn seen_twice(&self) -> usize {
        let p = &self.depthwise.params;
        ((p.kernel[1] - 1) * p.dilation[1] + 1).saturating_sub(p.stride[1])
    }
}

/// The rows of all results, cut into tasks. What two tasks see is made twice, so they are long where
/// there is enough for all threads.
fn pieces(geometry: &ChainGeometry, batch: usize, threads: usize) -> WorkPieces {
    let ConvWindow { params: p, out, .. } = &geometry.depthwise;
    let len = batch * out[1];
    let long =
        (16 * geometry.seen_twice() / p.stride[1]).max(geometry.step).max(len / (8 * threads));
    let fewest = long.min(len / threads).max(1);
    WorkPieces { len, threads, most: len, fewest, unit: 1 }
}

/// Some rows of the result of one image.
struct ChainBand<'a> {
    chain: &'a ConvChainSpec<'a>,
    geometry: &'a ChainGeometry,
    image: usize,
    /// Rows of the depthwise convolution's result.
    rows: std::ops::Range<usize>,
    x: DisjointSlice<f32>,
    y: DisjointSlice<f32>,
    /// Rows of the wide image, rows of a step, then what windows over a picture need.
    scratch: *mut f32,
}

impl IsaKernel for ChainBand<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let ConvWindow { params: p, size, .. } = &self.geometry.depthwise;
        let span = (p.kernel[1] - 1) * p.dilation[1] + 1;
        // The first row of the wide image that is not made yet.
        let mut next = 0;
        let mut row = self.rows.start;
        while row < self.rows.end {
            let count = self.geometry.step.min(self.rows.end - row);
            next = next.max((row * p.stride[1]).saturating_sub(p.pads_begin[1]));
            let last = (row + count - 1) * p.stride[1] + span;
            let end = last.saturating_sub(p.pads_begin[1]).min(size[1]);
            while next < end {
                // Rows that lie side by side.
                let place = next % self.geometry.kept;
                let rows = (end - next).min(self.geometry.kept - place);
                self.widen(s, next..next + rows, place);
                next += rows;
            }
            self.filter(s, row..row + count);
            self.narrow(s, row..row + count);
            row += count;
        }
    }
}

impl ChainBand<'_> {
    /// Makes rows of the wide image, the first of them at `place` of those kept.
    #[inline(always)]
    fn widen<S: Simd>(&self, s: S, rows: std::ops::Range<usize>, place: usize) {
        let (Some(link), Some(window)) = (&self.chain.first, &self.geometry.first) else { return };
        let ConvWeights::Dense(all) = &link.packed.weights else { return };
        let Some(weights) = all.first() else { return };
        let [_, height, width] = window.out;
        let p = &window.params;
        let start = self.image * height + rows.start;
        let row = width * p.out_channels;
        let y = DisjointSlice::from_ptr(self.scratch.wrapping_add(place * row));
        let finish = TileFinish::new(&link.epilogue);
        if is_product(link.packed) {
            let x = self.x.at(start * width * p.in_channels);
            // SAFETY: the image has these rows, and so many are kept from `place` on.
            unsafe { self.product(s, weights, x, rows.len() * width, y, finish) };
            return;
        }
        let x = self.x.ptr().cast_const();
        // What counts its rows from those of the first image writes the first of these to `place`.
        let y = DisjointSlice::from_ptr(y.ptr().wrapping_sub(start * row));
        let behind = self.geometry.between[0] + self.geometry.between[1];
        let range = start..start + rows.len();
        let scratch = self.scratch.wrapping_add(behind);
        direct::DirectConvRows { window, x, weights, y, finish, range, scratch }.run(s);
    }

    /// Computes a product of `m` rows.
    ///
    /// # Safety
    /// A and C have the rows, and the epilogue covers C.
    #[inline(always)]
    unsafe fn product<S: Simd>(
        &self,
        s: S,
        weights: &PackedB,
        a: DisjointSlice<f32>,
        m: usize,
        c: DisjointSlice<f32>,
        finish: TileFinish,
    ) {
        let n = weights.n();
        let k = weights.k();
        let a = DenseRows::new(a.ptr().cast_const(), k);
        let b = weights.as_source();
        let product = GemmProduct { m, n, k, a, b, c, c_stride: n, finish };
        // SAFETY: the caller vouches for A, C and the epilogue.
        unsafe { multiply_here(s, &product) };
    }

    /// The first rows of a step behind the depthwise convolution.
    #[inline(always)]
    fn filtered(&self) -> *mut f32 {
        self.scratch.wrapping_add(self.geometry.between[0])
    }

    /// Filters each channel by itself.
    #[inline(always)]
    fn filter<S: Simd>(&self, s: S, rows: std::ops::Range<usize>) {
        let ConvWeights::Depthwise(weights) = &self.chain.depthwise.packed.weights else { return };
        let window = &self.geometry.depthwise;
        let (channels, [_, height, width]) = (window.params.in_channels, window.out);
        let (x, kept) = if self.chain.first.is_some() {
            (self.scratch.cast_const(), self.geometry.kept)
        } else {
            let image = self.image * window.size[1] * window.size[2] * channels;
            (self.x.at(image).ptr().cast_const(), usize::MAX)
        };
        // What counts its rows from the image's first.
        let (y, pixel) = if self.chain.last.is_some() {
            (self.filtered().wrapping_sub(rows.start * width * channels), 0)
        } else {
            let pixel = self.image * height * width;
            (self.y.at(pixel * channels).ptr(), pixel)
        };
        let y = DisjointSlice::from_ptr(y);
        let finish = TileFinish::new(&self.chain.depthwise.epilogue).shifted(pixel, 0);
        let weights = weights.as_slice().as_ptr();
        depthwise::DepthwiseRows { window, x, kept, weights, rows, y, finish }.run(s);
    }

    /// Multiplies what the depthwise convolution gives.
    #[inline(always)]
    fn narrow<S: Simd>(&self, s: S, rows: std::ops::Range<usize>) {
        let Some(link) = &self.chain.last else { return };
        let ConvWeights::Dense(all) = &link.packed.weights else { return };
        let Some(weights) = all.first() else { return };
        let [_, height, width] = self.geometry.depthwise.out;
        let pixel = (self.image * height + rows.start) * width;
        let c = self.y.at(pixel * weights.n());
        let finish = TileFinish::new(&link.epilogue).shifted(pixel, 0);
        let a = DisjointSlice::from_ptr(self.filtered());
        // SAFETY: a step's rows have been filtered; this task alone writes these rows of the result,
        // which the epilogue covers.
        unsafe { self.product(s, weights, a, rows.len() * width, c, finish) };
    }
}
