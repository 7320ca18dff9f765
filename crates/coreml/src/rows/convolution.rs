//! Convolutions.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::convolution::{Conv, ConvTranspose, FusedConv, WindowPadding};

use super::EmitRow;
use super::activation::fused;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small, small_all};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Conv", conv),
    EmitRow::onnx("ConvTranspose", conv_transpose),
    EmitRow::onnx("ConvNhwc", conv).of("ai.galatea"),
    EmitRow::onnx("FusedConv", fused_conv).of("ai.galatea"),
    EmitRow::onnx("FusedConv", fused_conv).of("com.microsoft"),
    EmitRow::onnx("NhwcConv", conv).of("com.microsoft"),
    EmitRow::onnx("NhwcFusedConv", fused_conv).of("com.microsoft"),
];

/// The number of axes of space of an input with a batch and channels.
pub(super) fn space(rank: usize) -> Result<usize> {
    match rank {
        3..=5 => Ok(rank - 2),
        _ => refuse(format!("{rank} axes, programs have images of 3 to 5")),
    }
}

/// The axes of an image with its channels last in the order of one with its channels first.
pub(super) fn channels_first(rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    order[1..].rotate_right(1);
    order
}

/// The other way.
pub(super) fn channels_last(rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    order[1..].rotate_left(1);
    order
}

/// A number for each axis of space; an empty list is ones.
pub(super) fn steps(all: &[usize], axes: usize) -> Result<MilArg> {
    match all.is_empty() {
        true => Ok(MilArg::Ints(vec![1; axes])),
        false => Ok(MilArg::Ints(small_all(all)?)),
    }
}

/// Pads in front of and behind each axis, one after the other.
pub(crate) fn amounts(front: &[usize], behind: &[usize]) -> Result<MilArg> {
    let each = front.iter().zip(behind).flat_map(|(front, behind)| [*front, *behind]);
    Ok(MilArg::Ints(small_all(&each.collect::<Vec<_>>())?))
}

