//! Convolutions of BF16 and of bytes whose weights are zero in groups that kernels pass over.

use galatea_graph::Dim;
use galatea_graph::ops::convolution::Conv;
use galatea_kernels::bf16::{ZERO_PAIRS, passes_over_zeros, sparse_share_bf16};
use galatea_kernels::int8::{sparse_share, zero_group};
use galatea_kernels::isa::{Bf16Isa, DotIsa};
use galatea_kernels::{MatrixSize, ZeroGroup};
use galatea_tensor::Tensor;

use super::quantized::is_signed;
use super::sparse::measured;
use crate::cpu::CpuNodeView;

/// Fewest pixels of a result that keep a processor busy with tiles of one vector.
const MANY_PIXELS: usize = 32;

/// Pixels of a result whose size is not known.
const SOME_PIXELS: usize = 1024;

/// Weights of a convolution as a matrix: terms by tap and then channel, in the order of gathered rows.
struct ConvMatrix {
    taps: usize,
    channels: usize,
    columns: usize,
}

impl ConvMatrix {
    fn of(op: &Conv, weights: &Tensor) -> Result<Self, String> {
        let [columns, channels, kernel @ ..] = weights.shape() else {
            return Err("the weights have no channels".into());
        };
        if op.group > 1 {
            return Err(format!("{} groups: each is a small matrix", op.group));
        }
        let taps = kernel.iter().product();
        Ok(Self { taps, channels: *channels, columns: *columns })
    }

    /// Place of a weight in ONNX's order.
    fn at(&self, row: usize, column: usize) -> usize {
        (column * self.channels + row % self.channels) * self.taps + row / self.channels
    }

    /// Returns the share of groups that hold anything but zeros.
    fn full_share(&self, group: ZeroGroup, is_zero: &dyn Fn(usize) -> bool) -> Option<f64> {
        let size = MatrixSize { rows: self.taps * self.channels, columns: self.columns };
        group.full_share(size, &|row, column| is_zero(self.at(row, column)))
    }

    /// Refuses convolutions for which a dense kernel was measured to be faster.
    fn measured(
        &self,
        view: &CpuNodeView<'_>,
        pixels: usize,
        family: &str,
        full: f64,
    ) -> Result<(), String> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage")]
        let zeros = ((1.0 - full) * 100.0).round() as usize;
        let lengths = [
            ("m", pixels),
            ("k", self.taps * self.channels),
            ("n", self.columns),
            ("zeros", zeros),
        ];
        measured(view, family, &lengths).map_err(str::to_owned)
    }
}

/// Pixels of the images, as far as the graph announces them: a step of the window leaves fewer.
fn pixels(view: &CpuNodeView<'_>, op: &Conv) -> usize {
    let shape = view.input(0).and_then(|fact| fact.shape.as_deref()).unwrap_or_default();
    let lengths = match (op.channels_last, shape) {
        (false, [images, _, inner @ ..]) | (true, [images, inner @ .., _]) => {
            inner.iter().chain([images]).map(Dim::known).collect::<Option<Vec<usize>>>()
        }
        _ => None,
    };
    lengths.map_or(SOME_PIXELS, |all| all.into_iter().fold(1, usize::saturating_mul))
}

/// Refuses convolutions in BF16 that are not expected, or known, to be faster where zeros are passed over.
pub(super) fn supports_bf16_zeros(view: &CpuNodeView<'_>, op: &Conv) -> Result<(), String> {
    let pixels = pixels(view, op);
    passes_over_zeros(Bf16Isa::of(view.device.isa), pixels)?;
    let weights = view.constant(1).ok_or("the weights are no constant")?;
    let matrix = ConvMatrix::of(op, weights)?;
    let elements = weights.as_slice::<f32>().map_err(|error| error.to_string())?;
    let is_zero = |at: usize| elements.get(at).is_none_or(|weight| *weight == 0.0);
    let full = matrix.full_share(ZERO_PAIRS, &is_zero).ok_or("few weights are zero")?;
    let percent = ((1.0 - full) * 100.0).round();
    let said = format!("{percent} % of the pairs of weights are zero in 16 channels");
    if sparse_share_bf16(full).is_none() {
        return Err(format!("{said}: a dense convolution is faster"));
    }
    let measured = matrix.measured(view, pixels, "conv-bf16-sparse", full);
    measured.map_err(|reason| format!("{said}: {reason}"))
}

/// Refuses convolutions of bytes that are not expected, or known, to be faster where zeros are passed over. The weights
/// are the input of this number.
pub(super) fn supports_byte_zeros(
    view: &CpuNodeView<'_>,
    op: &Conv,
    input: usize,
) -> Result<(), String> {
    let group = zero_group(DotIsa::of(view.device.isa))?;
    let pixels = pixels(view, op);
    let weights = view.constant(input).ok_or("the weights are no constant")?;
    let matrix = ConvMatrix::of(op, weights)?;
    let whole = weights.contiguous().map_err(|error| error.to_string())?;
    let bytes = whole.as_bytes().map_err(|error| error.to_string())?;
    // What is packed as 0 adds nothing to the sums, whatever the zero points.
    let zero = if is_signed(weights.dtype())? { 0 } else { 0x80 };
    let is_zero = |at: usize| bytes.get(at).is_none_or(|byte| *byte == zero);
    let full = matrix.full_share(group, &is_zero);
    let full = full.ok_or("few weights are stored as 0, or as 128 where they are unsigned")?;
    let percent = ((1.0 - full) * 100.0).round();
    let said = format!(
        "{percent} % of the groups of {} weights are zero in {} channels",
        group.terms, group.columns
    );
    if sparse_share(full).is_none() || pixels < MANY_PIXELS {
        return Err(format!("{said}: a dense convolution is faster"));
    }
    let measured = matrix.measured(view, pixels, "conv-int8-sparse", full);
    measured.map_err(|reason| format!("{said}: {reason}"))
}
