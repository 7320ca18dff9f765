//! Ways to compute a convolution, and which is the fastest for a shape.

use super::winograd::{self, TileSide};
use super::{ConvParams, direct, volume};
use crate::gemm::{SparseLayout, ZeroPattern};
use crate::isa::Isa;

/// A way to compute a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuConvAlgorithm {
    /// One matrix product per group, whose rows are gathered from the image block by block.
    Packed,
    /// The register tile reads the image in place: for images with few channels.
    Direct,
    /// Channel by channel, vectors over channels.
    Depthwise,
    /// Minimal filtering with tiles of 2 x 2 outputs.
    Winograd2,
    /// Minimal filtering with tiles of 4 x 4 outputs.
    Winograd4,
    /// Minimal filtering with tiles of 6 x 6 outputs.
    Winograd6,
    /// [`CpuConvAlgorithm::Packed`] with weights without most of their zeros.
    Sparse(SparseLayout),
}

/// Bytes of weights that come from memory while a vector is multiplied and added once.
const BYTES_PER_STEP: f64 = 6.0;

/// Terms of a sum that the start and the end of a register tile take as long as.
const TILE_TERMS: usize = 16;

/// All algorithms.
const ALL: [CpuConvAlgorithm; 6] = [
    CpuConvAlgorithm::Packed,
    CpuConvAlgorithm::Direct,
    CpuConvAlgorithm::Depthwise,
    CpuConvAlgorithm::Winograd2,
    CpuConvAlgorithm::Winograd4,
    CpuConvAlgorithm::Winograd6,
];

impl CpuConvAlgorithm {
    /// A short name for reports and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Direct => "direct",
            Self::Depthwise => "depthwise",
            Self::Winograd2 => "winograd2",
            Self::Winograd4 => "winograd4",
            Self::Winograd6 => "winograd6",
            Self::Sparse(layout) => layout.name(),
        }
    }

    /// The algorithm of that [`CpuConvAlgorithm::name`].
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let sparse = SparseLayout::ALL.map(Self::Sparse);
        ALL.into_iter().chain(sparse).find(|algorithm| algorithm.name() == name)
    }

    /// Returns whether the algorithm computes such convolutions.
    #[must_use]
    pub fn fits(self, params: &ConvParams) -> bool {
        match self {
            Self::Packed => !params.is_depthwise(),
            Self::Sparse(_) => params.groups == 1,
            Self::Direct => direct::fits(params),
            Self::Depthwise => params.is_depthwise(),
            Self::Winograd2 | Self::Winograd4 | Self::Winograd6 => winograd::fits(params),
        }
    }

    /// The algorithm for images of which nothing is known.
    #[must_use]
    pub fn for_any_size(params: &ConvParams) -> Self {
        let all = [Self::Depthwise, Self::Direct];
        all.into_iter().find(|algorithm| algorithm.fits(params)).unwrap_or(Self::Packed)
    }

    pub(super) fn side(self) -> Option<TileSide> {
        match self {
            Self::Winograd2 => Some(TileSide::Two),
            Self::Winograd4 => Some(TileSide::Four),
            Self::Winograd6 => Some(TileSide::Six),
            _ => None,
        }
    }

    /// About how many times a thread multiplies and adds vectors.
    fn cost(self, isa: Isa, p: &ConvParams, images: usize, size: [usize; 3]) -> f64 {
        let float = |x: usize| x as f64;
        let [depth, height, width] = p.output_size(size);
        let images = float(images) * float(depth);
        let cin = p.in_channels / p.groups;
        let cout = p.out_channels;
        let vectors = |channels: usize| float(channels.div_ceil(isa.lanes()));
        let bytes = float(volume(&[p.taps(), cin, cout])) * 4.0;
        let Some(side) = self.side() else {
            let pixels = images * float(height) * float(width);
            let sums = pixels * float(p.taps()) * float(cin) * vectors(cout);
            // Rows of a product are copied, in short pieces where there are few channels.
            let copies = if self == Self::Packed { 16.0 * float(p.taps()) * pixels } else { 0.0 };
            return sums + copies + bytes / BYTES_PER_STEP;
        };
        let length = side.len();
        let points = float(side.points());
        let tiles = images * float(height.div_ceil(length)) * float(width.div_ceil(length));
        // Additions of a one-dimensional transform, in pairs.
        let lines = float(length + 2);
        let sums = float(length * (length + 2)) / 2.0;
        let inputs = 2.0 * lines * sums + 2.0 * points;
        let outputs = (lines + float(length)) * sums + points + float(length * length);
        tiles * (points * float(cin + TILE_TERMS) * vectors(cout))
            + tiles * (inputs * vectors(cin) + outputs * vectors(cout))
            + bytes / 9.0 * points / BYTES_PER_STEP
    }
}

