//! `x/2 · (1 + erf(x/√2))`, however its factors are grouped, becomes `Gelu`, and so does its
//! approximation `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.

use super::ValueMaps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
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
    let Some((x, tanh)) = whole(graph, maps, node) else { return Ok(None) };
    let gelu = Activation { kind: ActivationKind::Gelu { tanh } };
    Ok(Some(vec![make_node(ONNX_DOMAIN, "Gelu", node, gelu, vec![Some(x)])]))
}

/// The `x` of a product that is a GELU, and whether it is the approximation.
fn whole(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<(ValueId, bool)> {
    // (x · (1 + erf)) · ½
    if let Some(product) = maps.beside_scalar(graph, node, 0.5) {
        let inner = maps.written_by(graph, product, "Mul")?;
        return pair(inner)
            .into_iter()
            .find_map(|(x, gate)| gate_of(graph, maps, gate).filter(|gated| gated.0 == x));
    }
    pair(node).into_iter().find_map(|(half, gate)| {
        // (x · ½) · (1 + erf)
        if let Some(gated) = gate_of(graph, maps, gate) {
            let scaled = maps.written_by(graph, half, "Mul")?;
            return (maps.beside_scalar(graph, scaled, 0.5)? == gated.0).then_some(gated);
        }
        // x · ((1 + erf) · ½)
        let scaled = maps.written_by(graph, gate, "Mul")?;
        let gated = gate_of(graph, maps, maps.beside_scalar(graph, scaled, 0.5)?)?;
        (gated.0 == half).then_some(gated)
    })
}

/// Both orders of a node's two inputs.
fn pair(node: &Node) -> Vec<(ValueId, ValueId)> {
    match (node.input(0), node.input(1)) {
        (Some(a), Some(b)) => vec![(a, b), (b, a)],
        _ => Vec::new(),
    }
}

/// The `x` of `1 + erf(x / √2)`, or of its approximation.
fn gate_of(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<(ValueId, bool)> {
    let sum = maps.written_by(graph, id, "Add")?;
    let curve = maps.beside_scalar(graph, sum, 1.0)?;
    match maps.written_by(graph, curve, "Erf") {
        Some(erf) => Some((root_of(graph, maps, erf)?, false)),
        None => Some((cubic_of(graph, maps, maps.written_by(graph, curve, "Tanh")?)?, true)),
    }
}

/// The `x` of `erf(x / √2)`.
fn root_of(graph: &Graph, maps: &ValueMaps, erf: &Node) -> Option<ValueId> {
    let scaled = erf.input(0)?;
    if let Some(div) = maps.written_by(graph, scaled, "Div") {
        let root = maps.scalar(graph, div.input(1)?)?;
        return ((root - std::f64::consts::SQRT_2).abs() < 1e-3).then_some(div.input(0)?);
    }
    let mul = maps.written_by(graph, scaled, "Mul")?;
    maps.beside_scalar(graph, mul, std::f64::consts::FRAC_1_SQRT_2)
}

/// The `x` of `tanh(√(2/π) · (x + 0.044715 x³))`.
fn cubic_of(graph: &Graph, maps: &ValueMaps, tanh: &Node) -> Option<ValueId> {
    let scaled = maps.written_by(graph, tanh.input(0)?, "Mul")?;
    let inner = maps.beside_scalar(graph, scaled, std::f64::consts::FRAC_2_PI.sqrt())?;
    let sum = maps.written_by(graph, inner, "Add")?;
    pair(sum).into_iter().find_map(|(x, cube)| {
        let scaled = maps.written_by(graph, cube, "Mul")?;
        let cube = maps.beside_scalar(graph, scaled, 0.044715)?;
        (cubed(graph, maps, cube)? == x).then_some(x)
    })
}

/// The `x` of `x³`.
fn cubed(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<ValueId> {
    let node = &graph.nodes[maps.producer(id)?];
    if node.op_type == "Pow" {
        return (maps.scalar(graph, node.input(1)?)? == 3.0).then(|| node.input(0)).flatten();
    }
    pair(node).into_iter().filter(|_| node.op_type == "Mul").find_map(|(x, square)| {
        let square = maps.written_by(graph, square, "Mul")?;
        (square.input(0)? == x && square.input(1)? == x).then_some(x)
    })
}
