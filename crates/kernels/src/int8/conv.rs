//! Convolutions of bytes over channels-last images: products whose rows are gathered from the image.

use super::depthwise::{self, Int8Channels};
use super::drive::multiply;
#[cfg(target_arch = "x86_64")]
use super::lines;
use super::micro::Int8Output;
#[cfg(target_arch = "x86_64")]
use super::pack::FLIP;
use super::pack::{ColumnScales, PackedInt8};
use super::product::{ByteRows, DenseBytes, Int8Product};
#[cfg(target_arch = "x86_64")]
use super::tiles::MIN_ROWS;
use super::{ByteForm, Int8Target, QuantizedBytes};
use crate::KernelContext;
use crate::conv::{ConvParams, ConvWindow, ImageBatch, volume};
use crate::gemm::check_matrix;
use crate::isa::DotIsa;
#[cfg(target_arch = "x86_64")]
use crate::lines::{ByteImage, LineConv, WindowRuns};

/// Most taps of a depthwise window: sums of so many products of bytes are exact as `f32`.
const MAX_TAPS: usize = 256;

/// The weights of a convolution of bytes, packed once.
#[derive(Clone, Debug)]
pub struct Int8Conv {
    params: ConvParams,
    dot: DotIsa,
    weights: PackedInt8ConvWeights,
    /// How the terms lie where the image may be read by tiles.
    #[cfg(target_arch = "x86_64")]
    runs: Option<WindowRuns>,
}

#[derive(Clone, Debug)]
enum PackedInt8ConvWeights {
    /// One matrix (taps x in-channels, out-channels) per group.
    Dense(Vec<PackedInt8>),
    /// Tap after tap, one value per channel, less its zero point.
    Depthwise(Vec<f32>),
}

/// Finish of the sums of each output channel, like [`ColumnScales`] for products.
#[derive(Clone, Debug)]
pub struct ConvColumns(PreparedInt8Conv);

#[derive(Clone, Debug)]
enum PreparedInt8Conv {
    Dense(Vec<ColumnScales>),
    Depthwise { offsets: Vec<f32>, scales: Vec<f32> },
}

/// Quantised weights in ONNX's order: out-channel, in-channel of the group, depth, height, width.
#[derive(Clone, Copy, Debug)]
pub struct Int8ConvWeights<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// True if they are two's complement.
    pub signed: bool,
    /// Their zero points: one, or one for each output channel.
    pub zeros: &'a [i32],
}

impl Int8ConvWeights<'_> {
    pub(super) fn zero(&self, channel: usize) -> i32 {
        self.zeros[if self.zeros.len() == 1 { 0 } else { channel }]
    }

    pub(super) fn value(&self, at: usize) -> i32 {
        let byte = self.data[at];
        if self.signed { byte.cast_signed().into() } else { byte.into() }
    }
}

impl Int8Conv {
    /// Packs weights. With `scaled` the results are always scaled, which depthwise convolutions
    /// use; sums as they are need it to be false.
    ///
    /// # Panics
    /// Panics when there are not as many weights or zero points as `params` says, or these
    /// contradict themselves.
    #[must_use]
    pub fn pack(
        dot: DotIsa,
        params: ConvParams,
        weights: Int8ConvWeights<'_>,
        scaled: bool,
    ) -> Self {
        params.check();
        let groups = params.groups;
        let cin = params.in_channels / groups;
        let cout = params.out_channels / groups;
        let taps = params.taps();
        let count = volume(&[params.out_channels, cin, taps]);
        assert!(weights.data.len() == count, "{} weights for {params:?}", weights.data.len());
        let zeros = weights.zeros.len();
        assert!(zeros == 1 || zeros == params.out_channels, "{zeros} zero points for {params:?}");
        let one_to_one = groups > 1 && cin == 1 && cout == 1;
        let weights = if scaled && one_to_one && taps <= MAX_TAPS {
            let value = |tap: usize, channel: usize| {
                (weights.value(channel * taps + tap) - weights.zero(channel)) as f32
            };
            let by_tap = (0..taps).flat_map(|tap| (0..groups).map(move |c| value(tap, c)));
            PackedInt8ConvWeights::Depthwise(by_tap.collect())
        } else {
            let weight = |group: usize, column: usize, (tap, channel): (usize, usize)| {
                weights.data[((group * cout + column) * cin + channel) * taps + tap]
            };
            #[cfg(target_arch = "x86_64")]
            if let Some(runs) = runs_of(dot, &params, weights) {
                let of = |row, column| runs.weight(row).map_or(0, |at| weight(0, column, at));
                let packed = PackedInt8::pack(dot, runs.terms(), cout, true, of);
                return Self {
                    params,
                    dot,
                    weights: PackedInt8ConvWeights::Dense(vec![packed]),
                    runs: Some(runs),
                };
            }
            // The gathered rows hold all channels of a tap together.
            let pack = |group: usize| {
                PackedInt8::pack(dot, taps * cin, cout, weights.signed, |row, column| {
                    weight(group, column, (row / cin, row % cin))
                })
            };
            PackedInt8ConvWeights::Dense((0..groups).map(pack).collect())
        };
        Self {
            params,
            dot,
            weights,
            #[cfg(target_arch = "x86_64")]
            runs: None,
        }
    }

