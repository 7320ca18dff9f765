//! Adding nodes and constants to a graph under names that tell what they are.

use galatea_graph::{AttributeValue, Attributes, Graph, GraphError, Node, ValueId};
use galatea_tensor::Tensor;

use super::layer::WeightedLayer;

/// A node's domain and operator.
pub(super) type OperatorKey = (&'static str, &'static str);

/// A new value of this name, or a similar one where it is taken.
pub(super) fn value(graph: &mut Graph, name: &str) -> ValueId {
    if graph.find_value(name).is_some() { graph.fresh_value(name) } else { graph.value_named(name) }
}

/// A new value named after another.
pub(super) fn after(graph: &mut Graph, of: ValueId, suffix: &str) -> ValueId {
    let name = format!("{}/{suffix}", graph.value(of).name);
    value(graph, &name)
}

/// A new constant.
pub(super) fn constant(graph: &mut Graph, name: &str, tensor: Tensor) -> ValueId {
    let id = value(graph, name);
    graph.value_mut(id).initializer = Some(tensor);
    id
}

/// Appends a node.
pub(super) fn node(
    graph: &mut Graph,
    op: OperatorKey,
    name: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Option<ValueId>],
    outputs: &[ValueId],
) -> Result<(), GraphError> {
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let outputs = outputs.iter().copied().map(Some).collect();
    graph.add_node(op.0, op.1, name, &attributes, inputs.to_vec(), outputs)
}

/// Appends a layer's node with other inputs.
pub(super) fn again(
    graph: &mut Graph,
    layer: &WeightedLayer,
    inputs: &[Option<ValueId>],
    output: ValueId,
) {
    graph.nodes.push(Node {
        inputs: inputs.to_vec(),
        outputs: vec![Some(output)],
        ..layer.node.clone()
    });
}

/// Makes the node that writes a value write another one; `false` where no node does.
pub(super) fn redirect(graph: &mut Graph, from: ValueId, to: ValueId) -> bool {
    let slots = graph.nodes.iter_mut().flat_map(|node| node.outputs.iter_mut());
    match slots.flatten().find(|slot| **slot == from) {
        Some(slot) => {
            *slot = to;
            true
        }
        None => false,
    }
}