/// The algorithms that compute a convolution, the likely fastest for images of `size` first.
///
/// # Panics
/// Panics when `params` contradicts itself.
#[must_use]
pub fn candidates(
    isa: Isa,
    params: &ConvParams,
    batch: usize,
    size: [usize; 3],
) -> Vec<CpuConvAlgorithm> {
    params.check();
    let cost = |algorithm: CpuConvAlgorithm| algorithm.cost(isa, params, batch, size);
    let mut found: Vec<_> = ALL.into_iter().filter(|algorithm| algorithm.fits(params)).collect();
    found.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)));
    found
}

/// Greatest error beside the size of a result that minimal filtering with the largest tiles may be
/// expected to have, as root mean squares: a sixteenth of what a result loses that is rounded to FP16.
const MAX_EXPECTED_ERROR: f64 = 1.0 / 65_536.0;

/// Returns whether an algorithm keeps the error of sums near that of a plain product, for weights in
/// ONNX's order. Only the largest tiles of minimal filtering may not, by what is expected of the
/// weights.
///
/// # Panics
/// Panics when `weights` has another length than `params` says.
#[must_use]
pub fn is_accurate(algorithm: CpuConvAlgorithm, params: &ConvParams, weights: &[f32]) -> bool {
    let Some(side) = algorithm.side().filter(|_| algorithm == CpuConvAlgorithm::Winograd6) else {
        return true;
    };
    algorithm.fits(params) && winograd::expected_error(params, side, weights) <= MAX_EXPECTED_ERROR
}

/// Sparse forms of the algorithm with packed weights that are likely faster for images of `size` than
/// every dense algorithm that [`choose`] may give, the best first.
///
/// # Panics
/// Panics when `params` contradicts itself.
#[must_use]
pub fn sparse_candidates(
    isa: Isa,
    params: &ConvParams,
    batch: usize,
    size: [usize; 3],
    zeros: &ZeroPattern,
) -> Vec<CpuConvAlgorithm> {
    params.check();
    if params.groups != 1 {
        return Vec::new();
    }
    let [depth, height, width] = params.output_size(size);
    let pixels = volume(&[batch, depth, height, width]);
    let dense = choose(isa, params, batch, size).cost(isa, params, batch, size);
    let packed = CpuConvAlgorithm::Packed.cost(isa, params, batch, size);
    let wins = |layout: &SparseLayout| {
        zeros.share(pixels, *layout).is_some_and(|share| share * packed < 0.9 * dense)
    };
    zeros.layouts(pixels).into_iter().filter(wins).map(CpuConvAlgorithm::Sparse).collect()
}

/// The algorithm that is likely the fastest for images of `size`, of those that keep the error of
/// sums near that of a plain product.
///
/// # Panics
/// Panics when `params` contradicts itself.
#[must_use]
pub fn choose(isa: Isa, params: &ConvParams, batch: usize, size: [usize; 3]) -> CpuConvAlgorithm {
    let exact = |algorithm: &CpuConvAlgorithm| *algorithm != CpuConvAlgorithm::Winograd6;
    let all = candidates(isa, params, batch, size);
    all.into_iter().find(exact).unwrap_or_else(|| CpuConvAlgorithm::for_any_size(params))
}
