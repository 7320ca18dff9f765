//! Convolutions over channels-last images of one to three spatial dimensions.
//!
//! A dense or grouped convolution is a matrix product whose left-hand rows are gathered from the
//! image while they are copied into blocks, so no unfolded image is ever stored. A depthwise
//! convolution has a kernel of its own that runs over channels.

mod algorithm;
mod chain;
mod depthwise;
mod direct;
mod rows;
mod transposed;
mod winograd;

use half::bf16;

use crate::KernelContext;
use crate::gemm::{
    DenseRows, GemmEpilogue, GemmProduct, PackedB, PackedSparse, PlainMatrix, TileFinish,
    Transposition, ZeroPattern, check_matrix, depth_blocks, multiply, multiply_packed_sparse,
    promises_zeros,
};
use crate::isa::Isa;
use crate::matrix::{MatrixSize, StridedMatrix};
use crate::memory::{AlignedFloats, DisjointSlice, PackedStorage};
pub use algorithm::{CpuConvAlgorithm, candidates, choose, is_accurate, sparse_candidates};
pub use chain::{ChainLink, ConvChainSpec, conv_chain};
use galatea_tensor::Tensor;
pub(crate) use rows::{ConvWindow, ImageRows};
pub use transposed::{PackedTransposed, TransposedSizes, conv_transposed};

/// The constants of a convolution. Spatial dimensions are depth, height, width; a 2-D
/// convolution has depth 1, a 1-D one also height 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvParams {
    /// Channels of the image.
    pub in_channels: usize,
    /// Channels of the result.
    pub out_channels: usize,
    /// Size of the window.
    pub kernel: [usize; 3],
    /// Step of the window.
    pub stride: [usize; 3],
    /// Distance between the taps of the window.
    pub dilation: [usize; 3],
    /// Zeros before the image.
    pub pads_begin: [usize; 3],
    /// Zeros after the image.
    pub pads_end: [usize; 3],
    /// Into how many parts the channels fall that do not see each other.
    pub groups: usize,
}

/// Limit of every size and pad along a dimension: sums and products of two do not overflow.
const MOST: usize = 1 << 30;

impl ConvParams {
    /// A 2-D convolution with stride and dilation 1, no padding and one group.
    #[must_use]
    pub fn new_2d(in_channels: usize, out_channels: usize, kernel: [usize; 2]) -> Self {
        Self {
            in_channels,
            out_channels,
            kernel: [1, kernel[0], kernel[1]],
            stride: [1; 3],
            dilation: [1; 3],
            pads_begin: [0; 3],
            pads_end: [0; 3],
            groups: 1,
        }
    }

    /// The size of the result for an image of `size`; 0 where the window does not fit.
    #[must_use]
    pub fn output_size(&self, size: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|d| {
            let window = self.dilation[d] * (self.kernel[d].max(1) - 1) + 1;
            let padded = size[d] + self.pads_begin[d] + self.pads_end[d];
            if padded < window { 0 } else { (padded - window) / self.stride[d].max(1) + 1 }
        })
    }

    pub(crate) fn check(&self) {
        let c = self;
        let positive = |x: &[usize; 3]| x.iter().all(|&x| x > 0);
        assert!(
            positive(&c.kernel) && positive(&c.stride) && positive(&c.dilation) && c.groups > 0,
            "convolution: a zero in {c:?}"
        );
        let all = [c.kernel, c.stride, c.dilation, c.pads_begin, c.pads_end].concat();
        assert!(all.iter().all(|&x| x < MOST), "convolution: a size beyond {MOST} in {c:?}");
        assert!(
            c.in_channels.is_multiple_of(c.groups) && c.out_channels.is_multiple_of(c.groups),
            "convolution: {} groups of {} and {} channels",
            c.groups,
            c.in_channels,
            c.out_channels
        );
    }

    /// Returns whether every channel is a group by itself.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.in_channels == self.groups && self.out_channels == self.groups
    }

    pub(crate) fn taps(&self) -> usize {
        volume(&self.kernel)
    }

    /// In- and out-channels of a group.
    fn group_channels(&self) -> (usize, usize) {
        (self.in_channels / self.groups, self.out_channels / self.groups)
    }

    /// The same convolution with several groups in one, whose weights between groups are zeros, where
    /// a group alone would leave most lanes of a vector empty.
    fn merged(&self, isa: Isa) -> Self {
        let (_, cout) = self.group_channels();
        let most = (isa.lanes() / cout.max(1)).clamp(1, self.groups);
        let together = (1..=most).rev().find(|&n| self.groups.is_multiple_of(n)).unwrap_or(1);
        Self { groups: self.groups / together, ..*self }
    }

    /// Returns whether an output pixel needs exactly the input pixel at its place.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.taps() == 1
            && self.stride == [1; 3]
            && self.pads_begin == [0; 3]
            && self.pads_end == [0; 3]
    }
}

