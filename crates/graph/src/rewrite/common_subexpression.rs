//! Nodes that compute the same from the same inputs become one, and so do equal constants.

use std::collections::HashMap;

use galatea_tensor::DataType;

use super::ValueMaps;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};

/// The first bytes of constants tell most different ones apart.
const BEGINNING: usize = 64;

/// Key of a node; nodes with the same key compute the same: domain, operator, attributes, inputs,
/// number of outputs.
type NodeKey = (String, String, String, Vec<Option<ValueId>>, usize);

pub(super) fn apply(graph: &mut Graph, _: &ValueMaps) -> Result<usize, GraphError> {
    let mut same = equal_constants(graph);
    let mut times = same.len();
    let mut seen: HashMap<NodeKey, Vec<Option<ValueId>>> = HashMap::new();
    let outputs = graph.outputs.clone();
    let stays = |node: &Node| node.outputs.iter().flatten().any(|id| outputs.contains(id));
    for node in &mut graph.nodes {
        for input in node.inputs.iter_mut().flatten() {
            *input = same.get(input).copied().unwrap_or(*input);
        }
        let Some(key) = key(node) else { continue };
        match seen.get(&key) {
            Some(first) if !stays(node) && covers(first, &node.outputs) => {
                let pairs = node.outputs.iter().zip(first);
                same.extend(pairs.filter_map(|(old, new)| Some(((*old)?, (*new)?))));
                times += 1;
            }
            Some(_) => {}
            None => {
                seen.insert(key, node.outputs.clone());
            }
        }
    }
    Ok(times)
}

/// Returns whether every output that one node writes is written by the other too.
fn covers(first: &[Option<ValueId>], other: &[Option<ValueId>]) -> bool {
    first.len() == other.len() && first.iter().zip(other).all(|(a, b)| b.is_none() || a.is_some())
}

fn key(node: &Node) -> Option<NodeKey> {
    if !node.operator.is_deterministic() || !node.operator.bodies().is_empty() {
        return None;
    }
    // An operator's Debug text has all its attributes, but not the elements of tensors.
    let attributes = format!("{:?}", node.operator);
    if attributes.contains("Tensor(") {
        return None;
    }
    let names = (node.domain.clone(), node.op_type.clone());
    Some((names.0, names.1, attributes, node.inputs.clone(), node.outputs.len()))
}

/// Initializers with the elements of an earlier one, with that one.
fn equal_constants(graph: &Graph) -> HashMap<ValueId, ValueId> {
    let read = graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten().copied());
    let mut order: Vec<ValueId> = read.filter(|&id| graph.constant(id).is_some()).collect();
    order.sort_unstable();
    order.dedup();
    let mut alike: HashMap<(DataType, Vec<usize>, Vec<u8>), Vec<ValueId>> = HashMap::new();
    let mut same = HashMap::new();
    for id in order {
        let Some(tensor) = graph.constant(id) else { continue };
        // Strings have no bytes and are left alone.
        let Ok(bytes) = tensor.unaligned_bytes() else { continue };
        let start = bytes[..bytes.len().min(BEGINNING)].to_vec();
        let group = alike.entry((tensor.dtype(), tensor.shape().to_vec(), start)).or_default();
        let equal = |&&other: &&ValueId| {
            graph.constant(other).and_then(|t| t.unaligned_bytes().ok()) == Some(bytes)
        };
        match group.iter().find(equal) {
            Some(&first) => {
                same.insert(id, first);
            }
            None => group.push(id),
        }
    }
    same
}
