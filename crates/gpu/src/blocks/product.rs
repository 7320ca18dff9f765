//! One packed matrix times rows, whichever kernel computes it.

use std::sync::Arc;

use galatea_graph::ops::fused::FusedActivation;
use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::codes::plane_type;
use super::pack::{PackedCodes, PackedPiece};
use crate::choices::{KernelQuestion, near};
use crate::kernel::{ShaderBinding, param, wgsl_float};

/// The most outputs of a dispatch.
pub(super) const OUTPUTS: usize = 4;

/// Some packed rows that become an output's columns.
#[derive(Clone, Debug)]
pub(super) struct OutputSegment {
    /// The first packed row and how many there are.
    pub(super) first: usize,
    pub(super) rows: usize,
    /// Index of their matrix among those of the node.
    pub(super) matrix: usize,
}

/// A packed matrix and what its rows are. Where it is gated, rows of the gate and of what it multiplies follow
/// each other in turn.
#[derive(Clone, Debug)]
pub(super) struct CodedProduct {
    pub(super) packed: Arc<PackedCodes>,
    pub(super) segments: Vec<OutputSegment>,
    pub(super) gate: Option<FusedActivation>,
    /// True if operands may be rounded to FP16.
    pub(super) halves: bool,
    /// True if rows of X may be rounded to bytes.
    pub(super) rounds: bool,
}

/// An operand or a result of a product.
#[derive(Clone, Debug)]
pub(super) struct BlockOperand {
    pub(super) binding: ShaderBinding,
    pub(super) dtype: DataType,
}

/// Operands that a matrix multiplication is bound to.
#[derive(Clone, Debug)]
pub(super) struct CodedProductCall {
    /// Rows of X.
    pub(super) m: usize,
    pub(super) x: BlockOperand,
    /// For each of the node's matrices.
    pub(super) biases: Vec<Option<BlockOperand>>,
    /// Operand that is added to the result, where there is one matrix multiplication.
    pub(super) more: Option<BlockOperand>,
    pub(super) outputs: Vec<BlockOperand>,
}

/// A binding and how a shader declares it.
pub(super) struct DeclaredBinding {
    pub(super) binding: ShaderBinding,
    pub(super) name: String,
    pub(super) access: &'static str,
    pub(super) of: String,
}

impl DeclaredBinding {
    /// One that lies among values of a run.
    pub(super) fn written(binding: ShaderBinding, name: String, of: String) -> Self {
        Self { binding, name, access: "read_write", of }
    }

    /// Returns the template context of the binding.
    pub(super) fn shown(&self) -> Value {
        context!(name => self.name.clone(), access => self.access, of => self.of.clone())
    }
}

/// Returns the WGSL type of X: vectors of four if rows are a whole number of them.
pub(super) fn x_type(columns: usize, call: &CodedProductCall) -> Result<String, String> {
    let x = wgsl_float(call.x.dtype)?;
    Ok(if columns.is_multiple_of(4) { format!("vec4<{x}>") } else { x.to_owned() })
}

/// Part of a piece that is computed: its rows by output.
pub(super) struct PieceShare {
    pub(super) matrix: usize,
    /// The first packed row of the piece, how many, and the column of the output that it becomes.
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) column: usize,
    /// Columns of the output.
    pub(super) width: usize,
}

impl CodedProduct {
    /// A product without a gate, whose operands are rounded to nothing less.
    pub(super) fn plain(packed: Arc<PackedCodes>, segments: Vec<OutputSegment>) -> Self {
        Self { packed, segments, gate: None, halves: false, rounds: false }
    }

    /// Returns the tuner's question about such a matrix multiplication; `rounds` says whether rows of X may
    /// become bytes.
    pub(super) fn question(
        &self,
        call: &CodedProductCall,
        space: ConfigSpace,
        rounds: bool,
    ) -> KernelQuestion {
        let mut variant = format!("{} {}", self.packed.layout.name(), call.x.dtype);
        let outputs = self.segments.len();
        let named = [
            (self.gate.is_some(), " gated".to_owned()),
            (rounds, " rounded".to_owned()),
            (self.halves, " halves".to_owned()),
            (outputs > 1, format!(" to {outputs}")),
        ];
        for (_, name) in named.into_iter().filter(|(is, _)| *is) {
            variant.push_str(&name);
        }
        let lengths = vec![("m", call.m), ("n", self.packed.rows), ("k", self.packed.columns)];
        let stored = call.outputs.iter().map(|output| output.dtype).chain([call.x.dtype]);
        let halves = self.halves || stored.into_iter().any(|dtype| dtype == DataType::Fp16);
        let tolerance = match (rounds, halves) {
            (true, _) => near::BYTES,
            (false, true) => near::HALVES,
            (false, false) => near::SUMS,
        };
        KernelQuestion { variant, lengths, space, tolerance }
    }

    /// Packed rows of a column of an output.
    pub(super) fn per_column(&self) -> usize {
        if self.gate.is_some() { 2 } else { 1 }
    }

    /// The rows of a piece.
    pub(super) fn shares(&self, piece: &PackedPiece) -> Vec<PieceShare> {
        let end = piece.first + piece.rows;
        let share = |segment: &OutputSegment| {
            let from = segment.first.max(piece.first);
            let to = (segment.first + segment.rows).min(end);
            (from < to).then(|| PieceShare {
                matrix: segment.matrix,
                row: from - piece.first,
                rows: to - from,
                column: (from - segment.first) / self.per_column(),
                width: segment.rows / self.per_column(),
            })
        };
        self.segments.iter().filter_map(share).collect()
    }