/// The weights of a convolution, packed once for an instruction set.
#[derive(Clone)]
pub struct PackedConv {
    params: ConvParams,
    algorithm: CpuConvAlgorithm,
    isa: Isa,
    weights: ConvWeights,
}

#[derive(Clone)]
enum ConvWeights {
    /// One matrix (taps x in-channels, out-channels) per group.
    Dense(Vec<PackedB>),
    /// The same without most zeros, for one group.
    Sparse(PackedSparse),
    /// Tap after tap, one value per channel.
    Depthwise(PackedStorage),
    /// One matrix (in-channels, out-channels) per point.
    Winograd(winograd::WinogradWeights),
}

impl std::fmt::Debug for PackedConv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedConv").field("params", &self.params).field("isa", &self.isa).finish()
    }
}

impl PackedConv {
    /// Packs weights in ONNX's order: out-channel, in-channel of the group, depth, height, width,
    /// for images of any size.
    ///
    /// # Panics
    /// Panics when `weights` has another length, or `params` contradicts itself.
    #[must_use]
    pub fn pack(isa: Isa, params: ConvParams, weights: &[f32]) -> Self {
        params.check();
        Self::pack_with(isa, params, weights, CpuConvAlgorithm::for_any_size(&params))
    }

    /// [`PackedConv::pack`] for one algorithm.
    ///
    /// # Panics
    /// Panics when `weights` has another length, `params` contradicts itself, or the algorithm does
    /// not fit them.
    #[must_use]
    pub fn pack_with(
        isa: Isa,
        params: ConvParams,
        weights: &[f32],
        algorithm: CpuConvAlgorithm,
    ) -> Self {
        params.check();
        assert!(algorithm.fits(&params), "convolution: {} of {params:?}", algorithm.name());
        let cin = params.in_channels / params.groups;
        assert!(
            weights.len() == volume(&[params.out_channels, cin, params.taps()]),
            "convolution: {} weights for {params:?}",
            weights.len()
        );
        let weights = match (algorithm.side(), algorithm) {
            (Some(side), _) => {
                ConvWeights::Winograd(winograd::WinogradWeights::pack(isa, &params, side, weights))
            }
            (None, CpuConvAlgorithm::Depthwise) => {
                ConvWeights::Depthwise(pack_depthwise(&params, weights))
            }
            (None, CpuConvAlgorithm::Sparse(layout)) => {
                let rows = weight_rows(&params, weights);
                let packed = PackedSparse::pack(isa, rows_matrix(&params, &rows), layout);
                assert!(packed.is_some(), "convolution: {} of these weights", layout.name());
                packed.map_or(ConvWeights::Dense(Vec::new()), ConvWeights::Sparse)
            }
            (None, _) => ConvWeights::Dense(pack_dense(isa, &params, weights)),
        };
        Self { params, algorithm, isa, weights }
    }

    /// Weights that were packed before, for the same instruction set, algorithm and as many
    /// channels, groups and taps: [`PackedConv::data`] of that time, one part after the other.
    /// `None` where they do not fit.
    ///
    /// # Panics
    /// Panics when `params` contradicts itself, or the algorithm does not fit them.
    #[must_use]
    pub fn from_data(
        isa: Isa,
        params: ConvParams,
        algorithm: CpuConvAlgorithm,
        all: &Tensor,
    ) -> Option<Self> {
        params.check();
        assert!(algorithm.fits(&params), "convolution: {} of {params:?}", algorithm.name());
        let mut at = 0;
        let weights = match (algorithm.side(), algorithm) {
            (Some(side), _) => {
                let (weights, end) = winograd::WinogradWeights::from_data(isa, &params, side, all)?;
                at = end;
                ConvWeights::Winograd(weights)
            }
            (None, CpuConvAlgorithm::Depthwise) => {
                let data = PackedStorage::given(all, 0, params.taps() * params.groups)?;
                at += data.as_slice().len();
                ConvWeights::Depthwise(data)
            }
            (None, CpuConvAlgorithm::Sparse(layout)) => {
                let size = MatrixSize {
                    rows: params.taps() * params.in_channels,
                    columns: params.out_channels,
                };
                at = all.elements();
                ConvWeights::Sparse(PackedSparse::from_data(isa, size, layout, all, 0)?)
            }
            (None, _) => {
                let merged = params.merged(isa);
                let (cin, cout) = merged.group_channels();
                let mut groups = Vec::with_capacity(merged.groups);
                for _ in 0..merged.groups {
                    let group = PackedB::from_data(isa, params.taps() * cin, cout, all, at)?;
                    at += group.data().len();
                    groups.push(group);
                }
                ConvWeights::Dense(groups)
            }
        };
        (all.elements() == at).then_some(Self { params, algorithm, isa, weights })
    }

