//! The residual and activation after a convolution become part of it: `FusedConv`.

use super::ValueMaps;
use super::fused_activation::activation_of;
use super::match_graph::make_node;
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::convolution::{Conv, FusedConv};
use crate::ops::fused::FusedActivation;

const NAME: &str = "FusedConv";

/// A convolution that writes a value which nobody else reads, if nothing follows it yet.
fn open_conv<'g>(graph: &'g Graph, maps: &ValueMaps, id: ValueId) -> Option<(&'g Node, FusedConv)> {
    let before = &graph.nodes[maps.producer(id)?];
    let operator = match before.operator::<FusedConv>() {
        Some(fused) => fused.clone(),
        None => FusedConv {
            conv: before.operator::<Conv>()?.clone(),
            activation: FusedActivation::None,
        },
    };
    let constant_weights = graph.constant(before.input(1)?).is_some();
    let open = operator.activation == FusedActivation::None
        && constant_weights
        && maps.is_fp32(id)
        && maps.read_once(graph, id);
    open.then_some((before, operator))
}

/// `conv + x` with `x` of the same shape. Of two convolutions the later one takes the sum, so that
/// the other one's result is there.
pub(super) fn residual(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Add" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |conv: usize, other: usize| {
        let conv = node.input(conv)?;
        let other = node.input(other)?;
        let (before, operator) = open_conv(graph, maps, conv)?;
        let free = before.input(3).is_none()
            && graph.constant(other).is_none()
            && maps.same_shape(conv, other);
        let inputs = vec![before.input(0), before.input(1), before.input(2), Some(other)];
        free.then(|| (maps.producer(conv), make_node(GALATEA_DOMAIN, NAME, node, operator, inputs)))
    };
    let found = [pair(0, 1), pair(1, 0)].into_iter().flatten().max_by_key(|(at, _)| *at);
    Ok(found.map(|(_, node)| vec![node]))
}

/// An activation after a convolution.
pub(super) fn activation(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let found = (|| {
        let (activation, input) = activation_of(graph, maps, node)?;
        let (before, operator) = open_conv(graph, maps, input)?;
        let operator = FusedConv { activation, ..operator };
        Some(make_node(GALATEA_DOMAIN, NAME, node, operator, before.inputs.clone()))
    })();
    Ok(found.map(|node| vec![node]))
}
