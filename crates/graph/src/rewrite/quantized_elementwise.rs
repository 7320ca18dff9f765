//! Operators between a `DequantizeLinear` and a `QuantizeLinear` that work on integers as well:
//! limits, moves of elements, sums.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use super::fused_activation::activation_of;
use super::match_graph::make_node;
use super::quantized::{CONTRIB_DOMAIN, QuantizedValue, dequantized, quantized};
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::contrib::QLinear;
use crate::ops::fused::FusedActivation;
use crate::ops::math::{Binary, BinaryKind, Clip};
use crate::ops::pooling::MaxPool;

type RewrittenElementwise = Result<Option<Vec<Node>>, GraphError>;

/// `QuantizeLinear(Relu(x))` as `Clip(QuantizeLinear(x))`, and `Clip` likewise: quantising keeps
/// the order of numbers, so that limits may follow it. Limits at the type's own are dropped.
pub(super) fn limits(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenElementwise {
    let node = graph.nodes[index].clone();
    let found = (|| {
        let result = quantized(maps, &node)?;
        let (scale, zero) = result.whole(graph)?;
        let limited = node.input(0).filter(|&id| maps.read_once(graph, id))?;
        let before = &graph.nodes[maps.producer(limited)?];
        let (activation, x) = activation_of(graph, maps, before)?;
        let (least, most) = match activation {
            FusedActivation::Relu => (0.0, f32::INFINITY),
            FusedActivation::Clip { min, max } if min <= max => (min, max),
            _ => return None,
        };
        let (low, high) = if result.dtype == DataType::Int8 { (-128, 127) } else { (0, 255) };
        #[allow(clippy::cast_possible_truncation, reason = "limited to the type's range")]
        let quantise = |limit: f32| {
            (((limit / scale).round_ties_even() as i64).saturating_add(zero)).clamp(low, high)
        };
        let least = quantise(least);
        let most = quantise(most);
        let mut plain = Node { inputs: node.inputs.clone(), ..node.clone() };
        plain.inputs[0] = Some(x);
        if (least, most) == (low, high) {
            return Some(vec![plain]);
        }
        let whole = graph.fresh_value("quantized");
        plain.outputs = vec![Some(whole)];
        let mut limit = |value: i64| {
            let tensor = Tensor::from_slice(&[], &[value]).ok()?;
            let tensor = crate::ops::cast::converted(&tensor, result.dtype).ok()?;
            Some(Some(graph.add_constant("limit", tensor)))
        };
        let inputs = vec![Some(whole), limit(least)?, limit(most)?];
        let clip = make_node("", "Clip", &node, Clip { min: None, max: None }, inputs);
        Some(vec![plain, clip])
    })();
    Ok(found)
}

/// Returns whether a node only moves the elements of input 0 or chooses among them.
fn moves_or_chooses(node: &Node) -> bool {
    node.traits().moves_first_input() || node.operator::<MaxPool>().is_some()
}

/// Elements that are dequantised, moved and quantised as they were are moved as integers.
pub(super) fn moves(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenElementwise {
    let node = &graph.nodes[index];
    let found = (|| {
        let result = quantized(maps, node)?;
        let float = node.input(0)?;
        let like = |id: Option<ValueId>| {
            let x: QuantizedValue = dequantized(graph, maps, id?)?;
            x.is_like(graph, &result).then_some(Some(x.value))
        };
        if let Some(x) = like(Some(float)) {
            let identity = crate::ops::shape::Identity;
            return Some(make_node("", "Identity", node, identity, vec![x]));
        }
        let before = &graph.nodes[maps.producer(float)?];
        let one = before.outputs.iter().flatten().count() == 1 && maps.read_once(graph, float);
        if !one || !before.domain.is_empty() {
            return None;
        }
        let mut inputs = before.inputs.clone();
        if before.op_type == "Concat" {
            inputs = collected_some(&mut before.inputs.iter().map(|&id| like(id)))?;
        } else if moves_or_chooses(before) {
            inputs[0] = like(inputs[0])?;
        } else {
            return None;
        }
        Some(Node { inputs, outputs: vec![node.output(0)], ..before.clone() })
    })();
    Ok(found.map(|node| vec![node]))
}

/// Sums and products of two quantised values, of one shape or with constants that broadcast.
pub(super) fn pairs(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenElementwise {
    let node = graph.nodes[index].clone();
    let found = (|| {
        let result = quantized(maps, &node)?;
        result.whole(graph)?;
        let float = node.input(0).filter(|&id| maps.read_once(graph, id))?;
        let pair = &graph.nodes[maps.producer(float)?];
        let (op_type, kind) = match pair.operator::<Binary>()?.kind {
            BinaryKind::Add => ("QLinearAdd", BinaryKind::Add),
            BinaryKind::Mul => ("QLinearMul", BinaryKind::Mul),
            _ => return None,
        };
        let first = pair.input(0)?;
        let second = pair.input(1)?;
        let operand = |id| {
            let found = dequantized(graph, maps, id).filter(QuantizedValue::is_bytes)?;
            found.whole(graph).map(|_| found)
        };
        let mut a = operand(first)?;
        let mut b = operand(second)?;
        if !maps.same_shape(first, second) {
            // The kernel repeats the second operand.
            if graph.constant(a.value).is_some() {
                std::mem::swap(&mut a, &mut b);
            }
            let vector = graph.constant(b.value)?;
            let last = maps.fact(float)?.shape.as_ref()?.last()?.known();
            let whole = maps.same_shape(a.value, float);
            if !whole || vector.rank() > 1 || vector.shape().first().copied() != last {
                return None;
            }
        }
        let mut inputs = Vec::new();
        for operand in [a, b] {
            inputs.extend([operand.value, operand.scale, operand.zero_point(graph)?].map(Some));
        }
        inputs.extend([result.scale, result.zero_point(graph)?].map(Some));
        let operator = QLinear::binary(kind).ok()?;
        Some(Node {
            domain: CONTRIB_DOMAIN.to_owned(),
            op_type: op_type.to_owned(),
            inputs,
            operator: Arc::from(operator),
            parsed: None,
            ..node.clone()
        })
    })();
    Ok(found.map(|node| vec![node]))
}
