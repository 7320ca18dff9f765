//! Element-wise functions that follow each other become one `FusedElementwise`, so that the values
//! between them never leave the processor's cache.

use super::ValueMaps;
use super::fused_activation::clip_bounds;
use super::match_graph::make_node;
use crate::GALATEA_DOMAIN;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::activation::Activation;
use crate::ops::fused::{ChainStepOperand, ElementFunction, ElementStep, FusedElementwise};
use crate::ops::math::{Binary, Pow, Unary, Variadic};

/// The most functions of a chain: their results of a tile stay in the first-level cache.
const MAX_STEPS: usize = 24;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let last = &graph.nodes[index];
    let Some(output) = last.output(0) else { return Ok(None) };
    if function_of(graph, maps, last).is_none() {
        return Ok(None);
    }
    let chain = grow(graph, maps, index, output);
    if chain.len() < 2 || (chain.len() < MAX_STEPS && goes_on(graph, maps, index, output)) {
        return Ok(None);
    }
    let Some((operator, inputs)) = program(graph, maps, &chain) else { return Ok(None) };
    let inputs = inputs.into_iter().map(Some).collect();
    Ok(Some(vec![make_node(GALATEA_DOMAIN, "FusedElementwise", last, operator, inputs)]))
}

/// Returns whether a chain that ends later takes the node in.
fn goes_on(graph: &Graph, maps: &ValueMaps, index: usize, output: ValueId) -> bool {
    let Some(&reader) = maps.consumers(output).iter().max() else { return false };
    let Some(end) = graph.nodes[reader].output(0) else { return false };
    let eligible = function_of(graph, maps, &graph.nodes[reader]).is_some();
    eligible && grow(graph, maps, reader, end).contains(&index)
}

/// The function that a node applies to whole FP32 values, and those values.
fn function_of(
    graph: &Graph,
    maps: &ValueMaps,
    node: &Node,
) -> Option<(ElementFunction, Vec<ValueId>)> {
    let output = node.output(0)?;
    if !node.domain.is_empty() || node.outputs.len() != 1 || !maps.is_fp32(output) {
        return None;
    }
    let function = if let Some(op) = node.operator::<Activation>() {
        ElementFunction::Activation(op.kind)
    } else if let Some(op) = node.operator::<Unary>() {
        ElementFunction::Unary(op.kind)
    } else if let Some(op) = node.operator::<Binary>() {
        ElementFunction::Binary(op.kind)
    } else if let Some(op) = node.operator::<Variadic>() {
        ElementFunction::Variadic(op.kind)
    } else if node.operator::<Pow>().is_some() {
        ElementFunction::Pow
    } else {
        let (min, max) = clip_bounds(graph, maps, node).filter(|(min, max)| min <= max)?;
        ElementFunction::Clip { min, max }
    };
    let inputs: Vec<ValueId> =
        collected_some(&mut node.inputs.iter().take(function.arity()).copied())?;
    let whole = inputs.len() == function.arity()
        && (matches!(function, ElementFunction::Clip { .. }) || node.inputs.len() == inputs.len())
        && inputs.iter().all(|&id| maps.is_fp32(id));
    (whole && function.is_known()).then_some((function, inputs))
}

/// The nodes that end in one, in running order: all whose results only the chain reads.
fn grow(graph: &Graph, maps: &ValueMaps, end: usize, output: ValueId) -> Vec<usize> {
    let mut chain = vec![end];
    loop {
        let joins = |id: ValueId| {
            let index = maps.producer(id)?;
            let inside = |reader: &usize| chain.contains(reader);
            let fits = !chain.contains(&index)
                && maps.consumers(id).iter().all(inside)
                && !graph.outputs.contains(&id)
                && maps.same_shape(id, output)
                && function_of(graph, maps, &graph.nodes[index]).is_some();
            fits.then_some(index)
        };
        let read = chain.iter().flat_map(|&at| graph.nodes[at].inputs.iter().flatten().copied());
        let Some(more) = read.filter_map(joins).next() else { break };
        if chain.len() == MAX_STEPS {
            break;
        }
        chain.push(more);
    }
    chain.sort_unstable();
    chain
}

/// The chain as an operator, and its inputs, each once.
fn program(
    graph: &Graph,
    maps: &ValueMaps,
    chain: &[usize],
) -> Option<(FusedElementwise, Vec<ValueId>)> {
    let mut inputs: Vec<ValueId> = Vec::new();
    let mut results: Vec<ValueId> = Vec::new();
    let mut steps = Vec::with_capacity(chain.len());
    for &index in chain {
        let node = &graph.nodes[index];
        let (function, read) = function_of(graph, maps, node)?;
        let operand = |id: ValueId| match results.iter().position(|&result| result == id) {
            Some(step) => ChainStepOperand::Step(step),
            None => ChainStepOperand::Input(
                inputs.iter().position(|&input| input == id).unwrap_or_else(|| {
                    inputs.push(id);
                    inputs.len() - 1
                }),
            ),
        };
        steps.push(ElementStep { function, operands: read.into_iter().map(operand).collect() });
        results.push(node.output(0)?);
    }
    Some((FusedElementwise { steps }, inputs))
}
