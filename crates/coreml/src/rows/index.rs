//! Operators that look elements up and write them at places.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::index::{
    Compress, Gather, GatherElements, GatherND, OneHot, ScatterElements, ScatterND,
    ScatterReduction,
};
use galatea_graph::{Dim, Node};

use super::EmitRow;
use super::take::{all_known, checked, gather_elements_of, gather_rows};
use crate::emit::ProgramEmitter;
use crate::lengths::{LengthElement, SliceTake};
use crate::unwritable::{Result, narrow_all, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Gather", gather),
    EmitRow::onnx("GatherElements", gather_elements),
    EmitRow::onnx("GatherND", gather_nd),
    EmitRow::onnx("Scatter", scatter_elements),
    EmitRow::onnx("ScatterElements", scatter_elements),
    EmitRow::onnx("ScatterND", scatter_nd),
    EmitRow::onnx("OneHot", one_hot),
    EmitRow::onnx("NonZero", non_zero),
    EmitRow::onnx("Compress", compress),
];

/// Places of an input, counted from the front: newer sets of operators take no others. `lengths` are
/// those that places count from: one, or one for each element of the last axis.
fn places(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    x: &MilVar,
    lengths: &[(usize, Dim)],
) -> Result<MilVar> {
    let id = emit.input(node, at)?;
    if let Ok(all) = emit.integers(node, at) {
        let mut lens = lengths.iter().map(|(_, dim)| dim.known()).cycle();
        let front = all.iter().map(|&place| {
            let len = lens.next().flatten();
            if place >= 0 { Some(place) } else { Some(place + i64::try_from(len?).ok()?) }
        });
        if let Some(front) = front.collect::<Option<Vec<i64>>>() {
            if front == all {
                return emit.var(node, at);
            }
            let shape = emit.shape(id)?;
            return emit.table(&shape, narrow_all(&front)?);
        }
    }
    let found = emit.var(node, at)?;
    let found = emit.cast(&found, MilElement::Int32)?;
    let mut parts = Vec::with_capacity(lengths.len());
    for (axis, dim) in lengths {
        parts.push(emit.length(x, *axis, dim)?);
    }
    let lengths = match (parts.as_slice(), lengths.len()) {
        ([LengthElement::Known(len)], _) => MilArg::Int(*len),
        ([LengthElement::Found(len)], 1) => MilArg::Var(emit.scalar(len)?),
        _ => emit.vector(parts)?,
    };
    let negative = emit.pair("less", &found, MilArg::Int(0))?;
    let moved = emit.pair("add", &found, lengths)?;
    emit.select(&negative, MilArg::Var(moved), MilArg::Var(found))
}

fn gather(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Gather>() else { return refuse("another kind") };
    let dims = emit.dims(emit.input(node, 0)?)?;
    let axis = emit.axis(operator.axis, dims.len())?;
    let x = emit.var(node, 0)?;
    if let Some(cut) = neighbours(emit, node, &dims, axis)? {
        return Ok(vec![emit.cut(&x, cut)?]);
    }
    let places = places(emit, node, 1, &x, &[(axis, dims[axis].clone())])?;
    Ok(vec![emit.as_numbers(&x, |emit, x| gather_rows(emit, x, &places, axis))?])
}

/// Rows that lie next to each other, or one of them, are a slice: that of a token, a column of boxes.
fn neighbours(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    dims: &[Dim],
    axis: usize,
) -> Result<Option<SliceTake>> {
    let of_places = emit.rank(emit.input(node, 1)?)?;
    let Ok(all) = emit.integers(node, 1) else { return Ok(None) };
    let (Some(&first), true) = (all.first(), of_places <= 1) else { return Ok(None) };
    let len = dims[axis].known().and_then(|len| i64::try_from(len).ok());
    let mut cut = SliceTake::whole(dims.len());
    cut.single[axis] = of_places == 0;
    let first = match (len, first) {
        (Some(len), first) if first < 0 => first + len,
        (None, -1) if all.len() == 1 => {
            cut.begin[axis] = LengthElement::Known(-1);
            return Ok(Some(cut));
        }
        (_, first) => first,
    };
    let count = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let consecutive =
        all.windows(2).all(|pair| pair[1] == pair[0] + 1 && (pair[0] < 0) == (pair[1] < 0));
    let inside = first >= 0 && len.is_none_or(|len| first + count <= len);
    if !consecutive || !inside {
        return Ok(None);
    }
    let place = |at: i64| usize::try_from(at).unwrap_or(usize::MAX);
    Ok(Some(cut.range(axis, place(first), place(first + count))?))
}

