//! ONNX's `FusedAttention`, which newer exporters write as it stands, becomes the fused `FusedAttention`, with
//! the transposes around it as storage orders. Masks of booleans become numbers to add, once for
//! all layers that share the mask; keys and values of the past are joined before it.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use super::attention::through_transpose;
use super::match_graph::make_node;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::length;
use crate::ops::fused::FusedAttention;
use crate::ops::logic::Where;
use crate::ops::shape::Concat;
use crate::ops::transformer;
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let Some((operator, [q, mut k, mut v])) = plain(graph, maps, node) else { return Ok(None) };
    let node = node.clone();
    let mut made = Vec::new();
    if let (Some(past_k), Some(past_v)) = (node.input(4), node.input(5)) {
        k = joined(graph, &mut made, &node, past_k, k, 1);
        v = joined(graph, &mut made, &node, past_v, v, 2);
    }
    let mask = match node.input(3) {
        Some(mask) if maps.fact(mask).is_some_and(|fact| fact.dtype == DataType::Bool) => {
            let (added, value) = as_numbers(graph, &node, mask);
            made.push(added);
            Some(value)
        }
        mask => mask,
    };
    let inputs = vec![Some(q), Some(k), Some(v), mask];
    made.push(Node {
        outputs: node.outputs[..1].to_vec(),
        ..make_node(GALATEA_DOMAIN, "Attention", &node, operator, inputs)
    });
    Ok(Some(made))
}

/// Adds a node that puts the heads of the past before new ones; gives all heads, which are an output
/// of the model's own node where it has one.
fn joined(
    graph: &mut Graph,
    made: &mut Vec<Node>,
    node: &Node,
    past: ValueId,
    new: ValueId,
    output: usize,
) -> ValueId {
    let all = node.output(output).unwrap_or_else(|| graph.fresh_value("present"));
    made.push(Node {
        name: format!("{}.present", node.name),
        domain: ONNX_DOMAIN.to_owned(),
        op_type: "Concat".to_owned(),
        inputs: vec![Some(past), Some(new)],
        outputs: vec![Some(all)],
        operator: Arc::new(Concat { axis: 2 }),
        parsed: None,
    });
    all
}

/// The fused operator and the stored Q, K and V of an attention without cap or window.
fn plain(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<(FusedAttention, [ValueId; 3])> {
    let onnx = node.operator::<transformer::Attention>()?;
    let past = node.input(4).is_some() && node.input(5).is_some();
    let simple = onnx.softcap == 0.0
        && onnx.left_window.is_none()
        && onnx.right_window.is_none()
        && onnx.stage.is_none()
        && node.output(3).is_none()
        && node.input(6).is_none()
        && (past
            || (node.input(4).or(node.input(5)).or(node.output(1)).or(node.output(2))).is_none());
    let q = node.input(0)?;
    let k = node.input(1)?;
    let v = node.input(2)?;
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    let four = |id: ValueId| maps.is_fp32(id) && shape(id).is_some_and(|dims| dims.len() == 4);
    let heads = [q, k, v].into_iter().chain(node.input(4)).chain(node.input(5));
    if !simple || !heads.into_iter().all(four) {
        return None;
    }
    let new = &shape(k)?[2];
    let keys = match node.input(4) {
        Some(past) => length::plus(&shape(past)?[2], new),
        None => new.clone(),
    };
    // Positions count from the first key after the past, in the fused operator from the last key.
    let aligned = !onnx.is_causal || shape(q)?[2].same(new);
    if !aligned || !mask_names_every_key(maps, node.input(3), &keys) {
        return None;
    }
    let scale = match onnx.scale {
        Some(scale) => scale,
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        None => 1.0 / (shape(q)?[3].known()? as f32).sqrt(),
    };
    let (q, q_perm) = through_transpose(graph, maps, q);
    let in_order = FusedAttention::IN_ORDER;
    let stored = |id| if past { (id, in_order) } else { through_transpose(graph, maps, id) };
    let ((k, k_perm), (v, v_perm)) = (stored(k), stored(v));
    let operator = FusedAttention {
        scale,
        q_perm,
        k_perm,
        v_perm,
        out_perm: in_order,
        // A query that sees no key gives zeros here.
        masked_to_zero: true,
        causal: onnx.is_causal,
    };
    Some((operator, [q, k, v]))
}

/// Returns whether a mask has as many columns as there are keys: ONNX hides the keys behind a
/// shorter mask, where the fused operator would repeat its only column.
fn mask_names_every_key(maps: &ValueMaps, mask: Option<ValueId>, keys: &Dim) -> bool {
    let Some(mask) = mask else { return true };
    let Some(fact) = maps.fact(mask) else { return false };
    let typed = matches!(fact.dtype, DataType::Bool | DataType::Fp32);
    let last = fact.shape.as_ref().and_then(|dims| dims.last());
    typed && last.is_some_and(|columns| columns.same(keys))
}

/// A node that makes 0 of true and −∞ of false.
fn as_numbers(graph: &mut Graph, node: &Node, mask: ValueId) -> (Node, ValueId) {
    let zero = graph.add_constant("mask.shown", Tensor::scalar(0.0_f32));
    let hidden = graph.add_constant("mask.hidden", Tensor::scalar(f32::NEG_INFINITY));
    let value = graph.fresh_value("mask.bias");
    let made = Node {
        name: format!("{}.mask", node.name),
        domain: ONNX_DOMAIN.to_owned(),
        op_type: "Where".to_owned(),
        inputs: vec![Some(mask), Some(zero), Some(hidden)],
        outputs: vec![Some(value)],
        operator: Arc::new(Where),
        parsed: None,
    };
    (made, value)
}
