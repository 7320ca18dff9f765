//! A provider for tests: the providers proper are above this crate.

use std::sync::Arc;

use galatea_graph::{Graph, evaluate};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, PartitionRun,
    ProviderClaims, ProviderTraits, RunFence, RuntimeError,
};

/// Runs every graph by the operators' own definitions.
#[derive(Debug)]
pub(crate) struct Plain;

impl ExecutionProvider for Plain {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("plain")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let claim = |node| NodeClaim { nodes: vec![node], cost_ns: 1.0, kernel: "plain".into() };
        ProviderClaims {
            claims: (0..graph.nodes.len()).map(claim).collect(),
            ..ProviderClaims::default()
        }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(PlainExecutable(request.graph)))
    }
}

struct PlainExecutable(Arc<Graph>);

impl Executable for PlainExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        RunFence::ready(evaluate::run_values(&self.0, inputs).map_err(RuntimeError::from))
    }
}