/// Core ML's operator takes places of the whole value: of the axes beside the one, what is looked up is
/// cut out first.
fn gather_elements(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<GatherElements>() else { return refuse("another kind") };
    let dims = emit.dims(emit.input(node, 0)?)?;
    let wanted = emit.dims(emit.input(node, 1)?)?;
    let axis = emit.axis(operator.axis, dims.len())?;
    let mut x = emit.var(node, 0)?;
    let places = places(emit, node, 1, &x, &[(axis, dims[axis].clone())])?;
    let mut cut = SliceTake::whole(dims.len());
    let mut cuts = false;
    for (at, (len, wanted)) in dims.iter().zip(&wanted).enumerate() {
        if at == axis || len.same(wanted) {
            continue;
        }
        cut.end[at] = emit.length(&places, at, wanted)?;
        cut.to_last[at] = false;
        cuts = true;
    }
    if cuts {
        x = emit.cut(&x, cut)?;
    }
    Ok(vec![emit.as_numbers(&x, |emit, x| gather_elements_of(emit, x, &places, axis))?])
}

/// The lengths that the last axis of the places counts in.
fn counted(dims: &[Dim], from: usize, count: Option<&Dim>) -> Result<Vec<(usize, Dim)>> {
    let Some(count) = count.and_then(Dim::known).filter(|count| from + count <= dims.len()) else {
        return refuse("places whose number of positions only a run knows");
    };
    Ok(dims.iter().cloned().enumerate().skip(from).take(count).collect())
}

fn gather_nd(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<GatherND>() else { return refuse("another kind") };
    let batch = operator.batch_dims;
    if batch > 0 && emit.opset() < 6 {
        return refuse("batches of places, which came with version 7 of the format");
    }
    let dims = emit.dims(emit.input(node, 0)?)?;
    let of_places = emit.dims(emit.input(node, 1)?)?;
    let lengths = counted(&dims, batch, of_places.last())?;
    let x = emit.var(node, 0)?;
    let places = places(emit, node, 1, &x, &lengths)?;
    let batch = MilArg::Int(small(batch)?);
    let result = emit.as_numbers(&x, |emit, x| {
        let mut inputs = vec![("x", x.into()), ("indices", MilArg::Var(places))];
        if emit.opset() >= 6 {
            inputs.push(("batch_dims", batch));
        }
        checked(emit, &mut inputs);
        emit.op("gather_nd", inputs)
    })?;
    Ok(vec![result])
}

fn mode(reduction: ScatterReduction) -> MilArg {
    MilArg::Text(match reduction {
        ScatterReduction::None => "update",
        ScatterReduction::Add => "add",
        ScatterReduction::Mul => "mul",
        ScatterReduction::Max => "max",
        ScatterReduction::Min => "min",
    })
}

