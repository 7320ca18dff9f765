//! Choice of the values of a graph to quantize, and of those that share their parameters.

use std::collections::{HashMap, HashSet};

use galatea_graph::ops::activation::{Activation, ActivationKind};
use galatea_graph::ops::math::{Binary, BinaryKind, Clip};
use galatea_graph::{Fact, Graph, GraphError, Node, ValueId, infer};

use super::layer::{LayerKind, WeightedLayer};
use super::range::ValueRange;

/// Operators that only move or choose elements of their first input, so that results keep its scale.
const MOVING: &[&str] = &["Flatten", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"];

/// The values that a set of layers wants as integers.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantizePlan {
    /// Inputs of layers: integers for these, floats for other readers.
    pub(super) inputs: Vec<ValueId>,
    /// Results that are integers for every reader: of convolutions, of sums of these, and what is
    /// moved of them.
    pub(super) results: Vec<ValueId>,
    /// Values with one scale: each points to a value before it, the first to itself.
    groups: HashMap<ValueId, ValueId>,
}

/// Consumers and facts of the graph's values.
struct ValueReaders<'g> {
    graph: &'g Graph,
    consumers: Vec<Vec<usize>>,
    facts: Vec<Option<Fact>>,
}

impl ValueReaders<'_> {
    /// The only node that reads a value, unless a run gives the value.
    fn only(&self, id: ValueId) -> Option<&Node> {
        match self.consumers[id.index()][..] {
            [one] if !self.graph.outputs.contains(&id) => self.graph.nodes.get(one),
            _ => None,
        }
    }

    /// The value behind limits that follow a result.
    fn limited(&self, mut id: ValueId) -> ValueId {
        while let Some(node) = self.only(id).filter(|node| self.is_limit(node)) {
            match node.output(0) {
                Some(next) => id = next,
                None => break,
            }
        }
        id
    }

    fn is_limit(&self, node: &Node) -> bool {
        let relu = |found: &Activation| matches!(found.kind, ActivationKind::Relu);
        if node.operator::<Clip>().is_some() {
            let bounds = node.inputs.iter().skip(1).flatten();
            return bounds.into_iter().all(|&id| self.graph.constant(id).is_some());
        }
        node.operator::<Activation>().is_some_and(relu)
    }

    fn same_shape(&self, a: ValueId, b: ValueId) -> bool {
        let shape = |id: ValueId| self.facts[id.index()].as_ref()?.shape.as_ref();
        match (shape(a), shape(b)) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            _ => false,
        }
    }
}

impl QuantizePlan {
    /// Plans for some layers of a sorted graph.
    pub(super) fn new(graph: &Graph, layers: &[&WeightedLayer]) -> Result<Self, GraphError> {
        let facts = infer::facts(graph, &HashMap::new())?;
        let readers = ValueReaders { graph, consumers: graph.consumers(), facts };
        let mut plan = Self::default();
        for layer in layers {
            if !plan.inputs.contains(&layer.input) {
                plan.inputs.push(layer.input);
            }
        }
        let convs: HashSet<usize> =
            layers.iter().filter(|l| l.kind == LayerKind::Conv).map(|layer| layer.index).collect();
        let mut whole: HashSet<ValueId> = HashSet::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some(output) = node.output(0) else { continue };
            let sum = node.operator::<Binary>().is_some_and(|b| matches!(b.kind, BinaryKind::Add));
            let held = |slot: usize| node.input(slot).filter(|id| whole.contains(id));
            let made = if convs.contains(&index) {
                Some(readers.limited(output))
            } else if sum {
                let both = held(0).zip(held(1)).filter(|&(a, b)| readers.same_shape(a, b));
                both.map(|_| readers.limited(output))
            } else if MOVING.contains(&node.op_type.as_str()) && node.outputs.len() == 1 {
                let from = held(0);
                from.iter().for_each(|&from| plan.join(from, output));
                from.map(|_| output)
            } else {
                None
            };
            if let Some(made) = made.filter(|&id| whole.insert(id)) {
                plan.results.push(made);
            }
        }
        Ok(plan)
    }

    /// All values that the plan needs ranges of, each once.
    pub(super) fn values(&self) -> Vec<ValueId> {
        let mut seen = HashSet::new();
        self.inputs.iter().chain(&self.results).copied().filter(|&id| seen.insert(id)).collect()
    }

    fn join(&mut self, first: ValueId, second: ValueId) {
        let root = self.root(first);
        self.groups.insert(second, root);
    }

    fn root(&self, id: ValueId) -> ValueId {
        self.groups.get(&id).copied().unwrap_or(id)
    }

    /// The range of every value, the same for values that share it.
    pub(super) fn ranges(
        &self,
        own: &HashMap<ValueId, ValueRange>,
    ) -> HashMap<ValueId, ValueRange> {
        let mut shared: HashMap<ValueId, ValueRange> = HashMap::new();
        let values = self.values();
        for &id in &values {
            let Some(&range) = own.get(&id) else { continue };
            let root = shared.entry(self.root(id)).or_insert(range);
            *root = root.union(range);
        }
        let of = |id: ValueId| shared.get(&self.root(id)).map(|&range| (id, range));
        values.into_iter().filter_map(of).collect()
    }
}
