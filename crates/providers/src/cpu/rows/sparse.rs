//! Matrix products with constant weights of which many are zero.

use std::sync::Arc;

use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::{Dim, GALATEA_DOMAIN, ONNX_DOMAIN};
use galatea_kernels::bf16::{ZERO_PAIRS, passes_over_zeros, sparse_share_bf16};
use galatea_kernels::gemm::{PackedSparse, PlainMatrix, SparseLayout, ZeroPattern, gemm_sparse};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::{MatrixSize, StridedMatrix, Transposition};
use galatea_runtime::Precision;
use galatea_runtime::tune::{ConfigAxis, ConfigSpace};

use super::CONTRIB_DOMAIN;
use super::batched::GemmForm;
use super::matrix::{PackedForm, packed, supports_packed};
use super::product_tail::{ProductTail, ProductTailSpec};
use crate::cpu::packing::ConstantMatrix;
use crate::cpu::route::{ProductMethod, ProductSubject, half_ways, ways};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, WeightBytes};

/// The family's rows, which come before those of dense products.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "matmul-f32-sparse",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: |view| {
            supports_packed(view)?;
            SparseWeights::of(view, Transposition::No, 1.0).map(drop)
        },
        build: |view| product(view, Transposition::No, 1.0, ProductTailSpec::default()),
    },
    CpuKernelRow {
        name: "gemm-f32-sparse",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: |view| {
            supports_packed(view)?;
            let form = upright(view)?;
            SparseWeights::of(view, orientation(form.gemm.trans_b), form.gemm.alpha).map(drop)
        },
        build: |view| {
            let form = upright(view)?;
            product(view, orientation(form.gemm.trans_b), form.gemm.alpha, form.tail())
        },
    },
    CpuKernelRow {
        name: "fused_gemm-f32-sparse",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            supports_packed(view)?;
            let form = upright(view)?;
            SparseWeights::of(view, orientation(form.gemm.trans_b), form.gemm.alpha).map(drop)
        },
        build: |view| {
            let form = upright(view)?;
            product(view, orientation(form.gemm.trans_b), form.gemm.alpha, form.tail())
        },
    },
    CpuKernelRow {
        name: "fused_gemm-bf16-sparse",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            let form = upright(view)?;
            supports_bf16(view, orientation(form.gemm.trans_b))
        },
        build: |view| {
            let form = upright(view)?;
            packed(view, passing(form.gemm.trans_b, form.gemm.alpha, form.tail()))
        },
    },
    CpuKernelRow {
        name: "matmul-bf16-sparse",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: |view| supports_bf16(view, Transposition::No),
        build: |view| packed(view, passing(false, 1.0, ProductTailSpec::default())),
    },
    CpuKernelRow {
        name: "gemm-bf16-sparse",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: |view| {
            let form = upright(view)?;
            supports_bf16(view, orientation(form.gemm.trans_b))
        },
        build: |view| {
            let form = upright(view)?;
            packed(view, passing(form.gemm.trans_b, form.gemm.alpha, form.tail()))
        },
    },
    CpuKernelRow {
        name: "fused_matmul-bf16-sparse",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: |view| {
            let op = view.operator::<FusedMatMul>()?;
            supports_bf16(view, orientation(op.trans_b))
        },
        build: |view| {
            let op = view.operator::<FusedMatMul>()?;
            packed(view, passing(op.trans_b, 1.0, ProductTailSpec::of(op)))
        },
    },
    CpuKernelRow {
        name: "fused_matmul-f32-sparse",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: |view| {
            supports_packed(view)?;
            let op = view.operator::<FusedMatMul>()?;
            SparseWeights::of(view, orientation(op.trans_b), 1.0).map(drop)
        },
        build: |view| {
            let op = view.operator::<FusedMatMul>()?;
            product(view, orientation(op.trans_b), 1.0, ProductTailSpec::of(op))
        },
    },
];

/// Returns a `Gemm`, or one with an activation, whose A is not transposed.
fn upright(view: &CpuNodeView<'_>) -> Result<GemmForm, String> {
    let form = GemmForm::of(view)?;
    match form.gemm.trans_a {
        true => Err("the kernel takes A as it is".into()),
        false => Ok(form),
    }
}

