//! Matrix products with constant weights, and the bias, residual, activation and gate after them, become
//! `FusedMatMul`.

use super::ValueMaps;
use super::fused_activation::activation_of;
use super::match_graph::make_node;
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::fused::{FusedActivation, FusedMatMul};
use crate::ops::matrix::Gemm;

const NAME: &str = "FusedMatMul";

/// `MatMul` and `Gemm` of FP32 by a constant matrix become `FusedMatMul`.
pub(super) fn from_onnx(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let found = match node.op_type.as_str() {
        "MatMul" if node.domain.is_empty() => mat_mul(graph, maps, node),
        "Gemm" => gemm(graph, maps, node),
        _ => None,
    };
    Ok(found.map(|node| vec![node]))
}

fn mat_mul(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<Node> {
    let a = node.input(0)?;
    let b = node.input(1)?;
    let constant_matrix = graph.constant(b)?.rank() == 2;
    if !constant_matrix || !maps.is_fp32(a) {
        return None;
    }
    Some(make_node(GALATEA_DOMAIN, NAME, node, FusedMatMul::default(), vec![Some(a), Some(b)]))
}

fn gemm(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<Node> {
    let gemm = node.operator::<Gemm>()?;
    let a = node.input(0)?;
    let b = node.input(1)?;
    let weights = graph.constant(b)?;
    let plain = gemm.alpha == 1.0 && gemm.beta == 1.0 && !gemm.trans_a;
    if !plain || weights.rank() != 2 || !maps.is_fp32(a) {
        return None;
    }
    let columns = weights.shape()[usize::from(!gemm.trans_b)];
    let mut inputs = vec![Some(a), Some(b)];
    if let Some(bias) = node.input(2) {
        if graph.constant(bias)?.shape() != [columns] {
            return None;
        }
        inputs.push(Some(bias));
    }
    let operator = FusedMatMul { trans_b: gemm.trans_b, ..FusedMatMul::default() };
    Some(make_node(GALATEA_DOMAIN, NAME, node, operator, inputs))
}

/// The fused product that writes a value which nobody else reads, if nothing follows it yet.
fn open_product<'g>(
    graph: &'g Graph,
    maps: &ValueMaps,
    id: ValueId,
) -> Option<(&'g Node, &'g FusedMatMul)> {
    let before = maps.written_by(graph, id, "FusedMatMul")?;
    let operator = before.operator::<FusedMatMul>()?;
    let open = operator.activation == FusedActivation::None && maps.read_once(graph, id);
    open.then_some((before, operator))
}

/// `product + vector` with a constant vector of the columns.
pub(super) fn bias(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Add" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |product: usize, vector: usize| {
        let product = node.input(product)?;
        let vector = node.input(vector)?;
        let (before, operator) = open_product(graph, maps, product)?;
        let weights = graph.constant(before.input(1)?)?;
        let columns = weights.shape()[usize::from(!operator.trans_b)];
        let free = before.inputs.len() == 2 && graph.constant(vector)?.shape() == [columns];
        let inputs = vec![before.input(0), before.input(1), Some(vector)];
        free.then(|| make_node(GALATEA_DOMAIN, NAME, node, operator.clone(), inputs))
    };
    Ok(pair(0, 1).or_else(|| pair(1, 0)).map(|node| vec![node]))
}

/// `product + x`.
pub(super) fn residual(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Add" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |product: usize, other: usize| {
        let product = node.input(product)?;
        let other = node.input(other)?;
        let (before, operator) = open_product(graph, maps, product)?;
        let free = before.input(3).is_none() && graph.constant(other).is_none();
        let inputs = vec![before.input(0), before.input(1), before.input(2), Some(other)];
        free.then(|| make_node(GALATEA_DOMAIN, NAME, node, operator.clone(), inputs))
    };
    Ok(pair(0, 1).or_else(|| pair(1, 0)).map(|node| vec![node]))
}

/// An activation after a product.
pub(super) fn activation(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let found = (|| {
        let (activation, input) = activation_of(graph, maps, node)?;
        let (before, operator) = open_product(graph, maps, input)?;
        let operator = FusedMatMul { activation, ..operator.clone() };
        Some(make_node(GALATEA_DOMAIN, NAME, node, operator, before.inputs.clone()))
    })();
    Ok(found.map(|node| vec![node]))
}

/// `product · x` with an `x` of the product's shape: the gate of a gated MLP (Shazeer 2020, arXiv
/// 2002.05202).
pub(super) fn gate(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Mul" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |product: usize, gate: usize| {
        let product = node.input(product)?;
        let gate = node.input(gate)?;
        let (before, operator) = open_product(graph, maps, product)?;
        let free = before.input(3).is_none() && product != gate && maps.same_shape(product, gate);
        let inputs = vec![before.input(0), before.input(1), before.input(2), Some(gate)];
        let operator = FusedMatMul { gated: true, ..operator.clone() };
        free.then(|| make_node(GALATEA_DOMAIN, NAME, node, operator, inputs))
    };
    Ok(pair(0, 1).or_else(|| pair(1, 0)).map(|node| vec![node]))
}
