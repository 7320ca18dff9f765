//! About how long each way to compute a convolution takes.

use galatea_tensor::DataType;

use super::algorithm::ConvAlgorithm;
use super::columns;
use super::cooperative::{BUSY, ConvConfig};
use super::geometry::ConvLengths;
use super::run_shape::ConvRunShape;
use super::tiles::WeightPacking;
use super::windows::SpreadImage;
use super::winograd::WinogradConfig;
use crate::device::GpuCapabilities;

/// Windows that a workgroup sums, four a thread.
const WINDOWS: usize = 1024;

/// About what a device does in a nanosecond. What counts is how the rates compare.
#[derive(Clone, Copy, Debug)]
struct DeviceRates {
    /// Operations of FP32.
    vector: f64,
    /// Operations of cooperative matrices.
    matrix: f64,
    /// Bytes of memory.
    bytes: f64,
    /// Nanoseconds of a dispatch among others.
    dispatch: f64,
    /// Processors that have workgroups of their own.
    processors: usize,
}

impl DeviceRates {
    /// Returns the rates of a GPU with memory of its own (measured), or of one that shares the CPU's memory
    /// (published). A CPU that emulates the GPU takes the former, to exercise the same choices.
    fn of(capabilities: &GpuCapabilities) -> Self {
        if capabilities.unified && !capabilities.software {
            let vector = 8e3;
            let matrix = 9e3;
            let bytes = 2.5e2;
            let dispatch = 3e3;
            return Self { vector, matrix, bytes, dispatch, processors: 20 };
        }
        Self { vector: 5e4, matrix: 7e5, bytes: 4e3, dispatch: 2.5e3, processors: 132 }
    }
}

/// Parts of the peak that kernels reach when the device is busy.
mod reached {
    pub(super) const DIRECT: f64 = 0.11;
    pub(super) const TILED: f64 = 0.42;
    pub(super) const COOPERATIVE: f64 = 0.085;
    /// Shares for plain matrix multiplications.
    pub(super) const PRODUCT: f64 = 0.9;
    pub(super) const HALF_PRODUCT: f64 = 0.25;
    /// Factors on the share of plain matrix multiplications: for few rows, and for one workgroup on each GPU
    /// core.
    pub(super) const FEW_ROWS: f64 = 0.6;
    pub(super) const ALONE: f64 = 0.7;
    /// Share of the memory peak for the bytes of their operands.
    pub(super) const MOVED: f64 = 0.4;
    /// Shares of the memory peak for the bytes of transforms. Their elements lie far apart: further in large
    /// tiles.
    pub(super) const TRANSFORM: f64 = 0.5;
    pub(super) const LARGE_TRANSFORM: f64 = 0.35;
    pub(super) const LARGEST_TRANSFORM: f64 = 0.3;
}

/// Nanoseconds for each term of a sum that a workgroup waits for, however few there are: of single threads, of tiles of
/// FP32, of the smallest tile of matrices (larger ones wait longer, as their sides do), and of plain products.
const DIRECT_WAIT: f64 = 100.0;
const WAIT: f64 = 38.0;
const MATRIX_WAIT: f64 = 15.0;
const PLAIN_WAIT: f64 = 30.0;
const HALF_WAIT: f64 = 12.0;
const SMALLEST: usize = 32 * 32;

/// Factors by which matrix multiplications take longer whose operands, or whose results, cannot be read as
/// vectors of four.
const ODD: f64 = 2.0;
const ODD_RESULT: f64 = 1.5;

/// Tiles that products take for enough, and elements of k for which another workgroup shares one otherwise.
const ENOUGH: usize = 96;
const SHARE: usize = 512;

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn real(count: usize) -> f64 {
    count as f64
}

fn bytes(dtype: DataType) -> f64 {
    real(dtype.size_bytes().unwrap_or(4))
}

/// `stack` products of `m × k` and `k × n`.
#[derive(Clone, Copy)]
struct ProductLengths {
    m: usize,
    n: usize,
    k: usize,
    stack: usize,
}

impl ProductLengths {
    fn tiles(&self, side: usize) -> usize {
        self.m.div_ceil(side) * self.n.div_ceil(side) * self.stack
    }

    /// Workgroups that share a small tile where tiles are few.
    fn shares(&self) -> usize {
        (2 * ENOUGH / self.tiles(64).max(1)).min(self.k / SHARE).max(1)
    }

