//! A provider for tests: the providers proper are above this crate.

use std::sync::Arc;

use galatea_graph::{Datum, Fact, Graph, evaluate};
use galatea_runtime::{
    Executable, ExecutionProvider, MemoryReport, NodeClaim, ProviderClaims, RunFence, RuntimeError,
    SessionOptions,
};

/// Runs every graph by the operators' own definitions.
#[derive(Debug)]
pub(crate) struct Plain;

impl ExecutionProvider for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn claim(&self, graph: &Graph, _facts: &[Option<Fact>]) -> ProviderClaims {
        let claim = |node| NodeClaim { nodes: vec![node], cost_ns: 1.0, kernel: "plain".into() };
        ProviderClaims {
            claims: (0..graph.nodes.len()).map(claim).collect(),
            ..ProviderClaims::default()
        }
    }

    fn compile(
        &self,
        graph: Arc<Graph>,
        _: &SessionOptions,
    ) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(PlainExecutable(graph)))
    }
}

struct PlainExecutable(Arc<Graph>);

impl Executable for PlainExecutable {
    fn submit(&self, inputs: Vec<Datum>) -> RunFence {
        RunFence::ready(evaluate::run_values(&self.0, inputs).map_err(RuntimeError::from))
    }

    fn memory(&self) -> MemoryReport {
        MemoryReport::default()
    }
}
