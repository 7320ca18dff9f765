//! Computation of a node on the elements at one position.

use galatea_graph::Node;
use galatea_graph::ops::activation::{Activation, ActivationKind, PRelu, SwiGlu};
use galatea_graph::ops::cast::{Cast, CastLike};
use galatea_graph::ops::contrib::BiasActivation;
use galatea_graph::ops::experimental::{ScaledFunction, ScaledKind};
use galatea_graph::ops::fused::{ChainStepOperand, FusedElementwise};
use galatea_graph::ops::logic::{
    Compare, CompareKind, IsInf, IsNaN, Logical, LogicalKind, Not, Where,
};
use galatea_graph::ops::math::{Binary, BinaryKind, Clip, Pow, Unary, Variadic, VariadicKind};
use galatea_graph::ops::normalize::BatchNormalization;
use galatea_tensor::DataType;

use super::element_program::{ElementProgram, ProgramMatch, kind};
use super::quantised;
use crate::element::ShaderKind;
use crate::element::functions;
use crate::kernel::GpuNodeView;

/// The most inputs: every one is a binding.
const MAX_INPUTS: usize = 12;

/// The program of a node.
///
/// # Errors
/// Fails when there is none for its operator and types.
pub(super) fn program(view: &GpuNodeView<'_>) -> Result<ElementProgram, String> {
    let output = view.output(0).ok_or("the output is not wanted")?;
    ShaderKind::of(view, output.dtype)?;
    let node = view.node;
    let found = quantised::program(view)
        .or_else(|| arithmetic(view, node))
        .or_else(|| activation(view, node))
        .or_else(|| truth(view, node))
        .unwrap_or_else(|| Err("the operator is of another version".into()))?;
    for &index in &found.inputs {
        kind(view, index)?;
    }
    if found.inputs.len() > MAX_INPUTS {
        return Err(format!("{} inputs, the kernel binds {MAX_INPUTS}", found.inputs.len()));
    }
    // Parameters that are no numbers have no literals.
    let strange = |text: &String| text.contains("inff") || text.contains("NaNf");
    if found.lines.iter().any(strange) || strange(&found.result) {
        return Err("a parameter is infinite".into());
    }
    Ok(found)
}

fn no_function(kind: impl std::fmt::Debug) -> String {
    format!("shaders have no {kind:?} of this type")
}

fn arithmetic(view: &GpuNodeView<'_>, node: &Node) -> ProgramMatch {
    if let Some(op) = node.operator::<Unary>() {
        return Some(unary(view, op));
    }
    if let Some(op) = node.operator::<Binary>() {
        return Some(binary(view, op));
    }
    if let Some(op) = node.operator::<Variadic>() {
        return Some(variadic(view, op));
    }
    if let Some(op) = node.operator::<Clip>() {
        return Some(clip(view, op));
    }
    if node.operator::<Pow>().is_some() {
        return Some(pow(view));
    }
    if let Some(op) = node.operator::<FusedElementwise>() {
        return Some(chain(view, op));
    }
    let to = node.operator::<Cast>().map(|op| op.to);
    let like = node.operator::<CastLike>();
    let to = to.or_else(|| like.and_then(|_| view.output(0)).map(|fact| fact.dtype))?;
    Some(cast(view, to))
}

fn unary(view: &GpuNodeView<'_>, op: &Unary) -> Result<ElementProgram, String> {
    let text = match kind(view, 0)? {
        ShaderKind::Float => functions::unary(op.kind, "a0"),
        kind => functions::integer_unary(op.kind, kind, "a0"),
    };
    Ok(ElementProgram::of(vec![0], text.ok_or_else(|| no_function(op.kind))?))
}

fn binary(view: &GpuNodeView<'_>, op: &Binary) -> Result<ElementProgram, String> {
    let text = match kind(view, 0)? {
        ShaderKind::Float => functions::binary(op.kind, "a0", "a1"),
        kind => {
            divides(view, op.kind)?;
            functions::integer_binary(op.kind, kind, "a0", "a1")
        }
    };
    Ok(ElementProgram::of(vec![0, 1], text.ok_or_else(|| no_function(op.kind))?))
}

/// An integer divided by zero is an error, which a shader cannot give.
fn divides(view: &GpuNodeView<'_>, kind: BinaryKind) -> Result<(), String> {
    if !matches!(kind, BinaryKind::Div | BinaryKind::Mod { .. }) {
        return Ok(());
    }
    let divisors = view.constant(1).and_then(|tensor| tensor.to_i64_vec().ok());
    match divisors {
        Some(all) if !all.contains(&0) => Ok(()),
        _ => Err("an integer divisor is known only in a run, where it could be 0".into()),
    }
}

