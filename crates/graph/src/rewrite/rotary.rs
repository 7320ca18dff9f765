//! Rotary position embeddings become `FusedRotary`: `x · cos + concat(−x₂, x₁) · sin` as models write
//! it, and ONNX's `RotaryEmbedding`. A transpose before them becomes the order that `FusedRotary` reads.

use std::sync::Arc;

use galatea_tensor::Tensor;

use super::ValueMaps;
use super::attention::through_transpose;
use super::match_graph::make_node;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::fused::FusedRotary;
use crate::ops::index::Gather;
use crate::ops::shape::{Concat, Slice, Split, Unsqueeze};
use crate::ops::transformer::RotaryEmbedding;
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

const NAME: &str = "Rotary";

/// The sum of two products.
pub(super) fn from_halves(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "Add" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |along: usize, across: usize| {
        let along = maps.written_by(graph, node.input(along)?, "Mul")?;
        let across = maps.written_by(graph, node.input(across)?, "Mul")?;
        let either = |turned: usize| {
            let (turned, sin) = (across.input(turned)?, across.input(1 - turned)?);
            let x = before_turning(graph, maps, turned)?;
            let cos = match (along.input(0)?, along.input(1)?) {
                (a, cos) | (cos, a) if a == x => cos,
                _ => return None,
            };
            Some((x, cos, sin))
        };
        either(0).or_else(|| either(1))
    };
    let Some((x, cos, sin)) = pair(0, 1).or_else(|| pair(1, 0)) else { return Ok(None) };
    let full = maps.fact(x).and_then(|fact| fact.shape.as_ref()).filter(|dims| dims.len() == 4);
    let width = full.and_then(|dims| dims[3].known());
    // The product with a table keeps the shape of x, whatever the table's own axes.
    let plain = node.output(0).is_some_and(|sum| maps.same_shape(x, sum));
    let table = |id: ValueId| {
        let dims = maps.fact(id).and_then(|fact| fact.shape.as_ref());
        dims.is_some_and(|dims| dims.last().and_then(|dim| dim.known()) == width)
    };
    if width.is_none() || !plain || !maps.is_fp32(x) || !table(cos) || !table(sin) {
        return Ok(None);
    }
    let (stored, perm) = readable(graph, maps, x);
    let inputs = vec![Some(stored), Some(cos), Some(sin)];
    Ok(Some(vec![make_node(GALATEA_DOMAIN, NAME, node, FusedRotary { perm }, inputs)]))
}

/// The stored value of heads and the order of its axes, where their last axis stays the last.
fn readable(graph: &Graph, maps: &ValueMaps, x: ValueId) -> (ValueId, [usize; 4]) {
    let (stored, perm) = through_transpose(graph, maps, x);
    if perm[3] == 3 { (stored, perm) } else { (x, [0, 1, 2, 3]) }
}

