//! Operators on images whose channels lie in blocks become those of ONNX, which have kernels.

use std::sync::Arc;

use galatea_tensor::Tensor;

use super::ValueMaps;
use super::contrib_parts::PartNodes;
use super::match_graph::make_node;
use crate::attribute::{AttributeValue, Attributes, named};
use crate::error::GraphError;
use crate::graph::{Graph, Node, ParsedOperator, ValueId};
use crate::operator::Operator;
use crate::ops::activation::Activation;
use crate::ops::blocked::{BLOCKED_DOMAIN, BlockedConv, ReorderInput, ReorderOutput};
use crate::ops::convolution::ActivatedConv;
use crate::ops::resize::{CoordinateMode, NearestMode, Resize, ResizeInterpolation};
use crate::ops::shape::{Identity, Slice, Transpose};
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

/// Replaces a convolution with weights in blocks, and one with an activation that no kernel applies.
pub(super) fn convolution(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let mut inputs = node.inputs.clone();
    let conv = if let Some(blocked) = node.operator::<BlockedConv>() {
        let weights = node.input(1).and_then(|id| maps.constant(graph, id));
        let plain = weights.and_then(|weights| blocked.plain_weights(weights).ok());
        let Some(plain) = plain else { return Ok(None) };
        inputs[1] = Some(graph.add_constant("weights", plain));
        blocked.conv.clone()
    } else if let Some(conv) = node.operator::<ActivatedConv>() {
        conv.clone()
    } else {
        return Ok(None);
    };
    let made = make_node(GALATEA_DOMAIN, "FusedConv", &node, conv.fused, inputs);
    let Some(behind) = conv.behind else { return Ok(Some(vec![made])) };
    let sum = graph.fresh_value("sum");
    let inputs = vec![Some(sum)];
    let activation: Activation = behind;
    let last = make_node(ONNX_DOMAIN, "HardSigmoid", &node, activation, inputs);
    Ok(Some(vec![Node { outputs: vec![Some(sum)], ..made }, last]))
}

/// Replaces pools, upsamplings, and what puts images into blocks and takes them out.
pub(super) fn image(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let (Some(x), Some(output)) = (node.input(0), node.output(0)) else { return Ok(None) };
    if node.domain != BLOCKED_DOMAIN {
        return Ok(None);
    }
    let channels = maps.fact(x).and_then(|fact| fact.shape.clone());
    let channels = |axis: usize| channels.as_ref().and_then(|dims| dims.get(axis)?.known());
    let mut made = PartNodes::new(graph, &node);
    if let Some(op) = node.operator::<ReorderInput>() {
        let whole = channels(if op.channels_last { 3 } else { 1 });
        if whole.is_none_or(|channels| !channels.is_multiple_of(op.block)) {
            return Ok(None);
        }
        let perm = op.channels_last.then(|| vec![0, 3, 1, 2]);
        reordered(&mut made, perm, x, output);
    } else if let Some(op) = node.operator::<ReorderOutput>() {
        let perm = op.channels_last.then(|| vec![0, 2, 3, 1]);
        if channels(1) == Some(op.channels) {
            reordered(&mut made, perm, x, output);
            return Ok(Some(made.nodes));
        }
        let Ok(end) = i64::try_from(op.channels) else { return Ok(None) };
        let range = [0, end, 1].map(|bound| made.constant("range", Tensor::vector(vec![bound])));
        let inputs = [x, range[0], range[1], range[2]];
        let kept = perm.is_none().then_some(output);
        let kept = made.add("Slice", Slice { ranges: None }, &inputs, kept);
        if perm.is_some() {
            reordered(&mut made, perm, kept, output);
        }
    } else if let Some(op) = node.operator::<Resize>() {
        upsampled(&mut made, op, x, output);
    } else if node.op_type != "Conv" {
        // Pools have the attributes of ONNX.
        let opset = if node.op_type == "AveragePool" { 19 } else { 12 };
        let mut attributes = node.attributes().map(|(_, all)| all).unwrap_or_default();
        attributes.remove("storage_order");
        let parsed = parsed(Arc::clone(&node.operator), opset, attributes);
        made.add_parsed(ONNX_DOMAIN, &node.op_type, parsed, vec![Some(x)], Some(output));
    }
    Ok(Some(made.nodes).filter(|nodes| !nodes.is_empty()))
}

fn parsed(operator: Arc<dyn Operator>, opset: i64, attributes: Attributes) -> ParsedOperator {
    ParsedOperator { operator, opset: Some(opset), attributes: Arc::new(attributes) }
}

/// Adds a node that puts the axes into another order, if any.
fn reordered(made: &mut PartNodes<'_>, perm: Option<Vec<usize>>, x: ValueId, output: ValueId) {
    match perm {
        Some(perm) => {
            made.add("Transpose", Transpose { perm: Some(perm) }, &[x], Some(output));
        }
        None => {
            made.add("Identity", Identity, &[x], Some(output));
        }
    }
}

/// Adds `Upsample` of opset 7, or `Resize` where positions are mapped otherwise.
fn upsampled(made: &mut PartNodes<'_>, op: &Resize, x: ValueId, output: ValueId) {
    #[allow(clippy::cast_possible_truncation, reason = "the scales are small whole numbers")]
    let scales = op.scales.iter().flatten().map(|&scale| scale as f32).collect::<Vec<f32>>();
    let mode = match op.interpolation {
        ResizeInterpolation::Nearest(_) => "nearest",
        _ => "linear",
    };
    let mode = AttributeValue::String(mode.into());
    if op.coordinates == CoordinateMode::Asymmetric {
        let attributes = named([("mode", mode), ("scales", AttributeValue::Floats(scales))]);
        let parsed = parsed(Arc::new(op.clone()), 7, attributes);
        made.add_parsed(ONNX_DOMAIN, "Upsample", parsed, vec![Some(x)], Some(output));
        return;
    }
    let coordinates = match op.coordinates {
        CoordinateMode::AlignCorners => "align_corners",
        _ => "half_pixel",
    };
    let attributes = named([
        ("mode", mode),
        ("coordinate_transformation_mode", AttributeValue::String(coordinates.into())),
        ("nearest_mode", AttributeValue::String("floor".into())),
    ]);
    let scales = made.constant("scales", Tensor::vector(scales));
    let interpolation = match op.interpolation {
        ResizeInterpolation::Nearest(_) => ResizeInterpolation::Nearest(NearestMode::Floor),
        other => other,
    };
    let resize = Resize { scales: None, scales_input: Some(2), interpolation, ..op.clone() };
    let parsed = parsed(Arc::new(resize), 13, attributes);
    let inputs = vec![Some(x), None, Some(scales)];
    made.add_parsed(ONNX_DOMAIN, "Resize", parsed, inputs, Some(output));
}
