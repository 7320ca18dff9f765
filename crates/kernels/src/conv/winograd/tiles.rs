//! The transforms of whole tiles: windows of the image into points, products into pixels.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::transform::{MOST, WinogradTransform, input, output};
use crate::activation::ActivateRows;
use crate::conv::rows::ConvWindow;
use crate::gemm::TileFinish;
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Floats of a cache line.
pub(super) const LINE: usize = 16;

/// An odd number of cache lines: arrays that are this far apart use all sets of a cache.
pub(super) fn odd_lines(floats: usize) -> usize {
    (floats.div_ceil(LINE) | 1) * LINE
}

/// How the pixels of some images fall into tiles.
#[derive(Clone, Copy)]
pub(super) struct PixelTiling<'a> {
    pub(super) window: &'a ConvWindow,
    /// Outputs along a side.
    pub(super) side: usize,
    /// Tiles of an image, down and across.
    pub(super) grid: [usize; 2],
}

impl<'a> PixelTiling<'a> {
    pub(super) fn new(window: &'a ConvWindow, side: usize) -> Self {
        let grid = [window.out[1].div_ceil(side), window.out[2].div_ceil(side)];
        Self { window, side, grid }
    }

    /// The image of a tile, and its first pixel.
    #[inline(always)]
    fn place(&self, tile: usize) -> (usize, [usize; 2]) {
        let rest = tile / self.grid[1];
        let across = tile % self.grid[1];
        (rest / self.grid[0], [rest % self.grid[0] * self.side, across * self.side])
    }
}

/// Where the transformed inputs of a block of tiles lie: by point, group of rows, cache line of
/// channels, row.
#[derive(Clone, Copy)]
pub(super) struct TransformedInputs {
    /// Tiles.
    pub(super) rows: usize,
    /// Rows of a group, the last of which may have fewer.
    pub(super) group: usize,
    /// Cache lines of channels.
    lines: usize,
    /// Distance between points.
    pub(super) point: usize,
}

impl TransformedInputs {
    /// Groups of nearly equal height, at most `highest`.
    pub(super) fn new(channels: usize, rows: usize, highest: usize) -> Self {
        let groups = rows.div_ceil(highest).max(1);
        let group = rows.div_ceil(groups).max(1);
        let lines = channels.div_ceil(LINE);
        Self { rows, group, lines, point: odd_lines(groups * group * lines * LINE) }
    }

    /// Where a channel of a tile lies.
    #[inline(always)]
    pub(super) fn at(&self, point: usize, channel: usize, row: usize) -> usize {
        let line = (row / self.group * self.lines + channel / LINE) * self.group + row % self.group;
        point * self.point + line * LINE + channel % LINE
    }
}

/// Transforms the inputs of some tiles.
pub(super) struct InputTransform<'a, F> {
    pub(super) form: PhantomData<F>,
    pub(super) tiling: PixelTiling<'a>,
    pub(super) x: *const f32,
    pub(super) tiles: std::ops::Range<usize>,
    /// Row of the first of the tiles.
    pub(super) row: usize,
    pub(super) inputs: TransformedInputs,
    pub(super) v: DisjointSlice<f32>,
    /// Zeros for pixels outside, one for each channel of the image.
    pub(super) zeros: &'a [f32],
}

/// A tile's window of the image.
struct TileSource {
    /// Its first pixel, where all are inside.
    first: *const f32,
    /// Its pixels, where some are outside.
    pixels: [[*const f32; MOST]; MOST],
}

impl<F: WinogradTransform> IsaKernel for InputTransform<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = self.tiling.window;
        let p = &w.params;
        let [height, width] = [w.size[1], w.size[2]];
        let pads = [p.pads_begin[1], p.pads_begin[2]];
        let mut source = TileSource { first: self.x, pixels: [[self.zeros.as_ptr(); MOST]; MOST] };
        for (i, tile) in self.tiles.clone().enumerate() {
            let (image, [top, left]) = self.tiling.place(tile);
            let image = self.x.wrapping_add(image * height * width * p.in_channels);
            let pixel = |h: usize, w: usize| image.wrapping_add((h * width + w) * p.in_channels);
            let inside = top >= pads[0]
                && left >= pads[1]
                && top + F::IN <= height + pads[0]
                && left + F::IN <= width + pads[1];
            if inside {
                source.first = pixel(top - pads[0], left - pads[1]);
                // SAFETY: all pixels are inside the image.
                unsafe { self.tile::<S, false>(s, &source, self.row + i) };
                continue;
            }
            for (i, line) in source.pixels.iter_mut().enumerate() {
                let h = (top + i).wrapping_sub(pads[0]);
                for (j, at) in line.iter_mut().enumerate() {
                    let w = (left + j).wrapping_sub(pads[1]);
                    let inside = h < height && w < width;
                    *at = if inside { pixel(h, w) } else { self.zeros.as_ptr() };
                }
            }
            // SAFETY: each pixel is inside the image or the zeros.
            unsafe { self.tile::<S, true>(s, &source, self.row + i) };
        }
    }
}

