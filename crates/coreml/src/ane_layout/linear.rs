//! Layers as convolutions of one pixel.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::fused::{FusedActivation, FusedMatMul};
use galatea_graph::ops::matrix::{Gemm, MatMul};
use galatea_graph::{Graph, Node, ValueId};
use galatea_tensor::Tensor;

use crate::ane_values::LayoutAxes;
use crate::emit::ProgramEmitter;
use crate::rows::activation;
use crate::unwritable::{Result, UnwritableNode, refuse};

/// The engine has no more channels, and no longer axis of positions.
const MAX_CHANNELS: usize = 65_536;
/// More results, such as the scores of all words, are computed so many at a time.
const PART: usize = 16_384;
pub(super) const MAX_POSITIONS: usize = 16_384;

/// `activation(x · weight + bias + residual)` with a constant matrix.
pub(super) struct AneLinear {
    x: ValueId,
    weight: ValueId,
    /// True if the matrix is `[outputs, inputs]`.
    turned: bool,
    bias: Option<ValueId>,
    residual: Option<ValueId>,
    /// True if the residual multiplies.
    gated: bool,
    activation: FusedActivation,
}

impl AneLinear {
    /// The layer that a node is; none where it is none.
    pub(super) fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let x = node.input(0)?;
        let weight = node.input(1)?;
        let plain = Self {
            x,
            weight,
            turned: false,
            bias: None,
            residual: None,
            gated: false,
            activation: FusedActivation::None,
        };
        let tensor = graph.constant(weight)?;
        if tensor.rank() != 2 || !tensor.dtype().is_float() || graph.constant(x).is_some() {
            return None;
        }
        if let Some(operator) = node.operator::<FusedMatMul>() {
            return Some(Self {
                turned: operator.trans_b,
                bias: node.input(2),
                residual: node.input(3),
                gated: operator.gated,
                activation: operator.activation,
                ..plain
            });
        }
        if let Some(operator) = node.operator::<Gemm>() {
            let one = operator.alpha == 1.0 && (operator.beta == 1.0 || node.input(2).is_none());
            let fits = one && !operator.trans_a && node.op_type == "Gemm";
            return fits.then(|| Self { turned: operator.trans_b, bias: node.input(2), ..plain });
        }
        node.operator::<MatMul>().map(|_| plain)
    }
}

pub(super) fn layer(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(layer) = AneLinear::of(emit.graph(), node) else { return Ok(false) };
    let (Some(shape), Some(output)) = (emit.fixed_floats(layer.x), node.output(0)) else {
        return Ok(false);
    };
    let Some(out) = emit.fixed_floats(output) else { return Ok(false) };
    let axes = match emit.formed(layer.x) {
        Some(form) if form.axes.in_rows(&shape) => form.axes.clone(),
        _ => LayoutAxes::of_rows(&shape),
    };
    let last: Vec<usize> = (out.len().saturating_sub(1)..out.len()).collect();
    let to = LayoutAxes::new(&out, [&axes.batch, &last, &axes.positions]);
    let ([_, inputs, _, positions], [_, outputs, ..]) = (axes.lengths(&shape), to.lengths(&out));
    if out.len() != shape.len() || inputs > MAX_CHANNELS || positions > MAX_POSITIONS {
        return Ok(false);
    }
    // What is added must have a form too.
    let inside = |emit: &ProgramEmitter<'_>, id: ValueId| {
        emit.constant_tensor(id).filter(|tensor| tensor.elements() == outputs).is_some()
    };
    let bias = layer.bias.filter(|&id| inside(emit, id));
    let mut more = Vec::new();
    if let Some(id) = layer.bias.filter(|_| bias.is_none()) {
        more.push((id, "add"));
    }
    if let Some(id) = layer.residual {
        more.push((id, if layer.gated { "mul" } else { "add" }));
    }
    let mut operands = Vec::with_capacity(more.len());
    for (id, operator) in more {
        match emit.operand(id, &to, &out)? {
            Some(var) => operands.push((var, operator)),
            None => return Ok(false),
        }
    }
    let x = emit.form_in(layer.x, &axes)?;
    let mut result = pixel(emit, &x, &layer, outputs, inputs, bias)?;
    for (var, operator) in operands {
        result = emit.pair(operator, &result, &var)?;
    }
    let result = activation::fused(emit, layer.activation, &result)?;
    emit.end_formed(node, result, to)
}

