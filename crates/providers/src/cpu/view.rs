//! Operators whose result has the elements of their first input under another shape.

use galatea_graph::Node;
use galatea_graph::ops::shape::{Dropout, DropoutMode};

/// Operators that never move elements. `Dropout` is the identity at inference; in training mode
/// its size does not change either, so [`is_view`] looks at the operator.
pub const VIEWS: &[&str] = &["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"];

/// Returns whether the node's first output may share the elements of its first input.
pub(super) fn is_view(node: &Node) -> bool {
    let training = node.operator::<Dropout>().is_some_and(|d| d.training != DropoutMode::Never);
    let mask = node.outputs.iter().skip(1).any(Option::is_some);
    node.domain.is_empty() && VIEWS.contains(&node.op_type.as_str()) && !training && !mask
}
