//! Matrix products.

use std::sync::Arc;

use galatea_apple::accelerate::{
    BlasLibrary, BlasOperand as Factor, BlasSizes, GemmScaling, OperandOrientation,
};
use galatea_apple::bnns::{self, BnnsLibrary};
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_graph::{GALATEA_DOMAIN, ONNX_DOMAIN, OpError};
use galatea_kernels::bf16::{BEHIND_SUMS, Bf16Summand, PackedBf16, finish_reals, gemm_reals};
use galatea_kernels::gemm::{
    BatchedOperand, GemmBlocking, PackedFp16, finish, gemm_cut, gemm_fp16, matmul_batched,
};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::{
    ActivationFunction, GemmEpilogue, MatrixJoin, MatrixSize, PackedB, ProductSize, RealSlice,
    ResidualMatrix, StridedMatrix, Transposition,
};
use galatea_runtime::Precision;
use galatea_runtime::tune::{ConfigAxis, ConfigSpace};

use super::elementwise::fused;
use crate::cpu::halved::HalvedWeights;
use crate::cpu::packing::ConstantMatrix;
use crate::cpu::route::{BlasRoute, ProductMethod, ProductSubject, half_ways, ways};
use crate::cpu::{
    Bf16Operands, CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, KernelChoices, NodeShapes,
    StepCall, WeightBytes,
};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "matmul-bf16-packed",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: supports_bf16,
        build: |view| packed(view, false, 1.0, ProductTailSpec::default()),
    },
    CpuKernelRow {
        name: "gemm-bf16-packed",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: |view| {
            supports_gemm(view)?;
            supports_bf16(view)
        },
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_matmul-bf16-packed",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: supports_bf16,
        build: fused_kernel,
    },
    CpuKernelRow {
        name: "matmul-fp16-packed",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: supports_fp16,
        build: |view| packed(view, false, 1.0, ProductTailSpec::default()),
    },
    CpuKernelRow {
        name: "gemm-fp16-packed",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: |view| {
            supports_gemm(view)?;
            supports_fp16(view)
        },
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_matmul-fp16-packed",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: supports_fp16,
        build: fused_kernel,
    },
    CpuKernelRow {
        name: "matmul-f32-packed",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: supports_packed,
        build: |view| packed(view, false, 1.0, ProductTailSpec::default()),
    },
    CpuKernelRow {
        name: "matmul-f32-batched",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: |view| view.floats(&[0, 1]),
        build: |_| {
            Ok(Box::new(BatchedProduct { trans_b: false, last: ProductTailSpec::default() }))
        },
    },
    CpuKernelRow {
        name: "gemm-f32-packed",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: supports_gemm,
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_matmul-f32-packed",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: supports_packed,
        build: fused_kernel,
    },
    CpuKernelRow {
        name: "fused_matmul-f32-batched",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: |view| view.floats(&[0, 1, 2, 3]),
        build: |view| {
            let op = view.operator::<FusedMatMul>()?;
            Ok(Box::new(BatchedProduct { trans_b: op.trans_b, last: ProductTailSpec::of(op) }))
        },
    },
];

pub(super) fn supports_gemm(view: &CpuNodeView<'_>) -> Result<(), String> {
    let op = view.operator::<Gemm>()?;
    if op.trans_a {
        return Err("the kernel takes A as it is".into());
    }
    supports_packed(view)
}

fn gemm_kernel(view: &CpuNodeView<'_>) -> Result<Box<dyn CpuKernel>, String> {
    let op = view.operator::<Gemm>()?;
    packed(view, op.trans_b, op.alpha, ProductTailSpec::of_gemm(op))
}

fn fused_kernel(view: &CpuNodeView<'_>) -> Result<Box<dyn CpuKernel>, String> {
    let op = view.operator::<FusedMatMul>()?;
    packed(view, op.trans_b, 1.0, ProductTailSpec::of(op))
}

fn supports_bf16(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.wants(Precision::Bf16)?;
    supports_packed(view)
}

fn supports_fp16(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.wants(Precision::Fp16)?;
    supports_packed(view)
}

pub(super) fn supports_packed(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.floats(&[0, 1, 2, 3])?;
    let weights = view.constant(1).ok_or("input 1 is no constant")?;
    let lead = weights.shape().len().saturating_sub(2);
    if weights.rank() < 2 || weights.shape()[..lead].iter().any(|&len| len != 1) {
        return Err(format!("input 1 has shape {:?}, not that of a matrix", weights.shape()));
    }
    Ok(())
}

