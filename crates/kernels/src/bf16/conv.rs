//! Convolutions over channels-last images by products of BF16.

#[cfg(target_arch = "x86_64")]
use super::drive::THIN_ROWS;
#[cfg(target_arch = "x86_64")]
use super::lines;
use super::write::Bf16ResultCells;
use super::{Bf16Epilogue, Bf16Product, Bf16Summand, PackedBf16, multiply};
use crate::KernelContext;
use crate::cell::{RealSlice, RealsMut};
use crate::conv::{ConvParams, ConvWindow, ImageBatch, ImageRows, volume};
use crate::gemm::{DenseRows, GemmEpilogue, TileFinish, Transposition, check_matrix};
use crate::isa::Bf16Isa;
#[cfg(target_arch = "x86_64")]
use crate::lines::{ByteImage, LineConv, WindowRuns};
use galatea_tensor::Tensor;
#[cfg(target_arch = "x86_64")]
use half::bf16;

/// The weights of a convolution, rounded to BF16 and packed once for all instructions: one matrix
/// (taps x in-channels, out-channels) per group.
#[derive(Clone, Debug)]
pub struct ConvBf16 {
    params: ConvParams,
    groups: Vec<PackedBf16>,
}

impl ConvBf16 {
    /// Packs weights in ONNX's order: out-channel, in-channel of the group, depth, height, width.
    ///
    /// # Panics
    /// Panics when `weights` has another length, or `params` contradicts itself.
    #[must_use]
    pub fn pack(params: ConvParams, weights: &[f32]) -> Self {
        params.check();
        let taps = params.taps();
        let groups = params.groups;
        let cin = params.in_channels / groups;
        let cout = params.out_channels / groups;
        let count = volume(&[params.out_channels, cin, taps]);
        assert!(weights.len() == count, "convolution: {} weights for {params:?}", weights.len());
        let k = taps * cin;
        // The gathered rows hold all channels of a tap together.
        let mut rows = vec![0.0; cout * k];
        let pack = |group: usize| {
            let weights = &weights[group * cout * k..(group + 1) * cout * k];
            for (row, weights) in
                rows.chunks_exact_mut(k.max(1)).zip(weights.chunks_exact(k.max(1)))
            {
                for (i, &weight) in weights.iter().enumerate() {
                    row[i % taps * cin + i / taps] = weight;
                }
            }
            PackedBf16::pack(k, cout, &rows, k, Transposition::Yes)
        };
        Self { params, groups: (0..groups).map(pack).collect() }
    }

    /// Weights that were packed before for as many channels, groups and taps: [`ConvBf16::data`] of
    /// that time, one part after the other. `None` where they do not fit.
    ///
    /// # Panics
    /// Panics when `params` contradicts itself.
    #[must_use]
    pub fn from_data(params: ConvParams, all: &Tensor) -> Option<Self> {
        params.check();
        let cin = params.in_channels / params.groups;
        let cout = params.out_channels / params.groups;
        let mut at = 0;
        let mut groups = Vec::with_capacity(params.groups);
        for _ in 0..params.groups {
            let group = PackedBf16::from_data(params.taps() * cin, cout, all, at)?;
            at += group.data().len();
            groups.push(group);
        }
        (all.elements() == at).then_some(Self { params, groups })
    }

    /// Lets the convolution pass over pairs of terms that are zero in 16 output channels, as
    /// [`PackedBf16::passing_over_zeros`] does.
    #[must_use]
    pub fn passing_over_zeros(self) -> Self {
        let groups = self.groups.into_iter().map(PackedBf16::passing_over_zeros).collect();
        Self { groups, ..self }
    }

    /// The packed weights, in parts that are whole numbers of cache lines.
    #[must_use]
    pub fn data(&self) -> Vec<&[f32]> {
        self.groups.iter().map(PackedBf16::data).collect()
    }

    /// Returns whether the packed weights lie in a mapped file.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.groups.iter().all(PackedBf16::is_mapped)
    }

    /// The same weights with another window step, distance and padding; `None` where the others
    /// differ.
    #[must_use]
    pub fn with_params(&self, params: ConvParams) -> Option<Self> {
        params.check();
        let form = |p: &ConvParams| (p.in_channels, p.out_channels, p.groups, p.kernel);
        (form(&self.params) == form(&params)).then(|| Self { params, ..self.clone() })
    }

    /// The constants.
    #[must_use]
    pub fn params(&self) -> &ConvParams {
        &self.params
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.groups.iter().map(PackedBf16::size_bytes).sum()
    }
}