    /// Their sums, which are written, read, and added by another dispatch.
    fn shared_ns(&self, shares: usize, rates: &DeviceRates) -> f64 {
        if shares == 1 {
            return 0.0;
        }
        let moved = 8.0 * real(shares * self.m) * real(self.n * self.stack);
        moved / (rates.bytes * reached::TRANSFORM) + rates.dispatch
    }

    /// By tiles of FP32. Processors compute two of them at a time, and those that find none left wait. It takes so many
    /// times as long where elements are read or written one by one.
    fn plain_ns(&self, odd: f64, rates: &DeviceRates) -> f64 {
        let large = self.tiles(128) >= ENOUGH;
        let (side, shares) = if large { (128, 1) } else { (64, self.shares()) };
        let groups = (self.tiles(side) * shares).div_ceil(rates.processors);
        let rounds =
            if groups > 1 { real(groups.next_multiple_of(2)) } else { 1.0 / reached::ALONE };
        let k = real(self.k) / real(shares);
        let each = rates.vector * reached::PRODUCT / real(rates.processors);
        let work = rounds * real(2 * side * side) * k / each;
        (work * odd).max(PLAIN_WAIT * k) + self.shared_ns(shares, rates)
    }

    /// By cooperative matrices.
    fn half_ns(&self, odd: f64, rates: &DeviceRates) -> f64 {
        let shares = self.shares();
        let groups = self.tiles(64) * shares;
        let few = if self.m <= 64 { reached::FEW_ROWS } else { 1.0 };
        let idle = (real(BUSY) / real(groups.max(1))).max(1.0 / few);
        let n = self.n.next_multiple_of(32);
        let work = 2.0 * real(self.m * n) * real(self.k * self.stack);
        let work = work * idle / (rates.matrix * reached::HALF_PRODUCT);
        (work * odd).max(HALF_WAIT * real(self.k) / real(shares)) + self.shared_ns(shares, rates)
    }
}

