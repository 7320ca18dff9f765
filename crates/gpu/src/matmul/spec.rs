//! Attributes of a matrix multiplication node, whatever lengths a run has.

use galatea_graph::ops::contrib::{FusedGemm, OperandTransposition, TurnedMatMul};
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_runtime::Precision;

use super::activation::ProductActivation;
use crate::kernel::GpuNodeView;

/// `activation(alpha · A·B + bias + beta · more)`, or with a gate
/// `activation((alpha · A·B + bias) · more)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MatMulSpec {
    /// Transposition of `A` before the multiplication.
    pub(crate) a: OperandTransposition,
    /// Transposition of `B` before the multiplication.
    pub(crate) b: OperandTransposition,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// The input that is a row added to every row.
    pub(crate) bias: Option<usize>,
    /// True if it is a column, and added to every column.
    pub(crate) bias_rows: bool,
    /// The input that is added to, or multiplies, the whole.
    pub(crate) more: Option<usize>,
    /// True if `more` multiplies.
    pub(crate) gated: bool,
    pub(crate) activation: ProductActivation,
    /// True if operands may be rounded to FP16 where they are multiplied.
    pub(crate) halves: bool,
}

impl MatMulSpec {
    /// A plain product.
    pub(crate) const PLAIN: Self = Self {
        a: OperandTransposition { matrix: false, batch: false },
        b: OperandTransposition { matrix: false, batch: false },
        alpha: 1.0,
        beta: 1.0,
        bias: None,
        bias_rows: false,
        more: None,
        gated: false,
        activation: ProductActivation::NONE,
        halves: false,
    };

    /// Reads the attributes of a node.
    ///
    /// # Errors
    /// Fails when it is no matrix multiplication that kernels take.
    pub(crate) fn of(view: &GpuNodeView<'_>) -> Result<Self, String> {
        let given = |index: usize| view.has(index).then_some(index);
        let mut spec = Self { halves: view.precision == Precision::Fp16, ..Self::PLAIN };
        match (view.node.domain.as_str(), view.node.op_type.as_str()) {
            ("", "MatMul") => {}
            ("", "Gemm") => spec.gemm(view.operator::<Gemm>()?, given(2)),
            ("ai.galatea", "FusedMatMul") => {
                let op = view.operator::<FusedMatMul>()?;
                spec.b.matrix = op.trans_b;
                (spec.bias, spec.more, spec.gated) = (given(2), given(3), op.gated);
                spec.activation = ProductActivation::fused(op.activation);
            }
            ("com.microsoft", "FusedMatMul" | "TransposeMatMul") => {
                let op = view.operator::<TurnedMatMul>()?;
                (spec.a, spec.b, spec.alpha) = (op.a, op.b, op.alpha);
            }
            ("com.microsoft", "FusedGemm") => {
                let op = view.operator::<FusedGemm>()?;
                spec.gemm(&op.gemm, given(2));
                let kind = op.activation.map(ProductActivation::onnx).transpose()?;
                spec.activation = kind.unwrap_or(ProductActivation::NONE);
            }
            _ => return Err("it is no product".into()),
        }
        Ok(spec)
    }

    fn gemm(&mut self, gemm: &Gemm, more: Option<usize>) {
        (self.a.matrix, self.b.matrix) = (gemm.trans_a, gemm.trans_b);
        (self.alpha, self.beta, self.more) = (gemm.alpha, gemm.beta, more);
    }
}
