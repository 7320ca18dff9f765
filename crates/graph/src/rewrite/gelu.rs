//! `x/2 · (1 + erf(x/√2))`, however its factors are grouped, becomes `Gelu`.

use super::Maps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::activation::{Activation, ActivationKind};

pub(super) fn apply(
    graph: &mut Graph,
    maps: &Maps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Mul" || !node.domain.is_empty() {
        return Ok(None);
    }
    let Some(x) = whole(graph, maps, node) else { return Ok(None) };
    let gelu = Activation { kind: ActivationKind::Gelu { tanh: false } };
    Ok(Some(vec![make_node((ONNX_DOMAIN, "Gelu"), node, gelu, vec![Some(x)])]))
}

/// The `x` of a product that is a GELU.
fn whole(graph: &Graph, maps: &Maps, node: &Node) -> Option<ValueId> {
    // (x · (1 + erf)) · ½
    if let Some(product) = maps.beside_scalar(graph, node, 0.5) {
        let inner = maps.written_by(graph, product, "Mul")?;
        return pair(inner)
            .into_iter()
            .find_map(|(x, gate)| (gate_of(graph, maps, gate)? == x).then_some(x));
    }
    pair(node).into_iter().find_map(|(half, gate)| {
        // (x · ½) · (1 + erf)
        if let Some(x) = gate_of(graph, maps, gate) {
            let scaled = maps.written_by(graph, half, "Mul")?;
            return (maps.beside_scalar(graph, scaled, 0.5)? == x).then_some(x);
        }
        // x · ((1 + erf) · ½)
        let scaled = maps.written_by(graph, gate, "Mul")?;
        let x = gate_of(graph, maps, maps.beside_scalar(graph, scaled, 0.5)?)?;
        (x == half).then_some(x)
    })
}

/// Both orders of a node's two inputs.
fn pair(node: &Node) -> Vec<(ValueId, ValueId)> {
    match (node.input(0), node.input(1)) {
        (Some(a), Some(b)) => vec![(a, b), (b, a)],
        _ => Vec::new(),
    }
}

/// The `x` of `1 + erf(x / √2)`.
fn gate_of(graph: &Graph, maps: &Maps, id: ValueId) -> Option<ValueId> {
    let sum = maps.written_by(graph, id, "Add")?;
    let erf = maps.written_by(graph, maps.beside_scalar(graph, sum, 1.0)?, "Erf")?;
    let scaled = erf.input(0)?;
    if let Some(div) = maps.written_by(graph, scaled, "Div") {
        let root = maps.scalar(graph, div.input(1)?)?;
        return ((root - std::f64::consts::SQRT_2).abs() < 1e-3).then_some(div.input(0)?);
    }
    let mul = maps.written_by(graph, scaled, "Mul")?;
    maps.beside_scalar(graph, mul, std::f64::consts::FRAC_1_SQRT_2)
}
