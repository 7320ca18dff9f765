//! Operators of `com.microsoft` that become those which they join: the embedding of BERT, and operators on
//! floats between quantised values that no kernel computes as integers.

use std::sync::Arc;

use galatea_tensor::{DataType, OverflowRule, Tensor};

use super::ValueMaps;
use super::match_graph::make_node;
use crate::attribute::Attributes;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ParsedOperator, ValueId};
use crate::operator::Operator;
use crate::ops::activation::Softmax;
use crate::ops::contrib::{EmbedLayerNormalization, QLinear};
use crate::ops::index::Gather;
use crate::ops::math::{Binary, BinaryKind};
use crate::ops::normalize::LayerNormalization;
use crate::ops::pooling::{AveragePool, GlobalAveragePool};
use crate::ops::quantize::{DequantizeLinear, QuantizeLinear, ScaleGrouping};
use crate::ops::reduce::Reduce;
use crate::ops::shape::{Concat, Shape, Slice};
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

/// Nodes in the place of one.
pub(super) struct PartNodes<'a> {
    graph: &'a mut Graph,
    node: &'a Node,
    /// The nodes so far.
    pub(super) nodes: Vec<Node>,
}

impl<'a> PartNodes<'a> {
    /// Returns an empty list for a node.
    pub(super) fn new(graph: &'a mut Graph, node: &'a Node) -> Self {
        Self { graph, node, nodes: Vec::new() }
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, name: &str, value: Tensor) -> ValueId {
        self.graph.add_constant(name, value)
    }

    /// Adds a node of ONNX that writes this value, or a new one.
    pub(super) fn add(
        &mut self,
        op_type: &str,
        operator: impl Operator,
        inputs: &[ValueId],
        output: Option<ValueId>,
    ) -> ValueId {
        let value = output.unwrap_or_else(|| self.graph.fresh_value(op_type));
        let inputs = inputs.iter().copied().map(Some).collect();
        let made = make_node(ONNX_DOMAIN, op_type, self.node, operator, inputs);
        self.nodes.push(Node { outputs: vec![Some(value)], ..made });
        value
    }

    /// Adds a node of an operator with the text that it parses from.
    pub(super) fn add_parsed(
        &mut self,
        domain: &str,
        op_type: &str,
        parsed: ParsedOperator,
        inputs: Vec<Option<ValueId>>,
        output: Option<ValueId>,
    ) -> ValueId {
        let value = output.unwrap_or_else(|| self.graph.fresh_value(op_type));
        self.nodes.push(Node {
            name: self.node.name.clone(),
            domain: domain.to_owned(),
            op_type: op_type.to_owned(),
            inputs,
            outputs: vec![Some(value)],
            operator: Arc::clone(&parsed.operator),
            parsed: Some(parsed),
        });
        value
    }
}

/// `EmbedLayerNormalization` becomes look-ups, sums and `LayerNormalization`, where nobody counts the words
/// of its mask.
pub(super) fn embedding(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let Some(op) = node.operator::<EmbedLayerNormalization>() else { return Ok(None) };
    let Some(inputs) = embedded(graph, maps, &node) else { return Ok(None) };
    let mut made = PartNodes::new(graph, &node);
    let look_up = Gather { axis: 0 };
    let words = made.add("Gather", look_up.clone(), &[inputs.words, inputs.ids], None);
    let places = match node.input(8) {
        Some(positions) => made.add("Gather", look_up.clone(), &[inputs.places, positions], None),
        None => {
            let length = Shape { start: 1, end: Some(2) };
            let end = made.add("Shape", length, &[inputs.ids], None);
            let start = made.graph.add_constant("start", Tensor::vector(vec![0_i64]));
            let slice = Slice { ranges: None };
            made.add("Slice", slice, &[inputs.places, start, end, start], None)
        }
    };
    let add = Binary { kind: BinaryKind::Add };
    let own = node.output(2).filter(|_| inputs.segments.is_none());
    let mut sum = made.add("Add", add, &[words, places], own);
    if let Some((table, kinds)) = inputs.segments {
        let segments = made.add("Gather", look_up, &[table, kinds], None);
        sum = made.add("Add", add, &[sum, segments], node.output(2));
    }
    let normal = LayerNormalization { axis: -1, epsilon: op.epsilon };
    let inputs = [sum, inputs.gamma, inputs.beta];
    made.add("LayerNormalization", normal, &inputs, node.output(0));
    Ok(Some(made.nodes))
}

/// Inputs of an embedding.
struct EmbeddingInputs {
    ids: ValueId,
    words: ValueId,
    places: ValueId,
    /// The table of segments, and their numbers.
    segments: Option<(ValueId, ValueId)>,
    gamma: ValueId,
    beta: ValueId,
}

