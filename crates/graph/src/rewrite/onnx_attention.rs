//! ONNX's `Attention`, which newer exporters write as it stands, becomes the fused `Attention`, with
//! the transposes around it as storage orders. Masks of booleans become numbers to add, once for
//! all layers that share the mask.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::Maps;
use super::attention::through_transpose;
use super::match_graph::make_node;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::fused::Attention;
use crate::ops::logic::Where;
use crate::ops::transformer;
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

pub(super) fn apply(
    graph: &mut Graph,
    maps: &Maps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let Some((operator, [q, k, v])) = plain(graph, maps, node) else { return Ok(None) };
    let node = node.clone();
    let mut made = Vec::new();
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
        ..make_node((GALATEA_DOMAIN, "Attention"), &node, operator, inputs)
    });
    Ok(Some(made))
}

/// The fused operator and the stored Q, K and V of an attention without cache, cap or window.
fn plain(graph: &Graph, maps: &Maps, node: &Node) -> Option<(Attention, [ValueId; 3])> {
    let onnx = node.operator::<transformer::Attention>()?;
    let simple = onnx.softcap == 0.0
        && onnx.left_window.is_none()
        && onnx.right_window.is_none()
        && onnx.stage.is_none()
        && (1..4).all(|slot| node.output(slot).is_none())
        && (4..7).all(|slot| node.input(slot).is_none());
    let causal = onnx.is_causal;
    let (q, k, v) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    let four =
        [q, k, v].iter().all(|&id| maps.is_fp32(id) && shape(id).is_some_and(|s| s.len() == 4));
    // Without a past, positions count from the first key; the fused operator's from the last.
    let aligned = !causal || shape(q)?[2].same(&shape(k)?[2]);
    if !simple || !four || !aligned || !mask_names_every_key(maps, node.input(3), &shape(k)?[2]) {
        return None;
    }
    let scale = match onnx.scale {
        Some(scale) => scale,
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        None => 1.0 / (shape(q)?[3].known()? as f32).sqrt(),
    };
    let (q, q_perm) = through_transpose(graph, maps, q);
    let (k, k_perm) = through_transpose(graph, maps, k);
    let (v, v_perm) = through_transpose(graph, maps, v);
    let out_perm = Attention::IN_ORDER;
    // A query that sees no key gives zeros here.
    let operator =
        Attention { scale, q_perm, k_perm, v_perm, out_perm, masked_to_zero: true, causal };
    Some((operator, [q, k, v]))
}

/// Whether a mask has as many columns as there are keys: ONNX hides the keys behind a shorter mask,
/// where the fused operator would repeat its only column.
fn mask_names_every_key(maps: &Maps, mask: Option<ValueId>, keys: &Dim) -> bool {
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
