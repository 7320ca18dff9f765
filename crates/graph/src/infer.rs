//! Facts about every value of a graph, from facts about its inputs.

use std::collections::HashMap;

use galatea_tensor::{MAX_RANK, Tensor, checked_elements};

use crate::error::GraphError;
use crate::fact::{Dim, Fact, unknown_length};
use crate::graph::{Graph, Node, ValueId};
use crate::operator::{OperatorInputs, expect_tensors};

/// Values up to this many elements are computed during inference when all their inputs are known:
/// enough for every shape computation, too few to cost time.
const FOLD_ELEMENTS: usize = 1024;

/// Elements of computed values that are longer than [`SHORT_VALUE`], all together: a graph of many
/// nodes could fill memory with values that no shape needs.
const FOLD_TOTAL: usize = 1 << 20;

/// Values of up to this many elements are computed however many there are.
const SHORT_VALUE: usize = 64;

/// Derives a fact for every value that a node writes, an input declares or an initializer gives.
/// `known` overrides what the graph declares, for example with the concrete shapes of one run.
///
/// The result is indexed by [`ValueId::index`]; a value that nothing writes has no fact.
///
/// # Errors
/// Fails when an operator refuses its inputs; the error names the node.
pub fn facts(
    graph: &Graph,
    known: &HashMap<ValueId, Fact>,
) -> Result<Vec<Option<Fact>>, GraphError> {
    let mut facts: Vec<Option<Fact>> = graph
        .values()
        .iter()
        .map(|value| value.initializer.as_ref().map(|tensor| Fact::constant(tensor.clone())))
        .collect();
    for &input in &graph.inputs {
        facts[input.index()] =
            known.get(&input).cloned().or_else(|| graph.value(input).declared.clone());
    }
    extend(graph, &mut facts, 0)?;
    Ok(facts)
}

/// Derives the facts of what nodes write, from a position on, where those of what they read are known:
/// for a graph that is being built. `facts` grows with the values of the graph.
///
/// # Errors
/// Fails when an operator refuses its inputs; the error names the node.
pub fn extend(graph: &Graph, facts: &mut Vec<Option<Fact>>, from: usize) -> Result<(), GraphError> {
    facts.resize(graph.values().len(), None);
    derive(graph, facts, &|index| index >= from)
}

/// Derives anew the facts of what nodes write that are not `done`, where more is known of what they read: for a
/// run in stages, whose first ones tell the lengths of later ones.
///
/// # Errors
/// Fails when an operator refuses its inputs; the error names the node.
pub fn renew(graph: &Graph, facts: &mut [Option<Fact>], done: &[bool]) -> Result<(), GraphError> {
    derive(graph, facts, &|index| !done.get(index).is_some_and(|done| *done))
}

fn derive(
    graph: &Graph,
    facts: &mut [Option<Fact>],
    concerns: &dyn Fn(usize) -> bool,
) -> Result<(), GraphError> {
    let mut left = FOLD_TOTAL;
    for (index, node) in graph.nodes.iter().enumerate().filter(|(index, _)| concerns(*index)) {
        let outputs = infer_node(node, facts, &mut left)
            .map_err(|error| GraphError::at(graph.place(index), error))?;
        for (slot, fact) in node.outputs.iter().zip(outputs) {
            if let Some(id) = slot {
                facts[id.index()] = Some(name_unknown(fact, &graph.value(*id).name));
            }
        }
    }
    Ok(())
}

/// Gives every unknown length of a tensor a symbol of its own, so that later values which keep the
/// length are seen to have the same one. The tensors of a sequence may differ in theirs.
pub(crate) fn name_unknown(mut fact: Fact, value: &str) -> Fact {
    if !fact.is_tensor() {
        return fact;
    }
    for (axis, dim) in fact.shape.iter_mut().flatten().enumerate() {
        if *dim == Dim::Unknown {
            *dim = unknown_length(value, axis);
        }
    }
    fact
}

/// The facts of one node's outputs. `left` is how many elements may still be computed.
fn infer_node(
    node: &Node,
    facts: &[Option<Fact>],
    left: &mut usize,
) -> Result<Vec<Fact>, crate::OpError> {
    let inputs: Vec<Option<&Fact>> =
        node.inputs.iter().map(|slot| slot.and_then(|id| facts[id.index()].as_ref())).collect();
    if !node.operator.takes_any_kind() {
        expect_tensors(OperatorInputs::new(&inputs))?;
    }
    let mut outputs = node.operator.infer(OperatorInputs::new(&inputs))?;
    if let Some(rank) = outputs.iter().filter_map(Fact::rank).find(|&rank| rank > MAX_RANK) {
        let text = format!("a result of {rank} axes, at most {MAX_RANK} are possible");
        return Err(crate::OpError::new(text));
    }
    let elements = |fact: &Fact| fact.known_shape().and_then(|shape| checked_elements(&shape).ok());
    let small = |fact: &Fact| elements(fact).is_some_and(|elements| elements <= FOLD_ELEMENTS);
    let long: usize = outputs.iter().filter_map(elements).filter(|&len| len > SHORT_VALUE).sum();
    let foldable = long <= *left
        && node.operator.is_deterministic()
        && outputs.iter().all(|fact| fact.is_tensor() && small(fact))
        && outputs.iter().any(|fact| fact.value.is_none())
        && node.inputs.iter().zip(&inputs).all(|(slot, fact)| {
            slot.is_none() || fact.is_some_and(|fact| fact.value.is_some() && small(fact))
        });
    if foldable {
        *left -= long;
        let values: Vec<Option<&Tensor>> =
            inputs.iter().map(|fact| fact.and_then(|fact| fact.value.as_ref())).collect();
        let results = node.operator.reference(OperatorInputs::new(&values))?;
        outputs = results.into_iter().map(Fact::constant).collect();
    }
    Ok(outputs)
}
