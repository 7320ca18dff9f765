//! Plan of the values of a graph that should lie as (B, C, 1, S), made before anything is written.

use std::collections::{HashMap, HashSet};

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::{Graph, Node, ValueId};

use super::AneLayout;
use super::linear::AneLinear;
use super::mask::{self, AneMask};

/// Values that lie as (B, C, 1, S), and values that should.
#[derive(Debug, Default)]
pub(crate) struct AneLayoutPlan {
    /// Values that something which computes in the form reads.
    pub(super) wanted: HashSet<ValueId>,
    /// Values that have the form.
    pub(crate) forms: HashMap<ValueId, AneLayout>,
    /// Values in the place of those of the graph, while a row of an element-wise operator is at work.
    pub(crate) overlay: HashMap<ValueId, MilVar>,
    /// Weights of layers as those of convolutions of one pixel; whether the graph has outputs first.
    pub(super) weights: HashMap<(ValueId, bool), MilVar>,
    /// Cosines and sines, so many times one behind the other.
    pub(super) repeated: HashMap<(ValueId, usize), MilVar>,
    /// Masks of attention as they are added, and which queries see a key.
    pub(super) masks: HashMap<mask::AneMaskKey, AneMask>,
}

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

impl AneLayoutPlan {
    /// Plans the values of a graph; `None` if it has bodies, whose blocks do not see values made by
    /// others.
    pub(crate) fn new(graph: &Graph) -> Option<Self> {
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
        Some(Self { wanted, ..Self::default() })
    }
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
