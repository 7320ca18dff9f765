//! Operators that are written as the simpler ones that they are made of.

use std::sync::Arc;

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ops::activation::{ActivationKind, SwiGlu};
use galatea_graph::ops::contrib::BiasActivation;
use galatea_graph::ops::loss::{LossReduction, NegativeLogLikelihoodLoss};
use galatea_graph::ops::transformer::CausalConvWithState;
use galatea_graph::{AttributeValue, Node};
use galatea_tensor::DataType;

use super::EmitRow;
use super::activation::apply;
use super::contrib_attention::signed;
use super::parts::DecomposedNode;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse};

const LOGARITHMS: &str = "sums that logarithms are taken of lose too much in FP16";

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("BiasGelu", biased).of("com.microsoft"),
    EmitRow::onnx("FastGelu", biased).of("com.microsoft"),
    EmitRow::onnx("QuickGelu", biased).of("com.microsoft"),
    EmitRow::onnx("SwiGLU", swiglu),
    EmitRow::onnx("GatherND", |emit, node| alias(emit, node, "GatherND")).of("com.microsoft"),
    EmitRow::onnx("GridSample", |emit, node| alias(emit, node, "GridSample")).of("com.microsoft"),
    EmitRow::onnx("Pad", |emit, node| alias(emit, node, "Pad")).of("com.microsoft"),
    EmitRow::onnx("Trilu", |emit, node| alias(emit, node, "Trilu")).of("com.microsoft"),
    EmitRow::onnx("ExpandDims", expand_dims).of("com.microsoft"),
    EmitRow::onnx("Acosh", acosh).wide(LOGARITHMS),
    EmitRow::onnx("Asinh", asinh).wide(LOGARITHMS),
    EmitRow::onnx("NegativeLogLikelihoodLoss", loss).wide(LOGARITHMS),
    EmitRow::onnx("SoftmaxCrossEntropyLoss", loss).wide(LOGARITHMS),
    EmitRow::onnx("CausalConvWithState", causal_convolution),
    EmitRow::onnx("CausalConvWithState", causal_convolution).of("com.microsoft"),
];

/// An activation of a sum.
fn biased(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(&BiasActivation { kind }) = node.operator::<BiasActivation>() else {
        return refuse("an activation of another kind");
    };
    let mut x = emit.var(node, 0)?;
    if let Some(bias) = emit.optional(node, 1)? {
        x = emit.pair("add", &x, &bias)?;
    }
    Ok(vec![apply(emit, kind, &x)?])
}

/// `gate · sigmoid(alpha · gate) · x`.
fn swiglu(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<SwiGlu>() else {
        return refuse("a gate of another kind");
    };
    let gate = emit.var(node, 0)?;
    let x = emit.var(node, 1)?;
    let gate = apply(emit, ActivationKind::Swish { alpha: operator.alpha }, &gate)?;
    Ok(vec![emit.pair("mul", &gate, &x)?])
}

/// An operator of another domain that is one of ONNX.
fn alias(emit: &mut ProgramEmitter<'_>, node: &Node, name: &str) -> Result<Vec<MilVar>> {
    let mut parts = DecomposedNode::new();
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for at in 0..node.inputs.len() {
        inputs.push(parts.input(emit, node, at)?);
    }
    let made = parts.parsed(("", name), Arc::clone(&node.operator), &inputs);
    parts.write(emit, &[made])
}

fn expand_dims(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let axes = emit.integers(node, 1)?;
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let made = parts.unsqueeze(x, &axes)?;
    parts.write(emit, &[made])
}

/// `log(x + √(x² − 1))`.
fn acosh(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let one = parts.float(1.0);
    let below = parts.plain("Sub", &[x, one])?;
    let above = parts.plain("Add", &[x, one])?;
    let square = parts.plain("Mul", &[below, above])?;
    let root = parts.plain("Sqrt", &[square])?;
    let sum = parts.plain("Add", &[x, root])?;
    let made = parts.plain("Log", &[sum])?;
    parts.write(emit, &[made])
}

