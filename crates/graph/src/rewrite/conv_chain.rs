//! A depthwise convolution becomes one operator with the dense convolutions around it: `ConvChain`.
//!
//! The images between them are often many times as large as the input and output of the chain.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::ValueMaps;
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::infer;
use crate::ops::convolution::{ConvChain, FusedConv, WindowPadding};

/// Most channels of an image whose windows a chain begins with: pictures.
const FEW_CHANNELS: usize = 4;

/// Rewrites the graph; gives the number of chains. It looks at convolutions of FP32 images with
/// their channels last.
///
/// # Errors
/// Fails when an operator refuses its inputs.
pub fn conv_chains(graph: &mut Graph) -> Result<usize, GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    let maps = ValueMaps::new(graph, facts);
    let mut made: HashMap<usize, Node> = HashMap::new();
    let mut taken = HashSet::new();
    for index in 0..graph.nodes.len() {
        let Some(chain) = chain(graph, &maps, &taken, index) else { continue };
        let Some(&last) = chain.last() else { continue };
        made.insert(last, node(graph, &chain));
        taken.extend(chain);
    }
    let count = made.len();
    if count > 0 {
        let nodes = std::mem::take(&mut graph.nodes).into_iter().enumerate();
        graph.nodes = nodes
            .filter_map(|(at, node)| match made.remove(&at) {
                Some(chain) => Some(chain),
                None => (!taken.contains(&at)).then_some(node),
            })
            .collect();
        graph.remove_unused();
    }
    Ok(count)
}

/// A convolution that may be part of a chain, with the shape of its weights.
struct ChainCandidate<'g> {
    node: &'g Node,
    operator: &'g FusedConv,
    weights: &'g [usize],
}

impl<'g> ChainCandidate<'g> {
    fn of(graph: &'g Graph, maps: &ValueMaps, index: usize) -> Option<Self> {
        let node = graph.nodes.get(index)?;
        let operator = node.operator::<FusedConv>().filter(|fused| fused.conv.channels_last)?;
        let weights = graph.constant(node.input(1)?)?.shape();
        let floats = maps.is_fp32(node.input(0)?) && maps.is_fp32(node.output(0)?);
        (floats && weights.len() == 4).then_some(Self { node, operator, weights })
    }

    /// Returns whether every channel is filtered by itself.
    fn is_depthwise(&self) -> bool {
        let group = self.operator.conv.group;
        group > 1 && self.weights[..2] == [group, 1]
    }

    /// Returns whether an output pixel needs exactly the input pixel at its place.
    fn is_pointwise(&self) -> bool {
        let conv = &self.operator.conv;
        let unpadded = match &conv.pads {
            WindowPadding::Explicit(pads) => pads.iter().all(|&pad| pad == 0),
            _ => true,
        };
        conv.group == 1
            && self.weights[2..] == [1, 1]
            && conv.strides.iter().all(|&stride| stride == 1)
            && unpadded
    }

    /// Returns whether a chain may begin with it.
    fn begins(&self) -> bool {
        let picture = self.operator.conv.group == 1 && self.weights[1] <= FEW_CHANNELS;
        self.node.input(3).is_none() && (self.is_pointwise() || picture)
    }
}

/// The nodes of the chain around a depthwise convolution, in their order.
fn chain(
    graph: &Graph,
    maps: &ValueMaps,
    taken: &HashSet<usize>,
    index: usize,
) -> Option<Vec<usize>> {
    let filter = ChainCandidate::of(graph, maps, index).filter(ChainCandidate::is_depthwise)?;
    let free = |at: &usize| !taken.contains(at);
    let before = filter
        .node
        .input(0)
        .filter(|&image| maps.read_once(graph, image))
        .and_then(|image| maps.producer(image))
        .filter(free)
        .filter(|&at| ChainCandidate::of(graph, maps, at).is_some_and(|part| part.begins()));
    let output = filter.node.output(0)?;
    let after = (filter.node.input(3).is_none() && maps.read_once(graph, output))
        .then(|| maps.consumers(output)[0])
        .filter(free)
        .filter(|&at| {
            ChainCandidate::of(graph, maps, at)
                .is_some_and(|part| part.is_pointwise() && part.node.input(0) == Some(output))
        });
    let chain: Vec<usize> = before.into_iter().chain([index]).chain(after).collect();
    (chain.len() > 1 && free(&index)).then_some(chain)
}

/// The operator in the place of some nodes.
fn node(graph: &Graph, chain: &[usize]) -> Node {
    let nodes: Vec<&Node> = chain.iter().map(|&at| &graph.nodes[at]).collect();
    let first = nodes[0];
    let last = nodes[nodes.len() - 1];
    let mut inputs: Vec<Option<ValueId>> = vec![first.input(0), last.input(3)];
    inputs.extend(nodes.iter().flat_map(|node| [node.input(1), node.input(2)]));
    while inputs.last() == Some(&None) {
        inputs.pop();
    }
    let convs = nodes.iter().filter_map(|node| node.operator::<FusedConv>().cloned()).collect();
    Node {
        name: last.name.clone(),
        domain: GALATEA_DOMAIN.to_owned(),
        op_type: "ConvChain".to_owned(),
        inputs,
        outputs: last.outputs.clone(),
        operator: Arc::new(ConvChain { convs }),
        parsed: None,
    }
}
