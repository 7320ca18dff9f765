//! Pooling.

use galatea_formats::coreml::mil::{Arg, Var};
use galatea_graph::Node;
use galatea_graph::ops::convolution::Padding;
use galatea_graph::ops::pooling::{
    AveragePool, GlobalAveragePool, GlobalLpPool, LpPool, MaxPool, PoolWindow,
};

use super::Row;
use super::convolution::{amounts, channels_first, channels_last, padded, padding, space, steps};
use crate::coreml::emit::{Emit, Result, refuse, small, small_all};

pub(super) const ROWS: &[Row] = &[
    Row::onnx("MaxPool", max_pool),
    Row::onnx("MaxPoolNhwc", max_pool).of("ai.galatea"),
    Row::onnx("NhwcMaxPool", max_pool).of("com.microsoft"),
    Row::onnx("AveragePool", average_pool),
    Row::onnx("AveragePoolNhwc", average_pool).of("ai.galatea"),
    Row::onnx("LpPool", lp_pool).wide("sums of squares soon exceed what FP16 holds"),
    Row::onnx("GlobalAveragePool", global_average),
    Row::onnx("GlobalAveragePoolNhwc", global_average).of("ai.galatea"),
    Row::onnx("GlobalMaxPool", |emit, node| global(emit, node, "reduce_max", false)),
    Row::onnx("GlobalLpPool", global_lp).wide("sums of squares soon exceed what FP16 holds"),
];

