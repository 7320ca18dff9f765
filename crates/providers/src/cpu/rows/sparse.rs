//! Matrix products with constant weights of which many are zero.

use std::sync::Arc;

use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_graph::{Dim, GALATEA_DOMAIN, ONNX_DOMAIN};
use galatea_kernels::gemm::{PackedSparse, PlainMatrix, SparseLayout, ZeroPattern, gemm_sparse};
use galatea_kernels::{StridedMatrix, Transposition};
use galatea_runtime::Precision;
use galatea_runtime::tune::{ConfigAxis, ConfigSpace};

use super::batched::GemmForm;
use super::matrix::supports_packed;
use super::product_tail::{ProductTail, ProductTailSpec};
use crate::cpu::packing::ConstantMatrix;
use crate::cpu::route::{ProductMethod, ways};
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
            let op = view.operator::<Gemm>()?;
            if op.trans_a {
                return Err("the kernel takes A as it is".into());
            }
            SparseWeights::of(view, orientation(op.trans_b), op.alpha).map(drop)
        },
        build: |view| {
            let form = GemmForm::of(view)?;
            product(view, orientation(form.gemm.trans_b), form.gemm.alpha, form.tail())
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
        if view.precision != Precision::Fp32 {
            return Err("sparse products are computed in FP32".into());
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
        let zeros = zeros.ok_or("few weights are zero")?;
        let layout = chosen_layout(view, [announced_rows(view), k, n], &zeros)?;
        Ok(Self { matrix, layout })
    }
}

/// Rows of input 0, as far as the graph announces them.
fn announced_rows(view: &CpuNodeView<'_>) -> usize {
    let shape = view.input(0).and_then(|fact| fact.shape.as_deref());
    let Some([lead @ .., _]) = shape else { return SOME_ROWS };
    let known: Option<Vec<usize>> = lead.iter().map(Dim::known).collect();
    known.map_or(SOME_ROWS, |lead| lead.into_iter().fold(1, usize::saturating_mul))
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
