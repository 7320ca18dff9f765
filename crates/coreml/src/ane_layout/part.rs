//! Parts of values, and values side by side.

use galatea_graph::Node;
use galatea_graph::ops::index::Gather;
use galatea_graph::ops::shape::{Concat, Slice, Split};

use crate::ane_values::LayoutAxes;
use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::rows::slice::resolved;
use crate::unwritable::{Result, refuse};

/// Where the elements of an axis lie in a form: on this axis of it, `inner` of them next to each other;
/// none where something lies in between.
fn place(axes: &LayoutAxes, shape: &[usize], axis: usize) -> Option<(usize, usize)> {
    axes.groups().into_iter().find_map(|(at, group)| {
        let (first, rest) = group.split_first()?;
        (*first == axis).then(|| (at, rest.iter().map(|&axis| shape[axis]).product()))
    })
}

/// The positions `start..end` of an axis as the first output; `lost` is whether that does not have the
/// axis.
fn cut(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    axis: usize,
    lost: bool,
    start: usize,
    end: usize,
) -> Result<bool> {
    let x = emit.input(node, 0)?;
    let y = node.output(0);
    let (Some(shape), Some(form)) = (emit.fixed_floats(x), emit.formed(x).cloned()) else {
        return Ok(false);
    };
    let Some(out) = y.and_then(|id| emit.fixed_floats(id)) else { return Ok(false) };
    let names = |old: usize| if lost && old > axis { old - 1 } else { old };
    let (var, axes) = match place(&form.axes, &shape, axis) {
        _ if shape[axis] == 1 => (form.var, form.axes.renamed(names)),
        None => return Ok(false),
        Some((at, inner)) => {
            let range = SliceTake::whole(4).range(at, start * inner, end * inner)?;
            let var = emit.cut(&form.var, range)?;
            let mut left = shape.clone();
            left[axis] = end - start;
            (var, form.axes.within(&left).renamed(names))
        }
    };
    let axes = axes.within(&out);
    emit.end_formed(node, var, axes)
}

/// One axis, in steps of 1.
pub(super) fn slice(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Slice>() else { return Ok(false) };
    let Some(shape) = node.input(0).and_then(|id| emit.fixed_floats(id)) else { return Ok(false) };
    let list = |at: usize| emit.integers(node, at).ok();
    let (starts, ends, axes) = match &operator.ranges {
        Some(all) => (Some(all.starts.clone()), Some(all.ends.clone()), all.axes.clone()),
        None => (list(1), list(2), node.input(3).and_then(|_| list(3))),
    };
    let steps = if node.input(4).is_some() { list(4) } else { Some(vec![1]) };
    let (Some(starts), Some(ends), Some(steps)) = (starts, ends, steps) else { return Ok(false) };
    let axes = axes.unwrap_or_else(|| vec![0]);
    let (&[start], &[end], &[1], &[axis]) =
        (starts.as_slice(), ends.as_slice(), steps.as_slice(), axes.as_slice())
    else {
        return Ok(false);
    };
    let axis = emit.axis(axis, shape.len())?;
    let (first, count) = resolved(i64::try_from(shape[axis]).unwrap_or(i64::MAX), start, end, 1);
    match (usize::try_from(first), usize::try_from(count)) {
        (Ok(first), Ok(count)) if count > 0 => cut(emit, node, axis, false, first, first + count),
        _ => Ok(false),
    }
}

/// One place, or places next to each other.
pub(super) fn gather(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Gather>() else { return Ok(false) };
    let Some(shape) = node.input(0).and_then(|id| emit.fixed_floats(id)) else { return Ok(false) };
    let axis = emit.axis(operator.axis, shape.len())?;
    let (Ok(all), rank) = (emit.integers(node, 1), emit.rank(emit.input(node, 1)?)?) else {
        return Ok(false);
    };
    let from_front = |&at: &i64| match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => shape[axis].checked_sub(usize::try_from(at.unsigned_abs()).ok()?),
    };
    let Some(all) = all.iter().map(from_front).collect::<Option<Vec<usize>>>() else {
        return Ok(false);
    };
    let consecutive = all.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match (all.first(), all.last()) {
        (Some(&first), Some(&last)) if consecutive && rank <= 1 && last < shape[axis] => {
            cut(emit, node, axis, rank == 0, first, last + 1)
        }
        _ => Ok(false),
    }
}

/// All parts of an axis.
pub(super) fn split(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Split>() else { return Ok(false) };
    let Some(x) = node.input(0) else { return Ok(false) };
    let (Some(shape), Some(form)) = (emit.fixed_floats(x), emit.formed(x).cloned()) else {
        return Ok(false);
    };
    let axis = emit.axis(operator.axis, shape.len())?;
    let given = match node.input(1) {
        Some(_) => Some(emit.integers(node, 1)?),
        None => None,
    };
    let lengths = operator.lengths(shape[axis], given.as_deref());
    let lengths = lengths.or_else(|error| refuse(error.to_string()))?;
    let Some((at, inner)) = place(&form.axes, &shape, axis) else { return Ok(false) };
    if lengths.contains(&0) {
        return Ok(false);
    }
    let mut start = 0;
    for (length, output) in lengths.into_iter().zip(&node.outputs) {
        let end = start + length;
        if let Some(id) = *output {
            let range = SliceTake::whole(4).range(at, start * inner, end * inner)?;
            let var = emit.cut(&form.var, range)?;
            let mut part = shape.clone();
            part[axis] = length;
            emit.set_form(id, var, form.axes.within(&part))?;
        }
        start = end;
    }
    Ok(true)
}

/// Values side by side where one of them has a form.
pub(super) fn concat(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Concat>() else { return Ok(false) };
    let Some(out) = node.output(0).and_then(|id| emit.fixed_floats(id)) else { return Ok(false) };
    let axis = emit.axis(operator.axis, out.len())?;
    let ids: Vec<_> = node.inputs.iter().flatten().copied().collect();
    let shapes = ids.iter().map(|&id| emit.fixed_floats(id)).collect::<Option<Vec<_>>>();
    let Some(shapes) = shapes else { return Ok(false) };
    let found = ids.iter().zip(&shapes).find_map(|(&id, shape)| {
        let form = emit.formed(id)?;
        (shape[axis] > 1).then(|| form.axes.clone())
    });
    let Some(axes) = found.filter(|axes| axes.within(&out) == *axes) else { return Ok(false) };
    let Some((at, _)) = place(&axes, &out, axis) else { return Ok(false) };
    let mut parts = Vec::with_capacity(ids.len());
    for (id, shape) in ids.into_iter().zip(shapes) {
        let own = axes.within(&shape);
        parts.push(emit.form_in(id, &own)?);
    }
    let result = emit.concat(parts, at)?;
    emit.end_formed(node, result, axes)
}