/// The form of a product in BF16 that passes over zeros.
fn passing(trans_b: bool, factor: f32, tail: ProductTailSpec) -> PackedForm {
    PackedForm { trans_b, factor, tail, passes_over_zeros: true, ..PackedForm::default() }
}

fn orientation(trans_b: bool) -> Transposition {
    if trans_b { Transposition::Yes } else { Transposition::No }
}

/// Rows of a product whose number is not known: a layout must be worth it for many, since few rows
/// lose less by a dense product.
const SOME_ROWS: usize = 128;

/// The weights of a product, and the layout that they are packed in.
struct SparseWeights {
    matrix: ConstantMatrix,
    layout: SparseLayout,
}

impl SparseWeights {
    /// Finds the layout that is expected, or known, to be faster than a dense product.
    ///
    /// # Errors
    /// Fails with the reason why there is none.
    fn of(view: &CpuNodeView<'_>, trans: Transposition, factor: f32) -> Result<Self, String> {
        if view.precision == Precision::Bf16 {
            return Err("products in BF16 pass over zeros by a kernel of their own".into());
        }
        let weights = view.constant(1).ok_or("input 1 is no constant")?;
        let [.., rows, columns] = *weights.shape() else {
            return Err("input 1 is no matrix".into());
        };
        let (k, n) = if trans == Transposition::Yes { (columns, rows) } else { (rows, columns) };
        let matrix = ConstantMatrix { input: 1, start: 0, k, n, trans, factor };
        // What was packed densely before is not looked at again.
        if matrix.is_kept(view) {
            return Err("the weights are kept in a dense form".into());
        }
        let elements = weights.as_slice::<f32>().map_err(|error| error.to_string())?;
        let data = StridedMatrix::new(elements, columns);
        let zeros = ZeroPattern::of(view.device.isa, &PlainMatrix { data, k, n, trans });
        let mut zeros = zeros.ok_or("few weights are zero")?;
        // Weights of FP16 are widened before they are multiplied, so that a dense product in FP16
        // gains by what it reads only. Left without zeros they stay FP32.
        if view.precision == Precision::Fp16 {
            zeros = zeros.beside_halves();
        }
        let layout = chosen_layout(view, [announced_rows(view), k, n], &zeros)?;
        Ok(Self { matrix, layout })
    }
}

/// Rows of input 0, as far as the graph announces them.
fn announced_rows(view: &CpuNodeView<'_>) -> usize {
    known_rows(view).unwrap_or(SOME_ROWS)
}

/// Rows of input 0, where the graph announces them.
pub(super) fn known_rows(view: &CpuNodeView<'_>) -> Option<usize> {
    let Some([lead @ .., _]) = view.input(0)?.shape.as_deref() else { return None };
    let known: Option<Vec<usize>> = lead.iter().map(Dim::known).collect();
    Some(known?.into_iter().fold(1, usize::saturating_mul))
}

fn chosen_layout(
    view: &CpuNodeView<'_>,
    lengths: [usize; 3],
    zeros: &ZeroPattern,
) -> Result<SparseLayout, String> {
    let [m, k, n] = lengths;
    let layouts = zeros.layouts(m);
    let percent = (zeros.zeros() * 100.0).round();
    if layouts.is_empty() {
        return Err(format!("{percent} % of the weights are zero: a dense product is faster"));
    }
    // A matrix unit beside the kernels multiplies more than zeros save.
    if let Some((name, ProductMethod::Blas(_))) = ways(view.device.blas, lengths, 1).first() {
        return Err(format!("{percent} % of the weights are zero: {name} is faster"));
    }
    let names = layouts.iter().map(|layout| layout.name()).chain(["dense"]);
    let space = ConfigSpace::new(vec![ConfigAxis::names("layout", &names.collect::<Vec<_>>())]);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage")]
    let lengths = [("m", m), ("k", k), ("n", n), ("zeros", percent as usize)];
    let chosen = view.device.choose("gemm-f32-sparse", &lengths, &space);
    let dense = || format!("{percent} % of the weights are zero: a dense product was faster");
    layouts.get(chosen).copied().ok_or_else(dense)
}

