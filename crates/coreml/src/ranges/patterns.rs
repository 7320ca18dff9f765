//! Nodes whose results are known by those beside them.

use galatea_graph::Node;
use galatea_graph::ops::reduce::{Reduce, ReduceKind};

use super::GraphRanges;

/// Operators that give elements of their first input, or zeros.
const MOVED: &[&str] = &[
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Slice",
    "Gather",
    "GatherElements",
    "GatherND",
    "Split",
    "Expand",
    "Tile",
    "Identity",
    "Dropout",
    "DepthToSpace",
    "SpaceToDepth",
    "MaxPool",
    "AveragePool",
    "GlobalMaxPool",
    "GlobalAveragePool",
    "Trilu",
    "Compress",
];

/// Returns whether an operator gives elements of its first input, or means of them.
pub(super) fn moves(node: &Node) -> bool {
    node.domain.is_empty() && MOVED.contains(&node.op_type.as_str())
}

/// Returns whether a node subtracts from a value its greatest element.
pub(super) fn subtracts_extreme(ranges: &GraphRanges<'_>, node: &Node) -> bool {
    let extreme = node.input(1).and_then(|id| ranges.producer(id));
    let is_max = |found: &Node| {
        let reduce = found.operator::<Reduce>().map(|reduce| reduce.kind);
        reduce == Some(ReduceKind::Max) && found.input(0) == node.input(0)
    };
    node.op_type == "Sub" && extreme.is_some_and(is_max)
}