impl<F: WinogradTransform> InputTransform<'_, F> {
    /// # Safety
    /// The pixels of the source have all channels: `pixels` with `EDGE`, else those from `first` on.
    #[inline(always)]
    unsafe fn tile<S: Simd, const EDGE: bool>(&self, s: S, source: &TileSource, row: usize) {
        let channels = self.tiling.window.params.in_channels;
        let line = self.tiling.window.size[2] * channels;
        let point = self.inputs.point;
        let mut c = 0;
        while c < channels {
            let mask = (channels - c < S::LANES).then(|| s.tail(channels - c));
            let mut lines = TransformedLines::<S>::new();
            for j in 0..F::IN {
                let mut d = [s.splat(0.0); MOST];
                for (i, d) in d.iter_mut().enumerate().take(F::IN) {
                    let at = if EDGE {
                        source.pixels[i][j]
                    } else {
                        source.first.wrapping_add(i * line + j * channels)
                    };
                    // SAFETY: the caller vouches for the pixel; the mask limits its channels.
                    *d = unsafe { load(s, at.add(c), mask) };
                }
                lines.set_column(j, input::<S, F>(s, d), F::IN);
            }
            let mut out = self.v.ptr().wrapping_add(self.inputs.at(0, c, row));
            for i in 0..F::IN {
                // SAFETY: all columns are set.
                let line = unsafe { lines.line(s, i, F::IN) };
                for &x in input::<S, F>(s, line).iter().take(F::IN) {
                    // SAFETY: the blocks have this tile's channels, rounded up to a cache line,
                    // at every point.
                    unsafe { s.store(out, x) };
                    out = out.wrapping_add(point);
                }
            }
            c += S::LANES;
        }
    }
}

/// Turns the products of some tiles and columns into pixels.
pub(super) struct OutputTransform<'a, F> {
    pub(super) form: PhantomData<F>,
    pub(super) tiling: PixelTiling<'a>,
    pub(super) tiles: std::ops::Range<usize>,
    pub(super) products: TileProducts,
    pub(super) m: *const f32,
    /// First and end column.
    pub(super) columns: (usize, usize),
    pub(super) y: DisjointSlice<f32>,
    pub(super) finish: TileFinish,
}

/// Where the products of a block of tiles lie: by point and tile.
#[derive(Clone, Copy)]
pub(super) struct TileProducts {
    /// Distance between points.
    pub(super) point: usize,
    /// Distance between tiles.
    pub(super) row: usize,
}

impl TileProducts {
    /// For `columns` rounded up to whole register tiles.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let row = odd_lines(columns);
        Self { point: odd_lines(rows * row), row }
    }
}

impl<F: WinogradTransform> IsaKernel for OutputTransform<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (i, tile) in self.tiles.clone().enumerate() {
            let m = self.m.wrapping_add(i * self.products.row);
            let (image, [top, left]) = self.tiling.place(tile);
            let [_, height, width] = self.tiling.window.out;
            let pixel = (image * height + top) * width + left;
            let here = [(height - top).min(F::OUT), (width - left).min(F::OUT)];
            let (mut c, end) = self.columns;
            while c + S::LANES <= end {
                // SAFETY: a whole vector of columns.
                unsafe { self.vector(s, m, pixel, here, c, None) };
                c += S::LANES;
            }
            if c < end {
                // SAFETY: the mask chooses the columns left.
                unsafe { self.vector(s, m, pixel, here, c, Some(s.tail(end - c))) };
            }
            if let Some(activation) = self.finish.late {
                self.activate(s, activation, pixel, here);
            }
        }
    }
}

