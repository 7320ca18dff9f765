//! Which nodes FP16 is too narrow for whatever the inputs are, by proof.
//!
//! Sums of products of bytes are bounded by their lengths, functions such as the sigmoid and limits by what they are.
//! [`interval`] carries such bounds through the graph. A float whose bound exceeds what FP16 holds makes islands of FP32
//! of the node that gives it and of those that read it, up to the one that scales it back, and of what makes the scale.
//! Constants that FP16 does not hold ([`constants`]) do so, too, and what is known to pass large numbers on the way to small
//! ones ([`growth`]). Floats that nothing is known of stay FP16: a run tells (`guard.rs`).

mod constants;
mod growth;
mod interval;
mod number_interval;
mod patterns;
mod products;

use galatea_graph::ops::reduce::{Reduce, ReduceKind};
use galatea_graph::{Dim, Fact, Graph, Node, ValueId};
use galatea_tensor::{DataType, OrderedMap, OrderedSet, Tensor};

use constants::ConstantEffect;
use number_interval::NumberInterval;

/// The largest number of FP16.
const LARGEST: f64 = 65_504.0;

/// Sums of this many elements or more exceed FP16 where elements are as large as those of models may be.
const LONG: usize = 1024;

/// The most operators that a scale is made by.
const MAX_STEPS: usize = 32;

/// How a float exceeds what FP16 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fp16Excess {
    /// It was scaled back, and the next factor may be part of the scale.
    Scaled,
    /// It may, by what is computed.
    Likely,
    /// Its bound does.
    Proven,
}

/// Bounds of the values of a graph so far.
pub(super) struct GraphRanges<'g> {
    graph: &'g Graph,
    facts: &'g [Option<Fact>],
    intervals: Vec<Option<NumberInterval>>,
    excesses: OrderedMap<ValueId, Fp16Excess>,
    /// Floats that are, or may be, so small that FP16 loses their digits.
    small: OrderedSet<ValueId>,
    wide: OrderedSet<usize>,
    consumers: Vec<Vec<usize>>,
    producers: Vec<Option<usize>>,
}

/// The nodes of a graph in running order that are computed in FP32 whatever the inputs of a run are, by their first
/// results.
pub(super) fn proven(graph: &Graph, facts: &[Option<Fact>]) -> OrderedSet<String> {
    let intervals = vec![None; graph.values().len()];
    let excesses = OrderedMap::new();
    let small = OrderedSet::new();
    let wide = OrderedSet::new();
    let consumers = graph.consumers();
    let producers = graph.producers();
    let mut ranges =
        GraphRanges { graph, facts, intervals, excesses, small, wide, consumers, producers };
    for (index, node) in graph.nodes.iter().enumerate() {
        ranges.visit(index, node);
    }
    let name = |&index: &usize| {
        let first = graph.nodes.get(index)?.output(0)?;
        Some(graph.value(first).name.clone())
    };
    ranges.wide.iter().filter_map(name).collect()
}

/// Operators whose results are as small as others', however large what they read is.
const NORMALS: &[&str] = &[
    "LayerNormalization",
    "BatchNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "MeanVarianceNormalization",
    "LpNormalization",
    "LRN",
    "Sqrt",
    "Log",
    "Reciprocal",
    "QuantizeLinear",
    "DynamicQuantizeLinear",
    "Asinh",
    "Acosh",
    "ReduceLogSum",
    "ReduceLogSumExp",
];

/// Operators whose results are as large as what they read.
const KEEPERS: &[&str] = &[
    "Add",
    "Sub",
    "Sum",
    "Mean",
    "Mul",
    "Neg",
    "Abs",
    "Relu",
    "LeakyRelu",
    "PRelu",
    "Elu",
    "Selu",
    "Celu",
    "Gelu",
    "Swish",
    "Mish",
    "HardSwish",
    "Softplus",
    "ThresholdedRelu",
    "Clip",
    "Max",
    "Min",
    "Where",
    "Cast",
    "CastLike",
    "Concat",
    "Pad",
    "Pow",
    "Floor",
    "Ceil",
    "Round",
    "LogSoftmax",
    "CumSum",
    "TopK",
    "Resize",
    "Upsample",
    "ScatterElements",
    "ScatterND",
    "ReverseSequence",
];

