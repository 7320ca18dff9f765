//! A convolution between quantised values becomes `QLinearConv`.

use super::Maps;
use super::match_graph::make_node;
use super::quantized::{bias_in_units, dequantized, quantized};
use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::ops::convolution::{Conv, QLinearConv};

pub(super) fn apply(
    graph: &mut Graph,
    maps: &Maps,
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
        let (rank, channels) = (weights.rank(), *weights.shape().first()?);
        if !w.is_along(graph, 0, (rank, channels)) {
            return None;
        }
        let bias = match before.input(2) {
            Some(id) => {
                let scales = w.scales(graph)?;
                let unit = |channel: usize| {
                    let scale = scales[if scales.len() == 1 { 0 } else { channel }];
                    f64::from(x_scale) * f64::from(scale)
                };
                Some(bias_in_units(graph, maps, id, (channels, unit))?)
            }
            None => None,
        };
        let zeros = [x, w, result].map(|of| of.zero_point(graph));
        let [x_zero, w_zero, y_zero] = zeros;
        let mut inputs = vec![Some(x.value), Some(x.scale), Some(x_zero?)];
        inputs.extend([Some(w.value), Some(w.scale), Some(w_zero?)]);
        inputs.extend([Some(result.scale), Some(y_zero?)]);
        inputs.extend(bias.map(|bias| Some(graph.add_constant("bias", bias))));
        Some(make_node(("", "QLinearConv"), &node, QLinearConv { conv }, inputs))
    })();
    Ok(found.map(|node| vec![node]))
}
