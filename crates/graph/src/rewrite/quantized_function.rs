//! Functions of one quantised value, from `DequantizeLinear` to `QuantizeLinear`, become tables.
//!
//! A byte has 256 values, so the nodes between are computed for all of them, as they stand.

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use super::match_graph::make_node;
use super::quantized::{dequantized, quantized};
use crate::GALATEA_DOMAIN;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::OperatorInputs;
use crate::ops::fused::LookUp;
use crate::ops::quantize::{DequantizeLinear, QuantizeLinear};

/// Longest function.
const MAX_NODES: usize = 16;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let found = (|| {
        let result = quantized(maps, node)?;
        result.whole(graph)?;
        let (x, steps) = chain(graph, maps, node)?;
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let mut table = Tensor::from_bytes(maps.fact(x)?.dtype, &[256], &bytes).ok()?;
        for step in steps.iter().rev() {
            table = computed(graph, maps, step, table)?;
        }
        let table = table.contiguous().ok()?.as_bytes().ok()?.to_vec();
        let operator = LookUp { table, dtype: result.dtype };
        Some(make_node(GALATEA_DOMAIN, "LookUp", node, operator, vec![Some(x)]))
    })();
    Ok(found.map(|node| vec![node]))
}

/// The bytes that a value is a function of, and the nodes of the function, the last one first.
fn chain<'g>(
    graph: &'g Graph,
    maps: &ValueMaps,
    last: &'g Node,
) -> Option<(ValueId, Vec<&'g Node>)> {
    let mut steps = vec![last];
    let shaped = last.output(0)?;
    while steps.len() < MAX_NODES {
        let id = changing(graph, maps, steps.last()?)?;
        let before = &graph.nodes[maps.producer(id)?];
        steps.push(before);
        if let Some(x) = dequantized(graph, maps, id) {
            x.whole(graph).filter(|_| x.is_bytes())?;
            return maps.same_shape(x.value, shaped).then_some((x.value, steps));
        }
        let single = before.outputs.len() == 1 && maps.read_once(graph, id);
        let function = before.traits().elementwise.is_some();
        if !single || !function {
            return None;
        }
    }
    None
}

/// The only input of a node that is no constant number; of a quantising node the first.
fn changing(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<ValueId> {
    if node.operator::<QuantizeLinear>().is_some() {
        return node.input(0);
    }
    let mut all = node.inputs.iter().flatten().copied();
    let first = all.find(|&id| number(graph, maps, id).is_none())?;
    all.all(|id| number(graph, maps, id).is_some()).then_some(first)
}

/// A constant of one element, without axes; it may be dequantised.
fn number(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<Tensor> {
    let value = match graph.constant(id) {
        Some(value) => value.clone(),
        None => {
            let node = &graph.nodes[maps.producer(id)?];
            node.operator::<DequantizeLinear>()?;
            let inputs: Option<Vec<Option<&Tensor>>> = collected_some(
                &mut node.inputs.iter().map(|slot| slot.map(|id| graph.constant(id))),
            );
            let inputs = inputs?;
            if inputs.iter().flatten().any(|tensor| tensor.elements() != 1) {
                return None;
            }
            node.operator.reference(OperatorInputs::new(&inputs)).ok()?.pop()?
        }
    };
    (value.elements() == 1 && value.dtype() == DataType::Fp32)
        .then(|| value.reshape(&[]).ok())
        .flatten()
}

/// Computes a node of the function for every value before it.
fn computed(graph: &Graph, maps: &ValueMaps, node: &Node, before: Tensor) -> Option<Tensor> {
    let by_table = node.operator::<QuantizeLinear>().is_some()
        || node.operator::<DequantizeLinear>().is_some();
    let changing = if by_table { node.input(0) } else { changing(graph, maps, node) };
    let mut own = Vec::new();
    for slot in &node.inputs {
        own.push(match slot {
            Some(id) if Some(*id) == changing => Some(before.clone()),
            Some(id) if by_table => Some(graph.constant(*id)?.reshape(&[]).ok()?),
            Some(id) => Some(number(graph, maps, *id)?),
            None => None,
        });
    }
    let inputs: Vec<Option<&Tensor>> = own.iter().map(Option::as_ref).collect();
    let found = node.operator.reference(OperatorInputs::new(&inputs)).ok()?.into_iter().next()?;
    (found.shape() == [256]).then_some(found)
}