    /// The algorithm that the weights are packed for.
    #[must_use]
    pub fn algorithm(&self) -> CpuConvAlgorithm {
        self.algorithm
    }

    /// Returns whether what the result holds before can be the residual: each element is written
    /// once.
    #[must_use]
    pub fn joins_result(&self) -> bool {
        match self.algorithm {
            CpuConvAlgorithm::Packed => {
                self.matrices().iter().all(|matrix| depth_blocks(matrix.k()).count() == 1)
            }
            // Their tiles overlap at the end of a line.
            CpuConvAlgorithm::Direct
            | CpuConvAlgorithm::Depthwise
            | CpuConvAlgorithm::Sparse(_) => false,
            CpuConvAlgorithm::Winograd2
            | CpuConvAlgorithm::Winograd4
            | CpuConvAlgorithm::Winograd6 => true,
        }
    }

    /// The matrices, where the weights are matrices.
    fn matrices(&self) -> &[PackedB] {
        match &self.weights {
            ConvWeights::Dense(matrices) => matrices,
            ConvWeights::Winograd(weights) => std::slice::from_ref(&weights.matrix),
            ConvWeights::Depthwise(_) | ConvWeights::Sparse(_) => &[],
        }
    }

    /// The packed weights, in parts that are whole numbers of cache lines.
    #[must_use]
    pub fn data(&self) -> Vec<&[f32]> {
        match &self.weights {
            ConvWeights::Depthwise(data) => vec![data.as_slice()],
            ConvWeights::Sparse(packed) => vec![packed.data()],
            _ => self.matrices().iter().map(PackedB::data).collect(),
        }
    }

    /// Returns whether the packed weights lie in a mapped file.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        match &self.weights {
            ConvWeights::Depthwise(data) => data.is_mapped(),
            ConvWeights::Sparse(packed) => packed.is_mapped(),
            _ => self.matrices().iter().all(PackedB::is_mapped),
        }
    }

    /// The same weights with another window step, distance and padding; `None` where the others
    /// differ, on which the packed form depends, or the algorithm does not fit.
    #[must_use]
    pub fn with_params(&self, params: ConvParams) -> Option<Self> {
        params.check();
        let own = &self.params;
        let form = |p: &ConvParams| (p.in_channels, p.out_channels, p.groups, p.kernel);
        let fits = form(own) == form(&params) && self.algorithm().fits(&params);
        fits.then(|| Self { params, ..self.clone() })
    }

    /// The constants.
    #[must_use]
    pub fn params(&self) -> &ConvParams {
        &self.params
    }

    /// Memory held by the weights, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.data().into_iter().map(size_of_val).sum()
    }
}

/// One value per channel, tap after tap.
fn pack_depthwise(params: &ConvParams, weights: &[f32]) -> PackedStorage {
    let taps = params.taps();
    let groups = params.groups;
    let mut by_tap = AlignedFloats::lasting(taps * groups);
    let out = by_tap.as_mut_slice();
    for (channel, w) in weights.chunks_exact(taps).enumerate() {
        for (tap, &w) in w.iter().enumerate() {
            out[tap * groups + channel] = w;
        }
    }
    PackedStorage::own(by_tap)
}