fn packed(
    view: &CpuNodeView<'_>,
    trans_b: bool,
    factor: f32,
    last: ProductTailSpec,
) -> Result<Box<dyn CpuKernel>, String> {
    let weights = view.constant(1).ok_or("input 1 is no constant")?;
    let [.., rows, columns] = *weights.shape() else { return Err("input 1 is no matrix".into()) };
    let (k, n, trans) = if trans_b {
        (columns, rows, Transposition::Yes)
    } else {
        (rows, columns, Transposition::No)
    };
    let matrix = ConstantMatrix { input: 1, start: 0, k, n, trans, factor };
    let b = match view.precision {
        Precision::Bf16 => PackedProductWeights::Bf16(matrix.packed_bf16(view)?),
        Precision::Fp16 => PackedProductWeights::Fp16(matrix.packed_fp16(view)?),
        _ => PackedProductWeights::Floats(matrix.packed(view)?),
    };
    let of = match b {
        PackedProductWeights::Floats(_) => ProductSubject::Fp32,
        PackedProductWeights::Fp16(_) => ProductSubject::Fp16,
        PackedProductWeights::Bf16(_) => {
            ProductSubject::Bf16 { whole: Bf16Isa::of(view.device.isa).has_products() }
        }
    };
    let b = Arc::new(b);
    let stored = (trans_b, factor);
    let halved = Arc::default();
    Ok(Box::new(PackedProduct { b, of, last, stored, route: view.device.blas, halved }))
}

/// A product with constant weights, packed once.
struct PackedProduct {
    b: Arc<PackedProductWeights>,
    of: ProductSubject,
    last: ProductTailSpec,
    /// True if the weights lie transposed in the model, and the factor of the result.
    stored: (bool, f32),
    /// The libraries that can also multiply.
    route: Option<BlasRoute>,
    /// The weights in the model's order and half their size, once somebody else has wanted them.
    halved: Arc<HalvedWeights>,
}

/// Packed weights, by what the product computes in.
enum PackedProductWeights {
    Floats(PackedB),
    Bf16(PackedBf16),
    Fp16(PackedFp16),
}

impl PackedProductWeights {
    /// Rows and columns.
    fn size(&self) -> (usize, usize) {
        match self {
            Self::Floats(b) => (b.k(), b.n()),
            Self::Bf16(b) => (b.k(), b.n()),
            Self::Fp16(b) => (b.k(), b.n()),
        }
    }

    /// `C = epilogue(A B)` of adjacent rows.
    fn multiply(
        &self,
        call: &mut StepCall<'_>,
        blocking: GemmBlocking,
        m: usize,
        tail: ProductTail,
    ) -> Result<(), OpError> {
        let ((k, n), exec) = (self.size(), call.exec);
        let mut scaled = Vec::new();
        let (epilogue, beside) = tail.epilogue(call, &mut scaled)?;
        match self {
            Self::Floats(b) => {
                let a = call.input::<f32>(0)?;
                let mut c = call.output::<f32>(0)?;
                let a = StridedMatrix::new(a, k);
                let c = StridedMatrix::new(c.slice(), n);
                gemm_cut(exec, blocking, m, a, b, c, &epilogue);
            }
            Self::Fp16(b) => {
                let a = call.input::<f32>(0)?;
                let mut c = call.output::<f32>(0)?;
                gemm_fp16(exec, m, a, k, b, c.slice(), n, &epilogue);
            }
            Self::Bf16(b) => {
                let a = call.reals(0)?;
                let mut c = call.output_reals(0)?;
                let a = StridedMatrix::new(a, k);
                let c = StridedMatrix::new(c.reals(), n);
                gemm_reals(exec, m, a, b, c, &epilogue, beside);
            }
        }
        Ok(())
    }

    fn weight_bytes(&self) -> WeightBytes {
        match self {
            Self::Floats(b) => WeightBytes::new(b.size_bytes(), b.is_mapped()),
            Self::Bf16(b) => WeightBytes::new(b.size_bytes(), b.is_mapped()),
            Self::Fp16(b) => WeightBytes::new(b.size_bytes(), b.is_mapped()),
        }
    }
}

/// Operations after a matrix multiplication.
#[derive(Clone, Copy)]
pub(super) struct ProductTailSpec {
    join: MatrixJoin,
    activation: ActivationFunction,
    /// The factor of the bias.
    bias_factor: f32,
}

