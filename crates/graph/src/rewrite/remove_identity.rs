//! Nodes that give their input as it is: `Identity`, `Dropout` without its mask, `Cast` to the same
//! type, `Transpose` that keeps the order, `Reshape` to the same shape.

use super::Maps;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::cast::Cast;
use crate::ops::shape::Transpose;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &Maps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let (Some(input), Some(output)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let without_effect = match node.op_type.as_str() {
        "Identity" => node.domain.is_empty(),
        "Dropout" => node.domain.is_empty() && node.output(1).is_none() && node.input(2).is_none(),
        "Cast" => node
            .operator::<Cast>()
            .is_some_and(|cast| maps.fact(input).is_some_and(|fact| fact.dtype == cast.to)),
        "Transpose" => node.operator::<Transpose>().is_some_and(|transpose| {
            transpose.perm.as_ref().is_some_and(|perm| perm.iter().copied().eq(0..perm.len()))
        }),
        "Reshape" => keeps_shape(maps, input, output),
        _ => false,
    };
    // An output of the graph keeps its name, so it needs a node that writes it.
    if !without_effect || graph.outputs.contains(&output) {
        return Ok(None);
    }
    graph.replace_uses(output, input);
    Ok(Some(Vec::new()))
}

/// Whether two values of as many elements have the same shape: all lengths but one are the same, so
/// the last one is too.
fn keeps_shape(maps: &Maps, input: ValueId, output: ValueId) -> bool {
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
