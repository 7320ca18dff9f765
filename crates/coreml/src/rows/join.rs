//! Operators that put values together and take them apart.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::shape::{Concat, DepthToSpace, SpaceToDepth, Split};
use galatea_graph::{Dim, Node};

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small, small_all};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Concat", concat),
    EmitRow::onnx("Split", split),
    EmitRow::onnx("DepthToSpace", depth_to_space),
    EmitRow::onnx("SpaceToDepth", space_to_depth),
];

/// Values without elements add nothing, and Core ML has none.
fn concat(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Concat>() else { return refuse("another kind") };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axis = emit.axis(operator.axis, rank)?;
    let mut values = Vec::with_capacity(node.inputs.len());
    for at in 0..node.inputs.len() {
        let empty = emit.dims(emit.input(node, at)?)?.get(axis) == Some(&Dim::Known(0));
        if !empty {
            values.push(emit.var(node, at)?);
        }
    }
    Ok(vec![emit.concat(values, axis)?])
}

fn split(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Split>() else { return refuse("another kind") };
    let id = emit.input(node, 0)?;
    let dims = emit.dims(id)?;
    let axis = emit.axis(operator.axis, dims.len())?;
    let x = emit.var(node, 0)?;
    let parts = node.outputs.len();
    if parts == 1 {
        return Ok(vec![x]);
    }
    let given = match node.input(1) {
        Some(_) => Some(emit.integers(node, 1)?),
        None => None,
    };
    let sizes = match (dims[axis].known(), given, &operator.split) {
        (Some(len), given, _) => match operator.lengths(len, given.as_deref()) {
            Ok(lengths) => Some(small_all(&lengths)?),
            Err(error) => return refuse(error.to_string()),
        },
        (None, Some(given), _) => Some(crate::unwritable::narrow_all(&given)?),
        (None, None, Some(given)) => Some(small_all(given)?),
        (None, None, None) if operator.uneven => {
            return refuse("the length of the last part is known in a run only");
        }
        (None, None, None) => None,
    };
    let amount = match sizes {
        Some(sizes) => ("split_sizes", MilArg::Ints(sizes)),
        None => ("num_splits", MilArg::Int(small(parts)?)),
    };
    let axis = MilArg::Int(small(axis)?);
    emit.op_of("split", vec![("x", MilArg::Var(x)), amount, ("axis", axis)], parts)
}

/// Blocks of an image of floats: Core ML has them of no other type.
fn blocks(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    block: usize,
    operator: &str,
    parameter: &'static str,
) -> Result<Vec<MilVar>> {
    let id = emit.input(node, 0)?;
    if !emit.dtype(id)?.is_float() {
        return refuse(format!("blocks of {}", emit.dtype(id)?));
    }
    let x = emit.var(node, 0)?;
    if block == 1 {
        return Ok(vec![x]);
    }
    let block = MilArg::Int(small(block)?);
    Ok(vec![emit.op(operator, vec![("x", MilArg::Var(x)), (parameter, block)])?])
}

fn depth_to_space(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<DepthToSpace>() else { return refuse("another kind") };
    let block = operator.block_size;
    match operator.column_row_depth {
        true => blocks(emit, node, block, "pixel_shuffle", "upscale_factor"),
        false => blocks(emit, node, block, "depth_to_space", "block_size"),
    }
}

fn space_to_depth(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<SpaceToDepth>() else { return refuse("another kind") };
    let block = operator.block_size;
    match operator.column_row_depth {
        true => blocks(emit, node, block, "pixel_unshuffle", "downscale_factor"),
        false => blocks(emit, node, block, "space_to_depth", "block_size"),
    }
}
