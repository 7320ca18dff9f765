//! Caches that are written position by position.

use galatea_formats::coreml::mil::{MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::transformer::TensorScatter;

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::unwritable::{Result, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[EmitRow::onnx("TensorScatter", tensor_scatter)];

/// A slice of the cache is written over: of one that is a state, in place.
fn tensor_scatter(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<TensorScatter>() else { return refuse("another kind") };
    if operator.circular {
        return refuse("positions that go on at the beginning behind the last one");
    }
    let cache = emit.input(node, 0)?;
    let update = emit.input(node, 1)?;
    let shape = emit.shape(cache)?;
    let count = emit.shape(update)?;
    let axis = emit.axis(operator.axis, shape.len())?;
    let rows = count.get(axis).copied().unwrap_or(0);
    let cut = match node.input(2) {
        None => SliceTake::whole(shape.len()).range(axis, 0, rows)?,
        Some(_) if shape.first() != Some(&1) => {
            return refuse("a place for each of several rows of the batch");
        }
        Some(_) => {
            let start = emit.var(node, 2)?;
            let start = emit.cast(&start, MilElement::Int32)?;
            emit.from(shape.len(), axis, &start, small(rows)?)?
        }
    };
    let update = emit.var(node, 1)?;
    match emit.slot(node) {
        Some(slot) => Ok(vec![slot.update(emit, &update, cut)?]),
        None => {
            let x = emit.var(node, 0)?;
            Ok(vec![emit.update(&x, &update, cut)?])
        }
    }
}
