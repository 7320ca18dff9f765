//! Nodes that the device computes with one dispatch, where every one of its own costs as much as its work: a step
//! of a language model is hundreds of short dispatches that wait for each other.

use std::sync::Arc;

use galatea_graph::ops::fused::{BlockMatMul, RotaryPair};
use galatea_graph::ops::transformer::RotaryEmbedding;
use galatea_graph::{Dim, Fact, GALATEA_DOMAIN, Graph, GraphError, Node, ValueId};

/// The graph with nodes put together, or as it is where there are none to.
///
/// # Errors
/// Fails when the graph has no order.
pub(crate) fn fused(graph: &Arc<Graph>, facts: &[Option<Fact>]) -> Result<Arc<Graph>, GraphError> {
    let mut own = Graph::clone(graph);
    let sums = add_to_products(&mut own, facts);
    let pairs = turn_together(&mut own);
    if !sums && !pairs {
        return Ok(Arc::clone(graph));
    }
    own.sort()?;
    Ok(Arc::new(own))
}

/// The lengths of a value, where all are known at least by name.
fn lengths(facts: &[Option<Fact>], id: ValueId) -> Option<&[Dim]> {
    let dims = facts[id.index()].as_ref()?.shape.as_ref()?;
    (!dims.contains(&Dim::Unknown)).then_some(dims.as_slice())
}

/// `Add` of a product with weights of few bits and something of its shape becomes part of the product.
fn add_to_products(graph: &mut Graph, facts: &[Option<Fact>]) -> bool {
    let producers = graph.producers();
    let consumers = graph.consumers();
    let mut gone = vec![false; graph.nodes.len()];
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let &[Some(one), Some(two)] = node.inputs.as_slice() else { continue };
        if !node.domain.is_empty() || node.op_type != "Add" || one == two {
            continue;
        }
        let takes = |id: ValueId, other: ValueId| {
            let at = producers[id.index()]?;
            let product = &graph.nodes[at];
            let op = product.operator::<BlockMatMul>()?;
            let alone = consumers[id.index()].len() == 1 && !graph.outputs.contains(&id);
            let whole = op.weights().len() == 1 && op.gate().is_none();
            let fits = lengths(facts, id).is_some_and(|own| lengths(facts, other) == Some(own));
            (alone && whole && fits && product.inputs.len() <= 2).then_some((at, other))
        };
        let Some((at, other)) = takes(one, two).or_else(|| takes(two, one)) else { continue };
        if gone[at] {
            continue;
        }
        let mut sum = graph.nodes[at].clone();
        sum.inputs.resize(2, None);
        sum.inputs.push(Some(other));
        sum.outputs.clone_from(&node.outputs);
        sum.parsed = None;
        graph.nodes[index] = sum;
        gone[at] = true;
    }
    let mut all = gone.iter();
    graph.nodes.retain(|_| !all.next().copied().unwrap_or(false));
    gone.contains(&true)
}

/// Two rotations by the same angles, of queries and keys, become one.
fn turn_together(graph: &mut Graph) -> bool {
    let turns: Vec<usize> = (0..graph.nodes.len())
        .filter(|&at| graph.nodes[at].operator::<RotaryEmbedding>().is_some())
        .collect();
    let mut gone = vec![false; graph.nodes.len()];
    for pair in turns.windows(2) {
        let &[first, second] = pair else { continue };
        if gone[first] || !same_angles(&graph.nodes[first], &graph.nodes[second]) {
            continue;
        }
        if depends(&graph.nodes, first, second) {
            continue;
        }
        let one = graph.nodes[first].clone();
        let two = graph.nodes[second].clone();
        let ops = (one.operator::<RotaryEmbedding>(), two.operator::<RotaryEmbedding>());
        let (Some(own), Some(other)) = ops else { continue };
        let op = Arc::new(RotaryPair { first: own.clone(), second: other.clone() });
        let mut inputs = two.inputs.clone();
        inputs.resize(4, None);
        let (Some(x), Some(&other)) = (one.inputs.first(), two.inputs.first()) else { continue };
        inputs[0] = *x;
        inputs.push(other);
        let outputs = vec![one.outputs[0], two.outputs[0]];
        graph.nodes[second] = Node {
            name: one.name.clone(),
            domain: GALATEA_DOMAIN.to_owned(),
            op_type: "RotaryPair".to_owned(),
            inputs,
            outputs,
            operator: op,
            parsed: None,
        };
        gone[first] = true;
        gone[second] = true;
    }
    // The second of each pair is the pair by now.
    let found = gone.contains(&true);
    let mut keep = graph
        .nodes
        .iter()
        .zip(&gone)
        .map(|(node, gone)| !gone || node.operator::<RotaryPair>().is_some())
        .collect::<Vec<_>>()
        .into_iter();
    graph.nodes.retain(|_| keep.next().unwrap_or(true));
    found
}

/// Returns whether two rotations read the same tables and positions, and rotate as many elements in the same
/// way.
fn same_angles(one: &Node, two: &Node) -> bool {
    let angles = |node: &Node| (1..4).map(|at| node.input(at)).collect::<Vec<_>>();
    let way =
        |node: &Node| node.operator::<RotaryEmbedding>().map(|op| (op.interleaved, op.rotary_dim));
    angles(one) == angles(two) && way(one) == way(two)
}

/// Returns whether a node depends on an output of an earlier one.
fn depends(nodes: &[Node], first: usize, second: usize) -> bool {
    let mut known: Vec<ValueId> = nodes[first].outputs.iter().flatten().copied().collect();
    for node in &nodes[first + 1..=second] {
        if node.inputs.iter().flatten().any(|id| known.contains(id)) {
            known.extend(node.outputs.iter().flatten());
        }
    }
    nodes[second].outputs.iter().flatten().any(|id| known.contains(id))
}
