//! `x · sigmoid(x)` becomes `Swish` and `x · hard_sigmoid(x)` becomes `HardSwish`.

use super::ValueMaps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::ops::activation::{Activation, ActivationKind};

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Mul" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |x: usize, gate: usize| {
        let x = node.input(x)?;
        let gate = node.input(gate)?;
        let gate = &graph.nodes[maps.producer(gate)?];
        let (kind, name) = match gate.operator::<Activation>()?.kind {
            ActivationKind::Sigmoid => (ActivationKind::Swish { alpha: 1.0 }, "Swish"),
            ActivationKind::HardSigmoid { alpha, beta }
                if (alpha - 1.0 / 6.0).abs() < 1e-6 && beta == 0.5 =>
            {
                (ActivationKind::HardSwish, "HardSwish")
            }
            _ => return None,
        };
        let gated = gate.input(0)? == x;
        gated.then(|| make_node(ONNX_DOMAIN, name, node, Activation { kind }, vec![Some(x)]))
    };
    Ok(pair(0, 1).or_else(|| pair(1, 0)).map(|node| vec![node]))
}