fn variadic(view: &GpuNodeView<'_>, op: &Variadic) -> Result<ElementProgram, String> {
    let of = kind(view, 0)?;
    let count = view.node.inputs.len();
    let mut text = "a0".to_owned();
    let mut lines = Vec::new();
    for index in 1..count {
        let so_far = format!("s{index}");
        let next = format!("a{index}");
        lines.push(format!("let {so_far} = {text};"));
        text = match of {
            ShaderKind::Float => functions::variadic(op.kind, &so_far, &next),
            _ => functions::integer_variadic(op.kind, &so_far, &next)
                .ok_or_else(|| no_function(op.kind))?,
        };
    }
    if op.kind == VariadicKind::Mean {
        if of != ShaderKind::Float {
            return Err(no_function(op.kind));
        }
        text = format!("({text}) * (1.0 / {count}.0)");
    }
    Ok(ElementProgram {
        inputs: (0..count).collect(),
        lines,
        result: text,
        axis: None,
        blocks: None,
    })
}

/// A bound that is there is an operand of its own, a scalar.
fn clip(view: &GpuNodeView<'_>, op: &Clip) -> Result<ElementProgram, String> {
    let of = kind(view, 0)?;
    if op.min.is_some() || op.max.is_some() {
        if of != ShaderKind::Float {
            return Err("bounds are floats".into());
        }
        let min = op.min.unwrap_or(f32::NEG_INFINITY);
        let max = op.max.unwrap_or(f32::INFINITY);
        return Ok(ElementProgram::of(vec![0], functions::clip("a0", min, max)));
    }
    let mut inputs = vec![0];
    let mut lines = Vec::new();
    let mut last = "a0".to_owned();
    for (index, sign) in [(1, "<"), (2, ">")] {
        if view.has(index) {
            let bound = format!("a{}", inputs.len());
            inputs.push(index);
            let name = format!("s{index}");
            lines.push(format!("let {name} = select({last}, {bound}, {last} {sign} {bound});"));
            last = name;
        }
    }
    Ok(ElementProgram { inputs, lines, result: last, axis: None, blocks: None })
}

fn pow(view: &GpuNodeView<'_>) -> Result<ElementProgram, String> {
    let text = match (kind(view, 0)?, kind(view, 1)?) {
        (ShaderKind::Float, ShaderKind::Float) => match constant_scalar(view, 1) {
            Some(2.0) => return Ok(ElementProgram::of(vec![0], "a0 * a0".into())),
            Some(3.0) => return Ok(ElementProgram::of(vec![0], "a0 * a0 * a0".into())),
            Some(0.5) => return Ok(ElementProgram::of(vec![0], "sqrt(a0)".into())),
            _ => "power4(a0, a1)".to_owned(),
        },
        (ShaderKind::Float, ShaderKind::Signed | ShaderKind::Wide) => {
            "power4(a0, vec4<f32>(a1))".into()
        }
        (ShaderKind::Signed, ShaderKind::Signed) => "whole_power4(a0, a1)".into(),
        (a, b) => return Err(format!("shaders have no power of {a:?} and {b:?}")),
    };
    Ok(ElementProgram::of(vec![0, 1], text))
}

/// The value of a constant input of one element.
fn constant_scalar(view: &GpuNodeView<'_>, index: usize) -> Option<f32> {
    let tensor = view.constant(index).filter(|tensor| tensor.elements() == 1)?;
    // An exponent of more axes than the base shapes the result.
    let rank = view.rank(0).ok()?;
    if tensor.rank() > rank {
        return None;
    }
    match tensor.dtype() {
        DataType::Fp32 => tensor.item::<f32>().ok(),
        _ => None,
    }
}

fn chain(view: &GpuNodeView<'_>, op: &FusedElementwise) -> Result<ElementProgram, String> {
    let count = view.node.inputs.len();
    for index in 0..count {
        if kind(view, index)? != ShaderKind::Float {
            return Err("a chain is of floats".into());
        }
    }
    let mut lines = Vec::new();
    for (at, step) in op.steps.iter().enumerate() {
        let name = |slot: usize| match step.operands.get(slot) {
            Some(ChainStepOperand::Input(index)) => format!("a{index}"),
            Some(ChainStepOperand::Step(index)) => format!("s{index}"),
            None => String::new(),
        };
        let text = functions::element(step.function, &name(0), &name(1));
        let text = text.ok_or_else(|| no_function(step.function))?;
        lines.push(format!("let s{at} = {text};"));
    }
    let result = format!("s{}", op.steps.len().saturating_sub(1));
    Ok(ElementProgram { inputs: (0..count).collect(), lines, result, axis: None, blocks: None })
}

fn cast(view: &GpuNodeView<'_>, to: DataType) -> Result<ElementProgram, String> {
    let from = kind(view, 0)?;
    let into = ShaderKind::of(view, to)?;
    if from == ShaderKind::Float && to == DataType::Uint32 {
        return Err("shaders do not wrap floats to UINT32".into());
    }
    Ok(ElementProgram::of(vec![0], functions::converted(from, into, "a0")))
}

/// A function of a scaled element, scaled again.
fn scaled(view: &GpuNodeView<'_>, op: &ScaledFunction) -> Result<ElementProgram, String> {
    if kind(view, 0)? != ShaderKind::Float {
        return Err(no_function(op.kind));
    }
    let &ScaledFunction { kind, alpha, beta } = op;
    let result = match kind {
        ScaledKind::Affine => format!("{alpha:?}f * a0 + {beta:?}f"),
        ScaledKind::Tanh => format!("{alpha:?}f * tanh4({beta:?}f * a0)"),
        ScaledKind::Softplus => format!("{alpha:?}f * softplus4({beta:?}f * a0)"),
    };
    Ok(ElementProgram::of(vec![0], result))
}

