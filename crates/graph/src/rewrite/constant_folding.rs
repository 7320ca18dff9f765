//! Nodes whose result does not depend on the run's inputs are computed once.

use galatea_tensor::Tensor;

use super::Maps;
use crate::error::GraphError;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::Inputs;

/// A folded value may be this large in any case. Beyond it, it may not have more elements than its
/// inputs: a `ConstantOfShape` or `Expand` of a few bytes can stand for gigabytes that are cheaper
/// to make in each run. Weights that a model makes of such a node are smaller, and kernels pack only
/// constants.
const MAX_ELEMENTS: usize = 1 << 24;

pub(super) fn apply(graph: &mut Graph, maps: &Maps) -> Result<usize, GraphError> {
    let mut times = 0;
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let mut outputs = node.outputs.iter().flatten().copied().peekable();
        if outputs.peek().is_none() || outputs.any(|id| stays(graph, id)) {
            continue;
        }
        let values = known(graph, maps, node).map_err(|e| GraphError::at(graph.place(index), e))?;
        let Some(values) = values else { continue };
        let slots = graph.nodes[index].outputs.clone();
        for (slot, value) in slots.iter().zip(values) {
            if let Some(id) = slot {
                graph.value_mut(*id).initializer = Some(value);
            }
        }
        graph.nodes[index].outputs.iter_mut().for_each(|slot| *slot = None);
        times += 1;
    }
    graph.nodes.retain(|node| node.outputs.iter().any(Option::is_some));
    Ok(times)
}

/// Whether a value needs a node that writes it.
fn stays(graph: &Graph, id: ValueId) -> bool {
    graph.outputs.contains(&id) || graph.constant(id).is_some()
}

/// The node's results, when they are known.
fn known(graph: &Graph, maps: &Maps, node: &Node) -> Result<Option<Vec<Tensor>>, crate::OpError> {
    let fact = |slot: &Option<ValueId>| slot.and_then(|id| maps.fact(id));
    let inferred: Option<Vec<Tensor>> =
        node.outputs.iter().map(|slot| fact(slot).and_then(|fact| fact.value.clone())).collect();
    if inferred.is_some() || !node.operator.is_deterministic() {
        return Ok(inferred);
    }
    let inputs: Option<Vec<Option<&Tensor>>> = node
        .inputs
        .iter()
        .map(|slot| match slot {
            None => Some(None),
            Some(id) => graph.constant(*id).map(Some),
        })
        .collect();
    let Some(inputs) = inputs else { return Ok(None) };
    let given: usize = inputs.iter().flatten().map(|tensor| tensor.elements()).sum();
    let fits = |slot: &Option<ValueId>| {
        slot.is_none()
            || fact(slot).filter(|fact| fact.is_tensor()).and_then(Fact::known_shape).is_some_and(
                |shape| {
                    shape
                        .iter()
                        .try_fold(1_usize, |n, &dim| n.checked_mul(dim))
                        .is_some_and(|n| n <= given.max(MAX_ELEMENTS))
                },
            )
    };
    if !node.outputs.iter().all(fits) {
        return Ok(None);
    }
    node.operator.reference(Inputs::new(&inputs)).map(Some)
}
