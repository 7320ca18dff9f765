//! Matrix products with constant weights.

use std::sync::Arc;

use galatea_apple::accelerate::{
    BlasLibrary, BlasOperand as Factor, BlasSizes, GemmScaling, OperandOrientation,
};
use galatea_apple::bnns::{self, BnnsLibrary};
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_graph::{GALATEA_DOMAIN, ONNX_DOMAIN, OpError};
use galatea_kernels::bf16::{BEHIND_SUMS, PackedBf16, finish_reals, gemm_reals};
use galatea_kernels::gemm::{GemmBlocking, PackedFp16, finish, gemm_cut, gemm_fp16};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::permute::transpose;
use galatea_kernels::{MatrixSize, PackedB, RealSlice, StridedMatrix, Transposition};
use galatea_runtime::Precision;
use galatea_runtime::tune::{ConfigAxis, ConfigSpace};

use super::CONTRIB_DOMAIN;
use super::batched::GemmForm;
use super::product_tail::{ProductTail, ProductTailSpec};
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
        build: |view| packed(view, PackedForm::default()),
    },
    CpuKernelRow {
        name: "gemm-bf16-packed",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: supports_bf16,
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_gemm-bf16-packed",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            GemmForm::of(view)?;
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
        build: |view| packed(view, PackedForm::default()),
    },
    CpuKernelRow {
        name: "gemm-fp16-packed",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: supports_fp16,
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_gemm-fp16-packed",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            GemmForm::of(view)?;
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
        build: |view| packed(view, PackedForm::default()),
    },
    CpuKernelRow {
        name: "gemm-f32-packed",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: supports_packed,
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_gemm-f32-packed",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            GemmForm::of(view)?;
            supports_packed(view)
        },
        build: gemm_kernel,
    },
    CpuKernelRow {
        name: "fused_matmul-f32-packed",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: supports_packed,
        build: fused_kernel,
    },
];

/// A product with constant weights as its node has it.
#[derive(Clone, Copy)]
pub(super) struct PackedForm {
    pub(super) trans_a: bool,
    pub(super) trans_b: bool,
    /// Factor of the product.
    pub(super) factor: f32,
    pub(super) tail: ProductTailSpec,
    /// True if zeros of BF16 weights are passed over.
    pub(super) passes_over_zeros: bool,
}

impl Default for PackedForm {
    fn default() -> Self {
        let tail = ProductTailSpec::default();
        Self { trans_a: false, trans_b: false, factor: 1.0, tail, passes_over_zeros: false }
    }
}

fn gemm_kernel(view: &CpuNodeView<'_>) -> Result<Box<dyn CpuKernel>, String> {
    let form = GemmForm::of(view)?;
    let Gemm { alpha, trans_a, trans_b, .. } = form.gemm;
    let tail = form.tail();
    packed(view, PackedForm { trans_a, trans_b, factor: alpha, tail, ..PackedForm::default() })
}

fn fused_kernel(view: &CpuNodeView<'_>) -> Result<Box<dyn CpuKernel>, String> {
    let op = view.operator::<FusedMatMul>()?;
    let (trans_b, tail) = (op.trans_b, ProductTailSpec::of(op));
    packed(view, PackedForm { trans_b, tail, ..PackedForm::default() })
}

fn supports_bf16(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.wants(Precision::Bf16)?;
    supports_packed(view)
}

