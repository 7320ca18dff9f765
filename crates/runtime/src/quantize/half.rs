//! Floats of 16 bits: weights alone, or arithmetic too.

use std::collections::{HashMap, HashSet};

use galatea_graph::ops::cast::Cast;
use galatea_graph::{AttributeValue, Fact, Graph, Node, ONNX_DOMAIN, ValueId, infer};
use galatea_tensor::{DataType, Element, Tensor, bf16, f16};

use super::edit;
use super::form::{QuantizedForm, ValueCache};
use super::layer::WeightedLayer;
use crate::error::RuntimeError;

/// Operators that stay with FP32 where arithmetic has 16 bits: they take FP32 only, make numbers of
/// no input, or change their meaning with fewer bits.
const KEPT: &[&str] = &[
    "Constant",
    "ConstantOfShape",
    "CumSum",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "EyeLike",
    "If",
    "Loop",
    "NonMaxSuppression",
    "QuantizeLinear",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Range",
    "Resize",
    "RoiAlign",
    "Scan",
    "SequenceMap",
    "Upsample",
];

/// Constants of fewer elements stay as they are where only weights change.
const MIN_ELEMENTS: usize = 16;

/// A float of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HalfType {
    Fp16,
    Bf16,
}

impl HalfType {
    /// In `TensorProto.DataType`.
    fn number(self) -> i64 {
        match self {
            Self::Fp16 => 10,
            Self::Bf16 => 16,
        }
    }

    /// The constant in this type; `None` where a value would become infinite.
    fn rounded(self, tensor: &Tensor) -> Option<Tensor> {
        fn all<T: Element>(
            tensor: &Tensor,
            values: &[f32],
            round: impl Fn(f32) -> (T, bool),
        ) -> Option<Tensor> {
            let rounded: Option<Vec<T>> = values
                .iter()
                .map(|&value| {
                    let (rounded, finite) = round(value);
                    (finite || !value.is_finite()).then_some(rounded)
                })
                .collect();
            Tensor::from_vec(tensor.shape(), rounded?).ok()
        }
        let values = tensor.to_vec::<f32>().ok()?;
        match self {
            Self::Fp16 => all(tensor, &values, |value| {
                let half = f16::from_f32(value);
                (half, half.is_finite())
            }),
            Self::Bf16 => all(tensor, &values, |value| {
                let half = bf16::from_f32(value);
                (half, half.is_finite())
            }),
        }
    }
}

/// Layers with floats of 16 bits.
#[derive(Debug)]
pub(super) struct HalfPrecision {
    pub(super) of: HalfType,
    /// True if sums and products have 16 bits too.
    pub(super) arithmetic: bool,
    /// The form of layers that have fewer bits still.
    pub(super) inner: Option<Box<dyn MixedForm>>,
}

/// A form that another one can hold.
pub(super) trait MixedForm: QuantizedForm + std::fmt::Debug {}

impl<T: QuantizedForm + std::fmt::Debug> MixedForm for T {}

impl HalfPrecision {
    fn cast(
        &self,
        graph: &mut Graph,
        from: ValueId,
        to: ValueId,
        number: i64,
    ) -> Result<(), RuntimeError> {
        let name = format!("{}/cast", graph.value(to).name);
        let to_type = [("to", AttributeValue::Int(number))];
        edit::node(graph, (ONNX_DOMAIN, "Cast"), &name, &to_type, &[Some(from)], &[to])?;
        Ok(())
    }

    /// A constant in 16 bits, as FP32 again.
    fn weight(
        &self,
        graph: &mut Graph,
        id: ValueId,
        made: &mut ValueCache,
    ) -> Result<ValueId, RuntimeError> {
        let found = made.once(id, "half", || {
            let half = graph.constant(id).and_then(|tensor| self.of.rounded(tensor));
            let Some(half) = half else { return Ok(vec![id]) };
            let name = graph.value(id).name.clone();
            let half = edit::constant(graph, &format!("{name}/half"), half);
            let float = edit::after(graph, id, "float");
            self.cast(graph, half, float, 1)?;
            Ok(vec![float])
        })?;
        Ok(found[0])
    }

