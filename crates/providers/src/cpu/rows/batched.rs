//! Matrix products of two values of a run.

use galatea_graph::ops::contrib::{FusedGemm, TurnedMatMul};
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_graph::{GALATEA_DOMAIN, ONNX_DOMAIN, OpError};
use galatea_kernels::bf16::{BatchedReals, matmul_batched_bf16};
use galatea_kernels::elementwise::ScalarFunction;
use galatea_kernels::gemm::{BatchedOperand, matmul_batched};
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::permute::transpose;
use galatea_kernels::{ActivationFunction, KernelContext, ProductSize, RealSlice, Transposition};
use galatea_runtime::Precision;

use super::CONTRIB_DOMAIN;
use super::elementwise::activation;
use super::product_tail::{ProductTail, ProductTailSpec};
use crate::cpu::{
    Bf16Operands, CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, StepCall,
};

/// The family's rows, which come behind those of products with constant weights.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "matmul-bf16-batched",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: |view| supports_bf16(view, &[0, 1]),
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::default())),
    },
    CpuKernelRow {
        name: "matmul-f32-batched",
        domain: ONNX_DOMAIN,
        ops: &["MatMul"],
        supports: |view| view.floats(&[0, 1]),
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::default())),
    },
    CpuKernelRow {
        name: "gemm-bf16-batched",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: |view| supports_bf16(view, &[0, 1, 2]),
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_gemm(&GemmForm::of(view)?))),
    },
    CpuKernelRow {
        name: "gemm-f32-batched",
        domain: ONNX_DOMAIN,
        ops: &["Gemm"],
        supports: |view| view.floats(&[0, 1, 2]),
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_gemm(&GemmForm::of(view)?))),
    },
    CpuKernelRow {
        name: "fused_gemm-bf16-batched",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            GemmForm::of(view)?;
            supports_bf16(view, &[0, 1, 2])
        },
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_gemm(&GemmForm::of(view)?))),
    },
    CpuKernelRow {
        name: "fused_gemm-f32-batched",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedGemm"],
        supports: |view| {
            GemmForm::of(view)?;
            view.floats(&[0, 1, 2])
        },
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_gemm(&GemmForm::of(view)?))),
    },
    CpuKernelRow {
        name: "turned_matmul-bf16-batched",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedMatMul", "TransposeMatMul"],
        supports: |view| {
            ProductForm::of_turned(view)?;
            supports_bf16(view, &[0, 1])
        },
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_turned(view)?)),
    },
    CpuKernelRow {
        name: "turned_matmul-f32-batched",
        domain: CONTRIB_DOMAIN,
        ops: &["FusedMatMul", "TransposeMatMul"],
        supports: |view| {
            ProductForm::of_turned(view)?;
            view.floats(&[0, 1])
        },
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_turned(view)?)),
    },
    CpuKernelRow {
        name: "fused_matmul-bf16-batched",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: |view| supports_bf16(view, &[0, 1, 2, 3]),
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_fused(view)?)),
    },
    CpuKernelRow {
        name: "fused_matmul-f32-batched",
        domain: GALATEA_DOMAIN,
        ops: &["FusedMatMul"],
        supports: |view| view.floats(&[0, 1, 2, 3]),
        build: |view| Ok(BatchedProduct::boxed(view, ProductForm::of_fused(view)?)),
    },
];

fn supports_bf16(view: &CpuNodeView<'_>, inputs: &[usize]) -> Result<(), String> {
    view.wants(Precision::Bf16)?;
    if !Bf16Isa::of(view.device.isa).has_products() {
        return Err("the processor has no instruction for products of BF16".into());
    }
    view.floats(inputs)
}

/// A `Gemm`, or one with an activation.
pub(super) struct GemmForm {
    pub(super) gemm: Gemm,
    pub(super) activation: ActivationFunction,
}

impl GemmForm {
    /// # Errors
    /// Fails when the node is none, or its activation has no kernel.
    pub(super) fn of(view: &CpuNodeView<'_>) -> Result<Self, String> {
        if let Ok(gemm) = view.operator::<Gemm>() {
            return Ok(Self { gemm: *gemm, activation: ActivationFunction::None });
        }
        let op = view.operator::<FusedGemm>()?;
        let function = op.activation.map(activation).transpose()?;
        let activation = match function {
            None => ActivationFunction::None,
            Some(ScalarFunction::Activation(function)) => function,
            Some(other) => return Err(format!("{other:?} does not follow a product")),
        };
        Ok(Self { gemm: op.gemm, activation })
    }

