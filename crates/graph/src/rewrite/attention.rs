//! `softmax(scale · Q·Kᵀ + mask) · V` becomes `FusedAttention`, and the transposes around it become the
//! storage orders that it reads and writes.

use super::ValueMaps;
use super::match_graph::make_node;
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::activation::Softmax;
use crate::ops::fused::FusedAttention;
use crate::ops::shape::Transpose;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "MatMul" || !node.domain.is_empty() {
        return Ok(None);
    }
    let Some((operator, inputs)) = whole(graph, maps, node) else { return Ok(None) };
    Ok(Some(vec![make_node(GALATEA_DOMAIN, "Attention", node, operator, inputs)]))
}

fn rank(maps: &ValueMaps, id: ValueId) -> Option<usize> {
    maps.fact(id)?.rank()
}

/// The permutation of a value that is a transpose of rank 4, with the value before it; without a
/// transpose the value itself.
pub(super) fn through_transpose(
    graph: &Graph,
    maps: &ValueMaps,
    id: ValueId,
) -> (ValueId, [usize; 4]) {
    let found = maps.written_by(graph, id, "Transpose").and_then(|node| {
        let perm = node.operator::<Transpose>()?.perm.clone()?;
        Some((node.input(0)?, perm.try_into().ok()?))
    });
    found.unwrap_or((id, FusedAttention::IN_ORDER))
}

/// A value before a constant factor, and the factor.
fn through_factor(graph: &Graph, maps: &ValueMaps, id: ValueId) -> (ValueId, f64) {
    let Some(index) = maps.producer(id) else { return (id, 1.0) };
    let node = &graph.nodes[index];
    let scalar = |slot: usize| node.input(slot).and_then(|input| maps.scalar(graph, input));
    let found = match node.op_type.as_str() {
        "Mul" => maps.with_scalar(graph, node),
        "Div" => node.input(0).zip(scalar(1).map(|divisor| 1.0 / divisor)),
        _ => None,
    };
    found.unwrap_or((id, 1.0))
}

fn whole(
    graph: &Graph,
    maps: &ValueMaps,
    node: &Node,
) -> Option<(FusedAttention, Vec<Option<ValueId>>)> {
    let (weights, masked_to_zero) = without_guard(graph, maps, node.input(0)?);
    let softmax = maps.written_by(graph, weights, "Softmax")?;
    let over_keys = softmax.operator::<Softmax>()?;
    let scores = softmax.input(0)?;
    let last = matches!(over_keys.axis, -1 | 3);
    if !last || rank(maps, scores)? != 4 || !maps.is_fp32(scores) {
        return None;
    }
    let (product, mask) = without_mask(graph, maps, scores)?;
    let (product, after) = through_factor(graph, maps, product);
    let mat_mul = maps.written_by(graph, product, "MatMul")?;
    let (q, q_factor) = through_factor(graph, maps, mat_mul.input(0)?);
    let (k, k_factor) = through_factor(graph, maps, mat_mul.input(1)?);
    let all_rank_4 = [q, k, node.input(1)?].iter().all(|&id| rank(maps, id) == Some(4));
    if !all_rank_4 {
        return None;
    }
    let (q, q_perm) = through_transpose(graph, maps, q);
    let (k, p) = through_transpose(graph, maps, k);
    let (v, v_perm) = through_transpose(graph, maps, node.input(1)?);
    #[allow(clippy::cast_possible_truncation, reason = "a product of the model's floats")]
    let scale = (after * q_factor * k_factor) as f32;
    let operator = FusedAttention {
        scale,
        q_perm,
        // The product reads K transposed, so its last two axes are swapped back.
        k_perm: [p[0], p[1], p[3], p[2]],
        v_perm,
        out_perm: FusedAttention::IN_ORDER,
        masked_to_zero,
        causal: false,
    };
    Some((operator, vec![Some(q), Some(k), Some(v), mask]))
}

/// The weights before `Where(IsNaN(weights), 0, weights)`, which exporters put after the softmax of
/// queries that may have no key, and whether that was there.
fn without_guard(graph: &Graph, maps: &ValueMaps, id: ValueId) -> (ValueId, bool) {
    let found = maps.written_by(graph, id, "Where").and_then(|guard| {
        let is_nan = maps.written_by(graph, guard.input(0)?, "IsNaN")?;
        let zero = maps.scalar(graph, guard.input(1)?)? == 0.0;
        let weights = guard.input(2)?;
        (zero && is_nan.input(0)? == weights).then_some(weights)
    });
    found.map_or((id, false), |weights| (weights, true))
}

/// The scores before the additive mask, and the mask.
fn without_mask(
    graph: &Graph,
    maps: &ValueMaps,
    scores: ValueId,
) -> Option<(ValueId, Option<ValueId>)> {
    let Some(add) = maps.written_by(graph, scores, "Add") else { return Some((scores, None)) };
    let a = add.input(0)?;
    let b = add.input(1)?;
    let is_product = |id| {
        let (product, _) = through_factor(graph, maps, id);
        maps.written_by(graph, product, "MatMul").is_some()
    };
    let (product, mask) = if is_product(a) { (a, b) } else { (b, a) };
    let fits = is_product(product) && rank(maps, mask)? <= 4 && rank(maps, product)? == 4;
    fits.then_some((product, Some(mask)))
}

/// A transpose of an attention's output becomes the order in which it is written.
pub(super) fn absorb_output(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let found = (|| {
        let perm = node.operator::<Transpose>()?.perm.clone()?;
        let input = node.input(0)?;
        let before = maps.written_by(graph, input, "Attention")?;
        let attention = before.operator::<FusedAttention>()?;
        if !maps.read_once(graph, input) || attention.out_perm != FusedAttention::IN_ORDER {
            return None;
        }
        let operator = FusedAttention { out_perm: perm.try_into().ok()?, ..attention.clone() };
        Some(make_node(GALATEA_DOMAIN, "Attention", node, operator, before.inputs.clone()))
    })();
    Ok(found.map(|node| vec![node]))
}
