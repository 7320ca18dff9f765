//! Nodes whose result does not depend on the run's inputs are computed once.

use galatea_tensor::Tensor;

use super::Maps;
use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::operator::Inputs;

/// A folded value may not be larger than this many elements: a `ConstantOfShape` or `Expand` of a
/// few bytes can stand for gigabytes that are cheaper to make in each run.
const MAX_ELEMENTS: usize = 1 << 24;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &Maps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let outputs: Vec<_> = node.outputs.iter().flatten().copied().collect();
    if outputs.iter().any(|id| graph.outputs.contains(id)) || outputs.is_empty() {
        return Ok(None);
    }
    let Some(values) =
        known(graph, maps, node).map_err(|e| GraphError::at(graph.place(index), e))?
    else {
        return Ok(None);
    };
    let slots = graph.nodes[index].outputs.clone();
    for (slot, value) in slots.iter().zip(values) {
        if let Some(id) = slot {
            graph.value_mut(*id).initializer = Some(value);
        }
    }
    Ok(Some(Vec::new()))
}

/// The node's results, when they are known.
fn known(graph: &Graph, maps: &Maps, node: &Node) -> Result<Option<Vec<Tensor>>, crate::OpError> {
    let fact = |slot: &Option<crate::ValueId>| slot.and_then(|id| maps.fact(id));
    let inferred: Option<Vec<Tensor>> =
        node.outputs.iter().map(|slot| fact(slot).and_then(|fact| fact.value.clone())).collect();
    if inferred.is_some() || !node.operator.is_deterministic() {
        return Ok(inferred);
    }
    let small = |slot: &Option<crate::ValueId>| {
        fact(slot).filter(|fact| fact.is_tensor()).and_then(|f| f.known_shape()).is_some_and(
            |shape| {
                shape
                    .iter()
                    .try_fold(1_usize, |n, &dim| n.checked_mul(dim))
                    .is_some_and(|n| n <= MAX_ELEMENTS)
            },
        )
    };
    let inputs: Option<Vec<Option<&Tensor>>> = node
        .inputs
        .iter()
        .map(|slot| match slot {
            None => Some(None),
            Some(id) => graph.constant(*id).map(Some),
        })
        .collect();
    match inputs {
        Some(inputs) if node.outputs.iter().flatten().all(|id| small(&Some(*id))) => {
            node.operator.reference(Inputs::new(&inputs)).map(Some)
        }
        _ => Ok(None),
    }
}