    /// Operations that follow the sums.
    pub(super) fn tail(&self) -> ProductTailSpec {
        ProductTailSpec::of_gemm(&self.gemm, self.activation)
    }
}

/// A product as its node has it.
#[derive(Clone, Copy)]
struct ProductForm {
    trans_a: bool,
    trans_b: bool,
    /// Factor of the product.
    alpha: f32,
    tail: ProductTailSpec,
}

impl Default for ProductForm {
    fn default() -> Self {
        Self { trans_a: false, trans_b: false, alpha: 1.0, tail: ProductTailSpec::default() }
    }
}

impl ProductForm {
    fn of_gemm(form: &GemmForm) -> Self {
        let Gemm { alpha, trans_a, trans_b, .. } = form.gemm;
        Self { trans_a, trans_b, alpha, tail: form.tail() }
    }

    fn of_fused(view: &CpuNodeView<'_>) -> Result<Self, String> {
        let op = view.operator::<FusedMatMul>()?;
        Ok(Self { trans_b: op.trans_b, tail: ProductTailSpec::of(op), ..Self::default() })
    }

    fn of_turned(view: &CpuNodeView<'_>) -> Result<Self, String> {
        let op = view.operator::<TurnedMatMul>()?;
        if op.a.batch || op.b.batch {
            return Err("the kernel takes axes of a batch before those of matrices".into());
        }
        let (trans_a, trans_b) = (op.a.matrix, op.b.matrix);
        Ok(Self { trans_a, trans_b, alpha: op.alpha, ..Self::default() })
    }

    fn has_factor(self) -> bool {
        self.alpha.to_bits() != 1.0_f32.to_bits()
    }
}

/// A product of two values of the run.
struct BatchedProduct {
    form: ProductForm,
    /// True if operands are rounded to BF16 where that is faster.
    reduced: bool,
}

/// Offsets at which the matrices of a batch start in an operand whose leading axes are `own`.
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

/// Fewest rows of A, and terms of a sum, for which rounding and packing B pays.
const BF16_ROWS: usize = 16;
const BF16_TERMS: usize = 32;

/// The lengths of a product, and where its matrices start.
struct BatchedLayout {
    size: ProductSize,
    a_offsets: Vec<usize>,
    b_offsets: Vec<usize>,
    /// Elements of A.
    a_len: usize,
    /// Row lengths of A and B as they are stored.
    a_ld: usize,
    b_ld: usize,
    tail: ProductTail,
}

impl BatchedLayout {
    fn of(shapes: &NodeShapes, form: ProductForm) -> Result<Self, String> {
        let a = shapes.input(0)?;
        let b = shapes.input(1)?;
        let ([a_lead @ .., a_rows, a_ld], [b_lead @ .., b_rows, b_ld]) = (a, b) else {
            return Err("an operand has fewer than two axes".into());
        };
        let turned =
            |trans: bool, rows, columns| if trans { (columns, rows) } else { (rows, columns) };
        let (m, k) = turned(form.trans_a, *a_rows, *a_ld);
        let (bk, n) = turned(form.trans_b, *b_rows, *b_ld);
        if bk != k {
            return Err(format!("input 0 has {k} columns for {bk} rows"));
        }
        let lead = galatea_tensor::broadcast_shapes(a_lead, b_lead).map_err(|e| e.to_string())?;
        let product: Vec<usize> = lead.iter().copied().chain([m, n]).collect();
        let tail = ProductTail::bind(shapes, &product, form.tail)?;
        let a_offsets = batch_offsets(a_lead, &lead, m * k).ok_or("input 0 does not broadcast")?;
        let b_offsets = batch_offsets(b_lead, &lead, k * n).ok_or("input 1 does not broadcast")?;
        let size = ProductSize { m, k, n };
        let (a_len, a_ld, b_ld) = (a.iter().product(), *a_ld, *b_ld);
        let batched = Self { size, a_offsets, b_offsets, a_len, a_ld, b_ld, tail };
        // One B for rows that all follow each other: B is packed once.
        let one = b_lead.iter().all(|&len| len == 1) && a_lead.len() >= b_lead.len();
        if !one || form.trans_a || batched.a_offsets.is_empty() {
            return Ok(batched);
        }
        let size = ProductSize { m: m * batched.a_offsets.len(), k, n };
        Ok(Self { size, a_offsets: vec![0], b_offsets: vec![0], ..batched })
    }
}

impl BatchedProduct {
    fn boxed(view: &CpuNodeView<'_>, form: ProductForm) -> Box<dyn CpuKernel> {
        let whole = Bf16Isa::of(view.device.isa).has_products();
        Box::new(Self { form, reduced: view.precision == Precision::Bf16 && whole })
    }

