//! Activations.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::activation::{Activation, ActivationKind, LogSoftmax, Softmax};
use galatea_graph::ops::fused::FusedActivation;

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Relu", activation),
    EmitRow::onnx("LeakyRelu", activation),
    EmitRow::onnx("Elu", activation),
    EmitRow::onnx("Celu", activation),
    EmitRow::onnx("Selu", activation),
    EmitRow::onnx("Sigmoid", activation),
    EmitRow::onnx("HardSigmoid", activation),
    EmitRow::onnx("HardSwish", activation),
    EmitRow::onnx("Tanh", activation),
    EmitRow::onnx("Softplus", activation),
    EmitRow::onnx("Softsign", activation),
    EmitRow::onnx("ThresholdedRelu", activation),
    EmitRow::onnx("Gelu", activation),
    EmitRow::onnx("Gelu", activation).of("com.microsoft"),
    EmitRow::onnx("Mish", activation),
    EmitRow::onnx("Swish", activation),
    EmitRow::onnx("Softmax", softmax),
    EmitRow::onnx("LogSoftmax", log_softmax),
    EmitRow::onnx("PRelu", prelu),
];

/// An operation of one value and numbers.
fn function(
    emit: &mut ProgramEmitter<'_>,
    operator: &str,
    x: &MilVar,
    numbers: &[(&'static str, f32)],
) -> Result<MilVar> {
    let mut inputs: Vec<(&str, MilArg)> = vec![("x", x.into())];
    for (name, value) in numbers {
        inputs.push((name, emit.float(*value)));
    }
    emit.op(operator, inputs)
}

fn product(emit: &mut ProgramEmitter<'_>, x: &MilVar, y: &MilVar) -> Result<MilVar> {
    emit.op("mul", vec![("x", x.into()), ("y", y.into())])
}

fn activation(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Activation>() else {
        return refuse("an activation of another kind");
    };
    let x = emit.var(node, 0)?;
    Ok(vec![apply(emit, operator.kind, &x)?])
}

/// An activation of a value.
pub(super) fn apply(
    emit: &mut ProgramEmitter<'_>,
    kind: ActivationKind,
    x: &MilVar,
) -> Result<MilVar> {
    let result = match kind {
        ActivationKind::Relu => function(emit, "relu", x, &[])?,
        ActivationKind::LeakyRelu { alpha } => {
            function(emit, "leaky_relu", x, &[("alpha", alpha)])?
        }
        ActivationKind::Elu { alpha } => function(emit, "elu", x, &[("alpha", alpha)])?,
        ActivationKind::Sigmoid => function(emit, "sigmoid", x, &[])?,
        ActivationKind::HardSigmoid { alpha, beta } => {
            function(emit, "sigmoid_hard", x, &[("alpha", alpha), ("beta", beta)])?
        }
        ActivationKind::HardSwish => {
            let numbers = [("alpha", 1.0 / 6.0), ("beta", 0.5)];
            let gate = function(emit, "sigmoid_hard", x, &numbers)?;
            product(emit, x, &gate)?
        }
        ActivationKind::Tanh => function(emit, "tanh", x, &[])?,
        ActivationKind::Softplus => function(emit, "softplus", x, &[])?,
        ActivationKind::Softsign => function(emit, "softsign", x, &[])?,
        ActivationKind::Gelu { tanh } => {
            let mode = if tanh { "TANH_APPROXIMATION" } else { "EXACT" };
            emit.op("gelu", vec![("x", x.into()), ("mode", MilArg::Text(mode))])?
        }
        ActivationKind::Mish => {
            let soft = function(emit, "softplus", x, &[])?;
            let gate = function(emit, "tanh", &soft, &[])?;
            product(emit, x, &gate)?
        }
        ActivationKind::Swish { alpha: 1.0 } => function(emit, "silu", x, &[])?,
        ActivationKind::Swish { alpha } => {
            let slope = emit.float(alpha);
            let scaled = emit.op("mul", vec![("x", x.into()), ("y", slope)])?;
            let gate = function(emit, "sigmoid", &scaled, &[])?;
            product(emit, x, &gate)?
        }
        ActivationKind::ThresholdedRelu { alpha } => {
            let limit = emit.float(alpha);
            let above = emit.pair("greater", x, limit)?;
            let zero = emit.float(0.0);
            emit.select(&above, MilArg::from(x), zero)?
        }
        // max(x, 0) + alpha · (exp(min(x, 0) / alpha) − 1): what is above zero is not scaled, which may exceed FP16.
        ActivationKind::Celu { alpha } => {
            let zero = emit.float(0.0);
            let below = emit.pair("minimum", x, zero)?;
            let share = emit.float(1.0 / alpha);
            let scaled = emit.pair("mul", &below, share)?;
            let bent = function(emit, "elu", &scaled, &[("alpha", 1.0)])?;
            let back = emit.float(alpha);
            let bent = emit.pair("mul", &bent, back)?;
            let above = function(emit, "relu", x, &[])?;
            emit.pair("add", &above, &bent)?
        }
        ActivationKind::Selu { alpha, gamma } => {
            let bent = function(emit, "elu", x, &[("alpha", alpha)])?;
            let factor = emit.float(gamma);
            emit.pair("mul", &bent, factor)?
        }
        other => return refuse(format!("no operation of a program is {other:?}")),
    };
    Ok(result)
}

fn softmax(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Softmax>() else {
        return refuse("a softmax of another kind");
    };
    along(emit, node, operator.axis, operator.flatten, |emit, x, axis| {
        emit.op("softmax", vec![("x", x.into()), ("axis", MilArg::Int(axis))])
    })
}

/// `x - log(sum(exp(x)))`, which does not lose small probabilities, of what the greatest element
/// exceeds the others by: large elements would lose digits.
fn log_softmax(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<LogSoftmax>() else {
        return refuse("a softmax of another kind");
    };
    along(emit, node, operator.axis, operator.flatten, |emit, x, axis| {
        let less = |emit: &mut ProgramEmitter<'_>, x: &MilVar, operation: &str| {
            let axes = MilArg::Ints(vec![axis]);
            let inputs = vec![("x", x.into()), ("axes", axes), ("keep_dims", MilArg::Bool(true))];
            let part = emit.op(operation, inputs)?;
            emit.op("sub", vec![("x", x.into()), ("y", MilArg::Var(part))])
        };
        let below = less(emit, x, "reduce_max")?;
        less(emit, &below, "reduce_log_sum_exp")
    })
}

/// Applies a function along an axis. Before version 13 of ONNX it took all axes from there on together.
fn along(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    axis: i64,
    flatten: bool,
    function: fn(&mut ProgramEmitter<'_>, &MilVar, i32) -> Result<MilVar>,
) -> Result<Vec<MilVar>> {
    let id = emit.input(node, 0)?;
    let rank = emit.rank(id)?;
    let axis = emit.axis(axis, rank)?;
    let x = emit.var(node, 0)?;
    if !flatten || axis + 1 >= rank {
        return Ok(vec![function(emit, &x, small(axis)?)?]);
    }
    let shape = emit.shape(id)?;
    let rows: usize = shape.iter().take(axis).product();
    let columns: usize = shape.iter().skip(axis).product();
    let flat = emit.reshape(&x, &[rows, columns])?;
    let result = function(emit, &flat, 1)?;
    Ok(vec![emit.reshape(&result, &shape)?])
}

/// `max(x, 0) + slope · min(x, 0)`, with slopes of any shape that broadcasts.
fn prelu(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    let slope = emit.var(node, 1)?;
    let zero = emit.float(0.0);
    let above = emit.op("relu", vec![("x", (&x).into())])?;
    let below = emit.op("minimum", vec![("x", MilArg::Var(x)), ("y", zero)])?;
    let sloped = product(emit, &below, &slope)?;
    Ok(vec![emit.op("add", vec![("x", MilArg::Var(above)), ("y", MilArg::Var(sloped))])?])
}

/// Emits the activation that a fused operator applies last.
pub(crate) fn fused(
    emit: &mut ProgramEmitter<'_>,
    activation: FusedActivation,
    x: &MilVar,
) -> Result<MilVar> {
    let kind = match activation {
        FusedActivation::None => return Ok(x.clone()),
        FusedActivation::Clip { min, max } => {
            let low = emit.float(min);
            let high = emit.float(max);
            return emit.op("clip", vec![("x", x.into()), ("alpha", low), ("beta", high)]);
        }
        FusedActivation::Relu => ActivationKind::Relu,
        FusedActivation::LeakyRelu { alpha } => ActivationKind::LeakyRelu { alpha },
        FusedActivation::Sigmoid => ActivationKind::Sigmoid,
        FusedActivation::Tanh => ActivationKind::Tanh,
        FusedActivation::HardSwish => ActivationKind::HardSwish,
        FusedActivation::Silu => ActivationKind::Swish { alpha: 1.0 },
        FusedActivation::Gelu => ActivationKind::Gelu { tanh: false },
        FusedActivation::GeluTanh => ActivationKind::Gelu { tanh: true },
    };
    apply(emit, kind, x)
}
