//! The plain evaluation of every operator: slow, and the oracle for all others.

use std::sync::Arc;
use std::time::Instant;

use galatea_graph::{Fact, Graph, GraphError, evaluate};
use galatea_runtime::{
    Claim, Claims, Executable, ExecutionProvider, Fence, MemoryReport, ProfileRow, RuntimeError,
    SessionOptions,
};
use galatea_tensor::Tensor;

use crate::cost;

/// The provider's name.
pub const NAME: &str = "reference";

/// Nanoseconds of one operation in plain loops.
pub(crate) const OPERATION_NS: f64 = 5.0;
/// Nanoseconds to allocate outputs and walk the values.
const NODE_NS: f64 = 1000.0;

/// Runs any graph with [`evaluate::run_node`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceProvider;

impl ExecutionProvider for ReferenceProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claim(&self, graph: &Graph, facts: &[Option<Fact>]) -> Claims {
        let claim = |(index, node)| Claim {
            nodes: vec![index],
            cost_ns: cost::operations(node, facts) * OPERATION_NS + NODE_NS,
            kernel: NAME.into(),
        };
        Claims { claims: graph.nodes.iter().enumerate().map(claim).collect(), ..Claims::default() }
    }

    fn compile(
        &self,
        graph: Arc<Graph>,
        _options: &SessionOptions,
    ) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(ReferenceExecutable { graph }))
    }
}

struct ReferenceExecutable {
    graph: Arc<Graph>,
}

impl Executable for ReferenceExecutable {
    fn submit(&self, inputs: Vec<Tensor>) -> Fence {
        let outputs = evaluate::run(&self.graph, &inputs).map_err(RuntimeError::from);
        Fence::ready(outputs.and_then(adjacent))
    }

    fn profile(&self, inputs: Vec<Tensor>) -> Result<(Vec<Tensor>, Vec<ProfileRow>), RuntimeError> {
        let graph = &self.graph;
        let mut values: Vec<Option<Tensor>> =
            graph.values().iter().map(|value| value.initializer.clone()).collect();
        for (id, tensor) in graph.inputs.iter().zip(inputs) {
            values[id.index()] = Some(tensor);
        }
        let mut rows = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            let start = Instant::now();
            let outputs = evaluate::run_node(node, &values)
                .map_err(|error| GraphError::at(graph.place(index), error))?;
            rows.push(ProfileRow {
                node: node.name.clone(),
                op: node.operator_name(),
                kernel: NAME.into(),
                time: start.elapsed(),
            });
            for (slot, tensor) in node.outputs.iter().zip(outputs) {
                if let Some(id) = slot {
                    values[id.index()] = Some(tensor);
                }
            }
        }
        let output = |id: &galatea_graph::ValueId| {
            values[id.index()].clone().ok_or_else(|| {
                let text = format!("output '{}' was not computed", graph.value(*id).name);
                RuntimeError::from(GraphError::structure(text))
            })
        };
        let outputs = graph.outputs.iter().map(output).collect::<Result<_, _>>()?;
        Ok((adjacent(outputs)?, rows))
    }

    fn memory(&self) -> MemoryReport {
        let weights = self.graph.values().iter().filter_map(|value| value.initializer.as_ref());
        MemoryReport { initializer_bytes: weights.map(Tensor::size_bytes).sum(), arena_bytes: 0 }
    }
}

/// Outputs leave as adjacent elements, whatever views the operators gave.
fn adjacent(outputs: Vec<Tensor>) -> Result<Vec<Tensor>, RuntimeError> {
    outputs.iter().map(|tensor| tensor.contiguous().map_err(RuntimeError::from)).collect()
}
