//! Packed weights: from where they are kept, or packed here.

use galatea_kernels::bf16::{ConvBf16, PackedBf16};
use galatea_kernels::conv::{ConvParams, CpuConvAlgorithm, PackedConv, PackedTransposed};
use galatea_kernels::gemm::{PackedFp16, PackedSparse, PlainMatrix, SparseLayout};
use galatea_kernels::lstm::{gate_columns, interleave_gates};
use galatea_kernels::{Isa, MatrixSize, PackedB, StridedMatrix, Transposition};
use galatea_tensor::Tensor;

use super::kernel::CpuNodeView;

/// The layouts that the kernels pack to. A change of one is a new number: packed weights of before
/// are not found any more.
pub const LAYOUTS: u32 = 4;

/// A matrix of a constant input.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantMatrix {
    /// The input of the node.
    pub(super) input: usize,
    /// The element where the matrix starts.
    pub(super) start: usize,
    /// Rows of the product's right-hand side.
    pub(super) k: usize,
    /// Its columns.
    pub(super) n: usize,
    /// How it lies in the constant, whose rows follow each other.
    pub(super) trans: Transposition,
    /// The factor of every element.
    pub(super) factor: f32,
}

impl ConstantMatrix {
    /// The packed matrix.
    ///
    /// # Errors
    /// Fails when the input is no FP32 constant, or too short.
    pub(super) fn packed(&self, view: &CpuNodeView<'_>) -> Result<PackedB, String> {
        let Self { input, k, n, trans, .. } = *self;
        let form = self.dense_form(view);
        let weights =
            view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
        let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
        if let Some(found) = kept
            && let Some(packed) = PackedB::from_data(view.device.isa, k, n, &found, 0)
        {
            return Ok(packed);
        }
        let elements = self.elements(view)?;
        let row = if trans == Transposition::Yes { k } else { n };
        let packed = PackedB::pack(view.device.isa, k, n, &elements, row, trans);
        if let Some(keeper) = view.device.packed {
            keeper.keep(weights, &form, &[packed.data()]);
        }
        Ok(packed)
    }

    /// The key of the dense form.
    fn dense_form(&self, view: &CpuNodeView<'_>) -> String {
        let Self { start, k, n, trans, factor, .. } = *self;
        let (name, factor) = (view.device.isa.name(), factor.to_bits());
        format!("matrix {LAYOUTS} {name} {start} {k} {n} {trans:?} {factor:x}")
    }

    /// Returns whether a dense form was packed before.
    pub(super) fn is_kept(&self, view: &CpuNodeView<'_>) -> bool {
        let weights = view.constant(self.input);
        let kept = view.device.packed.zip(weights);
        kept.is_some_and(|(packed, weights)| packed.find(weights, &self.dense_form(view)).is_some())
    }

    /// The matrix packed without most of its zeros.
    ///
    /// # Errors
    /// Fails like [`ConstantMatrix::packed`], or when the layout does not hold the matrix.
    pub(super) fn packed_sparse(
        &self,
        view: &CpuNodeView<'_>,
        layout: SparseLayout,
    ) -> Result<PackedSparse, String> {
        let Self { input, k, n, trans, .. } = *self;
        let isa = view.device.isa;
        let form = format!("{} {}", layout.name(), self.dense_form(view));
        let weights =
            view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
        let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
        let size = MatrixSize { rows: k, columns: n };
        let found = kept.and_then(|all| PackedSparse::from_data(isa, size, layout, &all, 0));
        if let Some(packed) = found {
            return Ok(packed);
        }
        let elements = self.elements(view)?;
        let row = if trans == Transposition::Yes { k } else { n };
        let data = StridedMatrix::new(&elements[..], row);
        let packed = PackedSparse::pack(isa, PlainMatrix { data, k, n, trans }, layout)
            .ok_or_else(|| format!("the weights do not fit {}", layout.name()))?;
        if let Some(keeper) = view.device.packed {
            keeper.keep(weights, &form, &[packed.data()]);
        }
        Ok(packed)
    }