/// The `[x₁, x₂]` of which a value is `[−x₂, x₁]`.
fn before_turning(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<ValueId> {
    let concat = maps.written_by(graph, id, "Concat")?;
    let dims = maps.fact(id)?.shape.as_ref()?;
    let width = dims.last()?.known()?;
    let last = matches!(concat.operator::<Concat>()?.axis, -1)
        || usize::try_from(concat.operator::<Concat>()?.axis).ok()? + 1 == dims.len();
    if !last || concat.inputs.len() != 2 || width % 2 != 0 {
        return None;
    }
    let second = maps.written_by(graph, concat.input(0)?, "Neg")?.input(0)?;
    let (x, from) = half(graph, maps, second, width)?;
    let (same, other) = half(graph, maps, concat.input(1)?, width)?;
    (x == same && from == width / 2 && other == 0).then_some(x)
}

/// The value of which another is half of the last axis, and where that half starts.
fn half(graph: &Graph, maps: &ValueMaps, id: ValueId, width: usize) -> Option<(ValueId, usize)> {
    let node = &graph.nodes[maps.producer(id)?];
    let x = node.input(0)?;
    let shape = |id: ValueId| maps.fact(id)?.shape.as_deref();
    let whole = shape(x)?;
    let part = shape(id)?;
    let (last, lead) = whole.split_last()?;
    let halved = last.known() == Some(width)
        && part.split_last().is_some_and(|(own, rest)| {
            own.known() == Some(width / 2)
                && rest.len() == lead.len()
                && rest.iter().zip(lead).all(|(a, b)| a.same(b))
        });
    if !halved {
        return None;
    }
    if let Some(split) = node.operator::<Split>() {
        let axis = usize::try_from(split.axis).ok();
        let last = split.axis == -1 || axis.is_some_and(|axis| axis + 1 == whole.len());
        let at = node.outputs.iter().position(|slot| *slot == Some(id))?;
        return (last && node.outputs.len() == 2).then_some((x, at * (width / 2)));
    }
    // All other axes are whole, so the slice cuts the last one; its start says which half.
    let slice = node.operator::<Slice>()?;
    let (starts, axes) = match &slice.ranges {
        Some(ranges) => (ranges.starts.clone(), ranges.axes.clone()),
        None => {
            let integers = |slot: usize| maps.constant(graph, node.input(slot)?)?.to_i64_vec().ok();
            (integers(1)?, integers(3))
        }
    };
    let rank = i64::try_from(whole.len()).ok()?;
    let axes = axes.unwrap_or_else(|| (0..rank).take(starts.len()).collect());
    let at = axes.iter().position(|&axis| axis == -1 || axis == rank - 1)?;
    let step = node
        .input(4)
        .map_or(Some(1), |id| maps.constant(graph, id)?.to_i64_vec().ok()?.get(at).copied())?;
    let start = usize::try_from(*starts.get(at)?).ok()?;
    (step == 1 && (start == 0 || start == width / 2)).then_some((x, start))
}

/// ONNX's operator, whose heads come first and turn whole.
pub(super) fn from_onnx(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let Some(onnx) = node.operator::<RotaryEmbedding>() else { return Ok(None) };
    let (Some(x), Some(cos), Some(sin)) = (node.input(0), node.input(1), node.input(2)) else {
        return Ok(None);
    };
    let dims = maps.fact(x).and_then(|fact| fact.shape.clone()).unwrap_or_default();
    let width = dims.last().and_then(|dim| dim.known());
    let whole = onnx.rotary_dim == 0 || Some(onnx.rotary_dim) == width;
    let fits = dims.len() == 4 && width.is_some_and(|width| width % 2 == 0) && whole;
    if !fits || onnx.interleaved || !node.domain.is_empty() || !maps.is_fp32(x) {
        return Ok(None);
    }
    let mut made = Vec::new();
    let mut step =
        |graph: &mut Graph, op: (&str, Arc<dyn crate::Operator>), inputs: [ValueId; 2]| {
            let value = graph.fresh_value(&format!("{}.table", node.name));
            made.push(Node {
                name: format!("{}.{}", node.name, op.0),
                domain: ONNX_DOMAIN.to_owned(),
                op_type: op.0.to_owned(),
                inputs: inputs.map(Some).to_vec(),
                outputs: vec![Some(value)],
                operator: op.1,
                parsed: None,
            });
            value
        };
    let axis = graph.add_constant("rotary.axis", Tensor::vector(vec![1_i64]));
    let mut tables = [cos, sin];
    for table in &mut tables {
        if let Some(positions) = node.input(3) {
            let gather = Arc::new(Gather { axis: 0 });
            *table = step(graph, ("Gather", gather), [*table, positions]);
        }
        let unsqueeze = Arc::new(Unsqueeze { axes: None });
        *table = step(graph, ("Unsqueeze", unsqueeze), [*table, axis]);
    }
    let (stored, perm) = readable(graph, maps, x);
    let inputs = vec![Some(stored), Some(tables[0]), Some(tables[1])];
    made.push(make_node(GALATEA_DOMAIN, NAME, &node, FusedRotary { perm }, inputs));
    Ok(Some(made))
}