fn activation(view: &GpuNodeView<'_>, node: &Node) -> ProgramMatch {
    if let Some(op) = node.operator::<Activation>() {
        return Some(match (kind(view, 0), op.kind) {
            (Ok(ShaderKind::Float), kind) => {
                Ok(ElementProgram::of(vec![0], functions::activation(kind, "a0")))
            }
            (Ok(of @ (ShaderKind::Signed | ShaderKind::Wide)), ActivationKind::Relu) => {
                Ok(ElementProgram::of(vec![0], format!("select(a0, {0}, a0 < {0})", of.splat("0"))))
            }
            (Ok(_), kind) => Err(no_function(kind)),
            (Err(reason), _) => Err(reason),
        });
    }
    if let Some(op) = node.operator::<ScaledFunction>() {
        return Some(scaled(view, op));
    }
    if let Some(op) = node.operator::<BatchNormalization>() {
        return Some(batch_normalization(view, op));
    }
    if let Some(op) = node.operator::<BiasActivation>() {
        let all = (0..node.inputs.len()).filter(|&index| view.has(index));
        let inputs: Vec<usize> = all.collect();
        let sum = if inputs.len() > 1 { "let s = a0 + a1;" } else { "let s = a0;" };
        let result = functions::activation(op.kind, "s");
        return Some(Ok(ElementProgram {
            inputs,
            lines: vec![sum.into()],
            result,
            axis: None,
            blocks: None,
        }));
    }
    if node.operator::<PRelu>().is_some() {
        return Some(match kind(view, 0) {
            Ok(ShaderKind::Float) => Ok(ElementProgram::of(
                vec![0, 1],
                "select(a0, a0 * a1, a0 < vec4<f32>(0.0))".into(),
            )),
            Ok(kind) => Err(no_function(kind)),
            Err(reason) => Err(reason),
        });
    }
    let op = node.operator::<SwiGlu>()?;
    let kind = ActivationKind::Swish { alpha: op.alpha };
    let gate = format!("({}) * a1", functions::activation(kind, "a0"));
    Some(Ok(ElementProgram::of(vec![0, 1], gate)))
}

fn batch_normalization(
    view: &GpuNodeView<'_>,
    op: &BatchNormalization,
) -> Result<ElementProgram, String> {
    if op.training > 0 || op.each_element || view.rank(0)? < 2 {
        return Err("statistics are not those of channels".into());
    }
    if kind(view, 0)? != ShaderKind::Float {
        return Err("the input is of floats".into());
    }
    let result = format!("(a0 - a3) / sqrt(a4 + {:?}f) * a1 + a2", op.epsilon);
    Ok(ElementProgram { axis: Some(1), ..ElementProgram::of((0..5).collect(), result) })
}

fn truth(view: &GpuNodeView<'_>, node: &Node) -> ProgramMatch {
    let two = |text: &str| Some(Ok(ElementProgram::of(vec![0, 1], text.into())));
    if let Some(op) = node.operator::<Logical>() {
        return match op.kind {
            LogicalKind::And => two("a0 & a1"),
            LogicalKind::Or => two("a0 | a1"),
            LogicalKind::Xor => two("a0 != a1"),
        };
    }
    if node.operator::<Not>().is_some() {
        return Some(Ok(ElementProgram::of(vec![0], "!a0".into())));
    }
    if let Some(op) = node.operator::<Compare>() {
        return two(match op.kind {
            CompareKind::Equal => "a0 == a1",
            CompareKind::Greater => "a0 > a1",
            CompareKind::GreaterOrEqual => "a0 >= a1",
            CompareKind::Less => "a0 < a1",
            CompareKind::LessOrEqual => "a0 <= a1",
        });
    }
    if node.operator::<IsNaN>().is_some() {
        return Some(floats_only(view, "is_nan(a0)".into()));
    }
    if let Some(op) = node.operator::<IsInf>() {
        let looked = |wanted: bool, bits: &str| match wanted {
            true => format!("is_infinity(a0, {bits})"),
            false => "vec4<bool>(false)".into(),
        };
        let up = looked(op.detect_positive, "0x7f800000u");
        let down = looked(op.detect_negative, "0xff800000u");
        return Some(floats_only(view, format!("{up} | {down}")));
    }
    node.operator::<Where>()?;
    Some(match kind(view, 1) {
        Ok(_) => Ok(ElementProgram::of(vec![0, 1, 2], "select(a2, a1, a0)".into())),
        Err(reason) => Err(reason),
    })
}

fn floats_only(view: &GpuNodeView<'_>, text: String) -> Result<ElementProgram, String> {
    match kind(view, 0)? {
        ShaderKind::Float => Ok(ElementProgram::of(vec![0], text)),
        other => Err(no_function(other)),
    }
}
