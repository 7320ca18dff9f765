//! An `If` whose condition is known gives way to the nodes of the branch that it takes.

use std::collections::HashMap;
use std::sync::Arc;

use super::ValueMaps;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::control::If;
use crate::ops::shape::Identity;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let Some(operator) = node.operator::<If>() else { return Ok(None) };
    let condition = node.input(0).and_then(|id| maps.constant(graph, id));
    let Some(&[chosen]) = condition.and_then(|c| c.to_vec::<bool>().ok()).as_deref() else {
        return Ok(None);
    };
    let branch = operator.branch(chosen).clone();
    let node = node.clone();
    let inner = branch.graph();
    let mut places: HashMap<ValueId, ValueId> = HashMap::new();
    for (&id, &at) in inner.inputs.iter().zip(branch.captures()) {
        places.extend(node.input(at).map(|outer| (id, outer)));
    }
    let mut passed: Vec<(ValueId, ValueId)> = Vec::new();
    let producers = inner.producers();
    for (&id, slot) in inner.outputs.iter().zip(&node.outputs) {
        let Some(outer) = *slot else { continue };
        if producers[id.index()].is_some() && !places.contains_key(&id) {
            places.insert(id, outer);
        } else {
            passed.push((id, outer));
        }
    }
    let mut place = |graph: &mut Graph, id: ValueId| {
        *places.entry(id).or_insert_with(|| {
            let value = inner.value(id);
            let outer = graph.fresh_value(&value.name);
            graph.value_mut(outer).initializer.clone_from(&value.initializer);
            outer
        })
    };
    let mut made = Vec::with_capacity(inner.nodes.len() + passed.len());
    for inside in &inner.nodes {
        let mut copy = inside.clone();
        for slot in copy.inputs.iter_mut().chain(&mut copy.outputs) {
            *slot = slot.map(|id| place(graph, id));
        }
        made.push(copy);
    }
    for (id, outer) in passed {
        made.push(Node {
            name: node.name.clone(),
            domain: ONNX_DOMAIN.to_owned(),
            op_type: "Identity".to_owned(),
            inputs: vec![Some(place(graph, id))],
            outputs: vec![Some(outer)],
            operator: Arc::new(Identity),
            parsed: None,
        });
    }
    Ok(Some(made))
}
