//! A convolution between quantised values becomes `QLinearConv`, and one whose result is added to
//! another value `QLinearConvAdd`.

use super::ValueMaps;
use super::match_graph::make_node;
use super::quantized::{bias_in_units, dequantized, quantized};
use crate::GALATEA_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::contrib::QLinear;
use crate::ops::convolution::{Conv, QLinearConv, QLinearConvAdd};

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let found = (|| {
        let result = quantized(maps, &node)?;
        result.whole(graph)?;
        let float = node.input(0).filter(|&id| maps.read_once(graph, id))?;
        let before = &graph.nodes[maps.producer(float)?];
        let conv = before.operator::<Conv>()?.clone();
        let x = dequantized(graph, maps, before.input(0)?).filter(|x| x.is_bytes())?;
        let w = dequantized(graph, maps, before.input(1)?).filter(|w| w.is_bytes())?;
        let (x_scale, _) = x.whole(graph)?;
        let weights = graph.constant(w.value)?;
        let rank = weights.rank();
        let channels = *weights.shape().first()?;
        if !w.is_along(graph, 0, rank, channels) {
            return None;
        }
        let bias = match before.input(2) {
            Some(id) => {
                let scales = w.scales(graph)?;
                let unit = |channel: usize| {
                    let scale = scales[if scales.len() == 1 { 0 } else { channel }];
                    f64::from(x_scale) * f64::from(scale)
                };
                Some(bias_in_units(graph, maps, id, channels, unit)?)
            }
            None => None,
        };
        let zeros = [x, w, result].map(|of| of.zero_point(graph));
        let [x_zero, w_zero, y_zero] = zeros;
        let mut inputs = vec![Some(x.value), Some(x.scale), Some(x_zero?)];
        inputs.extend([Some(w.value), Some(w.scale), Some(w_zero?)]);
        inputs.extend([Some(result.scale), Some(y_zero?)]);
        inputs.extend(bias.map(|bias| Some(graph.add_constant("bias", bias))));
        Some(make_node("", "QLinearConv", &node, QLinearConv { conv }, inputs))
    })();
    Ok(found.map(|node| vec![node]))
}

/// `QLinearAdd` of a convolution's result and another value of its shape. Of two convolutions the
/// later one takes the sum, so that the other one's result is there.
pub(super) fn residual(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    if node.op_type != "QLinearAdd" || node.operator::<QLinear>().is_none() {
        return Ok(None);
    }
    let same = |a: Option<ValueId>, b: Option<ValueId>| {
        let a = a?;
        let b = b?;
        (a == b || graph.constant(a)? == graph.constant(b)?).then_some(())
    };
    let pair = |conv: usize, other: usize| {
        let made = node.input(conv).filter(|&id| maps.read_once(graph, id))?;
        let before = &graph.nodes[maps.producer(made)?];
        let operator = before.operator::<QLinearConv>()?;
        // What the sum takes the result for is what the convolution makes.
        same(before.input(6), node.input(conv + 1))?;
        same(before.input(7), node.input(conv + 2))?;
        let summand = node.input(other)?;
        let free = operator.conv.group == 1
            && graph.constant(summand).is_none()
            && maps.same_shape(made, summand);
        let mut inputs = before.inputs.clone();
        inputs.resize(9, None);
        inputs.extend([summand].map(Some));
        inputs.extend([other + 1, other + 2, 6, 7].map(|at| node.input(at)));
        let whole = inputs[10..].iter().all(Option::is_some);
        let conv = operator.conv.clone();
        let name = "QLinearConvAdd";
        (free && whole).then(|| {
            (
                maps.producer(made),
                make_node(GALATEA_DOMAIN, name, node, QLinearConvAdd { conv }, inputs),
            )
        })
    };
    let found = [pair(0, 3), pair(3, 0)].into_iter().flatten().max_by_key(|(at, _)| *at);
    Ok(found.map(|(_, node)| vec![node]))
}
