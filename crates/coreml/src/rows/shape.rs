//! Operators that change shapes, and those that say what a shape is.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::shape::{Flatten, Reshape, Shape, Squeeze, Tile, Transpose, Unsqueeze};
use galatea_graph::{Dim, Fact, Node};

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::lengths::{LengthElement, SliceTake};
use crate::unwritable::{Result, narrow_all, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Reshape", reshape),
    EmitRow::onnx("Flatten", flatten),
    EmitRow::onnx("Squeeze", squeeze),
    EmitRow::onnx("Unsqueeze", unsqueeze),
    EmitRow::onnx("Transpose", transpose),
    EmitRow::onnx("Expand", expand),
    EmitRow::onnx("Tile", tile),
    EmitRow::onnx("Shape", shape),
    EmitRow::onnx("Size", size),
];

/// A target in which one length at most is left to the operator; none where more are not known.
fn known_target(dims: &[Dim]) -> Result<Option<Vec<i32>>> {
    if dims.iter().filter(|dim| dim.known().is_none()).count() > 1 {
        return Ok(None);
    }
    let all = dims.iter().map(|dim| dim.known().map_or(Ok(-1), small));
    all.collect::<Result<Vec<i32>>>().map(Some)
}

fn to_shape(emit: &mut ProgramEmitter<'_>, x: &MilVar, target: MilArg) -> Result<MilVar> {
    emit.op("reshape", vec![("x", x.into()), ("shape", target)])
}

fn reshape(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let dims = emit.output_dims(node, 0)?;
    let x = emit.var(node, 0)?;
    if let Some(target) = known_target(&dims)? {
        return Ok(vec![match target.is_empty() {
            true => emit.scalar(&x)?,
            false => to_shape(emit, &x, MilArg::Ints(target))?,
        }]);
    }
    let of_x = emit.dims(emit.input(node, 0)?)?;
    // Of lengths that stay at their places 0 says so.
    if of_x.len() == dims.len() {
        let kept = |(from, to): (&Dim, &Dim)| match to.known() {
            Some(len) => Dim::Known(len),
            None if from.same(to) => Dim::Known(0),
            None => Dim::Unknown,
        };
        let kept: Vec<Dim> = of_x.iter().zip(&dims).map(kept).collect();
        if let Some(target) = known_target(&kept)? {
            return Ok(vec![to_shape(emit, &x, MilArg::Ints(target))?]);
        }
    }
    let target = computed_target(emit, node, &x, of_x.len(), dims.len())?;
    Ok(vec![to_shape(emit, &x, target)?])
}

/// The target as the graph computes it. Core ML reads a 0 in it as ONNX does where the number of axes
/// stays; elsewhere the length is looked up.
fn computed_target(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    x: &MilVar,
    of_x: usize,
    rank: usize,
) -> Result<MilArg> {
    if node.operator::<Reshape>().is_none() || node.input(1).is_none() {
        return refuse("a target of another kind");
    }
    let target = emit.var(node, 1)?;
    let elements = emit.fact(emit.input(node, 1)?).ok().and_then(Fact::lengths);
    let may_copy = elements
        .is_none_or(|all| all.iter().any(|dim| matches!(dim, Dim::Unknown | Dim::Known(0))));
    if of_x == rank || !may_copy {
        return Ok(MilArg::Var(target));
    }
    let lengths = emit.lengths(x)?;
    let mut parts: Vec<LengthElement> = Vec::with_capacity(rank);
    for axis in 0..rank {
        parts.push(match axis < of_x {
            true => LengthElement::Found(emit.element(&lengths, axis)?),
            false => LengthElement::Known(1),
        });
    }
    let there = emit.vector(parts)?;
    let copies = emit.pair("equal", MilArg::Var(target.clone()), MilArg::Int(0))?;
    Ok(MilArg::Var(emit.select(&copies, there, MilArg::Var(target))?))
}

fn flatten(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Flatten>() else { return refuse("another kind") };
    let axis = operator.axis;
    let dims = emit.output_dims(node, 0)?;
    let x = emit.var(node, 0)?;
    if let Some(target) = known_target(&dims)? {
        return Ok(vec![to_shape(emit, &x, MilArg::Ints(target))?]);
    }
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axis = emit.axis(axis, rank)?;
    let axis = MilArg::Int(small(axis)?);
    Ok(vec![emit.op("flatten2d", vec![("x", MilArg::Var(x)), ("axis", axis)])?])
}

/// Axes of an attribute or of input 1, as positions among `rank`; none where neither says them.
fn axes_of(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    attribute: Option<Vec<i64>>,
    rank: usize,
) -> Result<Option<Vec<usize>>> {
    let axes = match (attribute, node.input(1)) {
        (Some(axes), _) => axes,
        (None, Some(_)) => emit.integers(node, 1)?,
        (None, None) => return Ok(None),
    };
    axes.into_iter().map(|axis| emit.axis(axis, rank)).collect::<Result<Vec<_>>>().map(Some)
}

fn squeeze(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Squeeze>() else { return refuse("another kind") };
    let id = emit.input(node, 0)?;
    let dims = emit.dims(id)?;
    let axes = match axes_of(emit, node, operator.axes.clone(), dims.len())? {
        Some(axes) => axes,
        None if dims.iter().any(|dim| dim.known().is_none()) => {
            return refuse("the axes of length 1 are known in a run only");
        }
        None => (0..dims.len()).filter(|&axis| dims[axis] == Dim::Known(1)).collect(),
    };
    let x = emit.var(node, 0)?;
    Ok(vec![emit.squeeze(&x, &axes)?])
}