    /// Gives all weights 16 bits.
    fn weights(&self, graph: &mut Graph, left: &HashSet<ValueId>) -> Result<(), RuntimeError> {
        let mut made = ValueCache::default();
        let large =
            |tensor: &Tensor| tensor.dtype() == DataType::Fp32 && tensor.elements() >= MIN_ELEMENTS;
        for index in 0..graph.nodes.len() {
            let node = &graph.nodes[index];
            if scales_bytes(node) || node.output(0).is_some_and(|id| left.contains(&id)) {
                continue;
            }
            let own = node.operator.bodies().iter().flat_map(|body| body.captures()).min();
            let own = own.copied().unwrap_or(node.inputs.len());
            for slot in 0..own {
                let found = graph.nodes[index].input(slot);
                let Some(id) = found.filter(|&id| graph.constant(id).is_some_and(large)) else {
                    continue;
                };
                let half = self.weight(graph, id, &mut made)?;
                graph.nodes[index].inputs[slot] = Some(half);
            }
        }
        Ok(())
    }

    /// Gives all arithmetic 16 bits that can have them; inputs and outputs of the model stay.
    fn convert(&self, graph: &mut Graph, left: &HashSet<ValueId>) -> Result<(), RuntimeError> {
        graph.sort()?;
        let facts = infer::facts(graph, &HashMap::new())?;
        let single = |id: ValueId| {
            facts
                .get(id.index())
                .and_then(Option::as_ref)
                .is_some_and(|fact: &Fact| fact.dtype == DataType::Fp32 && fact.is_tensor())
        };
        let nodes = std::mem::take(&mut graph.nodes);
        let integers = around_integers(&nodes);
        let outputs: HashSet<ValueId> = graph.outputs.iter().copied().collect();
        // Values in 16 bits: the value itself, or what was made of one in FP32.
        let mut halves = HashMap::new();
        let mut floats = HashMap::new();
        for (index, mut node) in nodes.into_iter().enumerate() {
            let touches = node.inputs.iter().chain(&node.outputs).flatten().any(|&id| single(id));
            let kept = !touches
                || integers.contains(&index)
                || !node.domain.is_empty()
                || KEPT.contains(&node.op_type.as_str())
                || node.operator::<Cast>().is_some()
                || node.output(0).is_some_and(|id| left.contains(&id));
            for slot in node.inputs.iter_mut().flatten().filter(|slot| single(**slot)) {
                *slot = if kept {
                    self.as_single(graph, *slot, &halves, &mut floats)?
                } else {
                    self.as_half(graph, *slot, &mut halves)?
                };
            }
            if !kept {
                for slot in node.outputs.iter_mut().flatten().filter(|slot| single(**slot)) {
                    let half = edit::after(graph, *slot, "half");
                    halves.insert(*slot, half);
                    if outputs.contains(slot) {
                        floats.insert(half, *slot);
                    }
                    *slot = half;
                }
            }
            graph.nodes.push(node);
        }
        for (&half, &float) in &floats {
            if outputs.contains(&float) {
                self.cast(graph, half, float, 1)?;
            }
        }
        Ok(())
    }

    fn as_half(
        &self,
        graph: &mut Graph,
        id: ValueId,
        halves: &mut HashMap<ValueId, ValueId>,
    ) -> Result<ValueId, RuntimeError> {
        if let Some(&half) = halves.get(&id) {
            return Ok(half);
        }
        let half = edit::after(graph, id, "half");
        match graph.constant(id).map(|tensor| self.of.rounded(tensor)) {
            Some(Some(rounded)) => graph.value_mut(half).initializer = Some(rounded),
            // Beyond the range: infinite, as FP32 arithmetic in 16 bits would have it.
            Some(None) | None => self.cast(graph, id, half, self.of.number())?,
        }
        halves.insert(id, half);
        Ok(half)
    }

