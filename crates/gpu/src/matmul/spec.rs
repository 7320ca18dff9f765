//! What a node says of its product, whatever lengths a run has.

use galatea_graph::ops::contrib::{FusedGemm, Turn, TurnedMatMul};
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_runtime::Precision;

use super::activation::Activation;
use crate::kernel::NodeView;

/// `activation(alpha · A·B + bias + beta · more)`, or with a gate
/// `activation((alpha · A·B + bias) · more)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spec {
    /// How `A` is turned first.
    pub(crate) a: Turn,
    /// How `B` is turned first.
    pub(crate) b: Turn,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// The input that is a row added to every row.
    pub(crate) bias: Option<usize>,
    /// Whether it is a column, and added to every column.
    pub(crate) bias_rows: bool,
    /// The input that is added to, or multiplies, the whole.
    pub(crate) more: Option<usize>,
    /// Whether `more` multiplies.
    pub(crate) gated: bool,
    pub(crate) activation: Activation,
    /// Whether operands may be rounded to FP16 where they are multiplied.
    pub(crate) halves: bool,
}

impl Spec {
    /// A plain product.
    pub(crate) const PLAIN: Self = Self {
        a: Turn { matrix: false, batch: false },
        b: Turn { matrix: false, batch: false },
        alpha: 1.0,
        beta: 1.0,
        bias: None,
        bias_rows: false,
        more: None,
        gated: false,
        activation: Activation::NONE,
        halves: false,
    };

    /// What a node computes.
    ///
    /// # Errors
    /// When it is no product that kernels take.
    pub(crate) fn of(view: &NodeView<'_>) -> Result<Self, String> {
        let given = |index: usize| view.has(index).then_some(index);
        let mut spec = Self { halves: view.precision == Precision::Fp16, ..Self::PLAIN };
        match (view.node.domain.as_str(), view.node.op_type.as_str()) {
            ("", "MatMul") => {}
            ("", "Gemm") => spec.gemm(view.operator::<Gemm>()?, given(2)),
            ("ai.galatea", "FusedMatMul") => {
                let op = view.operator::<FusedMatMul>()?;
                spec.b.matrix = op.trans_b;
                (spec.bias, spec.more, spec.gated) = (given(2), given(3), op.gated);
                spec.activation = Activation::fused(op.activation);
            }
            ("com.microsoft", "FusedMatMul" | "TransposeMatMul") => {
                let op = view.operator::<TurnedMatMul>()?;
                (spec.a, spec.b, spec.alpha) = (op.a, op.b, op.alpha);
            }
            ("com.microsoft", "FusedGemm") => {
                let op = view.operator::<FusedGemm>()?;
                spec.gemm(&op.gemm, given(2));
                let kind = op.activation.map(Activation::onnx).transpose()?;
                spec.activation = kind.unwrap_or(Activation::NONE);
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