/// The convolution, or several whose results are side by side.
fn pixel(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    layer: &AneLinear,
    outputs: usize,
    inputs: usize,
    bias: Option<ValueId>,
) -> Result<MilVar> {
    if outputs > MAX_CHANNELS {
        return in_parts(emit, x, layer, outputs, inputs, bias);
    }
    let weight = weight(emit, layer, outputs, inputs)?;
    let mut args = one_pixel(x, weight, MilArg::Int(1));
    if let Some(id) = bias {
        args.push(("bias", MilArg::Var(vector(emit, id)?)));
    }
    emit.op("conv", args)
}

/// The convolutions of some results each.
fn in_parts(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    layer: &AneLinear,
    outputs: usize,
    inputs: usize,
    bias: Option<ValueId>,
) -> Result<MilVar> {
    let failed = |error: galatea_tensor::TensorError| UnwritableNode(error.to_string());
    let whole = whole(emit, layer, outputs, inputs)?;
    let bias = bias.map(|id| flat(emit, id)).transpose()?;
    let mut parts = Vec::with_capacity(outputs.div_ceil(PART));
    for start in (0..outputs).step_by(PART) {
        let count = PART.min(outputs - start);
        let rows = whole.slice_axis(0, start, count, 1).map_err(failed)?;
        let weight = emit.weight(layer.weight, &rows)?;
        let mut args = one_pixel(x, weight, MilArg::Int(1));
        if let Some(bias) = &bias {
            let part = bias.slice_axis(0, start, count, 1).map_err(failed)?;
            args.push(("bias", MilArg::Var(emit.tensor(&part)?)));
        }
        parts.push(emit.op("conv", args)?);
    }
    emit.concat(parts, 1)
}

/// The parameters of a convolution of one pixel without a bias.
pub(super) fn one_pixel(x: &MilVar, weight: MilVar, groups: MilArg) -> Vec<(&'static str, MilArg)> {
    vec![
        ("x", x.into()),
        ("weight", MilArg::Var(weight)),
        ("strides", MilArg::Ints(vec![1, 1])),
        ("pad_type", MilArg::Text("valid")),
        ("pad", MilArg::Ints(vec![0; 4])),
        ("dilations", MilArg::Ints(vec![1, 1])),
        ("groups", groups),
    ]
}

/// A constant with one axis.
pub(super) fn vector(emit: &mut ProgramEmitter<'_>, id: ValueId) -> Result<MilVar> {
    match emit.constant_tensor(id).is_some_and(|tensor| tensor.rank() != 1) {
        false => emit.value(id),
        true => {
            let flat = flat(emit, id)?;
            emit.tensor(&flat)
        }
    }
}

/// The elements of a constant along one axis.
fn flat(emit: &ProgramEmitter<'_>, id: ValueId) -> Result<Tensor> {
    let Some(tensor) = emit.constant_tensor(id) else { return refuse("it is no constant") };
    let flat = tensor.contiguous().and_then(|whole| whole.reshape(&[whole.elements()]));
    flat.map_err(|error| UnwritableNode(error.to_string()))
}

/// The matrix as `[outputs, inputs, 1, 1]`.
fn whole(
    emit: &ProgramEmitter<'_>,
    layer: &AneLinear,
    outputs: usize,
    inputs: usize,
) -> Result<Tensor> {
    let failed = |error: galatea_tensor::TensorError| UnwritableNode(error.to_string());
    let Some(tensor) = emit.graph().constant(layer.weight).cloned() else {
        return refuse("a layer without its weights");
    };
    let turned = if layer.turned { tensor } else { emit.swapped(&tensor)? };
    let whole = turned.contiguous().map_err(failed)?;
    whole.reshape(&[outputs, inputs, 1, 1]).map_err(failed)
}

/// The matrix as `[outputs, inputs, 1, 1]`, made once.
fn weight(
    emit: &mut ProgramEmitter<'_>,
    layer: &AneLinear,
    outputs: usize,
    inputs: usize,
) -> Result<MilVar> {
    let key = (layer.weight, layer.turned);
    if let Some(var) = emit.favoured.as_ref().and_then(|favoured| favoured.weights.get(&key)) {
        return Ok(var.clone());
    }
    let whole = whole(emit, layer, outputs, inputs)?;
    let var = emit.weight(layer.weight, &whole)?;
    if let Some(favoured) = &mut emit.favoured {
        favoured.weights.insert(key, var.clone());
    }
    Ok(var)
}