    /// Returns whether products are those of BF16 for these lengths.
    fn reduces(&self, layout: &BatchedLayout) -> bool {
        self.reduced && layout.size.m >= BF16_ROWS && layout.size.k >= BF16_TERMS
    }

    /// Returns whether A is copied first: kernels of BF16 take it as it is, and none has a factor.
    fn copies(&self, reduces: bool) -> bool {
        self.form.has_factor() || reduces && self.form.trans_a
    }
}

/// Copies the matrices of A: those that are stored transposed become rows where kernels want that,
/// and each element gets the factor.
fn prepared(
    exec: KernelContext<'_>,
    form: ProductForm,
    layout: &BatchedLayout,
    a: &[f32],
    reduces: bool,
    to: &mut [f32],
) {
    let ProductSize { m, k, .. } = layout.size;
    if reduces && form.trans_a {
        transpose(exec, a, a.len() / (m * k).max(1), k, m, to);
        if form.has_factor() {
            to.iter_mut().for_each(|x| *x *= form.alpha);
        }
        return;
    }
    to.iter_mut().zip(a).for_each(|(to, a)| *to = a * form.alpha);
}

impl CpuKernel for BatchedProduct {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let form = self.form;
        let layout = BatchedLayout::of(shapes, form)?;
        let reduces = self.reduces(&layout);
        let room = if self.copies(reduces) { layout.a_len } else { 0 };
        let step = CpuStep::new(move |call| {
            let mut scratch = call.scratch_if(room)?;
            let (copy, _) = scratch.split(room);
            if room > 0 {
                prepared(call.exec, form, &layout, call.input::<f32>(0)?, reduces, copy);
            }
            let copy = (room > 0).then_some(&*copy);
            match reduces {
                true => multiply_bf16(call, form, &layout, copy),
                false => multiply(call, form, &layout, copy),
            }
        });
        Ok(step.with_scratch(room))
    }

    fn halves(&self, shapes: &NodeShapes) -> Bf16Operands {
        let Ok(layout) = BatchedLayout::of(shapes, self.form) else {
            return Bf16Operands::default();
        };
        if !self.reduces(&layout) {
            return Bf16Operands::default();
        }
        // Rows of BF16 are read in pairs.
        let rows = layout.size.k.is_multiple_of(2) && !self.copies(true);
        let inputs = if rows { &[0, 1, 3][..] } else { &[1, 3] };
        Bf16Operands { inputs, output: true, together: false }
    }
}

fn orientation(trans: bool) -> Transposition {
    if trans { Transposition::Yes } else { Transposition::No }
}

/// Multiplies in FP32; `copy` stands in for A where there is one.
fn multiply(
    call: &mut StepCall<'_>,
    form: ProductForm,
    layout: &BatchedLayout,
    copy: Option<&[f32]>,
) -> Result<(), OpError> {
    let mut made = Vec::new();
    let (epilogue, _) = layout.tail.epilogue(call, &mut made)?;
    let data = match copy {
        Some(copy) => copy,
        None => call.input::<f32>(0)?,
    };
    let trans = orientation(form.trans_a);
    let a = BatchedOperand { data, offsets: &layout.a_offsets, ld: layout.a_ld, trans };
    let (data, trans) = (call.input::<f32>(1)?, orientation(form.trans_b));
    let b = BatchedOperand { data, offsets: &layout.b_offsets, ld: layout.b_ld, trans };
    let mut c = call.output::<f32>(0)?;
    matmul_batched(call.exec, layout.size, a, b, c.slice(), &epilogue);
    Ok(())
}

/// Multiplies in BF16; `copy` stands in for A where there is one.
fn multiply_bf16(
    call: &mut StepCall<'_>,
    form: ProductForm,
    layout: &BatchedLayout,
    copy: Option<&[f32]>,
) -> Result<(), OpError> {
    let mut made = Vec::new();
    let (epilogue, beside) = layout.tail.epilogue(call, &mut made)?;
    let data = match copy {
        Some(copy) => RealSlice::Fp32(copy),
        None => call.reals(0)?,
    };
    let (ld, trans) = (layout.size.k, Transposition::No);
    let a = BatchedReals { data, offsets: &layout.a_offsets, ld, trans };
    let (data, trans) = (call.reals(1)?, orientation(form.trans_b));
    let b = BatchedReals { data, offsets: &layout.b_offsets, ld: layout.b_ld, trans };
    let mut c = call.output_reals(0)?;
    matmul_batched_bf16(call.exec, layout.size, a, b, c.reals(), &epilogue, beside);
    Ok(())
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