impl<F: WinogradTransform> OutputTransform<'_, F> {
    /// One vector of columns from `c` on, of `here` rows and columns of pixels.
    ///
    /// # Safety
    /// The vector is whole, or `mask` chooses columns that exist; the pixels exist.
    #[inline(always)]
    unsafe fn vector<S: Simd>(
        &self,
        s: S,
        m: *const f32,
        pixel: usize,
        here: [usize; 2],
        c: usize,
        mask: Option<S::M>,
    ) {
        let m = m.wrapping_add(c - self.columns.0);
        let mut lines = TransformedLines::<S>::new();
        for j in 0..F::IN {
            let mut products = [s.splat(0.0); MOST];
            for (i, x) in products.iter_mut().enumerate().take(F::IN) {
                // SAFETY: rows of products are rounded up to cache lines.
                *x = unsafe { s.load(m.add((i * F::IN + j) * self.products.point)) };
            }
            lines.set_column(j, output::<S, F>(s, products), F::OUT);
        }
        let mut bias = s.splat(0.0);
        if let Some(at) = self.finish.bias_at(c) {
            // SAFETY: the bias has all columns.
            bias = unsafe { load(s, at, mask) };
        }
        let width = self.tiling.window.out[2];
        for i in 0..F::OUT {
            // SAFETY: all columns are set.
            let pixels = output::<S, F>(s, unsafe { lines.line(s, i, F::IN) });
            for (j, &x) in pixels.iter().enumerate().take(F::OUT) {
                if i < here[0] && j < here[1] {
                    // SAFETY: the pixel exists.
                    unsafe { self.store(s, s.add(x, bias), pixel + i * width + j, c, mask) };
                }
            }
        }
    }

    /// # Safety
    /// The pixel and the columns of `mask`, or a whole vector of them, exist.
    #[inline(always)]
    unsafe fn store<S: Simd>(&self, s: S, x: S::F, pixel: usize, c: usize, mask: Option<S::M>) {
        let finish = &self.finish;
        let mut x = x;
        let at = pixel * self.tiling.window.params.out_channels + c;
        // SAFETY: residual and y cover this pixel and these columns.
        unsafe {
            if let Some(residual) = finish.residual_at(pixel, c) {
                x = finish.joined(s, x, load(s, residual, mask));
            }
            x = s.min(s.splat(finish.high), s.max(s.splat(finish.low), x));
            match mask {
                Some(m) => s.store_tail(self.y.ptr().add(at), m, x),
                None => s.store(self.y.ptr().add(at), x),
            }
        }
    }

    /// Applies an activation to the columns of a tile's pixels.
    #[inline(always)]
    fn activate<S: Simd>(
        &self,
        s: S,
        activation: crate::ActivationFunction,
        pixel: usize,
        here: [usize; 2],
    ) {
        let (channels, (start, end)) = (self.tiling.window.params.out_channels, self.columns);
        for i in 0..here[0] {
            let at = (pixel + i * self.tiling.window.out[2]) * channels + start;
            let data = self.y.at(at).ptr();
            let (rows, columns) = if end - start == channels {
                (1, here[1] * channels)
            } else {
                (here[1], end - start)
            };
            // SAFETY: this task alone writes these columns of these pixels.
            unsafe { ActivateRows { activation, data, rows, columns, stride: channels }.run(s) };
        }
    }
}

/// A tile half transformed: columns go in, lines come out. Nothing is cleared in between.
struct TransformedLines<S: Simd>([MaybeUninit<S::F>; MOST * MOST]);

impl<S: Simd> TransformedLines<S> {
    #[inline(always)]
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; MOST * MOST])
    }

    /// Sets the first `count` values of column `j`.
    #[inline(always)]
    fn set_column(&mut self, j: usize, column: [S::F; MOST], count: usize) {
        for (i, &x) in column.iter().enumerate().take(count) {
            self.0[i * MOST + j].write(x);
        }
    }

    /// Line `i`, of which the first `count` values count.
    ///
    /// # Safety
    /// The value of the line in the first `count` columns is set.
    #[inline(always)]
    unsafe fn line(&self, s: S, i: usize, count: usize) -> [S::F; MOST] {
        let mut line = [s.splat(0.0); MOST];
        for (j, x) in line.iter_mut().enumerate().take(count) {
            // SAFETY: the caller has set it.
            *x = unsafe { self.0[i * MOST + j].assume_init() };
        }
        line
    }
}

/// # Safety
/// `p` is valid for a vector, or for what `mask` chooses.
#[inline(always)]
unsafe fn load<S: Simd>(s: S, p: *const f32, mask: Option<S::M>) -> S::F {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match mask {
            Some(m) => s.load_tail(p, m),
            None => s.load(p),
        }
    }
}