/// One matrix per group, or per few groups. The gathered rows hold all channels of a tap together.
fn pack_dense(isa: Isa, params: &ConvParams, weights: &[f32]) -> Vec<PackedB> {
    let merged = params.merged(isa);
    let taps = params.taps();
    let together = params.groups / merged.groups;
    let (own, own_out) = params.group_channels();
    let (cin, cout) = merged.group_channels();
    let k = taps * cin;
    let mut rows = vec![0.0; cout * k];
    let pack = |group: usize| {
        let w = &weights[group * cout * own * taps..(group + 1) * cout * own * taps];
        let out_channels = rows.chunks_exact_mut(k.max(1)).zip(w.chunks_exact((own * taps).max(1)));
        for (out, (row, w)) in out_channels.enumerate() {
            // Where the channels of this group start among those of all that are together.
            let first = out / own_out.max(1) * own;
            debug_assert!(first + own <= together * own);
            for (i, &w) in w.iter().enumerate() {
                row[i % taps * cin + first + i / taps] = w;
            }
        }
        PackedB::pack(isa, k, cout, &rows, k, Transposition::Yes)
    };
    (0..merged.groups).map(pack).collect()
}

/// Weights of a convolution of one group as rows of taps and in-channels, one per out-channel.
fn weight_rows(params: &ConvParams, weights: &[f32]) -> Vec<f32> {
    let (taps, cin) = (params.taps(), params.in_channels);
    let mut rows = vec![0.0; weights.len()];
    for (row, w) in
        rows.chunks_exact_mut((taps * cin).max(1)).zip(weights.chunks_exact((taps * cin).max(1)))
    {
        for (i, &w) in w.iter().enumerate() {
            row[i % taps * cin + i / taps] = w;
        }
    }
    rows
}

fn rows_matrix<'a>(params: &ConvParams, rows: &'a [f32]) -> PlainMatrix<'a> {
    let k = params.taps() * params.in_channels;
    let data = StridedMatrix::new(rows, k);
    PlainMatrix { data, k, n: params.out_channels, trans: Transposition::Yes }
}

/// Looks for the zeros of weights in ONNX's order; `None` where there are too few to be of use, or the
/// channels fall into groups.
///
/// # Panics
/// Panics when `weights` has another length than `params` says.
#[must_use]
pub fn weight_zeros(isa: Isa, params: &ConvParams, weights: &[f32]) -> Option<ZeroPattern> {
    if params.groups != 1 || !promises_zeros(weights) {
        return None;
    }
    if params.taps() == 1 {
        return ZeroPattern::of(isa, &rows_matrix(params, weights));
    }
    ZeroPattern::of(isa, &rows_matrix(params, &weight_rows(params, weights)))
}

/// Sizes of the images of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageBatch<const AXES: usize = 3> {
    /// Number of images.
    pub batch: usize,
    /// Lengths of the spatial axes of each: depth, height and width, or the last two of them.
    pub size: [usize; AXES],
}

