//! A partition as a graph of its own.

use std::collections::HashSet;
use std::ops::Range;

use galatea_graph::{Fact, Graph, Node, ValueId};

/// A partition's graph, and the values of the whole graph that are its inputs and outputs.
#[derive(Debug)]
pub(crate) struct PartitionGraph {
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<ValueId>,
}

/// Cuts out neighbouring nodes. Initializers are shared, not copied.
pub(crate) fn extract(
    graph: &Graph,
    facts: &[Option<Fact>],
    nodes: Range<usize>,
) -> PartitionGraph {
    let inside = &graph.nodes[nodes.clone()];
    let written: HashSet<ValueId> =
        inside.iter().flat_map(|node| node.outputs.iter().flatten().copied()).collect();
    let mut wanted: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    for node in &graph.nodes[nodes.end..] {
        wanted.extend(node.inputs.iter().flatten());
    }
    let mut sub = Graph::new(graph.name.clone());
    sub.opsets.clone_from(&graph.opsets);
    let mut map = |id: ValueId| {
        let value = graph.value(id);
        let new = sub.value_named(&value.name);
        let slot = sub.value_mut(new);
        if slot.initializer.is_none() {
            slot.initializer.clone_from(&value.initializer);
        }
        if slot.declared.is_none() {
            slot.declared = facts[id.index()]
                .as_ref()
                .map(|fact| Fact { value: None, ..fact.clone() })
                .or_else(|| value.declared.clone());
        }
        new
    };
    let mut inputs = Vec::new();
    let mut outputs = Vec::new();
    let mut seen = HashSet::new();
    let mut new_nodes: Vec<Node> = Vec::with_capacity(inside.len());
    for node in inside {
        for &id in node.inputs.iter().flatten() {
            if !written.contains(&id) && graph.constant(id).is_none() && seen.insert(id) {
                inputs.push(id);
            }
        }
        for &id in node.outputs.iter().flatten() {
            if wanted.contains(&id) && seen.insert(id) {
                outputs.push(id);
            }
        }
        let mut renamed = node.clone();
        for slot in renamed.inputs.iter_mut().chain(&mut renamed.outputs) {
            *slot = slot.map(&mut map);
        }
        new_nodes.push(renamed);
    }
    let new_inputs: Vec<ValueId> = inputs.iter().map(|&id| map(id)).collect();
    let new_outputs: Vec<ValueId> = outputs.iter().map(|&id| map(id)).collect();
    sub.inputs = new_inputs;
    sub.outputs = new_outputs;
    sub.nodes = new_nodes;
    PartitionGraph { graph: sub, inputs, outputs }
}

/// Returns the nodes of a graph, in running order, that the wanted outputs need; `wanted` has an entry for each
/// output.
#[must_use]
pub fn needed_nodes(graph: &Graph, wanted: &[bool]) -> Vec<bool> {
    let outputs = graph.outputs.iter().zip(wanted);
    let mut values: HashSet<ValueId> =
        outputs.filter_map(|(&id, wanted)| wanted.then_some(id)).collect();
    let mut needed = vec![false; graph.nodes.len()];
    for (node, needed) in graph.nodes.iter().zip(&mut needed).rev() {
        *needed = node.outputs.iter().flatten().any(|id| values.contains(id));
        if *needed {
            values.extend(node.inputs.iter().flatten());
        }
    }
    needed
}