/// Refuses products in BF16 that are not expected, or known, to be faster where zeros are passed over.
fn supports_bf16(view: &CpuNodeView<'_>, trans: Transposition) -> Result<(), String> {
    view.wants(Precision::Bf16)?;
    supports_packed(view)?;
    let (m, isa) = (announced_rows(view), Bf16Isa::of(view.device.isa));
    passes_over_zeros(isa, m)?;
    let weights = view.constant(1).ok_or("input 1 is no constant")?;
    let [.., rows, columns] = *weights.shape() else {
        return Err("input 1 is no matrix".into());
    };
    let (k, n) = if trans == Transposition::Yes { (columns, rows) } else { (rows, columns) };
    let elements = weights.as_slice::<f32>().map_err(|error| error.to_string())?;
    let is_zero = |row: usize, column: usize| {
        let at = if trans == Transposition::Yes { column * k + row } else { row * n + column };
        elements.get(at).is_none_or(|weight| *weight == 0.0)
    };
    let full = ZERO_PAIRS.full_share(MatrixSize { rows: k, columns: n }, &is_zero);
    let full = full.ok_or("few weights are zero")?;
    let percent = ((1.0 - full) * 100.0).round();
    let said = format!("{percent} % of the pairs of weights are zero in 16 columns");
    if sparse_share_bf16(full).is_none() {
        return Err(format!("{said}: a dense product is faster"));
    }
    let of = ProductSubject::Bf16 { whole: isa.has_products() };
    if let Some((name, ProductMethod::Bnns(_))) =
        half_ways(view.device.blas, of, [m, k, n], 1).first()
    {
        return Err(format!("{said}: {name} is faster"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage")]
    let lengths = [("m", m), ("k", k), ("n", n), ("zeros", percent as usize)];
    measured(view, "gemm-bf16-sparse", &lengths).map_err(|reason| format!("{said}: {reason}"))
}

/// Refuses products for which a dense kernel was measured to be faster than one that passes over
/// groups of zeros.
pub(super) fn measured(
    view: &CpuNodeView<'_>,
    family: &str,
    lengths: &[(&str, usize)],
) -> Result<(), &'static str> {
    let space = ConfigSpace::new(vec![ConfigAxis::names("layout", &["groups", "dense"])]);
    match view.device.choose(family, lengths, &space) {
        0 => Ok(()),
        _ => Err("a dense product was faster"),
    }
}

fn product(
    view: &CpuNodeView<'_>,
    trans: Transposition,
    factor: f32,
    last: ProductTailSpec,
) -> Result<Box<dyn CpuKernel>, String> {
    let weights = SparseWeights::of(view, trans, factor)?;
    let b = weights.matrix.packed_sparse(view, weights.layout)?;
    Ok(Box::new(SparseProduct { b: Arc::new(b), last }))
}

/// A product with constant weights, packed without most of their zeros.
struct SparseProduct {
    b: Arc<PackedSparse>,
    last: ProductTailSpec,
}

impl CpuKernel for SparseProduct {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let a = shapes.input(0)?;
        let (k, n) = (self.b.k(), self.b.n());
        let Some((&columns, lead)) = a.split_last() else {
            return Err("input 0 is a scalar".into());
        };
        if columns != k {
            return Err(format!("input 0 has {columns} columns for {k} rows"));
        }
        let m: usize = lead.iter().product();
        let result: Vec<usize> = lead.iter().copied().chain([n]).collect();
        let tail = ProductTail::bind(shapes, &result, self.last)?;
        let b = Arc::clone(&self.b);
        let step = CpuStep::new(move |call| {
            let a = StridedMatrix::new(call.input::<f32>(0)?, k);
            let mut made = Vec::new();
            let (epilogue, _) = tail.epilogue(call, &mut made)?;
            let mut c = call.output::<f32>(0)?;
            gemm_sparse(call.exec, m, a, &b, StridedMatrix::new(c.slice(), n), &epilogue);
            Ok(())
        });
        Ok(step.without(&[1]))
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.b.size_bytes(), self.b.is_mapped())
    }
}
