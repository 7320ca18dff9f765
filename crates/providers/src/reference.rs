//! The plain evaluation of every operator: slow, and the oracle for all others.

use std::sync::Arc;
use std::time::Instant;

use galatea_graph::{Datum, Graph, evaluate};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, MemoryReport, NodeClaim,
    PartitionReport, PartitionResult, PartitionRun, ProfileRow, ProviderClaims, ProviderTraits,
    RunFence, RuntimeError,
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
    fn traits(&self) -> ProviderTraits {
        let lanes = HostCores::lanes();
        ProviderTraits { is_fallback: true, lanes, ..ProviderTraits::named(NAME) }
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let claim = |(index, node)| NodeClaim {
            nodes: vec![index],
            cost_ns: cost::demand(node, request.typical).operations * OPERATION_NS + NODE_NS,
            kernel: NAME.into(),
        };
        ProviderClaims {
            claims: request.graph.nodes.iter().enumerate().map(claim).collect(),
            ..ProviderClaims::default()
        }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(ReferenceExecutable { graph: request.graph }))
    }
}

struct ReferenceExecutable {
    graph: Arc<Graph>,
}

impl ReferenceExecutable {
    fn run(&self, inputs: Vec<Datum>) -> Result<PartitionResult, RuntimeError> {
        let outputs = evaluate::run_values(&self.graph, inputs)?;
        Ok(adjacent(outputs)?.into())
    }

    fn profile(&self, inputs: Vec<Datum>) -> Result<PartitionResult, RuntimeError> {
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
        Ok(PartitionResult { outputs: adjacent(run.outputs()?)?, rows })
    }
}

impl Executable for ReferenceExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        RunFence::ready(match run.profile {
            true => self.profile(run.inputs),
            false => self.run(run.inputs),
        })
    }

    fn report(&self) -> PartitionReport {
        let weights = self.graph.values().iter().filter_map(|value| value.initializer.as_ref());
        let (mapped, own): (Vec<&Tensor>, Vec<&Tensor>) = weights.partition(|t| t.is_mapped());
        let bytes = |all: Vec<&Tensor>| all.into_iter().map(Tensor::size_bytes).sum();
        let initializer_bytes = bytes(own);
        let mapped_bytes = bytes(mapped);
        let memory = MemoryReport { initializer_bytes, mapped_bytes, arena_bytes: 0 };
        PartitionReport { memory, ..PartitionReport::default() }
    }
}

/// Outputs leave as adjacent elements, whatever views the operators gave.
fn adjacent(outputs: Vec<Datum>) -> Result<Vec<Datum>, RuntimeError> {
    let adjacent = |datum: Datum| datum.contiguous();
    let outputs = outputs.into_iter().map(adjacent).collect::<Result<_, _>>();
    outputs.map_err(|error| RuntimeError::provider(NAME, error))
}