/// The parameters `pad_type` and `pad`.
pub(super) fn padding(pads: &WindowPadding, axes: usize) -> Result<[(&'static str, MilArg); 2]> {
    let none = || MilArg::Ints(vec![0; 2 * axes]);
    let (word, pad) = match pads {
        WindowPadding::Explicit(pads) if pads.iter().any(|&pad| pad != 0) => {
            let (front, behind) = pads.split_at(axes.min(pads.len()));
            ("custom", amounts(front, behind)?)
        }
        WindowPadding::Explicit(_) | WindowPadding::Valid => ("valid", none()),
        WindowPadding::SameUpper => ("same", none()),
        WindowPadding::SameLower => ("same_lower", none()),
    };
    Ok([("pad_type", MilArg::Text(word)), ("pad", pad)])
}

/// The sum of an image and a value for each channel.
fn biased(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    result: MilVar,
    rank: usize,
) -> Result<MilVar> {
    let Some(id) = node.input(2) else { return Ok(result) };
    let count = emit.known_length(id, 0)?;
    let bias = emit.value(id)?;
    let bias = emit.by_channel(&bias, rank, count)?;
    emit.pair("add", &result, &bias)
}

fn conv(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    match node.operator::<Conv>() {
        Some(operator) => {
            let result = convolve(emit, node, operator)?;
            Ok(vec![laid_out(emit, node, &result, operator.channels_last)?])
        }
        None => refuse("a convolution of another kind"),
    }
}

/// A result with its channels where the operator has them.
fn laid_out(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    result: &MilVar,
    last: bool,
) -> Result<MilVar> {
    let rank = emit.rank(emit.input(node, 0)?)?;
    match last {
        true => emit.transpose(result, &channels_last(rank)),
        false => Ok(result.clone()),
    }
}

/// An input with its channels first.
fn image(emit: &mut ProgramEmitter<'_>, node: &Node, at: usize, last: bool) -> Result<MilVar> {
    let rank = emit.rank(emit.input(node, at)?)?;
    let x = emit.var(node, at)?;
    match last {
        true => emit.transpose(&x, &channels_first(rank)),
        false => Ok(x),
    }
}

/// The convolution with its channels first.
fn convolve(emit: &mut ProgramEmitter<'_>, node: &Node, operator: &Conv) -> Result<MilVar> {
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axes = space(rank)?;
    let x = image(emit, node, 0, operator.channels_last)?;
    let weight = emit.var(node, 1)?;
    let mut inputs = vec![
        ("x", MilArg::Var(x)),
        ("weight", MilArg::Var(weight)),
        ("strides", steps(&operator.strides, axes)?),
        ("dilations", steps(&operator.dilations, axes)?),
        ("groups", MilArg::Int(small(operator.group)?)),
    ];
    inputs.extend(padding(&operator.pads, axes)?);
    // A bias is a constant of the operation, or it is added behind it.
    if node.input(2).is_none_or(|bias| emit.is_fixed(bias)) {
        if let Some(bias) = emit.optional(node, 2)? {
            inputs.push(("bias", MilArg::Var(bias)));
        }
        return emit.op("conv", inputs);
    }
    let result = emit.op("conv", inputs)?;
    biased(emit, node, result, rank)
}

fn fused_conv(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<FusedConv>() else {
        return refuse("a convolution of another kind");
    };
    let last = operator.conv.channels_last;
    let mut result = convolve(emit, node, &operator.conv)?;
    if node.input(3).is_some() {
        let residual = image(emit, node, 3, last)?;
        result = emit.pair("add", &result, &residual)?;
    }
    let result = fused(emit, operator.activation, &result)?;
    Ok(vec![laid_out(emit, node, &result, last)?])
}

/// Returns the lengths cut from each axis of the whole result of a transposed convolution, in front
/// and behind. A negative length behind adds zeros.
fn cuts(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &ConvTranspose,
) -> Result<Vec<(usize, i64)>> {
    let x = emit.input(node, 0)?;
    let weight = emit.input(node, 1)?;
    let axes = space(emit.rank(x)?)?;
    let kernel: Vec<usize> =
        (0..axes).map(|axis| emit.known_length(weight, axis + 2)).collect::<Result<_>>()?;
    let of = |all: &[usize], axis: usize, none: usize| all.get(axis).copied().unwrap_or(none);
    let signed = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
    let fixed = matches!(operator.pads, WindowPadding::Explicit(_) | WindowPadding::Valid)
        && operator.output_shape.is_none();
    if fixed {
        // The cuts do not depend on the lengths.
        let pads = match &operator.pads {
            WindowPadding::Explicit(pads) => pads.as_slice(),
            _ => &[],
        };
        let each = |axis| {
            let behind = signed(of(pads, axes + axis, 0));
            (of(pads, axis, 0), behind - signed(of(&operator.output_padding, axis, 0)))
        };
        return Ok((0..axes).map(each).collect());
    }
    let input: Vec<usize> =
        (0..axes).map(|axis| emit.known_length(x, axis + 2)).collect::<Result<_>>()?;
    let geometry = operator.geometry(&input, &kernel);
    let geometry = geometry.or_else(|error| refuse(error.to_string()))?;
    let each = |axis: usize| {
        let extent = signed(of(&kernel, axis, 1)) - 1;
        let reach = (signed(of(&input, axis, 1)) - 1) * signed(of(&operator.strides, axis, 1));
        let whole = reach + extent * signed(of(&operator.dilations, axis, 1)) + 1;
        let front = of(&geometry.pads_begin, axis, 0);
        (front, whole - signed(front) - signed(of(&geometry.output, axis, 0)))
    };
    Ok((0..axes).map(each).collect())
}

/// Results that reach beyond what the windows cover are zeros there, before the bias.
fn conv_transpose(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ConvTranspose>() else {
        return refuse("a convolution of another kind");
    };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axes = space(rank)?;
    let cuts = cuts(emit, node, operator)?;
    let positive = |cut: i64| usize::try_from(cut).unwrap_or(0);
    let front: Vec<usize> = cuts.iter().map(|cut| cut.0).collect();
    let behind: Vec<usize> = cuts.iter().map(|cut| positive(cut.1)).collect();
    let beyond: Vec<usize> = cuts.iter().map(|cut| positive(-cut.1)).collect();
    let x = emit.var(node, 0)?;
    let weight = emit.var(node, 1)?;
    let plain = front.iter().chain(&behind).all(|&cut| cut == 0);
    let mut inputs = vec![
        ("x", MilArg::Var(x)),
        ("weight", MilArg::Var(weight)),
        ("strides", steps(&operator.strides, axes)?),
        ("dilations", steps(&operator.dilations, axes)?),
        ("groups", MilArg::Int(small(operator.group)?)),
        ("pad_type", MilArg::Text(if plain { "valid" } else { "custom" })),
        ("pad", amounts(&front, &behind)?),
    ];
    let longer = beyond.iter().any(|&more| more != 0);
    let constant = node.input(2).is_none_or(|bias| emit.is_fixed(bias));
    if constant && !longer {
        if let Some(bias) = emit.optional(node, 2)? {
            inputs.push(("bias", MilArg::Var(bias)));
        }
        return Ok(vec![emit.op("conv_transpose", inputs)?]);
    }
    let mut result = emit.op("conv_transpose", inputs)?;
    if longer {
        let nothing = vec![0; axes];
        result = padded(emit, &result, &nothing, &beyond)?;
    }
    Ok(vec![biased(emit, node, result, rank)?])
}

/// An image with zeros around it.
pub(super) fn padded(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    front: &[usize],
    behind: &[usize],
) -> Result<MilVar> {
    let mut pad = vec![0; 4];
    for (front, behind) in front.iter().zip(behind) {
        pad.extend([small(*front)?, small(*behind)?]);
    }
    let zero = emit.float(0.0);
    let inputs = vec![
        ("x", x.into()),
        ("pad", MilArg::Ints(pad)),
        ("mode", MilArg::Text("constant")),
        ("constant_val", zero),
    ];
    emit.op("pad", inputs)
}
