//! Norms over the channels.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::normalize::{LayerNormalization, RmsNormalization};
use galatea_graph::{Node, ValueId};

use super::linear::vector;
use crate::ane_values::{CHANNELS, LayoutAxes};
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, small};

/// The first input in rows over its last axis, which a norm from this axis on must be, and its groups.
fn rows(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    axis: i64,
) -> Result<Option<(MilVar, LayoutAxes, Vec<usize>)>> {
    let x = emit.input(node, 0)?;
    let Some(shape) = emit.fixed_floats(x) else { return Ok(None) };
    let axes = match emit.formed(x) {
        Some(form) if form.axes.in_rows(&shape) => form.axes.clone(),
        Some(_) => return Ok(None),
        None if node.output(0).is_some_and(|id| emit.is_wanted(id)) => LayoutAxes::of_rows(&shape),
        None => return Ok(None),
    };
    if emit.axis(axis, shape.len())? + 1 != shape.len() {
        return Ok(None);
    }
    let var = emit.form_in(x, &axes)?;
    Ok(Some((var, axes, shape)))
}

/// A constant vector of so many elements.
fn parameter(emit: &mut ProgramEmitter<'_>, id: ValueId, count: usize) -> Result<Option<MilVar>> {
    match emit.constant_tensor(id) {
        Some(tensor) if tensor.elements() == count => vector(emit, id).map(Some),
        _ => Ok(None),
    }
}

fn channels(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    epsilon: f32,
    more: Vec<(&str, MilVar)>,
) -> Result<MilVar> {
    let epsilon = emit.epsilon(epsilon);
    let mut inputs = vec![("x", x.into()), ("axes", MilArg::Ints(vec![1])), ("epsilon", epsilon)];
    inputs.extend(more.into_iter().map(|(name, var)| (name, MilArg::Var(var))));
    emit.op("layer_norm", inputs)
}

pub(super) fn layer(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<LayerNormalization>() else { return Ok(false) };
    let others = node.outputs.iter().skip(1).flatten().any(|&id| emit.is_read(id));
    let count = emit.fixed_floats(emit.input(node, 0)?).and_then(|shape| shape.last().copied());
    let (Some(count), false) = (count, others) else { return Ok(false) };
    let mut more = Vec::with_capacity(2);
    for (at, name) in [(1, "gamma"), (2, "beta")] {
        let Some(id) = node.input(at) else { continue };
        match parameter(emit, id, count)? {
            Some(var) => more.push((name, var)),
            None => return Ok(false),
        }
    }
    let Some((x, axes, _)) = rows(emit, node, operator.axis)? else { return Ok(false) };
    let result = channels(emit, &x, operator.epsilon, more)?;
    emit.end_formed(node, result, axes)
}

/// The engine has no sums of squares, which FP16 would not hold either: `x` beside `-x` has the mean 0 and
/// the variance that is the mean of squares of `x`, so that the first half of its norm is `x` over the
/// root of these. The mean is exact: each element stands beside its opposite.
pub(super) fn root_mean_square(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<RmsNormalization>() else { return Ok(false) };
    let Some((x, axes, shape)) = rows(emit, node, operator.axis)? else { return Ok(false) };
    let Some(scale) = emit.operand(emit.input(node, 1)?, &axes, &shape)? else {
        return Ok(false);
    };
    let minus = emit.float(-1.0);
    let negative = emit.pair("mul", &x, minus)?;
    let both = emit.concat(vec![x, negative], CHANNELS)?;
    let normal = channels(emit, &both, operator.epsilon, Vec::new())?;
    let halves = split(emit, &normal, CHANNELS, 2)?;
    let Some(half) = halves.first() else { return Ok(false) };
    let result = emit.pair("mul", half, &scale)?;
    emit.end_formed(node, result, axes)
}

/// Equal parts of an axis.
pub(super) fn split(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    axis: usize,
    count: usize,
) -> Result<Vec<MilVar>> {
    if count == 1 {
        return Ok(vec![x.clone()]);
    }
    let parts = ("num_splits", MilArg::Int(small(count)?));
    emit.op_of("split", vec![("x", x.into()), parts, ("axis", MilArg::Int(small(axis)?))], count)
}
