//! Products and convolutions whose output channels are divided between two nodes, which may then run at the same
//! time on different units.

use crate::attribute::named;
use crate::ops::convolution::{Conv, FusedConv};
use crate::ops::fused::FusedMatMul;
use crate::ops::matrix::Gemm;
use crate::{AttributeValue, Fact, Graph, GraphError, Node, ONNX_DOMAIN, ValueId};

/// A node whose output channels are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedNode {
    /// Its place in [`Graph::nodes`].
    pub node: usize,
    /// How many channels the first of its two parts computes.
    pub first: usize,
}

/// Origin of a node of a divided graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrigin {
    /// The node of this place, as it was.
    Whole(usize),
    /// The part that computes its first channels.
    First(usize),
    /// The part that computes the others; it stands right behind the first.
    Second(usize),
    /// The node that joins both parts; it stands right behind the second.
    Joined(usize),
}

/// The output channels of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OutputChannels {
    count: usize,
    /// Their axis in the output, which may count from the end.
    axis: i64,
    /// The constants that have them, each with its axis.
    weights: Vec<(usize, usize)>,
}

/// Returns the number of output channels of a node that can be divided: those of `MatMul`, `Gemm` and
/// `FusedMatMul` with a constant matrix, and of `Conv` and `FusedConv` with constant weights in one group, where
/// nothing is added but a constant for each channel. None for all other nodes.
#[must_use]
pub fn divisible(graph: &Graph, node: usize) -> Option<usize> {
    channels(graph, graph.nodes.get(node)?).map(|found| found.count)
}

/// The shape of a constant.
fn constant(graph: &Graph, node: &Node, input: usize) -> Option<Vec<usize>> {
    graph.constant(node.input(input)?).map(|tensor| tensor.shape().to_vec())
}

fn channels(graph: &Graph, node: &Node) -> Option<OutputChannels> {
    let (mut found, bias) = main_weights(graph, node)?;
    let more = node.inputs.iter().enumerate().skip(2).filter(|(_, id)| id.is_some());
    for (input, _) in more {
        // What is added may have one element for all channels or one for each.
        let shape = constant(graph, node, input).filter(|_| Some(input) == bias)?;
        match shape.split_last() {
            Some((&last, lead)) if last == found.count && lead.iter().all(|&one| one == 1) => {
                found.weights.push((input, shape.len() - 1));
            }
            None | Some((1, [])) => {}
            Some(_) => return None,
        }
    }
    (node.outputs.iter().flatten().count() == 1).then_some(found)
}

/// The channels by the weights, and the input that is added to each channel.
fn main_weights(graph: &Graph, node: &Node) -> Option<(OutputChannels, Option<usize>)> {
    let shape = constant(graph, node, 1)?;
    let conv = node.operator::<Conv>().or_else(|| Some(&node.operator::<FusedConv>()?.conv));
    if let Some(conv) = conv {
        let axis = if conv.channels_last { -1 } else { 1 };
        let count = *shape.first().filter(|_| conv.group == 1)?;
        return Some((OutputChannels { count, axis, weights: vec![(1, 0)] }, Some(2)));
    }
    let swapped = match (node.operator::<Gemm>(), node.operator::<FusedMatMul>()) {
        (Some(gemm), _) => gemm.trans_b,
        (_, Some(product)) => product.trans_b,
        _ if node.domain.is_empty() && node.op_type == "MatMul" => false,
        _ => return None,
    };
    let [rows, columns] = *shape.as_slice() else { return None };
    let (axis, count) = if swapped { (0, rows) } else { (1, columns) };
    Some((OutputChannels { count, axis: -1, weights: vec![(1, axis)] }, Some(2)))
}

/// A graph in whose place of each cut node two stand that compute some of its channels each, and one that joins
/// them, and for each node what it comes of. `facts` say what rank outputs have.
///
/// # Errors
/// Fails when a node cannot be cut there.
pub fn divided(
    graph: &Graph,
    facts: &[Option<Fact>],
    cuts: &[DividedNode],
) -> Result<(Graph, Vec<NodeOrigin>), GraphError> {
    let mut whole = graph.clone();
    let nodes = std::mem::take(&mut whole.nodes);
    let mut origins = Vec::with_capacity(nodes.len() + 2 * cuts.len());
    for (at, node) in nodes.into_iter().enumerate() {
        let Some(cut) = cuts.iter().find(|cut| cut.node == at) else {
            whole.nodes.push(node);
            origins.push(NodeOrigin::Whole(at));
            continue;
        };
        let refused = |why: &str| {
            let place = graph.place(at);
            GraphError::structure(format!("{place}: its channels cannot be divided: {why}"))
        };
        let found = channels(graph, &node).ok_or_else(|| refused("they are not its own"))?;
        if cut.first == 0 || cut.first >= found.count {
            let text = format!("{} of {} found, expected some and not all", cut.first, found.count);
            return Err(refused(&text));
        }
        let output = node.output(0).ok_or_else(|| refused("it gives nothing"))?;
        let rank = facts.get(output.index()).and_then(Option::as_ref);
        let rank = rank.and_then(|fact| fact.shape.as_ref()).map(Vec::len);
        let rank = rank.ok_or_else(|| refused("the shape of its output is not known"))?;
        let ranges = [(0, cut.first), (cut.first, found.count - cut.first)];
        let mut parts = Vec::new();
        for (first, count) in ranges {
            parts.push(part(&mut whole, &node, &found, first, count)?);
        }
        join(&mut whole, &node, found.axis, rank, &parts, output)?;
        origins.extend([NodeOrigin::First(at), NodeOrigin::Second(at), NodeOrigin::Joined(at)]);
    }
    Ok((whole, origins))
}

/// Adds a node that computes some channels of another one.
fn part(
    graph: &mut Graph,
    node: &Node,
    channels: &OutputChannels,
    first: usize,
    count: usize,
) -> Result<ValueId, GraphError> {
    let mut own = node.clone();
    for &(input, axis) in &channels.weights {
        let Some(id) = node.input(input) else { continue };
        let some = graph.constant(id).map(|tensor| {
            tensor.slice_axis(axis, first, count, 1).and_then(|some| some.contiguous())
        });
        let some = some.transpose().map_err(|error| GraphError::structure(error.to_string()))?;
        let name = graph.value(id).name.clone();
        if let (Some(some), Some(slot)) = (some, own.inputs.get_mut(input)) {
            *slot = Some(graph.add_constant(&name, some));
        }
    }
    let name = node.output(0).map_or_else(String::new, |id| graph.value(id).name.clone());
    let output = graph.fresh_value(&name);
    own.outputs = vec![Some(output)];
    graph.nodes.push(own);
    Ok(output)
}

/// Adds the node that joins parts.
fn join(
    graph: &mut Graph,
    node: &Node,
    axis: i64,
    rank: usize,
    parts: &[ValueId],
    output: ValueId,
) -> Result<(), GraphError> {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let axis = if axis < 0 { axis + rank } else { axis };
    let attributes = named([("axis", AttributeValue::Int(axis))]);
    let inputs = parts.iter().map(|&id| Some(id)).collect();
    graph.add_node(ONNX_DOMAIN, "Concat", &node.name, &attributes, inputs, vec![Some(output)])?;
    Ok(())
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
