//! Activations of 8 bits: what layers read passes through `quantize` and `dequantize`, of which Core ML's
//! compiler makes one operation on integers with what lies between, where weights are of 8 bits too.
//!
//! Pairs stand before the inputs of convolutions, of products with constant matrices, of pools, and of sums
//! of two images, which is where coremltools puts them; a result that no such node reads stays a float.
//! Scales are of whole tensors: INT8 around zero, UINT8 from zero on where no value is negative.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galatea_graph::ops::quantize::{DequantizeLinear, QuantizeLinear, ScaleGrouping};
use galatea_graph::{Fact, Graph, Node, ONNX_DOMAIN, ValueId, infer};
use galatea_tensor::{DataType, OverflowRule, Tensor};

use super::convert_options::ConvertOptions;

/// Axes of a value that is an image, `[batch, channels, …]`.
const IMAGE_AXES: usize = 4;

/// Returns the kind of a node's computation, as far as it matters here.
pub(super) fn kind(node: &Node) -> Option<ActivationCodec> {
    Some(match node.op_type.as_str() {
        "Conv" | "ConvNhwc" | "FusedConv" | "NhwcConv" | "NhwcFusedConv" => ActivationCodec::Layer,
        "MatMul" | "Gemm" | "FusedMatMul" | "TransposeMatMul" | "FusedGemm" => {
            ActivationCodec::Layer
        }
        "MaxPool" | "MaxPoolNhwc" | "NhwcMaxPool" => ActivationCodec::Extreme,
        "AveragePool" | "AveragePoolNhwc" => ActivationCodec::Average,
        "Add" => ActivationCodec::Sum,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ActivationCodec {
    /// A product with constant weights.
    Layer,
    /// A choice among the values of a window, which keeps their scale.
    Extreme,
    /// Means of windows.
    Average,
    /// A sum of two images.
    Sum,
}

/// A graph whose nodes are looked at.
pub(super) struct ActivationReader<'g> {
    graph: &'g Graph,
    facts: &'g [Option<Fact>],
    producers: Vec<Option<usize>>,
    exclude: &'g [String],
    wide: &'g galatea_tensor::OrderedSet<String>,
}

impl<'g> ActivationReader<'g> {
    pub(super) fn new(
        graph: &'g Graph,
        facts: &'g [Option<Fact>],
        options: &'g ConvertOptions,
        exclude: &'g [String],
    ) -> Self {
        Self { graph, facts, producers: graph.producers(), exclude, wide: &options.islands }
    }

    pub(super) fn producer(&self, id: ValueId) -> Option<&Node> {
        self.graph.nodes.get(self.producers.get(id.index()).copied().flatten()?)
    }

    fn dequantised(&self, id: ValueId) -> bool {
        self.producer(id).is_some_and(|node| node.op_type == "DequantizeLinear")
    }

    /// Known before a run: constants, and what is dequantised of them.
    fn constant(&self, id: ValueId) -> bool {
        let held = |id: ValueId| {
            let fact = self.facts.get(id.index()).and_then(Option::as_ref);
            self.graph.constant(id).is_some() || fact.is_some_and(|fact| fact.value.is_some())
        };
        let of_constants = |node: &Node| self.dequantised(id) && node.input(0).is_some_and(held);
        held(id) || self.producer(id).is_some_and(of_constants)
    }

    fn float(&self, id: ValueId) -> Option<&Fact> {
        let fact = self.facts.get(id.index()).and_then(Option::as_ref)?;
        (fact.dtype == DataType::Fp32).then_some(fact)
    }

    fn excluded(&self, node: &Node) -> bool {
        let result = node.output(0).map(|id| self.graph.value(id).name.as_str());
        self.exclude.iter().any(|name| is_meant(self.graph, node, name))
            || result.is_some_and(|name| self.wide.contains(name))
    }

    /// The inputs of a node that become integers, by their positions.
    fn reads(&self, node: &Node) -> Vec<usize> {
        let Some(kind) = kind(node).filter(|_| !self.excluded(node)) else { return Vec::new() };
        let live = |at: usize| node.input(at).filter(|&id| !self.constant(id));
        let takes = |at: usize| {
            live(at).is_some_and(|id| self.float(id).is_some() && !self.dequantised(id))
        };
        let chosen = match kind {
            ActivationCodec::Layer if live(1).is_some() => vec![],
            ActivationCodec::Layer | ActivationCodec::Extreme | ActivationCodec::Average => vec![0],
            ActivationCodec::Sum => {
                let image = |at: usize| {
                    let rank = live(at).and_then(|id| self.float(id)?.rank());
                    rank.is_some_and(|rank| rank >= IMAGE_AXES)
                };
                if image(0) && image(1) { vec![0, 1] } else { vec![] }
            }
        };
        chosen.into_iter().filter(|&at| takes(at)).collect()
    }

    /// The values that become integers, each once, in the order of the graph.
    pub(super) fn values(&self) -> Vec<ValueId> {
        let mut seen = HashSet::new();
        let inputs = self.graph.nodes.iter().flat_map(|node| {
            let at = self.reads(node);
            at.into_iter().filter_map(|at| node.input(at))
        });
        inputs.filter(|&id| seen.insert(id)).collect()
    }
}

/// Returns whether a node goes by a name: its own, its operator's, that of its first result, or that of a constant
/// that it reads, which it keeps where it is fused with others.
pub(super) fn is_meant(graph: &Graph, node: &Node, name: &str) -> bool {
    let named = |id: ValueId| graph.value(id).name == name;
    let mut constants = node.inputs.iter().flatten().filter(|&&id| graph.constant(id).is_some());
    node.name == name
        || node.op_type == name
        || node.output(0).is_some_and(named)
        || constants.any(|&id| named(id))
}

/// A node that [`insert`] makes.
fn node(
    op_type: &str,
    operator: Arc<dyn galatea_graph::Operator>,
    inputs: [ValueId; 3],
    output: ValueId,
) -> Node {
    Node {
        name: String::new(),
        domain: ONNX_DOMAIN.to_owned(),
        op_type: op_type.to_owned(),
        inputs: inputs.into_iter().map(Some).collect(),
        outputs: vec![Some(output)],
        operator,
        parsed: None,
    }
}

/// Puts a pair before each input that has a scale, and gives what is known of the new graph. Nodes that
/// read the same value share a pair.
pub(super) fn insert(
    graph: &mut Graph,
    facts: Vec<Option<Fact>>,
    options: &ConvertOptions,
) -> Result<Vec<Option<Fact>>, galatea_graph::GraphError> {
    let activations = &options.activations;
    if activations.scales.is_empty() {
        return Ok(facts);
    }
    let reader = ActivationReader::new(graph, &facts, options, &activations.exclude);
    let mut places = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for at in reader.reads(node) {
            let Some(id) = node.input(at) else { continue };
            if let Some(affine) = activations.scales.get(&graph.value(id).name) {
                places.push((index, at, id, *affine));
            }
        }
    }
    let grouping = ScaleGrouping { axis: 1, block_size: 0 };
    let mut made: HashMap<ValueId, ValueId> = HashMap::new();
    for (index, at, id, affine) in places {
        let to = match made.get(&id) {
            Some(&to) => to,
            None => {
                let name = graph.value(id).name.clone();
                let scale =
                    graph.add_constant(&format!("{name}/scale"), Tensor::scalar(affine.scale));
                let zero = graph.add_constant(&format!("{name}/zero_point"), affine.zero_point());
                let codes = graph.fresh_value(&format!("{name}/quantized"));
                let to = graph.fresh_value(&format!("{name}/dequantized"));
                let quantize = Arc::new(QuantizeLinear {
                    grouping: grouping.clone(),
                    output_dtype: None,
                    overflow: OverflowRule::Saturate,
                });
                let dequantize =
                    Arc::new(DequantizeLinear { grouping: grouping.clone(), output_dtype: None });
                let inputs = [id, scale, zero];
                graph.nodes.push(node("QuantizeLinear", quantize, inputs, codes));
                let inputs = [codes, scale, zero];
                graph.nodes.push(node("DequantizeLinear", dequantize, inputs, to));
                made.insert(id, to);
                to
            }
        };
        if let Some(slot) = graph.nodes.get_mut(index).and_then(|node| node.inputs.get_mut(at)) {
            *slot = Some(to);
        }
    }
    graph.sort()?;
    infer::facts(graph, &HashMap::new())
}
