//! `x / √(mean(x²) + ε) · scale` over the last axis becomes `RMSNormalization`.

use super::ValueMaps;
use super::layer_norm::mean_over_last_axis;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::normalize::RmsNormalization;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Mul" || !node.domain.is_empty() {
        return Ok(None);
    }
    let found = pair(node).find_map(|(normal, scale)| whole(graph, maps, normal, scale));
    let Some((x, scale, epsilon)) = found else { return Ok(None) };
    #[allow(clippy::cast_possible_truncation, reason = "the model's epsilon is a float")]
    let operator = RmsNormalization { axis: -1, epsilon: epsilon as f32 };
    Ok(Some(vec![make_node(
        ONNX_DOMAIN,
        "RMSNormalization",
        node,
        operator,
        vec![Some(x), Some(scale)],
    )]))
}

/// Both orders of a node's two inputs.
fn pair(node: &Node) -> impl Iterator<Item = (ValueId, ValueId)> {
    let both = node.input(0).zip(node.input(1));
    both.into_iter().flat_map(|(a, b)| [(a, b), (b, a)])
}

/// The input, the scale and epsilon of a normalisation, where it is one.
fn whole(
    graph: &Graph,
    maps: &ValueMaps,
    normal: ValueId,
    scale: ValueId,
) -> Option<(ValueId, ValueId, f64)> {
    let (x, root) = normalised(graph, maps, normal)?;
    let sum = maps.written_by(graph, root, "Add")?;
    let (mean, epsilon) = maps.with_scalar(graph, sum)?;
    let square = mean_over_last_axis(graph, maps, mean)?;
    let squared = &graph.nodes[maps.producer(square)?];
    let of_x = match squared.op_type.as_str() {
        "Pow" => maps.scalar(graph, squared.input(1)?)? == 2.0 && squared.input(0)? == x,
        "Mul" => squared.input(0)? == x && squared.input(1)? == x,
        _ => false,
    };
    let last = maps.fact(x)?.shape.as_ref()?.last()?.known()?;
    let fits = maps.constant(graph, scale)?.shape() == [last];
    (of_x && fits && maps.is_fp32(x)).then_some((x, scale, epsilon))
}

/// Returns `x` and `y` of `x / √y`, however it is written.
fn normalised(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<(ValueId, ValueId)> {
    let node = &graph.nodes[maps.producer(id)?];
    match node.op_type.as_str() {
        "Div" => {
            let root = maps.written_by(graph, node.input(1)?, "Sqrt")?;
            Some((node.input(0)?, root.input(0)?))
        }
        "Mul" => pair(node).find_map(|(x, inverse)| Some((x, inverse_root(graph, maps, inverse)?))),
        _ => None,
    }
}

/// The `y` of `1 / √y`.
fn inverse_root(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<ValueId> {
    let node = &graph.nodes[maps.producer(id)?];
    let root = match node.op_type.as_str() {
        "Div" if maps.scalar(graph, node.input(0)?)? == 1.0 => node.input(1)?,
        "Reciprocal" => node.input(0)?,
        "Pow" if maps.scalar(graph, node.input(1)?)? == -0.5 => return node.input(0),
        _ => return None,
    };
    maps.written_by(graph, root, "Sqrt")?.input(0)
}
