//! Two nodes in a row that only change how elements are seen become one: `Reshape` after anything
//! that keeps the order of elements, `Transpose` after `Transpose`.

use std::sync::Arc;

use super::ValueMaps;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::shape::{Reshape, Transpose};

pub(super) fn apply(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    let mut times = 0;
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        if let Some(data) = before_reshape(graph, maps, node) {
            graph.nodes[index].inputs[0] = Some(data);
            times += 1;
        } else if let Some((data, perm)) = before_transpose(graph, maps, node) {
            let node = &mut graph.nodes[index];
            node.inputs[0] = Some(data);
            node.operator = Arc::new(Transpose { perm: Some(perm) });
            times += 1;
        }
    }
    Ok(times)
}

/// Returns an earlier input that a reshape could read instead: that of another reshape before it. A
/// target that copies axes of its input needs the input that it has.
fn before_reshape(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<ValueId> {
    let reshape = node.operator::<Reshape>()?;
    let target = maps.constant(graph, node.input(1)?)?.to_i64_vec().ok()?;
    if target.contains(&0) && !reshape.allow_zero {
        return None;
    }
    let before = &graph.nodes[maps.producer(node.input(0)?)?];
    let keeps_order =
        matches!(before.op_type.as_str(), "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten");
    let data = before.input(0)?;
    // Without elements, an open axis can only be told from the shape that the model gave.
    (keeps_order && before.domain.is_empty() && !(target.contains(&-1) && target.contains(&0)))
        .then_some(data)
}

/// The input of a transpose before a transpose, and the order that both give together.
fn before_transpose(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<(ValueId, Vec<usize>)> {
    let after = node.operator::<Transpose>()?.perm.clone()?;
    let before = maps.written_by(graph, node.input(0)?, "Transpose")?;
    let first = before.operator::<Transpose>()?.perm.clone()?;
    let perm = collected_some(&mut after.iter().map(|&axis| first.get(axis).copied()))?;
    Some((before.input(0)?, perm))
}
