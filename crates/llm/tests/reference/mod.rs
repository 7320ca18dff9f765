//! A provider that computes by the operators' reference evaluation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_graph::{Graph, evaluate};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, PartitionRun,
    ProviderClaims, ProviderTraits, RunFence, RuntimeError,
};

/// The reference evaluation, of which one run may fail.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The run that fails, counted from 0.
    pub(crate) failing: Option<usize>,
}

impl ExecutionProvider for Reference {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("reference")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let nodes = (0..graph.nodes.len()).collect();
        let claim = NodeClaim { nodes, cost_ns: 1.0, kernel: "reference".into() };
        ProviderClaims { claims: vec![claim], ..ProviderClaims::default() }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(Evaluation {
            graph: request.graph,
            failing: self.failing,
            runs: AtomicUsize::new(0),
        }))
    }
}

struct Evaluation {
    graph: Arc<Graph>,
    failing: Option<usize>,
    runs: AtomicUsize,
}

impl Executable for Evaluation {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        if Some(self.runs.fetch_add(1, Ordering::Relaxed)) == self.failing {
            return RunFence::failed(RuntimeError::provider("reference", "it is on fire"));
        }
        RunFence::ready(evaluate::run_values(&self.graph, inputs).map_err(RuntimeError::from))
    }
}