fn supports_fp16(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.wants(Precision::Fp16)?;
    // FP16 halves the memory of weights. Sums stay FP32, and values are widened before they are
    // multiplied: rounding values of a run would only cost time.
    if view.constant(1).is_none() {
        return Err("FP16 is widened before it is multiplied, which gains for weights only".into());
    }
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

pub(super) fn packed(
    view: &CpuNodeView<'_>,
    form: PackedForm,
) -> Result<Box<dyn CpuKernel>, String> {
    let PackedForm { trans_b, factor, .. } = form;
    let weights = view.constant(1).ok_or("input 1 is no constant")?;
    let [.., rows, columns] = *weights.shape() else { return Err("input 1 is no matrix".into()) };
    let (k, n, trans) = if trans_b {
        (columns, rows, Transposition::Yes)
    } else {
        (rows, columns, Transposition::No)
    };
    let matrix = ConstantMatrix { input: 1, start: 0, k, n, trans, factor };
    let b = match view.precision {
        Precision::Bf16 if form.passes_over_zeros => {
            PackedProductWeights::Bf16(matrix.packed_bf16(view)?.passing_over_zeros())
        }
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
    let halved = Arc::default();
    Ok(Box::new(PackedProduct { b, of, form, route: view.device.blas, halved }))
}

/// A product with constant weights, packed once.
struct PackedProduct {
    b: Arc<PackedProductWeights>,
    of: ProductSubject,
    /// How the model has it; the factor is part of the packed weights.
    form: PackedForm,
    /// The libraries that can also multiply.
    route: Option<BlasRoute>,
    /// The weights in the model's order and half their size, once somebody else has wanted them.
    halved: Arc<HalvedWeights>,
}

/// Rows of A in a run.
#[derive(Clone, Copy)]
struct ProductRows {
    count: usize,
    /// True if A is stored transposed; the kernels multiply a copy of it.
    transposed: bool,
}

impl ProductRows {
    /// Elements of the copy, for rows of so many terms.
    fn room(self, k: usize) -> usize {
        if self.transposed { self.count * k } else { 0 }
    }
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

    /// `C = epilogue(A B)`.
    fn multiply(
        &self,
        call: &mut StepCall<'_>,
        blocking: GemmBlocking,
        rows: ProductRows,
        tail: ProductTail,
    ) -> Result<(), OpError> {
        let ((k, n), exec, m) = (self.size(), call.exec, rows.count);
        let mut made = Vec::new();
        let (epilogue, beside) = tail.epilogue(call, &mut made)?;
        let room = rows.room(k);
        let mut scratch = call.scratch_if(room)?;
        let (turned, _) = scratch.split(room);
        let a = match rows.transposed {
            true => {
                transpose(exec, call.input::<f32>(0)?, 1, k, m, turned);
                RealSlice::Fp32(turned)
            }
            false => call.reals(0)?,
        };
        let wide = || match a {
            RealSlice::Fp32(a) => Ok(a),
            RealSlice::Bf16(_) => Err(OpError::new("input 0 is BF16, expected FP32")),
        };
        match self {
            Self::Floats(b) => {
                let a = StridedMatrix::new(wide()?, k);
                let mut c = call.output::<f32>(0)?;
                let c = StridedMatrix::new(c.slice(), n);
                gemm_cut(exec, blocking, m, a, b, c, &epilogue);
            }
            Self::Fp16(b) => {
                let a = wide()?;
                let mut c = call.output::<f32>(0)?;
                gemm_fp16(exec, m, a, k, b, c.slice(), n, &epilogue);
            }
            Self::Bf16(b) => {
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
    fn by_blas(&self, blas: BlasLibrary, from: ProductRows, tail: ProductTail) -> CpuStep {
        let (PackedForm { trans_b, factor, .. }, m) = (self.form, from.count);
        let b = Arc::clone(&self.b);
        let (k, n) = b.size();
        let (stride, orientation) = match trans_b {
            true => (k, OperandOrientation::Transposed),
            false => (n, OperandOrientation::Plain),
        };
        CpuStep::new(move |call| {
            let a = call.input::<f32>(0)?;
            let weights = call.input::<f32>(1)?;
            let mut made = Vec::new();
            let (epilogue, _) = tail.epilogue(call, &mut made)?;
            let mut c = call.output::<f32>(0)?;
            let (row, turned) = match from.transposed {
                true => (m, OperandOrientation::Transposed),
                false => (k, OperandOrientation::Plain),
            };
            let rows = Factor { data: a, stride: row, orientation: turned };
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
                        let mut turned = vec![0.0; from.room(k)];
                        if from.transposed {
                            transpose(call.exec, a, 1, k, m, &mut turned);
                        }
                        let a = if from.transposed { &turned[..] } else { a };
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
        let (PackedForm { trans_b, factor, .. }, of) = (self.form, self.of);
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
            let mut made = Vec::new();
            let (epilogue, beside) = tail.epilogue(call, &mut made)?;
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
                Err(_) => {
                    let rows = ProductRows { count: m, transposed: false };
                    b.multiply(call, GemmBlocking::Usual, rows, tail)
                }
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
        let transposed = self.form.trans_a;
        let (terms, lead) = match (a, transposed) {
            (&[terms, count], true) => (terms, vec![count]),
            ([lead @ .., terms], false) => (*terms, lead.to_vec()),
            _ => return Err(format!("input 0 has shape {a:?}, not that of a matrix")),
        };
        if terms != k {
            return Err(format!("input 0 has {terms} columns for {k} rows"));
        }
        let rows = ProductRows { count: lead.iter().product(), transposed };
        let product: Vec<usize> = lead.into_iter().chain([n]).collect();
        let tail = ProductTail::bind(shapes, &product, self.form.tail)?;
        let blocking = match self.way(rows.count, choices) {
            ProductMethod::Kernel(blocking) => blocking,
            ProductMethod::Blas(blas) => return Ok(self.by_blas(blas, rows, tail)),
            ProductMethod::Bnns(bnns) if !transposed => {
                return Ok(self.by_bnns(bnns, rows.count, tail));
            }
            ProductMethod::Bnns(_) => GemmBlocking::Usual,
        };
        let b = Arc::clone(&self.b);
        let step = CpuStep::new(move |call| b.multiply(call, blocking, rows, tail));
        Ok(step.without(&[1]).with_scratch(rows.room(k)))
    }

    fn halves(&self, _shapes: &NodeShapes) -> Bf16Operands {
        match &*self.b {
            PackedProductWeights::Floats(_) | PackedProductWeights::Fp16(_) => {
                Bf16Operands::default()
            }
            // Rows of BF16 are read in pairs.
            PackedProductWeights::Bf16(b) if b.k().is_multiple_of(2) && !self.form.trans_a => {
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