    /// The matrix rounded to BF16 and packed.
    ///
    /// # Errors
    /// Fails like [`ConstantMatrix::packed`].
    pub(super) fn packed_bf16(&self, view: &CpuNodeView<'_>) -> Result<PackedBf16, String> {
        let Self { input, start, k, n, trans, factor } = *self;
        let factor = factor.to_bits();
        let form = format!("matrix-bf16 {LAYOUTS} {start} {k} {n} {trans:?} {factor:x}");
        let weights =
            view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
        let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
        if let Some(packed) = kept.and_then(|found| PackedBf16::from_data(k, n, &found, 0)) {
            return Ok(packed);
        }
        let row = if trans == Transposition::Yes { k } else { n };
        let packed = PackedBf16::pack(k, n, &self.elements(view)?, row, trans);
        if let Some(keeper) = view.device.packed {
            keeper.keep(weights, &form, &[packed.data()]);
        }
        Ok(packed)
    }

    /// The matrix rounded to FP16 and packed.
    ///
    /// # Errors
    /// Fails like [`ConstantMatrix::packed`].
    pub(super) fn packed_fp16(&self, view: &CpuNodeView<'_>) -> Result<PackedFp16, String> {
        let Self { input, start, k, n, trans, factor } = *self;
        let isa = view.device.isa;
        let factor = factor.to_bits();
        let name = isa.name();
        let form = format!("matrix-fp16 {LAYOUTS} {name} {start} {k} {n} {trans:?} {factor:x}");
        let weights =
            view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
        let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
        if let Some(packed) = kept.and_then(|found| PackedFp16::from_data(isa, k, n, &found, 0)) {
            return Ok(packed);
        }
        let row = if trans == Transposition::Yes { k } else { n };
        let packed = PackedFp16::pack(isa, k, n, &self.elements(view)?, row, trans);
        if let Some(keeper) = view.device.packed {
            keeper.keep(weights, &form, &[packed.data()]);
        }
        Ok(packed)
    }

    /// The elements as they lie in the constant, multiplied by the factor.
    fn elements(&self, view: &CpuNodeView<'_>) -> Result<Vec<f32>, String> {
        let Self { input, start, k, n, factor, .. } = *self;
        let mut elements = view.constant_floats(input)?;
        let end = start.checked_add(k * n).filter(|&end| end <= elements.len());
        let end = end.ok_or_else(|| format!("input {input} has {} elements", elements.len()))?;
        elements.truncate(end);
        elements.drain(..start);
        if factor.to_bits() != 1.0_f32.to_bits() {
            elements.iter_mut().for_each(|weight| *weight *= factor);
        }
        Ok(elements)
    }
}

/// Packed weights of the gates of an LSTM, interleaved: `[4 * hidden, k]` from element `start` of
/// an input on.
///
/// # Errors
/// Fails like [`ConstantMatrix::packed`].
pub(super) fn gates(
    view: &CpuNodeView<'_>,
    input: usize,
    start: usize,
    k: usize,
    hidden: usize,
) -> Result<PackedB, String> {
    let isa: Isa = view.device.isa;
    let form = format!("gates {LAYOUTS} {} {start} {k} {hidden}", isa.name());
    let n = gate_columns(isa, hidden);
    let weights = view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
    let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
    if let Some(packed) = kept.and_then(|found| PackedB::from_data(isa, k, n, &found, 0)) {
        return Ok(packed);
    }
    let trans = Transposition::Yes;
    let rows =
        ConstantMatrix { input, start, k, n: 4 * hidden, trans, factor: 1.0 }.elements(view)?;
    let packed = PackedB::pack(isa, k, n, &interleave_gates(isa, hidden, k, &rows), k, trans);
    if let Some(keeper) = view.device.packed {
        keeper.keep(weights, &form, &[packed.data()]);
    }
    Ok(packed)
}

/// The key of packed weights of a convolution.
fn convolution_form(isa: Isa, params: ConvParams, algorithm: CpuConvAlgorithm) -> String {
    let ConvParams { in_channels, out_channels, kernel, groups, .. } = params;
    format!(
        "convolution {LAYOUTS} {} {} {in_channels} {out_channels} {kernel:?} {groups}",
        isa.name(),
        algorithm.name(),
    )
}