fn unsqueeze(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Unsqueeze>() else { return refuse("another kind") };
    let rank = emit.output_dims(node, 0)?.len();
    let Some(mut axes) = axes_of(emit, node, operator.axes.clone(), rank)? else {
        return refuse("no axes");
    };
    axes.sort_unstable();
    let x = emit.var(node, 0)?;
    Ok(vec![emit.unsqueeze(&x, &axes)?])
}

fn transpose(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Transpose>() else { return refuse("another kind") };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let order = operator.perm.clone().unwrap_or_else(|| (0..rank).rev().collect());
    let x = emit.var(node, 0)?;
    Ok(vec![emit.transpose(&x, &order)?])
}

/// Each axis as often as it takes: an axis that has the length already once, one of length 1 as often
/// as the length is.
fn expand(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let id = emit.input(node, 0)?;
    let out = emit.output_dims(node, 0)?;
    let x = emit.var(node, 0)?;
    let dims = emit.dims(id)?;
    let new = out.len() - dims.len().min(out.len());
    let front: Vec<usize> = (0..new).collect();
    let x = emit.unsqueeze(&x, &front)?;
    let dims: Vec<Dim> = vec![Dim::Known(1); new].into_iter().chain(dims).collect();
    let wanted = emit.rank(emit.input(node, 1)?).unwrap_or(1);
    if wanted != 1 {
        return refuse("a target that is no vector");
    }
    let mut repeats = Vec::with_capacity(out.len());
    for (axis, (from, to)) in dims.iter().zip(&out).enumerate() {
        repeats.push(match (from.known(), to.known()) {
            _ if from.same(to) => LengthElement::Known(1),
            (Some(1), Some(len)) => LengthElement::Known(small(len)?),
            (Some(_), Some(_)) => LengthElement::Known(1),
            _ => LengthElement::Found(computed_repeat(emit, node, &x, axis, from, out.len())?),
        });
    }
    tiled(emit, &x, repeats)
}

/// The greater one of both lengths as a multiple of the one that is there.
fn computed_repeat(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    x: &MilVar,
    axis: usize,
    from: &Dim,
    rank: usize,
) -> Result<MilVar> {
    let id = emit.input(node, 1)?;
    let target = emit.var(node, 1)?;
    let count = emit.dims(id)?.first().and_then(Dim::known);
    let Some(count) = count else { return refuse("the number of axes is known in a run only") };
    // The target may have fewer axes.
    let Some(at) = (axis + count).checked_sub(rank) else {
        return emit.table(&[1], vec![1]);
    };
    let wanted = emit.element(&target, at)?;
    if from.known() == Some(1) {
        return Ok(wanted);
    }
    let there = emit.length(x, axis, from)?;
    let there = emit.vector(vec![there])?;
    let greater = emit.pair("maximum", MilArg::Var(wanted), there.clone())?;
    emit.pair("floor_div", MilArg::Var(greater), there)
}

fn tiled(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    repeats: Vec<LengthElement>,
) -> Result<Vec<MilVar>> {
    if repeats.iter().all(|part| matches!(part, LengthElement::Known(1))) {
        return Ok(vec![x.clone()]);
    }
    let repeats = emit.vector(repeats)?;
    Ok(vec![emit.op("tile", vec![("x", x.into()), ("reps", repeats)])?])
}

fn tile(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let rank = emit.rank(emit.input(node, 0)?)?;
    let x = emit.var(node, 0)?;
    if node.operator::<Tile>().is_none() {
        // Once the operator had a number of repeats and an axis.
        let count = emit.number(node, 1)?;
        let axis = emit.number(node, 2)?;
        let mut repeats = vec![LengthElement::Known(1); rank];
        #[allow(clippy::cast_possible_truncation, reason = "a whole number in a float tensor")]
        let (count, axis) = (count as i32, axis as i64);
        let axis = emit.axis(axis, rank)?;
        repeats[axis] = LengthElement::Known(count);
        return tiled(emit, &x, repeats);
    }
    match emit.integers(node, 1) {
        Ok(all) => {
            let repeats = narrow_all(&all)?.into_iter().map(LengthElement::Known).collect();
            tiled(emit, &x, repeats)
        }
        Err(_) => {
            let repeats = emit.var(node, 1)?;
            Ok(vec![emit.op("tile", vec![("x", MilArg::Var(x)), ("reps", MilArg::Var(repeats))])?])
        }
    }
}

fn shape(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Shape>() else { return refuse("another kind") };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let end = i64::try_from(rank).unwrap_or(i64::MAX);
    let place = |at: i64| {
        let at = if at < 0 { at.saturating_add(end) } else { at };
        usize::try_from(at.clamp(0, end)).unwrap_or(0)
    };
    let first = place(operator.start);
    let last = place(operator.end.unwrap_or(end));
    let x = emit.var(node, 0)?;
    let lengths = emit.lengths(&x)?;
    if (first, last) == (0, rank) {
        return Ok(vec![lengths]);
    }
    Ok(vec![emit.cut(&lengths, SliceTake::whole(1).range(0, first, last)?)?])
}

fn size(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    let lengths = emit.lengths(&x)?;
    let inputs = vec![
        ("x", MilArg::Var(lengths)),
        ("axes", MilArg::Ints(vec![0])),
        ("keep_dims", MilArg::Bool(false)),
    ];
    let size = emit.op("reduce_prod", inputs)?;
    debug_assert_eq!(emit.element_of(&size).ok(), Some(MilElement::Int32));
    Ok(vec![size])
}
