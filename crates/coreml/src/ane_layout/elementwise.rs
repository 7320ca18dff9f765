//! Operators on elements: their own rows write them, on values that lie as (B, C, 1, S).

use galatea_graph::{ElementwiseInputs, Node, ValueId};

use crate::emit::ProgramEmitter;
use crate::rows;
use crate::unwritable::Result;

/// How many of its inputs an element-wise operator computes on; none of others.
pub(super) fn slots(node: &Node) -> Option<usize> {
    match node.traits().elementwise {
        Some(ElementwiseInputs::First) => Some(1),
        Some(ElementwiseInputs::All) => Some(node.inputs.len()),
        // Outside training it gives what it is given.
        None => (node.domain.is_empty() && node.op_type == "Dropout").then_some(1),
    }
}

/// Computes where the largest input lies, if that has a form.
pub(super) fn emit(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let (Some(count), Some(output)) = (slots(node), node.output(0)) else { return Ok(false) };
    let Some(shape) = emit.fixed_floats(output) else { return Ok(false) };
    let ids: Vec<ValueId> = node.inputs.iter().take(count).flatten().copied().collect();
    let whole = |id: &&ValueId| emit.fixed_floats(**id).is_some_and(|own| own == shape);
    let main = ids.iter().filter(whole).find_map(|id| emit.formed(*id));
    let Some(axes) = main.map(|form| form.axes.clone()) else { return Ok(false) };
    let mut overlay = Vec::with_capacity(ids.len());
    for id in ids {
        match emit.operand(id, &axes, &shape)? {
            Some(var) => overlay.push((id, var)),
            None => return Ok(false),
        }
    }
    set_overlay(emit, overlay);
    let results = rows::of(node).and_then(|row| row.results(emit, node));
    set_overlay(emit, Vec::new());
    match results?.into_iter().next() {
        Some(var) => emit.end_formed(node, var, axes),
        None => Ok(false),
    }
}

fn set_overlay(
    emit: &mut ProgramEmitter<'_>,
    overlay: Vec<(ValueId, galatea_formats::coreml::mil::MilVar)>,
) {
    if let Some(favoured) = &mut emit.favoured {
        favoured.overlay = overlay.into_iter().collect();
    }
}