impl Default for ProductTailSpec {
    fn default() -> Self {
        let activation = ActivationFunction::default();
        Self { join: MatrixJoin::default(), activation, bias_factor: 1.0 }
    }
}

impl ProductTailSpec {
    pub(super) fn of(op: &FusedMatMul) -> Self {
        let join = if op.gated { MatrixJoin::Multiply } else { MatrixJoin::Add };
        Self { join, activation: fused(op.activation), ..Self::default() }
    }

    pub(super) fn of_gemm(op: &Gemm) -> Self {
        Self { bias_factor: op.beta, ..Self::default() }
    }
}

/// Where the epilogue's operands come from.
#[derive(Clone, Copy)]
pub(super) struct ProductTail {
    bias: bool,
    residual: bool,
    columns: usize,
    last: ProductTailSpec,
}

impl ProductTail {
    /// Checks the shapes of inputs 2 (bias) and 3 (residual) against a result.
    pub(super) fn bind(
        shapes: &NodeShapes,
        product: &[usize],
        last: ProductTailSpec,
    ) -> Result<Self, String> {
        let columns = product.last().copied().unwrap_or(1);
        let present = |index: usize| matches!(shapes.inputs.get(index), Some(Some(_)));
        let is_row = |bias: &[usize]| {
            bias.iter().product::<usize>() == columns && bias.last() == Some(&columns)
        };
        if present(2) && !is_row(shapes.input(2)?) {
            return Err(format!("a bias of shape {:?}", shapes.input(2)?));
        }
        if present(3)
            && (shapes.input(3)?.iter().product::<usize>() != product.iter().product::<usize>()
                || shapes.output(0)?.iter().product::<usize>() != product.iter().product::<usize>())
        {
            return Err(format!("a residual of shape {:?}", shapes.input(3)?));
        }
        Ok(Self { bias: present(2), residual: present(3), columns, last })
    }

    /// The epilogue of a call; `scaled` keeps a bias that has a factor.
    pub(super) fn epilogue<'b, 'a: 'b>(
        self,
        call: &StepCall<'a>,
        scaled: &'b mut Vec<f32>,
    ) -> Result<(GemmEpilogue<'b>, Option<Bf16Summand<'b>>), OpError> {
        let factor = self.last.bias_factor;
        let bias = match self.bias {
            false => None,
            true if factor.to_bits() == 1.0_f32.to_bits() => Some(call.input::<f32>(2)?),
            true => {
                scaled.extend(call.input::<f32>(2)?.iter().map(|bias| bias * factor));
                Some(&scaled[..])
            }
        };
        let epilogue = GemmEpilogue { bias, residual: None, activation: self.last.activation };
        if !self.residual {
            return Ok((epilogue, None));
        }
        let ld = self.columns;
        let join = self.last.join;
        Ok(match call.reals(3)? {
            RealSlice::Fp32(data) => {
                let data = Some(data);
                (
                    GemmEpilogue { residual: Some(ResidualMatrix { data, ld, join }), ..epilogue },
                    None,
                )
            }
            RealSlice::Bf16(data) => (epilogue, Some(Bf16Summand { data: Some(data), ld, join })),
        })
    }
}

impl PackedProduct {
    /// How the product of `m` rows is computed: as was measured to be the fastest, else as the cost
    /// model says.
    fn way(&self, m: usize, choices: KernelChoices<'_>) -> ProductMethod {
        let ((k, n), threads) = (self.b.size(), choices.threads);
        let (ways, family) = match self.of {
            ProductSubject::Fp32 => (ways(self.route, [m, k, n], threads), "gemm-f32"),
            ProductSubject::Fp16 => {
                (half_ways(self.route, self.of, [m, k, n], threads), "gemm-fp16")
            }
            ProductSubject::Bf16 { .. } => {
                (half_ways(self.route, self.of, [m, k, n], threads), "gemm-bf16")
            }
        };
        let mut chosen = 0;
        if ways.len() > 1 {
            let names: Vec<&str> = ways.iter().map(|(name, _)| *name).collect();
            let space = ConfigSpace::new(vec![ConfigAxis::names("way", &names)]);
            let family = format!("{family} {threads} threads");
            chosen = choices.choose(&family, &[("m", m), ("k", k), ("n", n)], &space);
        }
        ways.get(chosen).map_or(ProductMethod::Kernel(GemmBlocking::Usual), |(_, way)| *way)
    }