fn embedded(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<EmbeddingInputs> {
    let is_read = |id: ValueId| !maps.consumers(id).is_empty() || graph.outputs.contains(&id);
    let counted = node.output(1).is_some_and(is_read);
    let ids = node.input(0)?;
    let words = node.input(2)?;
    let places = node.input(3)?;
    let rank = maps.fact(ids).and_then(|fact| fact.rank());
    // A table of one position would be added to every word.
    let several = |id| {
        let rows = maps.fact(id).and_then(|fact| fact.shape.as_ref()?.first()?.known());
        rows.is_some_and(|rows| rows > 1)
    };
    if counted || rank != Some(2) || !several(places) {
        return None;
    }
    let segments = match (node.input(4), node.input(1)) {
        (Some(table), Some(kinds)) => Some((table, kinds)),
        (Some(_), None) => return None,
        (None, _) => None,
    };
    let gamma = node.input(5)?;
    let beta = node.input(6)?;
    let tables = [words, places, gamma, beta].into_iter().chain(segments.map(|(table, _)| table));
    let floats = tables.into_iter().all(|id| maps.is_fp32(id));
    let given = node.output(0).is_some();
    (floats && given).then_some(EmbeddingInputs { ids, words, places, segments, gamma, beta })
}

/// `QLinearConcat`, `QLinearSoftmax` and means between quantised values become the operator on floats.
pub(super) fn quantised(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let Some(op) = node.operator::<QLinear>() else { return Ok(None) };
    let Some(name) = between(op) else { return Ok(None) };
    let (scale, zero) = op.result();
    let (Some(scale), Some(zero)) = (node.input(scale), node.input(zero)) else { return Ok(None) };
    let byte = |id: ValueId| {
        let found = maps.fact(id).map(|fact| fact.dtype);
        matches!(found, Some(DataType::Int8 | DataType::Uint8))
    };
    let single = |id: ValueId| {
        let shape = maps.fact(id).and_then(|fact| fact.known_shape());
        shape.is_some_and(|shape| matches!(shape[..], [] | [1]))
    };
    let operands: Vec<[Option<ValueId>; 3]> =
        op.operands().map(|places| places.map(|at| node.input(at))).collect();
    let parameters = operands.iter().flat_map(|&[_, scale, zero]| [scale, zero]).flatten();
    let parameters: Vec<ValueId> = parameters.chain([scale, zero]).collect();
    let values: Option<Vec<ValueId>> =
        collected_some(&mut operands.iter().map(|&[value, ..]| value));
    let fits = values.is_some_and(|values| values.into_iter().all(byte)) && byte(zero);
    if !fits || !maps.is_fp32(scale) || !parameters.into_iter().all(single) {
        return Ok(None);
    }
    let mut attributes = node.attributes().map(|(_, all)| all).unwrap_or_default();
    attributes.remove("opset");
    attributes.remove("channels_last");
    let inner = Arc::clone(op.between());
    let grouping = ScaleGrouping { axis: 1, block_size: 0 };
    let back = DequantizeLinear { grouping: grouping.clone(), output_dtype: None };
    let to = QuantizeLinear { grouping, output_dtype: None, overflow: OverflowRule::Saturate };
    let back: Arc<dyn Operator> = Arc::new(back);
    let of = |operator, opset, attributes| ParsedOperator {
        operator,
        opset,
        attributes: Arc::new(attributes),
    };
    let mut made = PartNodes::new(graph, &node);
    let mut floats = Vec::new();
    for inputs in operands {
        let parsed = of(Arc::clone(&back), Some(13), Attributes::new());
        let inputs = inputs.to_vec();
        let float = made.add_parsed(ONNX_DOMAIN, "DequantizeLinear", parsed, inputs, None);
        floats.push(Some(float));
    }
    let parsed = of(inner, name.opset, attributes);
    let result = made.add_parsed(name.domain, name.op_type, parsed, floats, None);
    let inputs = [result, scale, zero].map(Some).to_vec();
    let parsed = of(Arc::new(to), Some(13), Attributes::new());
    made.add_parsed(ONNX_DOMAIN, "QuantizeLinear", parsed, inputs, node.output(0));
    Ok(Some(made.nodes))
}

/// The operator on floats.
struct FloatOperator {
    domain: &'static str,
    op_type: &'static str,
    /// The version of ONNX in which its attributes mean the same.
    opset: Option<i64>,
}

/// Returns the operator on floats that computes between the quantisations.
fn between(op: &QLinear) -> Option<FloatOperator> {
    let onnx =
        |op_type, opset| Some(FloatOperator { domain: ONNX_DOMAIN, op_type, opset: Some(opset) });
    let own = |op_type| Some(FloatOperator { domain: GALATEA_DOMAIN, op_type, opset: None });
    if op.inner::<Concat>().is_some() {
        return onnx("Concat", 13);
    }
    if let Some(softmax) = op.inner::<Softmax>() {
        return onnx("Softmax", if softmax.flatten { 11 } else { 13 });
    }
    if let Some(pool) = op.inner::<AveragePool>() {
        return match pool.window.channels_last {
            true => own("AveragePoolNhwc"),
            false => onnx("AveragePool", 11),
        };
    }
    if let Some(pool) = op.inner::<GlobalAveragePool>() {
        return match pool.channels_last {
            true => own("GlobalAveragePoolNhwc"),
            false => onnx("GlobalAveragePool", 1),
        };
    }
    op.inner::<Reduce>().and_then(|_| onnx("ReduceMean", 13))
}