impl ConvRunShape<'_> {
    /// About how many nanoseconds a way takes: what the slower of arithmetic and memory takes in each dispatch.
    pub(super) fn cost_ns(&self, algorithm: &ConvAlgorithm) -> f64 {
        let rates = DeviceRates::of(self.capabilities);
        let WeightPacking { k, m, .. } = self.packing;
        match algorithm {
            ConvAlgorithm::Direct => {
                let groups = (m * self.lengths.pixels() * self.products()).div_ceil(WINDOWS);
                let work = real(2 * k * WINDOWS) * real(groups.max(BUSY));
                let work = (work / (rates.vector * reached::DIRECT)).max(DIRECT_WAIT * real(k));
                work.max(self.moved() / rates.bytes) + rates.dispatch
            }
            ConvAlgorithm::Tiled(own) => {
                let [rows, columns] = own.tile();
                self.tiles_ns(rows, columns, rates.vector * reached::TILED, WAIT, &rates)
            }
            ConvAlgorithm::Cooperative(ConvConfig { tile: [rows, columns, _], .. }) => {
                let wait = MATRIX_WAIT * (real(rows * columns) / real(SMALLEST)).sqrt();
                let rate = rates.matrix * reached::COOPERATIVE;
                self.tiles_ns(*rows, *columns, rate, wait, &rates)
            }
            ConvAlgorithm::Winograd(own) => self.short_ns(own, &rates),
            ConvAlgorithm::Product => self.pixels_ns(&rates),
            ConvAlgorithm::Windows => self.windows_ns(&rates),
            ConvAlgorithm::Columns => self.columns_ns(&rates),
        }
    }

    /// Tiles are computed as a whole, and few of them do not keep a device busy.
    fn tiles_ns(
        &self,
        rows: usize,
        columns: usize,
        rate: f64,
        wait: f64,
        rates: &DeviceRates,
    ) -> f64 {
        let WeightPacking { m_padded, k_padded, .. } = self.packing;
        let pixels = self.lengths.pixels().div_ceil(columns);
        let groups = m_padded.div_ceil(rows) * pixels * self.products();
        let work = real(2 * rows * columns * k_padded) * real(groups.max(BUSY)) / rate;
        work.max(wait * real(k_padded)).max(self.moved() / rates.bytes) + rates.dispatch
    }

    /// Bytes of image, weights and result.
    fn moved(&self) -> f64 {
        let [_, w, y] = self.stored.map(bytes);
        let weights = real(self.lengths.groups * self.packing.m * self.packing.k) * w;
        let pixels = self.products() * self.packing.m * self.lengths.pixels();
        self.seen() + weights + real(pixels) * y
    }

    /// Bytes of the image.
    fn seen(&self) -> f64 {
        let ConvLengths { images, groups, channels, input, .. } = &self.lengths;
        real(images * groups * channels * input.iter().product::<usize>()) * bytes(self.stored[0])
    }

    fn multiplied_ns(&self, lens: ProductLengths, odd: f64, rates: &DeviceRates) -> f64 {
        let matrices = !self.capabilities.cooperative.is_empty();
        match matrices && self.stored[1] == DataType::Fp16 {
            true => lens.half_ns(odd, rates),
            false => lens.plain_ns(odd, rates),
        }
    }

    /// A plain product of pixels where they lie: of each image by itself, unless channels come last. What does not lie
    /// by fours is read one by one.
    fn pixels_ns(&self, rates: &DeviceRates) -> f64 {
        let ConvLengths { images, channels, m, channels_last, .. } = self.lengths;
        let pixels = self.lengths.pixels();
        let single = channels_last || self.lengths.pixels() == 1;
        let (lens, fours) = match single {
            true => (ProductLengths { m, n: images * pixels, k: channels, stack: 1 }, channels),
            false => (ProductLengths { m, n: pixels, k: channels, stack: images }, pixels),
        };
        let odd = if fours.is_multiple_of(4) { 1.0 } else { ODD };
        self.product_ns(lens, odd, rates) + rates.dispatch
    }

    fn product_ns(&self, lens: ProductLengths, odd: f64, rates: &DeviceRates) -> f64 {
        self.multiplied_ns(lens, odd, rates).max(self.moved() / (rates.bytes * reached::MOVED))
    }

    /// The same behind an image that is written and read once more.
    fn windows_ns(&self, rates: &DeviceRates) -> f64 {
        let Some(spread) = SpreadImage::of(self) else { return f64::MAX };
        let n = self.lengths.images * self.lengths.pixels();
        let lens = ProductLengths { m: self.lengths.m, n, k: spread.k(), stack: 1 };
        let fours = self.lengths.channels_last || self.lengths.pixels().is_multiple_of(4);
        let odd = if fours { 1.0 } else { ODD_RESULT };
        let product = self.product_ns(lens, odd, rates) + rates.dispatch;
        if spread.lies(self) {
            return product;
        }
        let written = real(spread.elements()) * bytes(self.stored[1]);
        let turned = (self.seen() + written) / (rates.bytes * reached::TRANSFORM);
        product + turned + rates.dispatch
    }

    /// A product that is written, and read once more.
    fn columns_ns(&self, rates: &DeviceRates) -> f64 {
        let ConvLengths { images, groups, channels, .. } = self.lengths;
        let [m, n, all] = columns::sizes(&self.lengths);
        let lens = ProductLengths { m, n, k: channels, stack: images * groups };
        let moved = 8.0 * real(all) / (rates.bytes * reached::TRANSFORM);
        self.product_ns(lens, 1.0, rates) + moved + 2.0 * rates.dispatch
    }

    fn short_ns(&self, config: &WinogradConfig, rates: &DeviceRates) -> f64 {
        let ConvLengths { images, channels, m, output, .. } = &self.lengths;
        let tiles: usize = output[1..].iter().map(|len| len.div_ceil(config.tile)).product();
        let cells = config.cells();
        let tiles = tiles * images;
        let image = real(cells * channels * tiles) * bytes(self.stored[1]);
        let product = real(cells * m * tiles) * 4.0;
        let result = real(m * images * self.lengths.pixels()) * bytes(self.stored[2]);
        let part = match config.tile {
            2 => reached::TRANSFORM,
            4 => reached::LARGE_TRANSFORM,
            _ => reached::LARGEST_TRANSFORM,
        };
        let transformed = (self.seen() + image + product + result) / (rates.bytes * part);
        let lens = ProductLengths { m: *m, n: tiles, k: *channels, stack: cells };
        let weights = real(cells * m * channels) * bytes(self.stored[1]);
        let read = (weights + image + product) / rates.bytes;
        let parts = real(config.parts(&self.lengths));
        transformed + self.multiplied_ns(lens, 1.0, rates).max(read) + 3.0 * parts * rates.dispatch
    }
}
