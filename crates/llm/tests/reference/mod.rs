//! A provider that computes by the operators' reference evaluation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_graph::{Datum, Fact, Graph, evaluate};
use galatea_runtime::{
    Executable, ExecutionProvider, MemoryReport, NodeClaim, ProviderClaims, RunFence, RuntimeError,
    SessionOptions,
};

/// The reference evaluation, of which one run may fail.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The run that fails, counted from 0.
    pub(crate) failing: Option<usize>,
}

impl ExecutionProvider for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn claim(&self, graph: &Graph, _facts: &[Option<Fact>]) -> ProviderClaims {
        let nodes = (0..graph.nodes.len()).collect();
        let claim = NodeClaim { nodes, cost_ns: 1.0, kernel: "reference".into() };
        ProviderClaims { claims: vec![claim], ..ProviderClaims::default() }
    }

    fn compile(
        &self,
        graph: Arc<Graph>,
        _options: &SessionOptions,
    ) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(Evaluation { graph, failing: self.failing, runs: AtomicUsize::new(0) }))
    }
}

struct Evaluation {
    graph: Arc<Graph>,
    failing: Option<usize>,
    runs: AtomicUsize,
}

impl Executable for Evaluation {
    fn submit(&self, inputs: Vec<Datum>) -> RunFence {
        if Some(self.runs.fetch_add(1, Ordering::Relaxed)) == self.failing {
            return RunFence::ready(Err(RuntimeError::provider("reference", "it is on fire")));
        }
        RunFence::ready(evaluate::run_values(&self.graph, inputs).map_err(RuntimeError::from))
    }

    fn memory(&self) -> MemoryReport {
        MemoryReport::default()
    }
}
