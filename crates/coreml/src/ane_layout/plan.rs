//! Plan of the values of a graph that should lie as (B, C, 1, S), made before anything is written.

use std::collections::HashSet;

use galatea_graph::{Graph, Node, ValueId};

use super::linear::AneLinear;
use crate::ane_values::AneLayoutPlan;

/// Operators through which a wish passes on to their first input.
const THROUGH: &[&str] = &[
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "LayerNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "Rotary",
    "Slice",
    "Gather",
    "Split",
];

/// Plans the values of a graph; `None` if it has bodies, whose blocks do not see values made by others.
pub(crate) fn plan(graph: &Graph) -> Option<AneLayoutPlan> {
    if graph.nodes.iter().any(|node| !node.operator.bodies().is_empty()) {
        return None;
    }
    let mut wanted = HashSet::new();
    for node in graph.nodes.iter().rev() {
        if AneLinear::of(graph, node).is_some() || is_line(graph, node) {
            wanted.extend(node.input(0));
        } else if node.op_type == "Attention" {
            wanted.extend((0..3).filter_map(|at| node.input(at)));
        } else if node.outputs.iter().flatten().any(|id| wanted.contains(id)) {
            wanted.extend(passed_on(node));
        }
    }
    Some(AneLayoutPlan { wanted, ..AneLayoutPlan::default() })
}

/// Returns whether a node is a convolution along one axis.
fn is_line(graph: &Graph, node: &Node) -> bool {
    let weight = node.input(1).and_then(|id| graph.constant(id));
    node.op_type == "Conv" && weight.is_some_and(|weight| weight.rank() == 3)
}

/// The inputs that are wanted where an output is.
fn passed_on(node: &Node) -> Vec<ValueId> {
    let name = node.op_type.as_str();
    match super::elementwise::slots(node) {
        Some(count) => node.inputs.iter().take(count).flatten().copied().collect(),
        None if name == "Concat" => node.inputs.iter().flatten().copied().collect(),
        None if THROUGH.contains(&name) => node.input(0).into_iter().collect(),
        None => Vec::new(),
    }
}