/// Writes updates with an operator; truth values are numbers meanwhile.
fn written(
    emit: &mut ProgramEmitter<'_>,
    operator: &str,
    data: &MilVar,
    places: MilVar,
    updates: &MilVar,
    more: Vec<(&'static str, MilArg)>,
) -> Result<MilVar> {
    let updates = match emit.element_of(updates)? {
        MilElement::Bool => emit.cast(updates, MilElement::Int32)?,
        _ => updates.clone(),
    };
    emit.as_numbers(data, |emit, data| {
        let mut inputs = vec![
            ("data", data.into()),
            ("indices", MilArg::Var(places)),
            ("updates", MilArg::Var(updates)),
        ];
        inputs.extend(more);
        checked(emit, &mut inputs);
        emit.op(operator, inputs)
    })
}

fn scatter_nd(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ScatterND>() else { return refuse("another kind") };
    let mode = mode(operator.reduction);
    let dims = emit.dims(emit.input(node, 0)?)?;
    let of_places = emit.dims(emit.input(node, 1)?)?;
    let lengths = counted(&dims, 0, of_places.last())?;
    let data = emit.var(node, 0)?;
    let updates = emit.var(node, 2)?;
    let places = places(emit, node, 1, &data, &lengths)?;
    Ok(vec![written(emit, "scatter_nd", &data, places, &updates, vec![("mode", mode)])?])
}

/// Core ML's operator takes places of the whole value; of a part of it, places get all positions.
fn scatter_elements(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ScatterElements>() else { return refuse("another kind") };
    let mode = mode(operator.reduction);
    let dims = emit.dims(emit.input(node, 0)?)?;
    let of_places = emit.dims(emit.input(node, 1)?)?;
    let axis = emit.axis(operator.axis, dims.len())?;
    let data = emit.var(node, 0)?;
    let updates = emit.var(node, 2)?;
    let places = places(emit, node, 1, &data, &[(axis, dims[axis].clone())])?;
    let whole = dims.iter().zip(&of_places).enumerate();
    if whole.into_iter().all(|(at, (len, wanted))| at == axis || len.same(wanted)) {
        let more = vec![("axis", MilArg::Int(small(axis)?)), ("mode", mode)];
        return Ok(vec![written(emit, "scatter_along_axis", &data, places, &updates, more)?]);
    }
    if !all_known(&of_places) {
        return refuse("places in a part of a value whose lengths only a run knows");
    }
    let shape: Vec<usize> = of_places.iter().filter_map(Dim::known).collect();
    let count: usize = shape.iter().product();
    let flat = emit.reshape(&places, &[count, 1])?;
    let mut columns = Vec::with_capacity(shape.len());
    for at in 0..shape.len() {
        if at == axis {
            columns.push(flat.clone());
            continue;
        }
        let inner: usize = shape.iter().skip(at + 1).product();
        let place = |index: usize| small(index / inner % shape[at]);
        let column = (0..count).map(place).collect::<Result<Vec<i32>>>()?;
        columns.push(emit.table(&[count, 1], column)?);
    }
    let places = emit.concat(columns, 1)?;
    let updates = emit.reshape(&updates, &[count])?;
    Ok(vec![written(emit, "scatter_nd", &data, places, &updates, vec![("mode", mode)])?])
}

/// Each place of the new axis is compared with the index.
fn one_hot(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<OneHot>() else { return refuse("another kind") };
    let rank = emit.rank(emit.input(node, 0)?)? + 1;
    let axis = emit.axis(operator.axis, rank)?;
    let indices = emit.var(node, 0)?;
    let indices = emit.cast(&indices, MilElement::Int32)?;
    let known = emit.number(node, 1).ok();
    #[allow(clippy::cast_possible_truncation, reason = "a fraction of a depth is cut off")]
    let (depth, all) = match known {
        Some(depth) if (1.0..16_777_216.0).contains(&depth) => {
            let depth = depth as i32;
            let count = usize::try_from(depth).unwrap_or(0);
            (MilArg::Int(depth), emit.table(&[count], (0..depth).collect())?)
        }
        Some(depth) => return refuse(format!("a depth of {depth}")),
        None => {
            let depth = emit.var(node, 1)?;
            let depth = emit.scalar(&depth)?;
            let depth = emit.cast(&depth, MilElement::Int32)?;
            let inputs =
                vec![("start", MilArg::Int(0)), ("end", (&depth).into()), ("step", MilArg::Int(1))];
            let all = emit.op("range_1d", inputs)?;
            (MilArg::Var(depth), all)
        }
    };
    let behind: Vec<usize> = (1..rank - axis).collect();
    let all = emit.unsqueeze(&all, &behind)?;
    let negative = emit.pair("less", &indices, MilArg::Int(0))?;
    let moved = emit.pair("add", &indices, depth)?;
    let indices = emit.select(&negative, MilArg::Var(moved), MilArg::Var(indices))?;
    let indices = emit.unsqueeze(&indices, &[axis])?;
    let hit = emit.pair("equal", MilArg::Var(indices), MilArg::Var(all))?;
    let values = emit.var(node, 2)?;
    let value = |emit: &mut ProgramEmitter<'_>, at: usize| -> Result<MilArg> {
        let one = emit.element(&values, at)?;
        Ok(MilArg::Var(emit.scalar(&one)?))
    };
    let off = value(emit, 0)?;
    let on = value(emit, 1)?;
    Ok(vec![emit.select(&hit, on, off)?])
}

fn non_zero(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    if emit.rank(emit.input(node, 0)?)? == 0 {
        return refuse("places in a number");
    }
    let x = emit.var(node, 0)?;
    let found = emit.op("non_zero", vec![("x", MilArg::Var(x))])?;
    Ok(vec![emit.transpose(&found, &[1, 0])?])
}

/// The places where the condition holds are looked up.
fn compress(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Compress>() else { return refuse("another kind") };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let mut x = emit.var(node, 0)?;
    let condition = emit.var(node, 1)?;
    let axis = match operator.axis {
        Some(axis) => emit.axis(axis, rank)?,
        None => {
            let flat = vec![("x", MilArg::Var(x)), ("shape", MilArg::Ints(vec![-1]))];
            x = emit.op("reshape", flat)?;
            0
        }
    };
    let found = emit.op("non_zero", vec![("x", MilArg::Var(condition))])?;
    let places = emit.squeeze(&found, &[1])?;
    Ok(vec![emit.as_numbers(&x, |emit, x| gather_rows(emit, x, &places, axis))?])
}