/// Parameters of an operation.
type Parameters = Vec<(&'static str, Arg)>;

/// The window as parameters. Where a last window leaves the image, the pads behind it grow by what it
/// needs, as Core ML would round results up with equal pads on both sides only. The lengths of axes
/// that grow must be known; gives by how much each grows too.
fn parameters(
    emit: &Emit<'_>,
    node: &Node,
    window: &PoolWindow,
) -> Result<(Parameters, Vec<usize>)> {
    let id = emit.input(node, 0)?;
    let rank = emit.rank(id)?;
    let axes = space(rank)?;
    if window.dilations.iter().any(|&step| step != 1) {
        return refuse("a pool whose window has gaps (dilations)");
    }
    let mut all = vec![
        ("kernel_sizes", Arg::Ints(small_all(&window.kernel_shape)?)),
        ("strides", steps(&window.strides, axes)?),
    ];
    let none = vec![0; axes];
    if !window.ceil_mode || matches!(window.pads, Padding::SameUpper | Padding::SameLower) {
        all.extend(padding(&window.pads, axes)?);
        all.push(("ceil_mode", Arg::Bool(false)));
        return Ok((all, none));
    }
    let first = if window.channels_last { 1 } else { 2 };
    let lengths: Vec<usize> =
        (first..first + axes).map(|axis| emit.known_length(id, axis)).collect::<Result<_>>()?;
    let geometry = window.geometry(&lengths).or_else(|error| refuse(error.to_string()))?;
    let mut more = none;
    let mut behind = geometry.pads_end.clone();
    for (axis, more) in more.iter_mut().enumerate() {
        let stride = window.strides.get(axis).copied().unwrap_or(1);
        let needed = (geometry.output[axis] - 1) * stride + window.kernel_shape[axis];
        let there = lengths[axis] + geometry.pads_begin[axis] + geometry.pads_end[axis];
        *more = needed.saturating_sub(there);
        behind[axis] += *more;
    }
    all.extend([
        ("pad_type", Arg::Text("custom")),
        ("pad", amounts(&geometry.pads_begin, &behind)?),
        ("ceil_mode", Arg::Bool(false)),
    ]);
    Ok((all, more))
}

/// Runs `body` on the image with its channels first.
fn over(
    emit: &mut Emit<'_>,
    node: &Node,
    last: bool,
    body: impl FnOnce(&mut Emit<'_>, &Var) -> Result<Var>,
) -> Result<Vec<Var>> {
    let id = emit.input(node, 0)?;
    let rank = emit.rank(id)?;
    if !emit.dtype(id)?.is_float() {
        return refuse(format!("a pool of {}, programs have those of floats", emit.dtype(id)?));
    }
    let x = emit.var(node, 0)?;
    if !last {
        return Ok(vec![body(emit, &x)?]);
    }
    let x = emit.transpose(&x, &channels_first(rank))?;
    let result = body(emit, &x)?;
    Ok(vec![emit.transpose(&result, &channels_last(rank))?])
}

fn max_pool(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let Some(operator) = node.operator::<MaxPool>() else {
        return refuse("a pool of another kind");
    };
    if node.output(1).is_some() {
        return refuse("a pool that says where its results are from");
    }
    let (mut inputs, _) = parameters(emit, node, &operator.window)?;
    over(emit, node, operator.window.channels_last, |emit, x| {
        inputs.push(("x", x.into()));
        emit.op("max_pool", inputs)
    })
}

fn average_pool(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let Some(operator) = node.operator::<AveragePool>() else {
        return refuse("a pool of another kind");
    };
    let window = &operator.window;
    let (mut inputs, more) = parameters(emit, node, window)?;
    let mut around = None;
    if operator.count_include_pad && more.iter().any(|&more| more != 0) {
        // What is beyond the pads does not count, so that the pads are made part of the image.
        let pads = match &window.pads {
            Padding::Explicit(pads) if !pads.is_empty() => pads.clone(),
            _ => vec![0; 2 * more.len()],
        };
        inputs.retain(|(name, _)| *name != "pad");
        inputs.push(("pad", amounts(&vec![0; more.len()], &more)?));
        around = Some(pads);
    }
    let without = !operator.count_include_pad || around.is_some();
    inputs.push(("exclude_padding_from_average", Arg::Bool(without)));
    over(emit, node, window.channels_last, |emit, x| {
        let x = match &around {
            Some(pads) => padded(emit, x, pads.split_at(pads.len() / 2))?,
            None => x.clone(),
        };
        inputs.push(("x", Arg::Var(x)));
        emit.op("avg_pool", inputs)
    })
}

/// Sums are means of as many elements as a window has.
#[allow(clippy::cast_precision_loss, reason = "windows are small")]
fn lp_pool(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let Some(operator) = node.operator::<LpPool>() else {
        return refuse("a pool of another kind");
    };
    let (mut inputs, _) = parameters(emit, node, &operator.window)?;
    inputs.push(("exclude_padding_from_average", Arg::Bool(false)));
    let count = operator.window.kernel_shape.iter().product::<usize>() as f32;
    let (before, after) = match operator.p {
        1.0 => ("abs", None),
        2.0 => ("square", Some("sqrt")),
        other => return refuse(format!("a pool with the norm of order {other}")),
    };
    over(emit, node, operator.window.channels_last, |emit, x| {
        let x = emit.op(before, vec![("x", x.into())])?;
        inputs.push(("x", Arg::Var(x)));
        let mean = emit.op("avg_pool", inputs)?;
        let count = emit.float(count);
        let sum = emit.pair("mul", &mean, count)?;
        match after {
            Some(after) => emit.op(after, vec![("x", Arg::Var(sum))]),
            None => Ok(sum),
        }
    })
}

fn global_average(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let last = node.operator::<GlobalAveragePool>().is_some_and(|one| one.channels_last);
    global(emit, node, "reduce_mean", last)
}

fn global_lp(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    match node.operator::<GlobalLpPool>().map(|operator| operator.p) {
        Some(1.0) => global(emit, node, "reduce_l1_norm", false),
        Some(2.0) => global(emit, node, "reduce_l2_norm", false),
        other => refuse(format!("a pool with the norm of order {other:?}")),
    }
}

/// A reduction of all axes of space.
fn global(emit: &mut Emit<'_>, node: &Node, operator: &str, last: bool) -> Result<Vec<Var>> {
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axes = if last { 1..rank - 1 } else { 2..rank };
    let axes = axes.map(small).collect::<Result<Vec<_>>>()?;
    let x = emit.var(node, 0)?;
    let inputs =
        vec![("x", Arg::Var(x)), ("axes", Arg::Ints(axes)), ("keep_dims", Arg::Bool(true))];
    Ok(vec![emit.op(operator, inputs)?])
}