    fn as_single(
        &self,
        graph: &mut Graph,
        id: ValueId,
        halves: &HashMap<ValueId, ValueId>,
        floats: &mut HashMap<ValueId, ValueId>,
    ) -> Result<ValueId, RuntimeError> {
        // A constant or a value of FP32 is there as it was, unless its node has 16 bits by now.
        let written = graph.nodes.iter().any(|node| node.outputs.contains(&Some(id)));
        let given = graph.inputs.contains(&id) || graph.constant(id).is_some();
        let (true, Some(&half)) = (!written && !given, halves.get(&id)) else { return Ok(id) };
        if let Some(&float) = floats.get(&half) {
            return Ok(float);
        }
        self.cast(graph, half, id, 1)?;
        floats.insert(half, id);
        Ok(id)
    }
}

fn scales_bytes(node: &Node) -> bool {
    let quantises = ["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"];
    quantises.contains(&node.op_type.as_str()) || !node.domain.is_empty()
}

/// Nodes between a `DequantizeLinear` and a `QuantizeLinear`: they become arithmetic of integers.
fn around_integers(nodes: &[Node]) -> HashSet<usize> {
    let of = |name: &str, slots: fn(&Node) -> &[Option<ValueId>]| -> HashSet<ValueId> {
        let found = nodes.iter().filter(|node| node.op_type == name);
        found.flat_map(|node| slots(node).first().copied().flatten()).collect()
    };
    let back = of("DequantizeLinear", |node| &node.outputs);
    let there = of("QuantizeLinear", |node| &node.inputs);
    let reads = |node: &Node| node.inputs.iter().flatten().any(|id| back.contains(id));
    let writes = |node: &Node| node.outputs.iter().flatten().any(|id| there.contains(id));
    let all = nodes.iter().enumerate().filter(|(_, node)| reads(node) || writes(node));
    all.map(|(index, _)| index).collect()
}

impl QuantizedForm for HalfPrecision {
    fn name(&self) -> &'static str {
        match (&self.inner, self.of) {
            (Some(inner), _) => inner.name(),
            (None, HalfType::Fp16) => "FP16",
            (None, HalfType::Bf16) => "BF16",
        }
    }

    fn refusal(&self, graph: &Graph, layer: &WeightedLayer) -> Option<String> {
        self.inner.as_ref().and_then(|inner| inner.refusal(graph, layer))
    }

    fn begin(
        &self,
        graph: &mut Graph,
        layers: &[&WeightedLayer],
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        self.inner.as_ref().map_or(Ok(()), |inner| inner.begin(graph, layers, made))
    }

    fn emit(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        match &self.inner {
            Some(inner) => inner.emit(graph, layer, output, made)?,
            // Converted with everything else.
            None => edit::again(graph, layer, &layer.node.inputs, output),
        }
        Ok(())
    }

    fn probe(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        if let Some(inner) = &self.inner {
            return inner.emit(graph, layer, output, made);
        }
        let mut inputs = layer.node.inputs.clone();
        if !self.arithmetic {
            for slot in inputs.iter_mut().skip(1).flatten() {
                *slot = self.weight(graph, *slot, made)?;
            }
            edit::again(graph, layer, &inputs, output);
            return Ok(());
        }
        let mut halves = HashMap::new();
        for slot in inputs.iter_mut().flatten() {
            *slot = self.as_half(graph, *slot, &mut halves)?;
        }
        let half = edit::after(graph, output, "half");
        edit::again(graph, layer, &inputs, half);
        self.cast(graph, half, output, 1)
    }

    fn finish(&self, graph: &mut Graph, left: &HashSet<ValueId>) -> Result<(), RuntimeError> {
        // Beside fewer bits, 16 are what a layer returns to.
        let none = HashSet::new();
        let left = if self.inner.is_some() { &none } else { left };
        if self.arithmetic { self.convert(graph, left) } else { self.weights(graph, left) }
    }
}