    /// Returns the bindings of a shader for a piece: X, the planes and factors, biases and outputs.
    pub(super) fn declared(
        &self,
        piece: &PackedPiece,
        shares: &[PieceShare],
        call: &CodedProductCall,
        x: String,
    ) -> Result<Vec<DeclaredBinding>, String> {
        let mut all = self.operands(piece, call, x);
        all.extend(Self::results(shares, call)?);
        Ok(all)
    }

    /// X, the planes and factors.
    pub(super) fn operands(
        &self,
        piece: &PackedPiece,
        call: &CodedProductCall,
        x: String,
    ) -> Vec<DeclaredBinding> {
        let mut all = vec![DeclaredBinding::written(call.x.binding.clone(), "x".into(), x)];
        let layout = &self.packed.layout;
        let [low, high] = layout.words().map(plane_type);
        let factors = (!layout.is_float()).then_some("u32");
        let parts = [("low", low), ("high", high), ("factors", factors)];
        for ((name, of), (start, bytes)) in parts.into_iter().zip(piece.regions) {
            let Some(of) = of else { continue };
            let binding = ShaderBinding::Part(Arc::clone(&piece.block), start, bytes);
            all.push(DeclaredBinding { binding, name: name.into(), access: "read", of: of.into() });
        }
        all
    }

    /// Biases, outputs and what is added.
    pub(super) fn results(
        shares: &[PieceShare],
        call: &CodedProductCall,
    ) -> Result<Vec<DeclaredBinding>, String> {
        let bound = |operand: &BlockOperand, name: String, of: String| {
            DeclaredBinding::written(operand.binding.clone(), name, of)
        };
        let mut all = Vec::with_capacity(2 * shares.len());
        for (at, share) in shares.iter().enumerate() {
            let output = call.outputs.get(share.matrix).ok_or("an output is missing")?;
            let of = wgsl_float(output.dtype)?.to_owned();
            all.push(bound(output, format!("y{at}"), of));
            if let Some(Some(bias)) = call.biases.get(share.matrix) {
                let of = wgsl_float(bias.dtype)?.to_owned();
                all.push(bound(bias, format!("bias{at}"), of));
            }
        }
        if let Some(more) = &call.more {
            all.push(bound(more, "more".into(), wgsl_float(more.dtype)?.to_owned()));
        }
        Ok(all)
    }

    /// The types of outputs, and which have a bias.
    pub(super) fn stores(
        shares: &[PieceShare],
        call: &CodedProductCall,
    ) -> Result<(Vec<&'static str>, Vec<bool>), String> {
        let mut types = Vec::with_capacity(shares.len());
        for share in shares {
            let output = call.outputs.get(share.matrix).ok_or("an output is missing")?;
            types.push(wgsl_float(output.dtype)?);
        }
        let bias = |share: &PieceShare| matches!(call.biases.get(share.matrix), Some(Some(_)));
        Ok((types, shares.iter().map(bias).collect()))
    }

    /// The parameters of a dispatch in which `per_group` packed rows are a workgroup's, and how many
    /// workgroups that makes.
    pub(super) fn params(
        &self,
        shares: &[PieceShare],
        m: usize,
        per_group: usize,
    ) -> Result<(Vec<u32>, usize), String> {
        let layout = &self.packed.layout;
        let columns = self.packed.columns;
        let [own, wholes] = layout.factor_words(columns);
        let mut groups = 0;
        let mut widths = [0; OUTPUTS];
        let mut outputs = [[0; 4]; OUTPUTS];
        for (at, share) in shares.iter().enumerate() {
            widths[at] = param(share.width)?;
            let [first, rows] = [param(groups)?, param(share.rows)?];
            outputs[at] = [first, rows, param(share.row)?, param(share.column)?];
            groups += share.rows.div_ceil(per_group);
        }
        let units = layout.units(columns);
        let mut params = vec![param(units)?, param(columns)?, param(m)?];
        params.extend([param(own + wholes)?, param(own)?, param(groups)?, 1, 0]);
        params.extend(widths);
        params.extend(outputs.into_iter().flatten());
        Ok((params, groups))
    }
}

/// The WGSL of an activation of `v`.
pub(super) fn activation(of: FusedActivation) -> String {
    use FusedActivation as Of;
    let sigmoid = "1.0 / (1.0 + exp(-v))";
    match of {
        Of::None => "v".into(),
        Of::Relu => "max(v, 0.0)".into(),
        Of::Clip { min, max } => format!("min(max(v, f32({min:?})), f32({max:?}))"),
        Of::LeakyRelu { alpha } => format!("select(v, v * f32({alpha:?}), v < 0.0)"),
        Of::Sigmoid => sigmoid.into(),
        Of::Tanh => "1.0 - 2.0 / (exp(2.0 * clamp(v, -20.0, 20.0)) + 1.0)".into(),
        Of::HardSwish => "v * clamp(v / 6.0 + 0.5, 0.0, 1.0)".into(),
        Of::Silu => format!("v * ({sigmoid})"),
        Of::Gelu => "gelu(v)".into(),
        Of::GeluTanh => "v / (1.0 + exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)))".into(),
    }
}
