//! Rewrites the subgraphs of control-flow operators like the graph around them.
//!
//! A constant that a subgraph captures becomes its own constant, so that weights outside of a loop
//! are packed and folded inside. A value that it does not read any more is not captured any more.

use std::collections::{HashMap, HashSet};

use super::RewriteLevel;
use crate::error::GraphError;
use crate::fact::Fact;
use crate::graph::OperatorBody;
use crate::graph::{Graph, ValueId};
use crate::infer;
use crate::operator::OperatorInputs;

/// Rewrites every body in the graph; gives their number.
///
/// # Errors
/// Fails when an operator of the graph refuses its inputs.
pub(super) fn optimise(graph: &mut Graph, level: RewriteLevel) -> Result<usize, GraphError> {
    if graph.nodes.iter().all(|node| node.operator.bodies().is_empty()) {
        return Ok(0);
    }
    let facts = infer::facts(graph, &HashMap::new())?;
    let mut count = 0;
    for node in &mut graph.nodes {
        let bodies = node.operator.bodies();
        let captured: usize = bodies.iter().map(|body| body.captures().len()).sum();
        let given: Vec<Option<&Fact>> =
            node.inputs.iter().map(|slot| slot.and_then(|id| facts[id.index()].as_ref())).collect();
        let mut inputs = node.inputs[..node.inputs.len().saturating_sub(captured)].to_vec();
        let mut rewritten = Vec::with_capacity(bodies.len());
        for (at, body) in bodies.iter().enumerate() {
            let known =
                node.operator.body_facts(at, OperatorInputs::new(&given)).unwrap_or_default();
            // A branch that cannot run is an error in a run that takes it, and in no other.
            let (inner, kept) = prepare(body, &known, level)
                .unwrap_or_else(|_| ((**body.graph()).clone(), body.captures().to_vec()));
            let captures = (inputs.len()..inputs.len() + kept.len()).collect();
            inputs.extend(kept.iter().map(|&at| node.inputs[at]));
            rewritten.push(body.with_graph(inner, captures));
        }
        let made = rewritten.len();
        if node.replace_bodies(rewritten) {
            node.inputs = inputs;
            count += made;
        }
    }
    graph.remove_unused();
    Ok(count)
}

/// The body's graph, rewritten, and what it still captures: positions among the node's inputs.
fn prepare(
    body: &OperatorBody,
    known: &[Option<Fact>],
    level: RewriteLevel,
) -> Result<(Graph, Vec<usize>), GraphError> {
    let mut graph = (**body.graph()).clone();
    let own = body.own_inputs();
    let mut captured: Vec<(ValueId, usize)> = Vec::new();
    for (at, id) in graph.inputs.clone().into_iter().enumerate() {
        let outside = at.checked_sub(own).map(|at| body.captures()[at]);
        let fact = known.get(at).cloned().flatten();
        let value = fact.as_ref().and_then(|fact| fact.value.clone());
        let slot = graph.value_mut(id);
        match (outside, value) {
            (Some(_), Some(constant)) => {
                slot.initializer = Some(constant);
                continue;
            }
            (Some(position), None) => captured.push((id, position)),
            (None, _) => {}
        }
        if let Some(fact) = fact {
            slot.declared = Some(Fact { value: None, ..fact });
        }
    }
    graph.inputs.truncate(own);
    graph.inputs.extend(captured.iter().map(|&(id, _)| id));
    super::optimise(&mut graph, level)?;
    graph.sort()?;
    let mut read: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    read.extend(graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten()));
    captured.retain(|(id, _)| read.contains(id));
    graph.inputs.truncate(own);
    graph.inputs.extend(captured.iter().map(|&(id, _)| id));
    declare_outputs(&mut graph)?;
    Ok((graph, captured.into_iter().map(|(_, position)| position).collect()))
}

/// Declares what is known of outputs that the model says nothing about: a loop without iterations
/// gives results of that type.
fn declare_outputs(graph: &mut Graph) -> Result<(), GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    for id in graph.outputs.clone() {
        let value = graph.value_mut(id);
        if value.declared.is_none() {
            value.declared =
                facts[id.index()].as_ref().map(|fact| Fact { value: None, ..fact.clone() });
        }
    }
    Ok(())
}