    /// A step in which a BLAS multiplies with the weights as they are in the model, and the kernels
    /// do the rest.
    fn by_blas(&self, blas: BlasLibrary, m: usize, tail: ProductTail) -> CpuStep {
        let (trans_b, factor) = self.stored;
        let b = Arc::clone(&self.b);
        let (k, n) = b.size();
        let (stride, orientation) = match trans_b {
            true => (k, OperandOrientation::Transposed),
            false => (n, OperandOrientation::Plain),
        };
        CpuStep::new(move |call| {
            let a = call.input::<f32>(0)?;
            let weights = call.input::<f32>(1)?;
            let mut scaled = Vec::new();
            let (epilogue, _) = tail.epilogue(call, &mut scaled)?;
            let mut c = call.output::<f32>(0)?;
            let rows = Factor { data: a, stride: k, orientation: OperandOrientation::Plain };
            let columns = Factor { data: weights, stride, orientation };
            let sizes = BlasSizes { m, n, k };
            match blas.sgemm(
                sizes,
                GemmScaling { alpha: factor, beta: 0.0 },
                rows,
                columns,
                c.slice(),
                n,
            ) {
                Ok(()) => {
                    let size = MatrixSize { rows: m, columns: n };
                    finish(call.exec, size, StridedMatrix::new(c.slice(), n), &epilogue);
                }
                // Nothing was written: the kernels compute what they would have.
                Err(_) => {
                    if let PackedProductWeights::Floats(b) = &*b {
                        let cut = GemmBlocking::Usual;
                        let a = StridedMatrix::new(a, k);
                        let c = StridedMatrix::new(c.slice(), n);
                        gemm_cut(call.exec, cut, m, a, b, c, &epilogue);
                    }
                }
            }
            Ok(())
        })
    }
}

impl PackedProduct {
    /// A step in which BNNS multiplies by the model's weights in half their size, and the kernels do
    /// the rest.
    fn by_bnns(&self, bnns: BnnsLibrary, m: usize, tail: ProductTail) -> CpuStep {
        let ((trans_b, factor), of) = (self.stored, self.of);
        let b = Arc::clone(&self.b);
        let halved = Arc::clone(&self.halved);
        let (k, n) = b.size();
        let (stride, orientation) = match trans_b {
            true => (k, OperandOrientation::Transposed),
            false => (n, OperandOrientation::Plain),
        };
        let step = CpuStep::new(move |call| {
            let data = HalvedWeights::elements(call.reals(0)?);
            let weights = call.input::<f32>(1)?;
            let mut scaled = Vec::new();
            let (epilogue, beside) = tail.epilogue(call, &mut scaled)?;
            let mut scratch = call.scratch_if(m * n + BEHIND_SUMS)?;
            let (sums, _) = scratch.split(m * n + BEHIND_SUMS);
            let rows = bnns::BnnsFactor { data, stride: k, orientation: OperandOrientation::Plain };
            let data = halved.weights(of, call.exec, weights);
            let columns = bnns::BnnsFactor { data, stride, orientation };
            match bnns.multiply(BlasSizes { m, n, k }, factor, rows, columns, sums, n) {
                Ok(()) => {
                    let mut c = call.output_reals(0)?;
                    let size = MatrixSize { rows: m, columns: n };
                    let c = StridedMatrix::new(c.reals(), n);
                    finish_reals(call.exec, size, sums, c, &epilogue, beside);
                    Ok(())
                }
                // The sums are nobody's yet: the kernels compute what they would have been.
                Err(_) => b.multiply(call, GemmBlocking::Usual, m, tail),
            }
        });
        step.with_scratch(m * n + BEHIND_SUMS)
    }
}