impl GraphRanges<'_> {
    /// The interval of a value: as it was found, or that of its constant or its type.
    fn interval(&self, id: ValueId) -> Option<NumberInterval> {
        if let Some(found) = self.intervals.get(id.index()).copied().flatten() {
            return Some(found);
        }
        match self.known(id) {
            Some(tensor) => interval::of_constant(tensor),
            None => interval::of_type(self.dtype(id)?),
        }
    }

    fn fact(&self, id: ValueId) -> Option<&Fact> {
        self.facts.get(id.index())?.as_ref()
    }

    fn dtype(&self, id: ValueId) -> Option<DataType> {
        Some(self.fact(id)?.dtype)
    }

    /// The lengths of a value, as far as they are known.
    fn lengths(&self, id: ValueId) -> Option<Vec<Option<usize>>> {
        Some(self.fact(id)?.shape.as_ref()?.iter().map(Dim::known).collect())
    }

    /// The lengths of a value, where all are known.
    fn shape(&self, id: ValueId) -> Option<Vec<usize>> {
        self.fact(id)?.known_shape()
    }

    /// A value that is known before a run.
    fn known(&self, id: ValueId) -> Option<&Tensor> {
        self.graph.constant(id).or_else(|| self.fact(id)?.value.as_ref())
    }

    fn is_float(&self, id: ValueId) -> bool {
        self.dtype(id).is_some_and(DataType::is_float)
    }

    /// Bounds a node's results, and decides whether it is computed in FP32.
    fn visit(&mut self, index: usize, node: &Node) {
        let found = interval::of_node(self, node);
        for &id in node.outputs.iter().flatten() {
            let same = node.output(0) == Some(id) || patterns::moves(node);
            if let (true, Some(slot)) = (same, self.intervals.get_mut(id.index())) {
                *slot = found;
            }
        }
        let read = node.inputs.iter().flatten().filter_map(|id| self.excesses.get(id)).max();
        let read = read.copied();
        let effect = constants::effect_of(self, node);
        let reads_small = node.inputs.iter().flatten().any(|id| self.small.contains(id));
        let given = node.output(0).filter(|&id| self.is_float(id));
        let excess = given.and_then(|id| self.excess(node, id, read, effect));
        let small = given.is_some() && (effect.small || self.gives_small(node, found));
        let each = node.outputs.iter().flatten().copied();
        let floats: Vec<ValueId> = each.filter(|&id| self.is_float(id)).collect();
        if small {
            self.small.extend(floats.iter().copied());
        }
        if let Some(excess) = excess {
            self.excesses.extend(floats.into_iter().map(|id| (id, excess)));
        }
        let reads = self.reads_wide(node, read) || reads_small && self.is_light(node);
        if excess.is_some() || small || effect.wide || reads {
            self.wide.insert(index);
        }
        if self.wide.contains(&index) || node.op_type == "MatMulIntegerToFloat" {
            self.widen_scales(node);
        }
    }

    /// Returns whether a node reads floats that FP16 does not hold as they are.
    fn reads_wide(&self, node: &Node, read: Option<Fp16Excess>) -> bool {
        match read {
            None | Some(Fp16Excess::Scaled) => false,
            Some(Fp16Excess::Proven) => true,
            // What computes most of a model is left where it is while nothing is proven.
            Some(Fp16Excess::Likely) => self.is_light(node),
        }
    }

    fn is_light(&self, node: &Node) -> bool {
        let name = node.op_type.as_str();
        let bounded = node.output(0).is_some_and(|id| self.interval(id).is_some());
        patterns::moves(node)
            || node.operator::<Reduce>().is_some()
            || [NORMALS, KEEPERS].iter().any(|names| names.contains(&name))
            || name == "Div"
            || bounded && !matches!(name, "MatMul" | "Gemm" | "Conv")
    }

    /// How the first result of a node exceeds FP16, which is a float.
    fn excess(
        &self,
        node: &Node,
        given: ValueId,
        read: Option<Fp16Excess>,
        effect: ConstantEffect,
    ) -> Option<Fp16Excess> {
        let found = self.intervals.get(given.index()).copied().flatten();
        let bounded = found.is_some_and(|found| found.largest() <= LARGEST);
        if found.is_some() && !bounded {
            return Some(Fp16Excess::Proven);
        }
        let grows = effect.large || self.inverts_small(node) || !bounded && self.grows(node);
        let own = grows.then_some(Fp16Excess::Likely);
        let name = node.op_type.as_str();
        let passed = match read {
            None => None,
            Some(_) if self.scales(node).is_some() => Some(Fp16Excess::Scaled),
            Some(_) if bounded => None,
            Some(Fp16Excess::Scaled) => patterns::moves(node).then_some(Fp16Excess::Scaled),
            Some(_) if NORMALS.contains(&name) || name == "Div" || self.is_by_factor(node) => None,
            Some(read) => self.keeps(node).then_some(read),
        };
        passed.max(own)
    }

    /// Returns whether a node gives numbers that are next to nothing, in an interval or of such.
    fn gives_small(&self, node: &Node, found: Option<NumberInterval>) -> bool {
        let most = found.map_or(1.0, NumberInterval::largest);
        if most > 0.0 && most < constants::SMALL {
            return true;
        }
        let small = |id: &ValueId| self.small.contains(id);
        let mut floats = node.inputs.iter().flatten().filter(|&&id| self.is_float(id));
        match node.op_type.as_str() {
            // What is added to others is nothing beside them.
            "Add" | "Sub" | "Sum" | "Mean" | "Concat" | "Where" | "Max" => {
                let mut others = floats.filter(|&&id| self.known(id).is_none()).peekable();
                others.peek().is_some() && others.all(small)
            }
            "Div" => node.input(0).is_some_and(|id| small(&id)) && !self.inverts_small(node),
            "Sqrt" => floats.any(small),
            "Pow" | "Reciprocal" => false,
            _ => floats.any(small) && self.keeps(node),
        }
    }

    /// Returns whether a node divides by what is next to nothing.
    fn inverts_small(&self, node: &Node) -> bool {
        let small = |at: usize| node.input(at).is_some_and(|id| self.small.contains(&id));
        match node.op_type.as_str() {
            "Reciprocal" | "Pow" => small(0),
            // A quotient of two such numbers is none.
            "Div" => small(1) && node.input(0).is_some_and(|id| self.known(id).is_some()),
            _ => false,
        }
    }

    /// Returns whether a node multiplies by a factor that many elements share, as norms do: what exceeds FP16 is that
    /// factor alone.
    fn is_by_factor(&self, node: &Node) -> bool {
        let (Some(a), Some(b)) = (node.input(0), node.input(1)) else { return false };
        let exceeds = |id: ValueId| self.excesses.contains_key(&id);
        let few = |factor: ValueId, many: ValueId| {
            exceeds(factor) && !exceeds(many) && self.elements(factor) < self.elements(many)
        };
        node.op_type == "Mul"
            && self.known(a).is_none()
            && self.known(b).is_none()
            && (few(a, b) || few(b, a))
    }

    /// Returns whether a node gives numbers as large as those that it reads.
    fn keeps(&self, node: &Node) -> bool {
        let name = node.op_type.as_str();
        patterns::moves(node) || KEEPERS.contains(&name) || node.operator::<Reduce>().is_some()
    }

    /// Returns whether a node gives sums that are larger than what they are made of.
    fn grows(&self, node: &Node) -> bool {
        let long = || interval::reduced(self, node).is_some_and(|count| count >= LONG);
        let sum = node.operator::<Reduce>().is_some_and(|operator| match operator.kind {
            ReduceKind::SumSquare | ReduceKind::Prod => true,
            ReduceKind::Sum | ReduceKind::L1 | ReduceKind::L2 => long(),
            _ => false,
        });
        sum || growth::passes_large(self, node)
    }

    /// The factor or divisor that scales the other operand of a product or quotient; none where there is none.
    fn scales(&self, node: &Node) -> Option<ValueId> {
        let a = node.input(0)?;
        let b = node.input(1)?;
        let exceeds = |id: ValueId| self.excesses.contains_key(&id);
        let (large, scale) = match (node.op_type.as_str(), exceeds(a), exceeds(b)) {
            ("Mul" | "Div", true, false) => (a, b),
            ("Mul", false, true) => (b, a),
            _ => return None,
        };
        if self.known(scale).is_some() {
            let known = self.interval(scale);
            let factor = if node.op_type == "Div" { known?.inverse() } else { known };
            return (factor?.largest() <= 1.0).then_some(scale);
        }
        let axes = |id: ValueId| self.fact(id).and_then(Fact::rank);
        let few = self.elements(scale) == Some(1)
            || axes(scale).zip(axes(large)).is_some_and(|(few, many)| few < many)
            || self.elements(scale).zip(self.elements(large)).is_some_and(|(few, many)| few < many);
        (few || self.is_unit(scale)).then_some(scale)
    }

    fn elements(&self, id: ValueId) -> Option<usize> {
        Some(self.shape(id)?.iter().product())
    }

    /// The node that writes a value.
    fn producer(&self, id: ValueId) -> Option<&Node> {
        self.graph.nodes.get(self.producer_index(id)?)
    }

    fn producer_index(&self, id: ValueId) -> Option<usize> {
        self.producers.get(id.index()).copied().flatten()
    }

    /// The nodes that read a value.
    fn readers(&self, id: ValueId) -> impl Iterator<Item = &Node> {
        let all = self.consumers.get(id.index()).into_iter().flatten();
        all.filter_map(|&index| self.graph.nodes.get(index))
    }

    /// Returns whether a value is what a step of codes stands for: of `DynamicQuantizeLinear`, and products
    /// of such.
    fn is_unit(&self, id: ValueId) -> bool {
        let mut waiting = vec![id];
        let mut steps = 0;
        while let Some(id) = waiting.pop() {
            steps += 1;
            match self.producer(id) {
                None if self.known(id).is_some() => {}
                Some(node) if node.op_type == "DynamicQuantizeLinear" => {}
                Some(node) if steps < MAX_STEPS && makes_scales(node) => {
                    waiting.extend(node.inputs.iter().flatten().filter(|&&id| self.is_float(id)));
                }
                _ => return false,
            }
        }
        true
    }

    /// Computes in FP32 what the scale of a node's result is made of: units of codes are too small for FP16.
    fn widen_scales(&mut self, node: &Node) {
        let exceeding = node.inputs.iter().flatten().any(|id| self.excesses.contains_key(id));
        let mut waiting: Vec<ValueId> = match node.op_type.as_str() {
            "Mul" | "Div" if exceeding => node.inputs.iter().flatten().copied().collect(),
            "MatMulIntegerToFloat" => [2, 3].into_iter().filter_map(|at| node.input(at)).collect(),
            _ => return,
        };
        while let Some(id) = waiting.pop() {
            let Some(at) = self.producer_index(id) else { continue };
            let Some(found) = self.graph.nodes.get(at).filter(|node| makes_scales(node)) else {
                continue;
            };
            let read: Vec<ValueId> = found.inputs.iter().flatten().copied().collect();
            if self.wide.insert(at) {
                waiting.extend(read.into_iter().filter(|&id| self.is_float(id)));
            }
        }
    }
}

/// Returns whether a node may be part of what makes a scale.
fn makes_scales(node: &Node) -> bool {
    const MAKERS: &[&str] =
        &["Mul", "Div", "Reciprocal", "DynamicQuantizeLinear", "Cast", "Max", "Clip"];
    node.domain.is_empty() && (MAKERS.contains(&node.op_type.as_str()) || patterns::moves(node))
}
