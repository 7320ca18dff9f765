//! The ways to compute a convolution, and about how long each takes.

use galatea_runtime::tune::Space;
use galatea_tensor::DataType;

use super::build::Convolution;
use super::cooperative::{BUSY, CONFIGS as MATRICES, ConvConfig};
use super::gemm::{CONFIGS as TILES, ConvTiles, Packing};
use super::geometry::Lengths;
use super::product;
use super::winograd::{CONFIGS as SHORT, WinogradConfig};
use crate::device::Capabilities;
use crate::kernel::Step;
use crate::tune::{Family, Question, label, near, ways};

/// A way to compute a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A window a thread, weights as they are.
    Direct,
    /// A product of weights and pixels where they lie.
    Product,
    /// A product of weights and windows, in FP32.
    Tiled(ConvTiles),
    /// The same by cooperative matrices of FP16.
    Cooperative(ConvConfig),
    /// Winograd's short products.
    Winograd(WinogradConfig),
}

/// Convolutions, as records of measurements name them.
pub(super) const FAMILY: Family = Family::new(
    "conv",
    &[
        include_str!("cooperative.wgsl"),
        include_str!("direct.wgsl"),
        include_str!("gemm.wgsl"),
        include_str!("gemm_params.wgsl"),
        include_str!("result.wgsl"),
        include_str!("winograd_image.wgsl"),
        include_str!("winograd_result.wgsl"),
    ],
);

/// Elements of the result of an image from which on matrices are worth their tiles.
const LEAST: usize = 4096;

/// Fewer channels than these are not tried with short products: transforms are all that they would do.
const FEWEST_CHANNELS: usize = 16;

/// Threads of a workgroup, where each sums a window.
const THREADS: usize = 256;

/// More terms of a sum than these are not tried by single threads, unless nothing else is near.
const MOST_TERMS: usize = 576;

/// About what a device does in a nanosecond. What counts is how the rates compare.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// Operations of FP32.
    vector: f64,
    /// Operations of cooperative matrices.
    matrix: f64,
    /// Bytes of memory.
    bytes: f64,
    /// Nanoseconds of a dispatch among others.
    dispatch: f64,
}

impl Rates {
    /// Those of a GPU with memory of its own (measured), or of one that shares the processor's (published). A
    /// processor that plays the GPU is there to try what the former do.
    fn of(capabilities: &Capabilities) -> Self {
        if capabilities.unified && !capabilities.software {
            return Self { vector: 8e3, matrix: 9e3, bytes: 2.5e2, dispatch: 3e3 };
        }
        Self { vector: 5e4, matrix: 7e5, bytes: 4e3, dispatch: 2.5e3 }
    }
}

/// Parts of the peak that kernels reach when the device is busy.
mod reached {
    pub(super) const DIRECT: f64 = 0.15;
    pub(super) const TILED: f64 = 0.5;
    pub(super) const COOPERATIVE: f64 = 0.06;
    /// Of short products: they are products of plain matrices.
    pub(super) const PRODUCT: f64 = 0.6;
    pub(super) const HALF_PRODUCT: f64 = 0.25;
    /// Of the bytes of transforms, whose elements lie far apart.
    pub(super) const TRANSFORM: f64 = 0.5;
}

/// A convolution of a run.
pub(super) struct Case<'a> {
    pub(super) convolution: &'a Convolution,
    pub(super) lengths: Lengths,
    /// Types of image, weights as they are kept, and result.
    pub(super) stored: [DataType; 3],
    pub(super) packing: Packing,
    /// Whether weights are known beforehand.
    pub(super) constant: bool,
    /// Whether operands may be rounded to FP16.
    pub(super) halves: bool,
    pub(super) capabilities: &'a Capabilities,
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn real(count: usize) -> f64 {
    count as f64
}

fn bytes(dtype: DataType) -> f64 {
    real(dtype.size_bytes().unwrap_or(4))
}

impl Algorithm {
    fn label(&self) -> String {
        match self {
            Self::Direct => "direct".to_owned(),
            Self::Product => "product".to_owned(),
            Self::Tiled(own) => format!("tiled({})", label(own)),
            Self::Cooperative(own) => format!("cooperative({})", label(own)),
            Self::Winograd(own) => format!("winograd({})", label(own)),
        }
    }
}