impl CpuKernel for PackedProduct {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        self.bind_chosen(shapes, KernelChoices::default())
    }

    fn bind_chosen(
        &self,
        shapes: &NodeShapes,
        choices: KernelChoices<'_>,
    ) -> Result<CpuStep, String> {
        let a = shapes.input(0)?;
        let (k, n) = self.b.size();
        let Some((&columns, lead)) = a.split_last() else {
            return Err("input 0 is a scalar".into());
        };
        if columns != k {
            return Err(format!("input 0 has {columns} columns for {k} rows"));
        }
        let m: usize = lead.iter().product();
        let product: Vec<usize> = lead.iter().copied().chain([n]).collect();
        let tail = ProductTail::bind(shapes, &product, self.last)?;
        let blocking = match self.way(m, choices) {
            ProductMethod::Kernel(blocking) => blocking,
            ProductMethod::Blas(blas) => return Ok(self.by_blas(blas, m, tail)),
            ProductMethod::Bnns(bnns) => return Ok(self.by_bnns(bnns, m, tail)),
        };
        let b = Arc::clone(&self.b);
        let step = CpuStep::new(move |call| b.multiply(call, blocking, m, tail));
        Ok(step.without(&[1]))
    }

    fn halves(&self, _shapes: &NodeShapes) -> Bf16Operands {
        match &*self.b {
            PackedProductWeights::Floats(_) | PackedProductWeights::Fp16(_) => {
                Bf16Operands::default()
            }
            // Rows of BF16 are read in pairs.
            PackedProductWeights::Bf16(b) if b.k().is_multiple_of(2) => {
                Bf16Operands { inputs: &[0, 3], output: true, together: false }
            }
            PackedProductWeights::Bf16(_) => {
                Bf16Operands { inputs: &[3], output: true, together: false }
            }
        }
    }

    fn weight_bytes(&self) -> WeightBytes {
        self.b.weight_bytes()
    }
}

/// A product of two values of the run.
struct BatchedProduct {
    trans_b: bool,
    last: ProductTailSpec,
}

/// Where each matrix of a batch starts in an operand whose leading axes are `own`.
pub(super) fn batch_offsets(own: &[usize], batch: &[usize], matrix: usize) -> Option<Vec<usize>> {
    let missing = batch.len().checked_sub(own.len())?;
    let mut offsets = vec![0];
    let mut step = matrix;
    for (axis, &len) in batch.iter().enumerate().rev() {
        let length = axis.checked_sub(missing).map_or(1, |axis| own[axis]);
        if length != len && length != 1 {
            return None;
        }
        let stride = if length == len { step } else { 0 };
        offsets = (0..len).flat_map(|at| offsets.iter().map(move |o| at * stride + o)).collect();
        step *= length;
    }
    Some(offsets)
}

impl CpuKernel for BatchedProduct {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let a = shapes.input(0)?;
        let b = shapes.input(1)?;
        let ([a_lead @ .., m, k], [b_lead @ .., b_rows, b_columns]) = (a, b) else {
            return Err("an operand has fewer than two axes".into());
        };
        let m = *m;
        let k = *k;
        let b_ld = *b_columns;
        let (bk, n) = if self.trans_b { (*b_columns, *b_rows) } else { (*b_rows, *b_columns) };
        if bk != k {
            return Err(format!("input 0 has {k} columns for {bk} rows"));
        }
        let lead = galatea_tensor::broadcast_shapes(a_lead, b_lead).map_err(|e| e.to_string())?;
        let a_offsets = batch_offsets(a_lead, &lead, m * k).ok_or("input 0 does not broadcast")?;
        let b_offsets = batch_offsets(b_lead, &lead, k * n).ok_or("input 1 does not broadcast")?;
        let product: Vec<usize> = lead.iter().copied().chain([m, n]).collect();
        let tail = ProductTail::bind(shapes, &product, self.last)?;
        let trans = if self.trans_b { Transposition::Yes } else { Transposition::No };
        Ok(CpuStep::new(move |call| {
            let a = call.input::<f32>(0)?;
            let b = call.input::<f32>(1)?;
            let mut scaled = Vec::new();
            let (epilogue, _) = tail.epilogue(call, &mut scaled)?;
            let mut c = call.output::<f32>(0)?;
            let a =
                BatchedOperand { data: a, offsets: &a_offsets, ld: k, trans: Transposition::No };
            let b = BatchedOperand { data: b, offsets: &b_offsets, ld: b_ld, trans };
            matmul_batched(call.exec, ProductSize { m, k, n }, a, b, c.slice(), &epilogue);
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_broadcast() {
        assert_eq!(batch_offsets(&[2, 1], &[2, 3], 10).unwrap(), [0, 0, 0, 10, 10, 10]);
        assert_eq!(batch_offsets(&[3], &[2, 3], 10).unwrap(), [0, 10, 20, 0, 10, 20]);
        assert_eq!(batch_offsets(&[], &[], 10).unwrap(), [0]);
        assert_eq!(batch_offsets(&[2], &[3], 1), None);
    }
}