    /// Lets the convolution pass over groups of terms that are zero in a vector of output channels, as
    /// [`PackedInt8::passing_over_zeros`] does. Without effect on depthwise weights.
    #[must_use]
    pub fn passing_over_zeros(self) -> Self {
        let weights = match self.weights {
            PackedInt8ConvWeights::Dense(groups) => PackedInt8ConvWeights::Dense(
                groups.into_iter().map(PackedInt8::passing_over_zeros).collect(),
            ),
            depthwise @ PackedInt8ConvWeights::Depthwise(_) => depthwise,
        };
        Self { weights, ..self }
    }

    /// The constants.
    #[must_use]
    pub fn params(&self) -> &ConvParams {
        &self.params
    }

    /// Memory held by the weights, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match &self.weights {
            PackedInt8ConvWeights::Dense(groups) => groups.iter().map(PackedInt8::size_bytes).sum(),
            PackedInt8ConvWeights::Depthwise(data) => size_of_val(&data[..]),
        }
    }

    /// Prepares the output channels for an image of this form: `bias` is added to
    /// the sums, then they are multiplied by `scale(channel)`.
    ///
    /// # Panics
    /// Panics when there are not as many biases or zero points as channels.
    #[must_use]
    pub fn columns(
        &self,
        image: ByteForm,
        zeros: &[i32],
        bias: Option<&[i32]>,
        scale: impl Fn(usize) -> f32,
    ) -> ConvColumns {
        let channels = self.params.out_channels;
        if let Some(bias) = bias {
            assert!(bias.len() == channels, "{} biases for {channels} channels", bias.len());
        }
        ConvColumns(match &self.weights {
            PackedInt8ConvWeights::Depthwise(_) => PreparedInt8Conv::Depthwise {
                offsets: (0..channels).map(|c| bias.map_or(0.0, |bias| bias[c] as f32)).collect(),
                scales: (0..channels).map(scale).collect(),
            },
            PackedInt8ConvWeights::Dense(groups) => {
                let cout = channels / self.params.groups;
                #[cfg(target_arch = "x86_64")]
                assert!(
                    self.runs.is_none() || zeros.iter().all(|&zero| zero == 0),
                    "zero points of weights that were packed without"
                );
                let of = |(group, packed): (usize, &PackedInt8)| {
                    let range = group * cout..(group + 1) * cout;
                    let zeros = if zeros.len() == 1 { zeros } else { &zeros[range.clone()] };
                    let columns = ColumnScales::new(packed, image, zeros);
                    let columns = columns.with_scales(|column| scale(group * cout + column));
                    match bias {
                        Some(bias) => columns.with_sums(&bias[range]),
                        None => columns,
                    }
                };
                PreparedInt8Conv::Dense(groups.iter().enumerate().map(of).collect())
            }
        })
    }
}

