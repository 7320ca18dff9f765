//! Nodes whose result does not depend on the run's inputs are computed once.

use galatea_tensor::Tensor;

use super::ValueMaps;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::{OpDef, OperatorInputs};
use crate::ops;
use crate::ops::quantize::DequantizeLinear;

/// A folded value may be this large in any case. Beyond it, it may not have more elements than its
/// inputs: a `ConstantOfShape` or `Expand` of a few bytes can stand for gigabytes that are cheaper
/// to make in each run. Weights that a model makes of such a node are smaller, and kernels pack only
/// constants.
const MAX_ELEMENTS: usize = 1 << 24;
/// All values together that one pass folds and that are larger than their inputs.
const MAX_GROWTH: usize = 1 << 26;
/// Nodes of up to this many elements are folded whatever they do: the square is still a number of
/// steps that takes seconds.
const FEW_ELEMENTS: usize = 1 << 15;
/// The most multiplications of a matrix product that is folded.
const MAX_STEPS: usize = 1 << 31;

/// Families whose operators take about as many steps as they have elements.
const LINEAR: &[&[OpDef]] = &[
    ops::activation::OPS,
    ops::cast::OPS,
    ops::generate::OPS,
    ops::index::OPS,
    ops::logic::OPS,
    ops::math::OPS,
    ops::normalize::OPS,
    ops::quantize::OPS,
    ops::reduce::OPS,
    ops::shape::OPS,
];

/// Folds everything but weights that are dequantised: the rules about quantised values look for
/// these.
pub(super) fn apply(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    fold(graph, maps, |node| node.operator::<DequantizeLinear>().is_none())
}

/// Folds weights that are dequantised.
pub(super) fn dequantized(graph: &mut Graph, maps: &ValueMaps) -> Result<usize, GraphError> {
    fold(graph, maps, |node| node.operator::<DequantizeLinear>().is_some())
}

fn fold(
    graph: &mut Graph,
    maps: &ValueMaps,
    wanted: impl Fn(&Node) -> bool,
) -> Result<usize, GraphError> {
    let mut times = 0;
    let mut growth = 0;
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        if !wanted(node) {
            continue;
        }
        let mut outputs = node.outputs.iter().flatten().copied().peekable();
        if outputs.peek().is_none() || outputs.any(|id| stays(graph, id)) {
            continue;
        }
        let values = known(graph, maps, node, &mut growth)
            .map_err(|error| GraphError::at(graph.place(index), error))?;
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

/// Returns whether a value needs a node that writes it.
fn stays(graph: &Graph, id: ValueId) -> bool {
    graph.outputs.contains(&id) || graph.constant(id).is_some()
}

/// The node's results, when they are known.
fn known(
    graph: &Graph,
    maps: &ValueMaps,
    node: &Node,
    growth: &mut usize,
) -> Result<Option<Vec<Tensor>>, crate::OpError> {
    let fact = |slot: &Option<ValueId>| slot.and_then(|id| maps.fact(id));
    let inferred: Option<Vec<Tensor>> = collected_some(
        &mut node.outputs.iter().map(|slot| fact(slot).and_then(|fact| fact.value.clone())),
    );
    if inferred.is_some() || !node.operator.is_deterministic() {
        return Ok(inferred);
    }
    let inputs: Option<Vec<Option<&Tensor>>> =
        collected_some(&mut node.inputs.iter().map(|slot| match slot {
            None => Some(None),
            Some(id) => graph.constant(*id).map(Some),
        }));
    let Some(inputs) = inputs else { return Ok(None) };
    let given: usize = inputs.iter().flatten().map(|tensor| tensor.elements()).sum();
    let elements = |slot: &Option<ValueId>| -> Option<usize> {
        if slot.is_none() {
            return Some(0);
        }
        let shape = fact(slot).filter(|fact| fact.is_tensor()).and_then(Fact::known_shape)?;
        shape.iter().try_fold(1_usize, |n, &dim| n.checked_mul(dim))
    };
    let made: Option<Vec<usize>> = collected_some(&mut node.outputs.iter().map(elements));
    let Some(made) = made else { return Ok(None) };
    let Some(grown) = grown(*growth, given, &made) else { return Ok(None) };
    let made = made.iter().fold(0_usize, |sum, &n| sum.saturating_add(n));
    if !is_quick(node, &inputs, given, made) {
        return Ok(None);
    }
    *growth = grown;
    node.operator.reference(OperatorInputs::new(&inputs)).map(Some)
}

/// How much the graph has grown when results of so many elements take the place of the node; `None`
/// where that is too much.
fn grown(growth: usize, given: usize, made: &[usize]) -> Option<usize> {
    let sum = made.iter().fold(0_usize, |sum, &n| sum.saturating_add(n));
    let grown = growth.saturating_add(sum.saturating_sub(given));
    let few = sum <= FEW_ELEMENTS || sum <= given;
    let fits = made.iter().all(|&n| n <= given.max(MAX_ELEMENTS));
    (fits && (few || grown <= MAX_GROWTH)).then_some(grown)
}

/// Returns whether computing a node takes seconds at most.
fn is_quick(node: &Node, inputs: &[Option<&Tensor>], given: usize, made: usize) -> bool {
    let is = |def: &OpDef| def.domain == node.domain && def.name == node.op_type;
    if given.saturating_add(made) <= FEW_ELEMENTS || LINEAR.iter().any(|all| all.iter().any(is)) {
        return true;
    }
    let product = ["MatMul", "Gemm"].contains(&node.op_type.as_str());
    let axes = inputs.first().copied().flatten().map_or(&[][..], Tensor::shape);
    let inner = axes.iter().rev().take(2).copied().max().unwrap_or(1);
    product && made.saturating_mul(inner) <= MAX_STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_grow_alone_and_together_up_to_a_limit() {
        assert_eq!(grown(0, 1, &[MAX_ELEMENTS]), Some(MAX_ELEMENTS - 1));
        assert_eq!(grown(0, 1, &[MAX_ELEMENTS + 1]), None);
        assert_eq!(grown(7, MAX_ELEMENTS + 1, &[MAX_ELEMENTS + 1]), Some(7));
        assert_eq!(grown(MAX_GROWTH, 1, &[MAX_ELEMENTS]), None);
        assert_eq!(grown(MAX_GROWTH, 5, &[5]), Some(MAX_GROWTH));
        assert_eq!(grown(MAX_GROWTH, 1, &[9]), Some(MAX_GROWTH + 8));
        assert_eq!(grown(0, 1, &[usize::MAX, usize::MAX]), None);
    }
}