/// `y = epilogue(convolution of x)`.
///
/// Shapes: `x` is `[batch, depth, height, width, in_channels]` with `size` = depth, height,
/// width; `y` is `[batch, …output_size(size), out_channels]`. To the epilogue, `y` is a matrix
/// of one row per output pixel; its residual may be what `y` holds where
/// [`PackedConv::joins_result`] says so.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or the weights are packed for another
/// instruction set than `exec.isa`.
pub fn conv(
    exec: KernelContext<'_>,
    packed: &PackedConv,
    x: &[f32],
    batch: usize,
    size: [usize; 3],
    y: &mut [f32],
    epilogue: &GemmEpilogue<'_>,
) {
    let p = &packed.params;
    assert!(size.iter().all(|&x| x < MOST), "convolution: an image of {size:?}");
    assert!(packed.isa == exec.isa, "weights are packed for {}", packed.isa.name());
    let out = p.output_size(size);
    let pixels = volume(&[batch, out[0], out[1], out[2]]);
    let in_pixels = volume(&[batch, size[0], size[1], size[2]]);
    check_matrix("image", x.len(), in_pixels, p.in_channels, p.in_channels);
    check_matrix("result", y.len(), pixels, p.out_channels, p.out_channels);
    epilogue.check_over(pixels, p.out_channels, packed.joins_result());
    if pixels == 0 || p.out_channels == 0 {
        return;
    }
    let y = DisjointSlice::new(y);
    let finish = TileFinish::over(epilogue, y.ptr());
    let window = ConvWindow { params: *p, size, out };
    match &packed.weights {
        // SAFETY: the lengths are checked above, and y is borrowed exclusively.
        ConvWeights::Depthwise(weights) => unsafe {
            depthwise::run(exec, &window, x, batch, weights.as_slice(), y, finish);
        },
        // SAFETY: as above; the algorithm fits the parameters.
        ConvWeights::Winograd(weights) => unsafe {
            winograd::run(exec, &window, x, batch, weights, y, finish);
        },
        ConvWeights::Sparse(b) => {
            let (m, n, k) = (pixels, b.n(), b.k());
            let c_stride = p.out_channels;
            let (c, source) = (y, b.as_source());
            if p.is_pointwise() {
                let a = DenseRows::new(x.as_ptr(), p.in_channels);
                let product = GemmProduct { m, n, k, a, b: source, c, c_stride, finish };
                // SAFETY: as above.
                unsafe { multiply_packed_sparse(exec, &product, b) };
            } else {
                let a = ImageRows::new(&window, x.as_ptr());
                let product = GemmProduct { m, n, k, a, b: source, c, c_stride, finish };
                // SAFETY: as above.
                unsafe { multiply_packed_sparse(exec, &product, b) };
            }
        }
        ConvWeights::Dense(groups) => {
            if let (CpuConvAlgorithm::Direct, [b]) = (packed.algorithm, &groups[..]) {
                // SAFETY: as above; the algorithm fits the parameters.
                unsafe { direct::run(exec, &window, x, batch, b, y, finish) };
                return;
            }
            let window = ConvWindow { params: p.merged(exec.isa), ..window };
            let (cin, cout) = window.params.group_channels();
            for (group, b) in groups.iter().enumerate() {
                let image = x.as_ptr().wrapping_add(group * cin);
                let n = b.n();
                let k = b.k();
                let c = y.at(group * cout);
                let c_stride = p.out_channels;
                let finish = finish.shifted(0, group * cout);
                let b = b.as_source();
                if p.is_pointwise() {
                    let a = DenseRows::new(image, p.in_channels);
                    let product = GemmProduct { m: pixels, n, k, a, b, c, c_stride, finish };
                    // SAFETY: the lengths are checked above, and y is borrowed exclusively.
                    unsafe { multiply(exec, 1, |_| product) };
                } else {
                    let a = ImageRows::new(&window, image);
                    let product = GemmProduct { m: pixels, n, k, a, b, c, c_stride, finish };
                    // SAFETY: the lengths are checked above, and y is borrowed exclusively.
                    unsafe { multiply(exec, 1, |_| product) };
                }
            }
        }
    }
}

/// [`conv`] of an image of BF16 to one, for weights that are packed for [`CpuConvAlgorithm::Depthwise`]:
/// products and sums are FP32, and results are rounded once, or twice around an activation that is
/// no clamp.
///
/// # Panics
/// Panics like [`conv`], or when the weights are packed for another algorithm.
pub fn conv_depthwise_bf16(
    exec: KernelContext<'_>,
    packed: &PackedConv,
    x: &[bf16],
    image: ImageBatch,
    y: &mut [bf16],
    epilogue: &GemmEpilogue<'_>,
) {
    let ImageBatch { batch, size } = image;
    let p = &packed.params;
    assert!(size.iter().all(|&x| x < MOST), "convolution: an image of {size:?}");
    assert!(packed.isa == exec.isa, "weights are packed for {}", packed.isa.name());
    let out = p.output_size(size);
    let pixels = volume(&[batch, out[0], out[1], out[2]]);
    let in_pixels = volume(&[batch, size[0], size[1], size[2]]);
    check_matrix("image", x.len(), in_pixels, p.in_channels, p.in_channels);
    check_matrix("result", y.len(), pixels, p.out_channels, p.out_channels);
    epilogue.check(pixels, p.out_channels);
    let name = packed.algorithm.name();
    assert!(packed.algorithm == CpuConvAlgorithm::Depthwise, "weights are packed for {name}");
    let ConvWeights::Depthwise(weights) = &packed.weights else { return };
    if pixels == 0 || p.out_channels == 0 {
        return;
    }
    let finish = TileFinish::new(epilogue);
    let y = DisjointSlice::new(y);
    let window = ConvWindow { params: *p, size, out };
    // SAFETY: the lengths are checked above, and y is borrowed exclusively.
    unsafe { depthwise::run(exec, &window, x, batch, weights.as_slice(), y, finish) };
}

/// The product of sizes.
///
/// # Panics
/// Panics when it does not fit.
#[track_caller]
pub(crate) fn volume(sizes: &[usize]) -> usize {
    let product = sizes.iter().try_fold(1usize, |v, &s| v.checked_mul(s));
    assert!(product.is_some(), "a size beyond memory: {sizes:?}");
    product.unwrap_or(usize::MAX)
}

#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod tests;
