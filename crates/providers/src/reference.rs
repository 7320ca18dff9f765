//! The plain evaluation of every operator: slow, and the oracle for all others.

use std::sync::Arc;
use std::time::Instant;

use galatea_graph::{Datum, Fact, Graph, evaluate};
use galatea_runtime::device_selector::DeviceLanes;
use galatea_runtime::{
    Executable, ExecutionProvider, MemoryReport, NodeClaim, ProfileRow, ProviderClaims, RunFence,
    RuntimeError, SessionOptions, sized,
};
use galatea_tensor::Tensor;

use crate::cores::HostCores;
use crate::cost;

/// The provider's name.
pub const NAME: &str = "reference";

/// Nanoseconds of one operation in plain loops.
pub(crate) const OPERATION_NS: f64 = 5.0;
/// Nanoseconds to allocate outputs and walk the values.
const NODE_NS: f64 = 1000.0;

/// Runs any graph with [`evaluate::run_values`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceProvider;

impl ExecutionProvider for ReferenceProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_fallback(&self) -> bool {
        true
    }

    fn lanes(&self) -> DeviceLanes {
        HostCores::lanes()
    }

    fn claim(&self, graph: &Graph, facts: &[Option<Fact>]) -> ProviderClaims {
        self.claim_usual(graph, facts, &sized(facts))
    }

    fn claim_usual(
        &self,
        graph: &Graph,
        _facts: &[Option<Fact>],
        usual: &[Option<Fact>],
    ) -> ProviderClaims {
        let claim = |(index, node)| NodeClaim {
            nodes: vec![index],
            cost_ns: cost::demand(node, usual).operations * OPERATION_NS + NODE_NS,
            kernel: NAME.into(),
        };
        ProviderClaims {
            claims: graph.nodes.iter().enumerate().map(claim).collect(),
            ..ProviderClaims::default()
        }
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
    fn submit(&self, inputs: Vec<Datum>) -> RunFence {
        let outputs = evaluate::run_values(&self.graph, inputs).map_err(RuntimeError::from);
        RunFence::ready(outputs.and_then(adjacent))
    }

    fn profile(&self, inputs: Vec<Datum>) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        let mut run = evaluate::ReferenceRun::new(&self.graph, inputs)?;
        let mut rows = Vec::with_capacity(self.graph.nodes.len());
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let start = Instant::now();
            run.step(index)?;
            rows.push(ProfileRow {
                node: node.name.clone(),
                op: node.operator_name(),
                kernel: NAME.into(),
                provider: NAME,
                time: start.elapsed(),
                ..ProfileRow::default()
            });
        }
        Ok((adjacent(run.outputs()?)?, rows))
    }

    fn memory(&self) -> MemoryReport {
        let weights = self.graph.values().iter().filter_map(|value| value.initializer.as_ref());
        let (mapped, own): (Vec<&Tensor>, Vec<&Tensor>) = weights.partition(|t| t.is_mapped());
        let bytes = |all: Vec<&Tensor>| all.into_iter().map(Tensor::size_bytes).sum();
        let initializer_bytes = bytes(own);
        let mapped_bytes = bytes(mapped);
        MemoryReport { initializer_bytes, mapped_bytes, arena_bytes: 0 }
    }
}

/// Outputs leave as adjacent elements, whatever views the operators gave.
fn adjacent(outputs: Vec<Datum>) -> Result<Vec<Datum>, RuntimeError> {
    let adjacent = |datum: Datum| datum.contiguous();
    let outputs = outputs.into_iter().map(adjacent).collect::<Result<_, _>>();
    outputs.map_err(|error| RuntimeError::provider(NAME, error))
}
