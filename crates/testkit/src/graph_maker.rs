//! Graphs under construction, and repeatable tensors for their runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId};
use galatea_tensor::Tensor;

/// Returns repeatable values between -1 and 1.
#[must_use]
pub fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
        })
        .collect()
}

/// Returns a float tensor of repeatable values.
#[must_use]
pub fn floats(shape: &[usize], seed: u32) -> Tensor {
    Tensor::from_vec(shape, values(shape.iter().product(), seed)).unwrap()
}

/// Returns an integer tensor.
#[must_use]
pub fn ints(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

/// A graph under construction, with the inputs of the test's run.
#[derive(Debug)]
pub struct GraphMaker {
    /// The graph.
    pub graph: Graph,
    /// Names and values of its inputs.
    pub inputs: Vec<(String, Tensor)>,
}

impl Default for GraphMaker {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphMaker {
    /// Returns an empty graph of opset 17 with the operators of all domains.
    #[must_use]
    pub fn new() -> Self {
        let mut graph = Graph::new("test");
        graph.opsets.insert(String::new(), 17);
        graph.opsets.insert("ai.galatea".into(), 1);
        graph.opsets.insert("com.microsoft".into(), 1);
        Self { graph, inputs: Vec::new() }
    }

    /// Adds an input, declared with symbols for its lengths, and its value in the test's run.
    pub fn input(&mut self, name: &str, value: Tensor) -> Option<ValueId> {
        let id = self.graph.value_named(name);
        let dims = (0..value.rank()).map(|axis| Dim::symbol(&format!("{name}{axis}"))).collect();
        self.graph.value_mut(id).declared = Some(Fact::new(value.dtype(), dims));
        self.graph.inputs.push(id);
        self.inputs.push((name.to_owned(), value));
        Some(id)
    }

    /// Adds a constant.
    pub fn constant(&mut self, value: Tensor) -> Option<ValueId> {
        Some(self.graph.add_constant("c", value))
    }

    /// Adds a node of the ONNX domain, or of another one given as `domain:op`.
    pub fn node(
        &mut self,
        op: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Vec<Option<ValueId>> {
        let (domain, op) = op.split_once(':').unwrap_or(("", op));
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let made: Vec<_> = (0..outputs).map(|_| Some(self.graph.fresh_value(op))).collect();
        self.graph.add_node(domain, op, "", &attributes, inputs.to_vec(), made.clone()).unwrap();
        made
    }
}
