//! The ways to compute a convolution, and which one is taken.

use galatea_runtime::tune::Space;
use galatea_tensor::DataType;

use super::build::Convolution;
use super::columns;
use super::cooperative::{CONFIGS as MATRICES, ConvConfig};
use super::gemm::{CONFIGS as TILES, ConvTiles, Packing};
use super::geometry::Lengths;
use super::product;
use super::windows::Spread;
use super::winograd::{CONFIGS as SHORT, WinogradConfig};
use crate::device::Capabilities;
use crate::kernel::Step;
use crate::matmul::Variant;
use crate::tune::{Family, Question, label, near, ways};

/// The most bytes of memory of its own that a way may ask for.
const MOST_BYTES: u64 = 512 << 20;

/// A way to compute a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A window a thread, weights as they are.
    Direct,
    /// A product of weights and pixels where they lie.
    Product,
    /// A product of weights and windows of an image that is written with its channels last.
    Windows,
    /// A product of weights and pixels, summed where a convolution that goes the other way puts them.
    Columns,
    /// A product of weights and windows where they lie, in FP32.
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
        include_str!("columns.wgsl"),
        include_str!("cooperative.wgsl"),
        include_str!("direct.wgsl"),
        include_str!("gemm.wgsl"),
        include_str!("gemm_params.wgsl"),
        include_str!("result.wgsl"),
        include_str!("spread.wgsl"),
        include_str!("winograd_image.wgsl"),
        include_str!("winograd_result.wgsl"),
    ],
);

/// Elements of the result of an image from which on matrices are worth their tiles.
const LEAST: usize = 4096;

/// Fewer channels than these are not tried with short products: transforms are all that they would do.
const FEWEST_CHANNELS: usize = 16;

/// More terms of a sum than these are not tried by single threads, unless nothing else is near.
const MOST_TERMS: usize = 576;

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
    /// How plain products are computed, whatever is chosen.
    pub(super) by: Option<Variant>,
}

impl Algorithm {
    fn label(&self) -> String {
        match self {
            Self::Direct => "direct".to_owned(),
            Self::Product => "product".to_owned(),
            Self::Windows => "windows".to_owned(),
            Self::Columns => "columns".to_owned(),
            Self::Tiled(own) => format!("tiled({})", label(own)),
            Self::Cooperative(own) => format!("cooperative({})", label(own)),
            Self::Winograd(own) => format!("winograd({})", label(own)),
        }
    }
}

impl Case<'_> {
    /// Products of a run: one for each group of channels of each image.
    pub(super) fn products(&self) -> usize {
        self.lengths.images * self.lengths.groups
    }

    /// Whether a way finds room for so many elements of its own.
    pub(super) fn has_room(&self, elements: usize, dtype: DataType) -> bool {
        let most = MOST_BYTES.min(self.capabilities.binding_bytes);
        let bytes = elements.checked_mul(dtype.size_bytes().unwrap_or(4));
        bytes.and_then(|bytes| u64::try_from(bytes).ok()).is_some_and(|bytes| bytes <= most)
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
        let short = short.chain(Spread::of(self).map(|_| Algorithm::Windows));
        let short = short.chain(columns::takes(self).then_some(Algorithm::Columns));
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
            let short = SHORT.iter().filter(|own| self.takes_tile(own));
            all.extend(short.map(|own| Algorithm::Winograd(*own)));
        }
        if product::takes(self) {
            all.push(Algorithm::Product);
        }
        all.extend(Spread::of(self).map(|_| Algorithm::Windows));
        all.extend(columns::takes(self).then_some(Algorithm::Columns));
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
}