/// The convolution of `x`, with what `columns` does to its sums.
///
/// Shapes: `x` is `[batch, depth, height, width, in_channels]`, as `image` says;
/// the target is `[batch, …output_size(size), out_channels]`. Padding stands for zeros.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, the columns are prepared for other weights
/// or another form of `x`, or sums of any kind are wanted of depthwise weights packed to be scaled.
pub fn conv_int8(
    exec: KernelContext<'_>,
    packed: &Int8Conv,
    x: QuantizedBytes<'_>,
    image: ImageBatch,
    columns: &ConvColumns,
    target: Int8Target<'_>,
) {
    let ImageBatch { batch, size } = image;
    let p = &packed.params;
    let out = p.output_size(size);
    let pixels = volume(&[batch, out[0], out[1], out[2]]);
    let in_pixels = volume(&[batch, size[0], size[1], size[2]]);
    check_matrix("image", x.data.len(), in_pixels, p.in_channels, p.in_channels);
    check_matrix("result", target.len(), pixels, p.out_channels, p.out_channels);
    if pixels == 0 || p.out_channels == 0 {
        return;
    }
    let window = ConvWindow { params: *p, size, out };
    let out = target.out();
    match (&packed.weights, &columns.0) {
        (
            PackedInt8ConvWeights::Depthwise(weights),
            PreparedInt8Conv::Depthwise { offsets, scales },
        ) => {
            let counts = [weights.len() / p.taps(), offsets.len(), scales.len()];
            assert!(counts == [p.out_channels; 3], "{counts:?} channels for {p:?}");
            let channels = Int8Channels { weights, offsets, scales };
            let writes = matches!(out, Int8Output::Bytes { .. } | Int8Output::Floats(_));
            assert!(writes, "a depthwise convolution that makes sums");
            // SAFETY: the lengths are checked above, and the target is borrowed exclusively.
            unsafe { depthwise::run(exec, packed.dot, &window, x, batch, channels, out) };
        }
        (PackedInt8ConvWeights::Dense(groups), PreparedInt8Conv::Dense(columns)) => {
            assert!(groups.len() == columns.len(), "columns of {} groups", columns.len());
            let cin = p.in_channels / p.groups;
            let cout = p.out_channels / p.groups;
            for (group, (b, columns)) in groups.iter().zip(columns).enumerate() {
                columns.check(b, x.signed);
                let image = x.data.as_ptr().wrapping_add(group * cin);
                let job = Int8Product {
                    m: pixels,
                    n: b.n(),
                    k: p.taps() * cin,
                    a: (),
                    signed: x.signed,
                    b: b.panels(),
                    columns: columns.pointers(),
                    out: out.at(group * cout),
                    c_stride: p.out_channels,
                };
                #[cfg(target_arch = "x86_64")]
                if let (Some(runs), DotIsa::Amx(amx, vectors)) = (packed.runs, packed.dot) {
                    let len = in_pixels * p.in_channels;
                    let flip = if x.signed { FLIP } else { 0 };
                    let picture = ByteImage { data: image, len, flip, fill: fill(x) };
                    let lines = LineConv::of(&window, runs, picture, batch, MIN_ROWS);
                    if let Some(lines) = lines {
                        // SAFETY: the lengths are checked above, and the target is borrowed
                        // exclusively.
                        unsafe { lines::multiply(exec, amx, vectors, &job.with(lines)) };
                        continue;
                    }
                }
                // SAFETY: the lengths are checked above, and the target is borrowed exclusively.
                unsafe {
                    if p.is_pointwise() && p.groups == 1 {
                        multiply(exec, packed.dot, &job.with(DenseBytes::new(image, cin)));
                    } else {
                        let fill = fill(x);
                        let rows = ImageBytes { window: &window, image, channels: cin, fill };
                        multiply(exec, packed.dot, &job.with(rows));
                    }
                }
            }
        }
        _ => assert!(
            matches!(columns.0, PreparedInt8Conv::Dense(_)),
            "columns of another convolution"
        ),
    }
}

/// How tiles may read an image: where there are tiles, and weights have no zero points.
#[cfg(target_arch = "x86_64")]
fn runs_of(dot: DotIsa, params: &ConvParams, weights: Int8ConvWeights<'_>) -> Option<WindowRuns> {
    let symmetric = weights.signed && weights.zeros.iter().all(|&zero| zero == 0);
    (symmetric && matches!(dot, DotIsa::Amx(..))).then(|| WindowRuns::of(params, 1)).flatten()
}

