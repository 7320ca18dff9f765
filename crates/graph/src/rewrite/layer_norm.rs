//! `(x − mean) / √(variance + ε) · scale + bias` over the last axis becomes `LayerNormalization`.

use galatea_tensor::Tensor;

use super::ValueMaps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::normalize::LayerNormalization;
use crate::ops::reduce::Reduce;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Add" || !node.domain.is_empty() {
        return Ok(None);
    }
    let Some(found) = whole(graph, maps, node) else { return Ok(None) };
    let operator = LayerNormalization { axis: -1, epsilon: found.epsilon };
    let inputs = vec![Some(found.x), Some(found.scale), Some(found.bias)];
    Ok(Some(vec![make_node(ONNX_DOMAIN, "LayerNormalization", node, operator, inputs)]))
}

struct LayerNormMatch {
    x: ValueId,
    scale: ValueId,
    bias: ValueId,
    epsilon: f32,
}

/// Returns the other input and the vector, for a node with two inputs of which one is a constant
/// vector of the last axis.
fn beside_vector(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<(ValueId, ValueId)> {
    let a = node.input(0)?;
    let b = node.input(1)?;
    let is_vector = |id| maps.constant(graph, id).is_some_and(|tensor: &Tensor| tensor.rank() == 1);
    match (is_vector(a), is_vector(b)) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}

fn whole(graph: &Graph, maps: &ValueMaps, add: &Node) -> Option<LayerNormMatch> {
    let (scaled, bias) = beside_vector(graph, maps, add)?;
    let mul = maps.written_by(graph, scaled, "Mul")?;
    let (normal, scale) = beside_vector(graph, maps, mul)?;
    let same_len = maps.constant(graph, bias)?.shape() == maps.constant(graph, scale)?.shape();
    let div = maps.written_by(graph, normal, "Div")?;
    let centred = div.input(0)?;
    let sqrt = maps.written_by(graph, div.input(1)?, "Sqrt")?;
    let sum = maps.written_by(graph, sqrt.input(0)?, "Add")?;
    let (variance, epsilon) = maps.with_scalar(graph, sum)?;
    let square = mean_over_last_axis(graph, maps, variance)?;
    let squared = maps.producer(square).map(|at| &graph.nodes[at])?;
    let of_centred = match squared.op_type.as_str() {
        "Pow" => maps.scalar(graph, squared.input(1)?)? == 2.0 && squared.input(0)? == centred,
        "Mul" => squared.input(0)? == centred && squared.input(1)? == centred,
        _ => false,
    };
    let sub = maps.written_by(graph, centred, "Sub")?;
    let x = sub.input(0)?;
    let of_x = mean_over_last_axis(graph, maps, sub.input(1)?)? == x;
    let last = maps.fact(x)?.shape.as_ref()?.last()?.known()?;
    let fits = maps.constant(graph, scale)?.shape() == [last];
    #[allow(clippy::cast_possible_truncation, reason = "the model's epsilon is a float")]
    let epsilon = epsilon as f32;
    (same_len && of_centred && of_x && fits).then_some(LayerNormMatch { x, scale, bias, epsilon })
}

/// The `y` of `mean(y)` over the last axis, kept as an axis of length 1.
pub(super) fn mean_over_last_axis(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<ValueId> {
    let mean = maps.written_by(graph, id, "ReduceMean")?;
    let input = mean.input(0)?;
    let rank = i64::try_from(maps.fact(input)?.rank()?).ok()?;
    let reduce = mean.operator::<Reduce>()?;
    let axes = match mean.input(1) {
        Some(axes) => maps.constant(graph, axes)?.to_i64_vec().ok()?,
        None => reduce.axes.clone()?,
    };
    let last = matches!(axes.as_slice(), [axis] if *axis == -1 || *axis == rank - 1);
    (last && reduce.keepdims).then_some(input)
}