/// `log(|x| + √(x² + 1))` with the sign of `x`.
fn asinh(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let one = parts.float(1.0);
    let size = parts.plain("Abs", &[x])?;
    let sign = parts.plain("Sign", &[x])?;
    let square = parts.plain("Mul", &[x, x])?;
    let square = parts.plain("Add", &[square, one])?;
    let root = parts.plain("Sqrt", &[square])?;
    let sum = parts.plain("Add", &[size, root])?;
    let logarithm = parts.plain("Log", &[sum])?;
    let made = parts.plain("Mul", &[logarithm, sign])?;
    parts.write(emit, &[made])
}

/// Losses are sums over the classes of which one counts.
fn loss(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(&NegativeLogLikelihoodLoss { reduction, ignore_index, softmax }) =
        node.operator::<NegativeLogLikelihoodLoss>()
    else {
        return refuse("a loss of another kind");
    };
    let scores = emit.input(node, 0)?;
    let rank = emit.rank(scores)?;
    let classes = emit.known_length(scores, 1)?;
    let mut parts = DecomposedNode::new();
    let mut logs = parts.input(emit, node, 0)?;
    if softmax {
        logs = parts.op("LogSoftmax", &[("axis", 1_i64.into())], &[logs])?;
    }
    let targets = parts.input(emit, node, 1)?;
    let targets = parts.unsqueeze(targets, &[1])?;
    let mut shape = vec![1; rank];
    shape[1] = classes;
    let numbers = parts.counted(&shape)?;
    let mut counts = parts.plain("Equal", &[targets, numbers])?;
    if let Some(ignored) = ignore_index {
        let ignored = parts.ints(&[ignored]);
        let same = parts.plain("Equal", &[targets, ignored])?;
        let other = parts.plain("Not", &[same])?;
        counts = parts.plain("And", &[counts, other])?;
    }
    let mut weights = parts.cast(counts, DataType::Fp32)?;
    if let Some(given) = parts.optional(emit, node, 2)? {
        let shape = shape.iter().map(|&len| signed(len)).collect::<Result<Vec<i64>>>()?;
        let given = parts.reshape(given, &shape)?;
        weights = parts.plain("Mul", &[weights, given])?;
    }
    let axis = parts.ints(&[1]);
    let flat = [("keepdims", AttributeValue::from(0_i64))];
    let products = parts.plain("Mul", &[logs, weights])?;
    let gains = parts.op("ReduceSum", &flat, &[products, axis])?;
    let losses = parts.plain("Neg", &[gains])?;
    let made = match reduction {
        LossReduction::None => losses,
        LossReduction::Sum => parts.op("ReduceSum", &flat, &[losses])?,
        LossReduction::Mean => {
            let sum = parts.op("ReduceSum", &flat, &[losses])?;
            let total = parts.op("ReduceSum", &flat, &[weights])?;
            parts.plain("Div", &[sum, total])?
        }
    };
    parts.write(emit, &[made, logs])
}

/// A convolution of each channel with what came before in front.
fn causal_convolution(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<CausalConvWithState>() else {
        return refuse("a convolution of another kind");
    };
    let x = emit.shape(emit.input(node, 0)?)?;
    let weight = emit.shape(emit.input(node, 1)?)?;
    let (&[batch, channels, length], &[_, _, kernel]) = (x.as_slice(), weight.as_slice()) else {
        return refuse(format!("weights of shape {weight:?} for an input of shape {x:?}"));
    };
    let kept = kernel.saturating_sub(1);
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let weight = parts.input(emit, node, 1)?;
    let mut line = x;
    if kept > 0 {
        let past = match parts.optional(emit, node, 3)? {
            Some(past) => past,
            None => parts.floats(&[batch, channels, kept], vec![0.0; batch * channels * kept])?,
        };
        line = parts.concat(&[past, x], 2)?;
    }
    let mut inputs = vec![line, weight];
    inputs.extend(parts.optional(emit, node, 2)?);
    let mut made = parts.op("Conv", &[("group", signed(channels)?.into())], &inputs)?;
    if operator.silu {
        let gate = parts.plain("Sigmoid", &[made])?;
        made = parts.plain("Mul", &[made, gate])?;
    }
    let state = node.output(1).is_some_and(|id| emit.is_read(id));
    if state && kept == 0 {
        return refuse("a state without elements, which Core ML does not have");
    }
    let last = match state {
        true => parts.slice(line, 2, length, length + kept, 1)?,
        false => made,
    };
    parts.write(emit, &[made, last])
}
