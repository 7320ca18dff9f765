//! The way that is taken to compute a convolution.

use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;

use super::algorithm::ConvAlgorithm;
use super::columns;
use super::cooperative::{CONFIGS as MATRICES, ConvConfig};
use super::geometry::ConvLengths;
use super::product;
use super::run_shape::ConvRunShape;
use super::tiles::{CONFIGS as TILES, ConvTiles};
use super::windows::SpreadImage;
use super::winograd::{CONFIGS as SHORT, WinogradConfig};
use crate::choices::{KernelFamily, KernelQuestion, near, ways};
use crate::kernel::DispatchStep;

/// Convolutions, as records of measurements name them.
const FAMILY: KernelFamily = KernelFamily::new(
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
const MIN_CHANNELS: usize = 16;

/// Fewer transforms than these of the largest tiles leave a device idle while each takes its time.
const MIN_TRANSFORMS: usize = 1 << 16;

/// More terms of a sum than these are not tried by single threads, unless nothing else is near.
const MAX_TERMS: usize = 576;

impl ConvRunShape<'_> {
    /// Returns whether cooperative matrices can compute the matrix multiplication, with tiles that are not
    /// mostly empty.
    fn takes_matrices(&self) -> bool {
        let lengths = &self.lengths;
        let flat = lengths.window[0] == 1 && lengths.input[0] == 1 && lengths.pads[0] == 0;
        let m = lengths.m;
        let pixels = lengths.pixels();
        let enough = m >= 16 && pixels >= 16 && m * pixels >= LEAST;
        self.halves && flat && enough && !self.convolution.is_transposed()
    }

    fn takes_short(&self) -> bool {
        let ConvLengths { window, input, pads, channels, m, .. } = &self.lengths;
        let flat = input[0] == 1 && pads[0] == 0;
        let wide = *channels >= MIN_CHANNELS && *m >= MIN_CHANNELS;
        self.constant && *window == [1, 3, 3] && flat && wide && self.convolution.is_plain()
    }

    /// The tiles of transforms: large ones need the digits of FP32.
    fn takes_tile(&self, config: &WinogradConfig) -> bool {
        config.tile == 2 || self.stored[1] != DataType::Fp16
    }

    /// Returns whether a device has enough to do with tiles of which each thread transforms a whole one.
    fn fills(&self, config: &WinogradConfig) -> bool {
        let ConvLengths { images, channels, output, .. } = &self.lengths;
        let tiles: usize = output[1..].iter().map(|len| len.div_ceil(config.tile)).product();
        config.tile < 6 || images * tiles * channels >= MIN_TRANSFORMS
    }

    /// Returns the algorithms that a tuner may choose.
    pub(super) fn candidates(&self) -> Vec<ConvAlgorithm> {
        let m = self.packing.m_padded;
        let k = self.packing.k_padded;
        let tiles = TILES.iter().filter(|own| own.reads(&self.packing));
        let matrices = MATRICES.iter().filter(|own| {
            let [rows, _, deep] = own.tile;
            let reads = m.is_multiple_of(rows) && k.is_multiple_of(deep);
            self.takes_matrices() && reads && own.fits(self.capabilities)
        });
        let short = SHORT.iter().filter(|own| self.takes_short() && self.takes_tile(own));
        let direct = self.takes_direct() && self.packing.k <= MAX_TERMS;
        let tiles = tiles.map(|own| ConvAlgorithm::Tiled(*own));
        let matrices = matrices.map(|own| ConvAlgorithm::Cooperative(*own));
        let short = short.map(|own| ConvAlgorithm::Winograd(*own));
        let direct = direct.then_some(ConvAlgorithm::Direct);
        let short = short.chain(product::takes(self).then_some(ConvAlgorithm::Product));
        let short = short.chain(SpreadImage::of(self).map(|_| ConvAlgorithm::Windows));
        let short = short.chain(columns::takes(self).then_some(ConvAlgorithm::Columns));
        tiles.chain(matrices).chain(short).chain(direct).collect()
    }

    fn takes_direct(&self) -> bool {
        !self.convolution.is_transposed()
    }

    /// One of each kind, with the configuration that lengths suggest.
    fn usual(&self) -> Vec<ConvAlgorithm> {
        let mut all = vec![ConvAlgorithm::Tiled(ConvTiles::for_channels(self.packing.m))];
        if self.takes_matrices() {
            let m = self.packing.m_padded;
            let pixels = self.lengths.pixels();
            let config = ConvConfig::choose(self.capabilities, m, pixels, self.products());
            all.extend(config.map(ConvAlgorithm::Cooperative));
        }
        if self.takes_short() {
            let short = SHORT.iter().filter(|own| self.takes_tile(own) && self.fills(own));
            all.extend(short.map(|own| ConvAlgorithm::Winograd(*own)));
        }
        if product::takes(self) {
            all.push(ConvAlgorithm::Product);
        }
        all.extend(SpreadImage::of(self).map(|_| ConvAlgorithm::Windows));
        all.extend(columns::takes(self).then_some(ConvAlgorithm::Columns));
        if self.takes_direct() {
            all.push(ConvAlgorithm::Direct);
        }
        all
    }

    /// The one with the least estimate.
    pub(super) fn chosen(&self) -> ConvAlgorithm {
        let costs = self.usual().into_iter().map(|one| (self.cost_ns(&one), one));
        let least = costs.min_by(|(a, _), (b, _)| a.total_cmp(b));
        least.map_or(ConvAlgorithm::Direct, |(_, one)| one)
    }

    /// The one that was measured the fastest, where there is a record.
    pub(super) fn tuned(&self, step: &mut DispatchStep) -> ConvAlgorithm {
        let found = step.choose(&FAMILY, || self.question());
        let other = found.checked_sub(1).and_then(|at| self.candidates().get(at).copied());
        other.unwrap_or_else(|| self.chosen())
    }

    fn question(&self) -> KernelQuestion {
        let [x, w, y] = self.stored;
        let ConvLengths { window, strides, dilations, channels_last, .. } = &self.lengths;
        let back = if self.convolution.is_transposed() { " transposed" } else { "" };
        let last = if *channels_last { " channels last" } else { "" };
        let kept = if self.constant { "" } else { " unknown weights" };
        let halves = self.halves || self.stored.contains(&DataType::Fp16);
        let places = format!("window {window:?} {strides:?} {dilations:?}");
        KernelQuestion {
            variant: format!("{x}·{w}→{y}{back}{last}{kept} {places}"),
            lengths: vec![
                ("n", self.products()),
                ("pixels", self.lengths.pixels()),
                ("m", self.packing.m),
                ("k", self.packing.k),
            ],
            space: ConfigSpace::new(vec![ways(
                "way",
                self.candidates().iter().map(ConvAlgorithm::label),
            )]),
            tolerance: if halves { near::HALVES } else { near::SUMS },
        }
    }
}
