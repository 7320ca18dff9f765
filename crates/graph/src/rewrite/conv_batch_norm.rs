//! A batch normalisation after a convolution becomes part of its weights and bias.

use galatea_tensor::Tensor;

use super::ValueMaps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::ops::convolution::Conv;
use crate::ops::normalize::BatchNormalization;

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let Some((conv_index, weights, bias)) = folded(graph, maps, index) else { return Ok(None) };
    let stem = graph.nodes[conv_index].name.clone();
    let weights = graph.add_constant(&format!("{stem}.weight"), weights);
    let bias = graph.add_constant(&format!("{stem}.bias"), bias);
    let before = &graph.nodes[conv_index];
    let Some(conv) = before.operator::<Conv>().cloned() else { return Ok(None) };
    let inputs = vec![before.input(0), Some(weights), Some(bias)];
    Ok(Some(vec![make_node(ONNX_DOMAIN, "Conv", &graph.nodes[index], conv, inputs)]))
}

/// The convolution before the normalisation at `index`, and its folded weights and bias.
fn folded(graph: &Graph, maps: &ValueMaps, index: usize) -> Option<(usize, Tensor, Tensor)> {
    let node = &graph.nodes[index];
    let norm = node.operator::<BatchNormalization>()?;
    if norm.training > 0 || norm.each_element {
        return None;
    }
    let input = node.input(0)?;
    let conv_index = maps.producer(input)?;
    let before = &graph.nodes[conv_index];
    before.operator::<Conv>()?;
    if !maps.read_once(graph, input) {
        return None;
    }
    let floats = |id| graph.constant(id)?.to_vec::<f32>().ok();
    let weights = graph.constant(before.input(1)?)?;
    let channels = *weights.shape().first()?;
    let parameter = |slot: usize| floats(node.input(slot)?).filter(|all| all.len() == channels);
    let scale = parameter(1)?;
    let shift = parameter(2)?;
    let mean = parameter(3)?;
    let variance = parameter(4)?;
    let bias = match before.input(2) {
        Some(bias) => floats(bias)?,
        None => vec![0.0; channels],
    };
    let mut values = weights.to_vec::<f32>().ok()?;
    let per_channel = values.len() / channels.max(1);
    let mut folded_bias = Vec::with_capacity(channels);
    for channel in 0..channels {
        let deviation = (f64::from(variance[channel]) + f64::from(norm.epsilon)).sqrt();
        let factor = f64::from(scale[channel]) / deviation;
        for weight in &mut values[channel * per_channel..][..per_channel] {
            *weight = narrow(f64::from(*weight) * factor);
        }
        let centred = f64::from(*bias.get(channel)?) - f64::from(mean[channel]);
        folded_bias.push(narrow(centred * factor + f64::from(shift[channel])));
    }
    let weights = Tensor::from_vec(weights.shape(), values).ok()?;
    Some((conv_index, weights, Tensor::vector(folded_bias)))
}

#[allow(clippy::cast_possible_truncation, reason = "weights are FP32; the product is rounded once")]
fn narrow(value: f64) -> f32 {
    value as f32
}