/// The byte that stands for zero in an image.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a zero point is a byte"
)]
fn fill(x: QuantizedBytes<'_>) -> u8 {
    x.zero as u8
}

/// Rows gathered from one group's channels of an image: one per output pixel.
#[derive(Clone, Copy)]
struct ImageBytes<'a> {
    window: &'a ConvWindow,
    image: *const u8,
    /// Channels of the group.
    channels: usize,
    /// The byte of the padding.
    fill: u8,
}

// SAFETY: a read-only view of a slice that the caller of the convolution holds while tasks run.
unsafe impl Send for ImageBytes<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for ImageBytes<'_> {}

impl ByteRows for ImageBytes<'_> {
    #[inline(always)]
    unsafe fn copy(&self, row: usize, rows: usize, out: *mut u8, stride: usize) {
        let w = self.window;
        let p = &w.params;
        let run = p.kernel[2] * self.channels;
        let (mut batch, mut place) = w.place(row);
        for r in 0..rows {
            let mut to = out.wrapping_add(r * stride);
            for kd in 0..p.kernel[0] {
                let depth = w.tap(0, place[0], kd);
                for kh in 0..p.kernel[1] {
                    // SAFETY: the caller vouches for whole rows; the taps are inside the image.
                    unsafe {
                        match (depth, w.tap(1, place[1], kh)) {
                            (Some(d), Some(h)) => {
                                let line = ((batch * w.size[0] + d) * w.size[1] + h) * w.size[2];
                                self.line(line, place[2], to);
                            }
                            _ => std::ptr::write_bytes(to, self.fill, run),
                        }
                    }
                    to = to.wrapping_add(run);
                }
            }
            place[2] += 1;
            w.carry(&mut batch, &mut place);
        }
    }

    fn direct(&self) -> Option<(*const u8, usize)> {
        None
    }
}

impl ImageBytes<'_> {
    /// Copies the taps of one window row, whose image row starts with pixel `line`.
    ///
    /// # Safety
    /// The image row exists, and `to` is valid for the taps.
    #[inline(always)]
    unsafe fn line(&self, line: usize, column: usize, to: *mut u8) {
        let w = self.window;
        let p = &w.params;
        let c = self.channels;
        let taps = p.kernel[2];
        let first = (column * p.stride[2]).wrapping_sub(p.pads_begin[2]);
        let inside = first < w.size[2] && first + (taps - 1) * p.dilation[2] < w.size[2];
        // SAFETY: pixels below `size` of this row are inside the image.
        unsafe {
            if inside && p.groups == 1 && p.dilation[2] == 1 {
                copy_bytes(self.image.add((line + first) * c), to, taps * c);
                return;
            }
            for tap in 0..taps {
                let to = to.add(tap * c);
                match w.tap(2, column, tap) {
                    Some(x) => copy_bytes(self.image.add((line + x) * p.in_channels), to, c),
                    None => std::ptr::write_bytes(to, self.fill, c),
                }
            }
        }
    }
}

/// Copies a few bytes faster than a call would.
///
/// # Safety
/// Both are valid for `len` bytes and do not overlap.
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each piece ends at `len` at the latest.
    unsafe {
        if len >= 64 {
            let mut at = 0;
            while at + 64 <= len {
                copy_piece::<64>(from.add(at), to.add(at));
                at += 64;
            }
            copy_piece::<64>(from.add(len - 64), to.add(len - 64));
        } else if len >= 16 {
            let mut at = 0;
            while at + 16 <= len {
                copy_piece::<16>(from.add(at), to.add(at));
                at += 16;
            }
            copy_piece::<16>(from.add(len - 16), to.add(len - 16));
        } else if len >= 8 {
            copy_piece::<8>(from, to);
            copy_piece::<8>(from.add(len - 8), to.add(len - 8));
        } else if len >= 4 {
            copy_piece::<4>(from, to);
            copy_piece::<4>(from.add(len - 4), to.add(len - 4));
        } else {
            for at in 0..len {
                *to.add(at) = *from.add(at);
            }
        }
    }
}

/// # Safety
/// Both are valid for `N` bytes.
#[inline(always)]
unsafe fn copy_piece<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller vouches for both; bytes need no alignment.
    unsafe { *to.cast::<[u8; N]>() = *from.cast::<[u8; N]>() };
}