impl Case<'_> {
    /// Products of a run: one for each group of channels of each image.
    fn products(&self) -> usize {
        self.lengths.images * self.lengths.groups
    }

    /// Whether cooperative matrices can compute the product, and their tiles are not mostly empty.
    fn takes_matrices(&self) -> bool {
        let lengths = &self.lengths;
        let flat = lengths.window[0] == 1 && lengths.input[0] == 1 && lengths.pads[0] == 0;
        let (m, pixels) = (lengths.m, lengths.pixels());
        let enough = m >= 16 && pixels >= 16 && m * pixels >= LEAST;
        self.halves && flat && enough && !self.convolution.is_transposed()
    }

    fn takes_short(&self) -> bool {
        let Lengths { window, input, pads, channels, m, .. } = &self.lengths;
        let flat = input[0] == 1 && pads[0] == 0;
        let wide = *channels >= FEWEST_CHANNELS && *m >= FEWEST_CHANNELS;
        self.constant && *window == [1, 3, 3] && flat && wide && self.convolution.is_plain()
    }

    /// The tiles of transforms: large ones need the digits of FP32.
    fn takes_tile(&self, config: &WinogradConfig) -> bool {
        config.tile == 2 || self.stored[1] != DataType::Fp16
    }

    /// What a tuner may choose.
    pub(super) fn candidates(&self) -> Vec<Algorithm> {
        let (m, k) = (self.packing.m_padded, self.packing.k_padded);
        let tiles = TILES.iter().filter(|own| own.reads(&self.packing));
        let matrices = MATRICES.iter().filter(|own| {
            let [rows, _, deep] = own.tile;
            let reads = m.is_multiple_of(rows) && k.is_multiple_of(deep);
            self.takes_matrices() && reads && own.fits(self.capabilities)
        });
        let short = SHORT.iter().filter(|own| self.takes_short() && self.takes_tile(own));
        let direct = self.takes_direct() && self.packing.k <= MOST_TERMS;
        let tiles = tiles.map(|own| Algorithm::Tiled(*own));
        let matrices = matrices.map(|own| Algorithm::Cooperative(*own));
        let short = short.map(|own| Algorithm::Winograd(*own));
        let direct = direct.then_some(Algorithm::Direct);
        let short = short.chain(product::takes(self).then_some(Algorithm::Product));
        tiles.chain(matrices).chain(short).chain(direct).collect()
    }

    fn takes_direct(&self) -> bool {
        !self.convolution.is_transposed()
    }

    /// One of each kind, with the configuration that lengths suggest.
    fn usual(&self) -> Vec<Algorithm> {
        let mut all = vec![Algorithm::Tiled(ConvTiles::for_channels(self.packing.m))];
        if self.takes_matrices() {
            let (m, pixels) = (self.packing.m_padded, self.lengths.pixels());
            let config = ConvConfig::choose(self.capabilities, m, pixels, self.products());
            all.extend(config.map(Algorithm::Cooperative));
        }
        if self.takes_short() {
            all.push(Algorithm::Winograd(WinogradConfig::choose(self.stored[1])));
        }
        if product::takes(self) {
            all.push(Algorithm::Product);
        }
        if self.takes_direct() {
            all.push(Algorithm::Direct);
        }
        all
    }

    /// The one with the least estimate.
    pub(super) fn chosen(&self) -> Algorithm {
        let costs = self.usual().into_iter().map(|one| (self.cost_ns(&one), one));
        let least = costs.min_by(|(a, _), (b, _)| a.total_cmp(b));
        least.map_or(Algorithm::Direct, |(_, one)| one)
    }

    /// The one that was measured the fastest, where there is a record.
    pub(super) fn tuned(&self, step: &mut Step) -> Algorithm {
        let found = step.choose(&FAMILY, || self.question());
        let other = found.checked_sub(1).and_then(|at| self.candidates().get(at).copied());
        other.unwrap_or_else(|| self.chosen())
    }

    fn question(&self) -> Question {
        let [x, w, y] = self.stored;
        let Lengths { window, strides, dilations, channels_last, .. } = &self.lengths;
        let back = if self.convolution.is_transposed() { " transposed" } else { "" };
        let last = if *channels_last { " channels last" } else { "" };
        let kept = if self.constant { "" } else { " unknown weights" };
        let halves = self.halves || self.stored.contains(&DataType::Fp16);
        let places = format!("window {window:?} {strides:?} {dilations:?}");
        Question {
            variant: format!("{x}·{w}→{y}{back}{last}{kept} {places}"),
            lengths: vec![
                ("n", self.products()),
                ("pixels", self.lengths.pixels()),
                ("m", self.packing.m),
                ("k", self.packing.k),
            ],
            space: Space::new(vec![ways("way", self.candidates().iter().map(Algorithm::label))]),
            tolerance: if halves { near::HALVES } else { near::SUMS },
        }
    }

    /// About how many nanoseconds a way takes: what the slower of arithmetic and memory takes in each dispatch.
    pub(super) fn cost_ns(&self, algorithm: &Algorithm) -> f64 {
        let rates = Rates::of(self.capabilities);
        let Packing { m_padded, k_padded, k, m, .. } = self.packing;
        let (pixels, products) = (self.lengths.pixels(), self.products());
        // Tiles are computed as a whole, and few of them do not keep a device busy.
        let tiles = |rows: usize, columns: usize, rate: f64| {
            let groups = m_padded.div_ceil(rows) * pixels.div_ceil(columns) * products;
            let work = real(2 * rows * columns * k_padded) * real(groups.max(BUSY));
            (work / rate).max(self.moved() / rates.bytes) + rates.dispatch
        };
        match algorithm {
            Algorithm::Direct => {
                let groups = (m * pixels * products).div_ceil(THREADS);
                let work = real(2 * k * THREADS) * real(groups.max(BUSY));
                let rate = rates.vector * reached::DIRECT;
                (work / rate).max(self.moved() / rates.bytes) + rates.dispatch
            }
            Algorithm::Tiled(own) => {
                let [rows, columns] = own.tile();
                tiles(rows, columns, rates.vector * reached::TILED)
            }
            Algorithm::Cooperative(own) => {
                tiles(own.tile[0], own.tile[1], rates.matrix * reached::COOPERATIVE)
            }
            Algorithm::Winograd(own) => self.short_ns(own, &rates),
            Algorithm::Product => self.product_ns(&rates),
        }
    }

    /// A plain product, by whatever tiles keep the device busy.
    fn product_ns(&self, rates: &Rates) -> f64 {
        let Lengths { images, channels, m, .. } = &self.lengths;
        let columns = images * self.lengths.pixels();
        let rate = self.product_rate(rates);
        let groups = real(m.div_ceil(64) * columns.div_ceil(64));
        let idle = (real(BUSY) / groups).max(1.0);
        let work = 2.0 * real(m * columns * channels) * idle / rate;
        work.max(self.moved() / rates.bytes) + rates.dispatch
    }

    /// Operations of plain products in a nanosecond.
    fn product_rate(&self, rates: &Rates) -> f64 {
        let matrices = self.stored[1] == DataType::Fp16 && self.has_matrices();
        match matrices {
            true => rates.matrix * reached::HALF_PRODUCT,
            false => rates.vector * reached::PRODUCT,
        }
    }

    fn has_matrices(&self) -> bool {
        !self.capabilities.cooperative.is_empty()
    }

    /// Bytes of image, weights and result.
    fn moved(&self) -> f64 {
        let Lengths { images, groups, channels, input, .. } = &self.lengths;
        let [x, w, y] = self.stored.map(bytes);
        let image = real(images * groups * channels * input.iter().product::<usize>()) * x;
        let weights = real(groups * self.packing.m * self.packing.k) * w;
        image + weights + real(self.products() * self.packing.m * self.lengths.pixels()) * y
    }

    fn short_ns(&self, config: &WinogradConfig, rates: &Rates) -> f64 {
        let Lengths { images, channels, m, output, input, .. } = &self.lengths;
        let [x, w, y] = self.stored.map(bytes);
        let tiles: usize = output[1..].iter().map(|len| len.div_ceil(config.tile)).product();
        let (cells, tiles) = (real(config.cells()), real(tiles * images));
        let rate = self.product_rate(rates);
        let (c, m) = (real(*channels), real(*m));
        let (image, product) = (cells * c * tiles * w, cells * m * tiles * 4.0);
        let seen = real(images * channels * input.iter().product::<usize>()) * x;
        let result = m * real(images * self.lengths.pixels()) * y;
        let transformed = (seen + image + product + result) / (rates.bytes * reached::TRANSFORM);
        // Products of few tiles leave parts of the device idle.
        let groups = (m / 64.0).ceil() * (tiles / 64.0).ceil() * cells;
        let idle = (real(BUSY) / groups).max(1.0);
        let work = 2.0 * cells * m * c * tiles * idle / rate;
        let read = (cells * m * c * w + image + product) / rates.bytes;
        let parts = real(config.parts(&self.lengths));
        transformed + work.max(read) + 3.0 * parts * rates.dispatch
    }
}