/// Returns whether weights were packed for the algorithm before.
pub(super) fn is_convolution_kept(
    view: &CpuNodeView<'_>,
    input: usize,
    params: ConvParams,
    algorithm: CpuConvAlgorithm,
) -> bool {
    let form = convolution_form(view.device.isa, params, algorithm);
    let kept = view.device.packed.zip(view.constant(input));
    kept.is_some_and(|(packed, weights)| packed.find(weights, &form).is_some())
}

/// Packed weights of a convolution. Window step, distance and padding do not matter to the layout.
///
/// # Errors
/// Fails when the input is no FP32 constant, or of another size.
pub(super) fn convolution(
    view: &CpuNodeView<'_>,
    input: usize,
    params: ConvParams,
    algorithm: CpuConvAlgorithm,
) -> Result<PackedConv, String> {
    let ConvParams { in_channels, out_channels, kernel, groups, .. } = params;
    let isa: Isa = view.device.isa;
    let form = convolution_form(isa, params, algorithm);
    let weights: &Tensor =
        view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
    let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
    if let Some(packed) =
        kept.and_then(|found| PackedConv::from_data(isa, params, algorithm, &found))
    {
        return Ok(packed);
    }
    let elements = view.constant_floats(input)?;
    let taps: usize = kernel.iter().product();
    if elements.len() != out_channels * (in_channels / groups) * taps {
        return Err(format!("{} weights for {params:?}", elements.len()));
    }
    let packed = PackedConv::pack_with(isa, params, &elements, algorithm);
    if let Some(keeper) = view.device.packed {
        keeper.keep(weights, &form, &packed.data());
    }
    Ok(packed)
}

/// Rounds the weights of a convolution to BF16 and packs them, like [`convolution`].
///
/// # Errors
/// Fails like [`convolution`].
pub(super) fn convolution_bf16(
    view: &CpuNodeView<'_>,
    input: usize,
    params: ConvParams,
) -> Result<ConvBf16, String> {
    let ConvParams { in_channels, out_channels, kernel, groups, .. } = params;
    let form =
        format!("convolution-bf16 {LAYOUTS} {in_channels} {out_channels} {kernel:?} {groups}");
    let weights: &Tensor =
        view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
    let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
    if let Some(packed) = kept.and_then(|found| ConvBf16::from_data(params, &found)) {
        return Ok(packed);
    }
    let elements = view.constant_floats(input)?;
    let taps: usize = kernel.iter().product();
    if elements.len() != out_channels * (in_channels / groups) * taps {
        return Err(format!("{} weights for {params:?}", elements.len()));
    }
    let packed = ConvBf16::pack(params, &elements);
    if let Some(keeper) = view.device.packed {
        keeper.keep(weights, &form, &packed.data());
    }
    Ok(packed)
}

/// Packed weights of a transposed convolution. Window step, distance and padding do not matter to the
/// layout.
///
/// # Errors
/// Fails when the input is no FP32 constant, or of another size.
pub(super) fn transposed(
    view: &CpuNodeView<'_>,
    input: usize,
    params: ConvParams,
) -> Result<PackedTransposed, String> {
    let ConvParams { in_channels, out_channels, kernel, groups, .. } = params;
    let isa: Isa = view.device.isa;
    let form = format!(
        "transposed {LAYOUTS} {} {in_channels} {out_channels} {kernel:?} {groups}",
        isa.name()
    );
    let weights: &Tensor =
        view.constant(input).ok_or_else(|| format!("input {input} is no constant"))?;
    let kept = view.device.packed.and_then(|packed| packed.find(weights, &form));
    if let Some(packed) = kept.and_then(|found| PackedTransposed::from_data(isa, params, &found)) {
        return Ok(packed);
    }
    let elements = view.constant_floats(input)?;
    let taps: usize = kernel.iter().product();
    if elements.len() != in_channels * (out_channels / groups) * taps {
        return Err(format!("{} weights for {params:?}", elements.len()));
    }
    let packed = PackedTransposed::pack(isa, params, &elements);
    if let Some(keeper) = view.device.packed {
        keeper.keep(weights, &form, &packed.data());
    }
    Ok(packed)
}