/// How tiles may read an image of BF16. Only where runs are whole steps: what lies behind a run may be
/// infinite, so that no zero takes it away.
#[cfg(target_arch = "x86_64")]
fn runs_of(params: &ConvParams) -> Option<WindowRuns> {
    WindowRuns::of(params, size_of::<bf16>()).filter(WindowRuns::are_whole)
}

/// `y = epilogue(convolution of x)` with image and weights rounded to BF16 and FP32 sums; `beside`
/// joins as a residual of BF16.
///
/// Shapes: `x` is `[batch, depth, height, width, in_channels]`, as `image` says;
/// `y` is `[batch, …output_size(size), out_channels]`. To the epilogue, `y` is a matrix of one row
/// per output pixel.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or the image is BF16 and a group has an odd
/// number of channels.
pub fn conv_bf16(
    exec: KernelContext<'_>,
    packed: &ConvBf16,
    x: RealSlice<'_>,
    image: ImageBatch,
    y: RealsMut<'_>,
    epilogue: &GemmEpilogue<'_>,
    beside: Option<Bf16Summand<'_>>,
) {
    let ending = Bf16Epilogue { epilogue, beside };
    conv_with(exec, Bf16Isa::of(exec.isa), packed, x, image, y, ending);
}

/// [`conv_bf16`] with the instructions named.
pub(super) fn conv_with(
    exec: KernelContext<'_>,
    isa: Bf16Isa,
    packed: &ConvBf16,
    x: RealSlice<'_>,
    image: ImageBatch,
    y: RealsMut<'_>,
    ending: Bf16Epilogue<'_>,
) {
    let ImageBatch { batch, size } = image;
    let p = &packed.params;
    let out = p.output_size(size);
    let m = volume(&[batch, out[0], out[1], out[2]]);
    let in_pixels = volume(&[batch, size[0], size[1], size[2]]);
    check_matrix("image", x.len(), in_pixels, p.in_channels, p.in_channels);
    check_matrix("result", y.len(), m, p.out_channels, p.out_channels);
    ending.epilogue.check(m, p.out_channels);
    let finish = TileFinish::new(ending.epilogue);
    let y = Bf16ResultCells::of(y);
    let beside = ending.joined(m, p.out_channels, y);
    let cin = p.in_channels / p.groups;
    let cout = p.out_channels / p.groups;
    #[cfg(target_arch = "x86_64")]
    if let (RealSlice::Bf16(x), Some(amx), Some(runs)) = (x, isa.amx(), runs_of(p)) {
        let len = size_of_val(x);
        let picture = ByteImage { data: x.as_ptr().cast(), len, flip: 0, fill: 0 };
        let window = ConvWindow { params: *p, size, out };
        if let Some(a) = LineConv::of(&window, runs, picture, batch, THIN_ROWS + 1) {
            let matrix = &packed.groups[0];
            let adds = false;
            let pairs = true;
            let n = matrix.n();
            let k = matrix.k();
            let b = matrix.panels();
            let c = y;
            let c_stride = p.out_channels;
            let job = Bf16Product { m, n, k, a, pairs, b, c, c_stride, adds, finish, beside };
            // SAFETY: the lengths are checked above, and y is borrowed exclusively.
            unsafe { lines::multiply(exec, isa, amx, &job) };
            return;
        }
    }
    // An image of BF16 is one of half as many channels, which are pairs.
    let (x, params, pairs) = match x {
        RealSlice::Fp32(x) => (x.as_ptr(), *p, false),
        RealSlice::Bf16(x) => {
            assert!(cin.is_multiple_of(2), "a BF16 image with groups of {cin} channels");
            (x.as_ptr().cast(), ConvParams { in_channels: p.in_channels / 2, ..*p }, true)
        }
    };
    let window = ConvWindow { params, size, out };
    let adds = false;
    for (group, matrix) in packed.groups.iter().enumerate() {
        let image = x.wrapping_add(group * (params.in_channels / p.groups));
        let n = matrix.n();
        let k = matrix.k();
        let b = matrix.panels();
        let c = y.at(group * cout);
        let c_stride = p.out_channels;
        let finish = finish.shifted(0, group * cout);
        let beside = beside.map(|beside| beside.shifted(0, group * cout));
        if p.is_pointwise() {
            let a = DenseRows::new(image, params.in_channels);
            let job = Bf16Product { m, n, k, a, pairs, b, c, c_stride, adds, finish, beside };
            // SAFETY: the lengths are checked above, and y is borrowed exclusively.
            unsafe { multiply(exec, isa, &job) };
        } else {
            let a = ImageRows::new(&window, image);
            let job = Bf16Product { m, n, k, a, pairs, b, c, c_stride, adds, finish, beside };
            // SAFETY: the lengths are checked above, and y is borrowed exclusively.
            unsafe { multiply(exec, isa, &job) };
        }
    }
}
