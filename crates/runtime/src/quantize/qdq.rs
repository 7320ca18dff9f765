//! Static quantisation: scales are known before a run. Values pass through `QuantizeLinear` and
//! `DequantizeLinear`, from which every program finds the products of integers between.

use std::collections::HashMap;

use galatea_graph::{Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::Tensor;

use super::edit;
use super::form::{QuantizedForm, ValueCache};
use super::layer::{LayerKind, WeightedLayer};
use super::plan::QuantizePlan;
use super::range::{AffineScale, ValueRange};
use super::weights::{least_scale, quantise, quantise_bias};
use crate::error::RuntimeError;

const DEQUANTISED: &str = "dequantized";

/// Integers of eight bits with scales from calibration.
#[derive(Debug)]
pub(super) struct StaticInt8 {
    /// Ranges of every value that some layer may need.
    pub(super) ranges: HashMap<ValueId, ValueRange>,
    pub(super) symmetric: bool,
    pub(super) per_channel: bool,
}

impl StaticInt8 {
    fn affine(&self, id: ValueId, graph: &Graph) -> Result<AffineScale, RuntimeError> {
        let range = self.ranges.get(&id).ok_or_else(|| {
            RuntimeError::Quantise(format!("'{}' was not calibrated", graph.value(id).name))
        })?;
        Ok(AffineScale::of(*range, self.symmetric))
    }

    /// Adds a value's way through integers, from `from` to `to`.
    fn through(
        graph: &mut Graph,
        from: ValueId,
        to: ValueId,
        affine: AffineScale,
    ) -> Result<(), RuntimeError> {
        let name = graph.value(to).name.clone();
        let scale = Tensor::scalar(affine.scale);
        let scale = edit::constant(graph, &format!("{name}/scale"), scale);
        let zero = edit::constant(graph, &format!("{name}/zero_point"), affine.zero_point());
        let integers = edit::after(graph, to, "quantized");
        let parameters = [Some(scale), Some(zero)];
        let [scale, zero] = parameters;
        let quantise = (ONNX_DOMAIN, "QuantizeLinear");
        let dequantise = (ONNX_DOMAIN, "DequantizeLinear");
        let title = format!("{name}/quantize");
        edit::node(graph, quantise, &title, &[], &[Some(from), scale, zero], &[integers])?;
        let title = format!("{name}/dequantize");
        edit::node(graph, dequantise, &title, &[], &[Some(integers), scale, zero], &[to])?;
        Ok(())
    }

    /// The value after integers, for layers only.
    fn input(
        &self,
        graph: &mut Graph,
        id: ValueId,
        made: &mut ValueCache,
    ) -> Result<ValueId, RuntimeError> {
        let affine = self.affine(id, graph)?;
        let found = made.once(id, DEQUANTISED, || {
            let to = edit::after(graph, id, DEQUANTISED);
            Self::through(graph, id, to, affine)?;
            Ok(vec![to])
        })?;
        Ok(found[0])
    }

    /// Weights and bias of a layer, after integers.
    fn constants(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
    ) -> Result<Vec<Option<ValueId>>, RuntimeError> {
        let input_scale = self.affine(layer.input, graph)?.scale;
        let alpha = match layer.kind {
            LayerKind::Gemm(gemm) => gemm.alpha,
            _ => 1.0,
        };
        let bias = layer.bias.and_then(|id| graph.constant(id)).map(Tensor::to_vec::<f32>);
        let bias = bias.transpose()?;
        let at = |bias: &[f32], channel: usize| bias.get(channel).copied().unwrap_or(0.0);
        let least = |channel: usize| match &bias {
            None => 0.0,
            Some(bias) if self.per_channel => least_scale(at(bias, channel), input_scale * alpha),
            Some(bias) => {
                let most = bias.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
                least_scale(most, input_scale * alpha)
            }
        };
        let axis = self.per_channel.then_some(layer.axis);
        let Some(constant) = layer.constant(graph).cloned() else {
            return Err(RuntimeError::Quantise(format!("'{}' has no weights", layer.name)));
        };
        let weights = quantise(&constant, axis, &least)?;
        let name = graph.value(layer.weights).name.clone();
        let parts = [
            ("quantized", weights.values.clone()),
            ("scale", weights.scale(self.per_channel)),
            ("zero_point", weights.zero(self.per_channel)),
        ];
        let made = dequantised(graph, &name, parts.to_vec(), axis)?;
        let mut inputs = vec![Some(made)];
        if let (Some(id), Some(bias)) = (layer.bias, &bias) {
            let scale = |channel: usize| {
                weights.scales[if weights.scales.len() == 1 { 0 } else { channel }]
            };
            let unit = |channel: usize| {
                f64::from(scale(channel)) * f64::from(input_scale) * f64::from(alpha)
            };
            let values = Tensor::vector(quantise_bias(bias, &unit));
            #[allow(clippy::cast_possible_truncation, reason = "a scale is FP32")]
            let scales = Tensor::vector((0..bias.len()).map(|at| unit(at) as f32).collect());
            let name = graph.value(id).name.clone();
            let (scale, axis) = match weights.scales.len() {
                #[allow(clippy::cast_possible_truncation, reason = "a scale is FP32")]
                1 if !self.per_channel => (Tensor::scalar(unit(0) as f32), None),
                _ => (scales, Some(0)),
            };
            let parts = vec![("quantized", values), ("scale", scale)];
            inputs.push(Some(dequantised(graph, &name, parts, axis)?));
        }
        Ok(inputs)
    }
}

/// Adds constants and the `DequantizeLinear` of them.
fn dequantised(
    graph: &mut Graph,
    name: &str,
    parts: Vec<(&str, Tensor)>,
    axis: Option<usize>,
) -> Result<ValueId, RuntimeError> {
    let mut inputs = Vec::with_capacity(parts.len());
    for (suffix, tensor) in parts {
        inputs.push(Some(edit::constant(graph, &format!("{name}/{suffix}"), tensor)));
    }
    let to = edit::value(graph, &format!("{name}/{DEQUANTISED}"));
    let axis = axis.map(|axis| ("axis", i64::try_from(axis).unwrap_or(0).into()));
    let attributes: Vec<_> = axis.into_iter().collect();
    let op = (ONNX_DOMAIN, "DequantizeLinear");
    edit::node(graph, op, &format!("{name}/dequantize"), &attributes, &inputs, &[to])?;
    Ok(to)
}

impl QuantizedForm for StaticInt8 {
    fn name(&self) -> &'static str {
        "INT8"
    }

    fn refusal(&self, graph: &Graph, layer: &WeightedLayer) -> Option<String> {
        if let LayerKind::Gemm(gemm) = layer.kind
            && gemm.alpha <= 0.0
        {
            return Some(format!("its alpha is {}", gemm.alpha));
        }
        let bias = graph.constant(layer.bias?)?;
        let channels = layer.channels(graph);
        (bias.shape() != [channels])
            .then(|| format!("its bias has shape {:?}, expected [{channels}]", bias.shape()))
    }

    fn begin(
        &self,
        graph: &mut Graph,
        layers: &[&WeightedLayer],
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        // The plan follows the nodes as they were, which `graph` lacks some of by now.
        let mut whole = graph.clone();
        let mut nodes: Vec<_> =
            layers.iter().map(|layer| (layer.index, layer.node.clone())).collect();
        nodes.sort_by_key(|(index, _)| *index);
        for (index, node) in nodes {
            whole.nodes.insert(index.min(whole.nodes.len()), node);
        }
        let plan = QuantizePlan::new(&whole, layers)?;
        for &id in &plan.results {
            let affine = self.affine(id, graph)?;
            let float = edit::after(graph, id, "float");
            made.is_itself(id, DEQUANTISED);
            // A layer's own result is redirected when it is there.
            if !edit::redirect(graph, id, float) {
                made.once(id, "float", || Ok(vec![float]))?;
            }
            Self::through(graph, float, id, affine)?;
        }
        Ok(())
    }

    fn emit(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        let mut inputs = vec![Some(self.input(graph, layer.input, made)?)];
        inputs.extend(self.constants(graph, layer)?);
        let output = made.once(output, "float", || Ok(vec![output]))?[0];
        edit::again(graph, layer, &inputs, output);
        Ok(())
    }
}
