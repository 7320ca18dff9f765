//! Queries of a graph that rules use.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::Operator;

/// Producers, consumers and facts of all values.
#[derive(Debug)]
pub struct ValueMaps {
    producers: Vec<Option<usize>>,
    consumers: Vec<Vec<usize>>,
    facts: Vec<Option<Fact>>,
}

impl ValueMaps {
    pub(super) fn new(graph: &Graph, facts: Vec<Option<Fact>>) -> Self {
        Self { producers: graph.producers(), consumers: graph.consumers(), facts }
    }

    /// Looks again after nodes have changed; facts of old values still hold.
    pub(super) fn refresh(&mut self, graph: &Graph) {
        self.producers = graph.producers();
        self.consumers = graph.consumers();
        self.facts.resize(graph.values().len(), None);
    }

    /// Looks again at one node, which writes what the old one at its index wrote; facts of old
    /// values still hold.
    pub(super) fn replaced(&mut self, graph: &Graph, index: usize, old: &Node) {
        for id in old.inputs.iter().flatten() {
            let readers = &mut self.consumers[id.index()];
            if let Ok(at) = readers.binary_search(&index) {
                readers.remove(at);
            }
        }
        self.producers.resize(graph.values().len(), None);
        self.consumers.resize(graph.values().len(), Vec::new());
        self.facts.resize(graph.values().len(), None);
        for id in graph.nodes[index].inputs.iter().flatten() {
            let readers = &mut self.consumers[id.index()];
            readers.insert(readers.partition_point(|&reader| reader < index), index);
        }
    }

    /// Returns the fact of a value.
    #[must_use]
    pub fn fact(&self, id: ValueId) -> Option<&Fact> {
        self.facts.get(id.index())?.as_ref()
    }

    /// The index of the node that writes a value.
    #[must_use]
    pub fn producer(&self, id: ValueId) -> Option<usize> {
        self.producers.get(id.index()).copied().flatten()
    }

    /// The indices of the nodes that read a value.
    #[must_use]
    pub fn consumers(&self, id: ValueId) -> &[usize] {
        self.consumers.get(id.index()).map_or(&[], Vec::as_slice)
    }

    /// The node that writes a value, if its operator has this name.
    #[must_use]
    pub fn written_by<'g>(&self, graph: &'g Graph, id: ValueId, name: &str) -> Option<&'g Node> {
        let node = &graph.nodes[self.producer(id)?];
        (node.op_type == name).then_some(node)
    }

    /// Returns whether exactly one node reads a value, and the caller of a run does not.
    #[must_use]
    pub fn read_once(&self, graph: &Graph, id: ValueId) -> bool {
        self.consumers(id).len() == 1 && !graph.outputs.contains(&id)
    }

    /// The constant that a value is: an initializer, or known from the model's fixed shapes.
    #[must_use]
    pub fn constant<'g>(&'g self, graph: &'g Graph, id: ValueId) -> Option<&'g Tensor> {
        graph.constant(id).or_else(|| self.fact(id)?.value.as_ref())
    }

    /// The number that a constant of one floating-point element is.
    #[must_use]
    pub fn scalar(&self, graph: &Graph, id: ValueId) -> Option<f64> {
        let tensor = self.constant(graph, id)?;
        if tensor.elements() != 1 {
            return None;
        }
        match tensor.dtype() {
            DataType::Fp32 => tensor.item::<f32>().ok().map(f64::from),
            DataType::Fp64 => tensor.item::<f64>().ok(),
            DataType::Fp16 => tensor.item::<half::f16>().ok().map(f64::from),
            DataType::Bf16 => tensor.item::<half::bf16>().ok().map(f64::from),
            _ => None,
        }
    }

    /// Returns the other input of a node with two inputs of which one is a constant scalar near
    /// `expected`.
    #[must_use]
    pub fn beside_scalar(&self, graph: &Graph, node: &Node, expected: f64) -> Option<ValueId> {
        let (other, found) = self.with_scalar(graph, node)?;
        // Exporters round constants such as √2 to the model's type.
        ((found - expected).abs() <= 1e-3 * expected.abs()).then_some(other)
    }

    /// Returns the other input and the scalar, for a node with two inputs of which one is a
    /// constant scalar.
    #[must_use]
    pub fn with_scalar(&self, graph: &Graph, node: &Node) -> Option<(ValueId, f64)> {
        let a = node.input(0)?;
        let b = node.input(1)?;
        if let Some(scalar) = self.scalar(graph, b) {
            return Some((a, scalar));
        }
        self.scalar(graph, a).map(|scalar| (b, scalar))
    }

    /// Returns whether two values certainly have the same shape.
    #[must_use]
    pub fn same_shape(&self, a: ValueId, b: ValueId) -> bool {
        let shape = |id| self.fact(id).and_then(|fact| fact.shape.as_ref());
        match (shape(a), shape(b)) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            _ => false,
        }
    }

    /// Returns whether a value is of type FP32.
    #[must_use]
    pub fn is_fp32(&self, id: ValueId) -> bool {
        self.fact(id).is_some_and(|fact| fact.dtype == DataType::Fp32)
    }
}

/// A node made by a rule, named after the node that it replaces.
pub(super) fn make_node(
    domain: &str,
    op_type: &str,
    after: &Node,
    operator: impl Operator,
    inputs: Vec<Option<ValueId>>,
) -> Node {
    replacing_node(domain, op_type, after, Arc::new(operator), inputs)
}

fn replacing_node(
    domain: &str,
    op_type: &str,
    after: &Node,
    operator: Arc<dyn Operator>,
    inputs: Vec<Option<ValueId>>,
) -> Node {
    Node {
        name: after.name.clone(),
        domain: domain.to_owned(),
        op_type: op_type.to_owned(),
        inputs,
        outputs: after.outputs.clone(),
        operator,
        parsed: None,
    }
}
