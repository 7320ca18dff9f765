//! Nodes that give their input as it is: `Identity`, `Dropout` without its mask, `Cast` to the same
//! type, `Transpose` that keeps the order, `Reshape`, `Expand` and `Slice` to the same shape,
//! `Concat` of one, a product with 1, a sum of integers with 0.

use std::collections::HashMap;

use super::ValueMaps;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::cast::Cast;
use crate::ops::shape::{Dropout, DropoutMode, Slice, Transpose};

pub(super) fn apply(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    let mut same: HashMap<ValueId, ValueId> = HashMap::new();
    for node in &graph.nodes {
        let Some(output) = node.output(0) else { continue };
        // An output of the graph keeps its name, so it needs a node that writes it.
        if graph.outputs.contains(&output) {
            continue;
        }
        if let Some(input) = kept(graph, maps, node) {
            same.insert(output, same.get(&input).copied().unwrap_or(input));
        }
    }
    for node in &mut graph.nodes {
        for input in node.inputs.iter_mut().flatten() {
            *input = same.get(input).copied().unwrap_or(*input);
        }
    }
    Ok(same.len())
}

/// The input that a node gives as it is.
fn kept(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<ValueId> {
    if !node.domain.is_empty() {
        return None;
    }
    let input = node.input(0)?;
    let output = node.output(0)?;
    let without_effect = match node.op_type.as_str() {
        "Identity" => true,
        "Dropout" => node.operator::<Dropout>().is_some_and(|dropout| {
            dropout.training == DropoutMode::Never && node.output(1).is_none()
        }),
        "Cast" => node
            .operator::<Cast>()
            .is_some_and(|cast| maps.fact(input).is_some_and(|fact| fact.dtype == cast.to)),
        "Transpose" => node.operator::<Transpose>().is_some_and(|transpose| {
            transpose.perm.as_ref().is_some_and(|perm| perm.iter().copied().eq(0..perm.len()))
        }),
        "Reshape" => keeps_count_and_shape(maps, input, output),
        "Expand" => maps.same_shape(input, output),
        "Slice" => goes_forward(maps, node) && maps.same_shape(input, output),
        "Concat" => node.inputs.len() == 1,
        "Mul" | "Div" | "Add" | "Sub" => return neutral(graph, maps, node),
        _ => false,
    };
    without_effect.then_some(input)
}

/// Returns whether two values of as many elements have the same shape: all lengths but one are the
/// same, so the last one is too.
fn keeps_count_and_shape(maps: &ValueMaps, input: ValueId, output: ValueId) -> bool {
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_ref());
    let (Some(a), Some(b)) = (shape(input), shape(output)) else { return false };
    let other: Vec<_> = a.iter().zip(b).filter(|(a, b)| !a.same(b)).collect();
    let one_unknown = match other.as_slice() {
        [] => true,
        [(a, b)] => a.known().is_none() || b.known().is_none(),
        _ => false,
    };
    a.len() == b.len() && one_unknown
}

/// Returns whether a slice steps by 1 on every axis.
fn goes_forward(maps: &ValueMaps, node: &Node) -> bool {
    if node.operator::<Slice>().is_none() {
        return false;
    }
    match node.input(4) {
        None => true,
        Some(steps) => maps
            .fact(steps)
            .and_then(|fact| fact.integers())
            .is_some_and(|steps| steps.iter().all(|&step| step == 1)),
    }
}

/// The other operand of a product with 1 or a sum of integers with 0, where the result has its
/// shape. A float plus 0 is not the same: it loses the sign of zero.
fn neutral(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<ValueId> {
    let output = node.output(0)?;
    let a = node.input(0)?;
    let b = node.input(1)?;
    let is = |id: ValueId, wanted: i64| {
        let integers = maps.fact(id).and_then(|fact| fact.integers());
        match integers {
            Some(all) => !all.is_empty() && all.iter().all(|&one| one == wanted),
            #[allow(clippy::cast_precision_loss, reason = "0 or 1")]
            None => wanted == 1 && maps.scalar(graph, id) == Some(wanted as f64),
        }
    };
    let wanted = i64::from(matches!(node.op_type.as_str(), "Mul" | "Div"));
    let commutes = matches!(node.op_type.as_str(), "Mul" | "Add");
    let found = if is(b, wanted) {
        a
    } else if commutes && is(a, wanted) {
        b
    } else {
        return None;
    };
    maps.same_shape(found, output).then_some(found)
}
