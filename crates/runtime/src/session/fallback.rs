//! Runs of one provider's partition by the other providers of a session.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_graph::{Datum, Graph, infer};
use galatea_tensor::{DataType, Tensor};

use super::run::{BoundRun, OutputMask};
use super::{PreparedGraph, Session, pipeline};
use crate::error::RuntimeError;
use crate::executable::{
    BufferExchange, Executable, ExecutableTraits, PartitionReport, PartitionResult, PartitionRun,
    RunFence, TunableKernels,
};
use crate::options::{OptimiseLevel, PaceSource, SessionOptions, TurnSource};
use crate::partition::{live_bytes, partition, predicted_ns};
use crate::provider::{ClaimRequest, FallbackProviders};
use crate::tune::TuningProblem;
use crate::typical_shapes::{sized, typical_shapes};
use crate::watch::WatchSource;

/// The most partitions that a prediction looks at, as sessions do.
const MAX_PARTS: usize = 16;

/// Returns the nanoseconds that providers are predicted to need for a partition, in a run of typical lengths. None
/// where a node is run by none of them.
#[must_use]
pub fn predict_fallback_ns(others: &FallbackProviders, graph: &Graph) -> Option<f64> {
    let facts = infer::facts(graph, &HashMap::new()).ok()?;
    let typical = typical_shapes(graph, &facts, &[]).unwrap_or_else(|| sized(&facts));
    let request = ClaimRequest { typical: &typical, ..ClaimRequest::new(graph, &facts) };
    let claims = others.0.iter().map(|provider| provider.claim(&request)).collect::<Vec<_>>();
    let live = live_bytes(graph, &typical);
    let parts = partition(graph.nodes.len(), &claims, &live, MAX_PARTS).ok()?;
    Some(predicted_ns(&parts, &claims, &live))
}

/// Prepares a partition as other providers run it: each of its nodes on the one that is predicted to be done
/// soonest. `options` are those of the session that the partition is of.
///
/// # Errors
/// Fails when a node is run by none of them.
pub fn compile_fallback(
    others: &FallbackProviders,
    graph: &Arc<Graph>,
    options: &SessionOptions,
) -> Result<Box<dyn Executable>, RuntimeError> {
    // The session around it keeps the pace, has the turn, divides runs, tells of them, and
    // has chosen the providers.
    let own = SessionOptions {
        pace: PaceSource::default(),
        routing: None,
        turns: TurnSource::default(),
        providers: Vec::new(),
        watch: WatchSource::default(),
        ..options.clone()
    };
    let prepared = PreparedGraph::new(Graph::clone(graph), OptimiseLevel::O0)?;
    Ok(Box::new(FallbackSession(Session::of_prepared(prepared, &others.0, &own)?)))
}

/// A session as a partition of another one, which has checked what goes in.
struct FallbackSession(Session);

impl Executable for FallbackSession {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let bound = BoundRun {
            inputs: run.inputs,
            owned: !run.profile,
            outputs: OutputMask::from_entries(run.wanted),
            profile: run.profile,
            ..BoundRun::default()
        };
        let ran = pipeline(&self.0).run(bound);
        RunFence::ready(ran.map(|ran| PartitionResult { outputs: ran.outputs, rows: ran.rows }))
    }

    fn report(&self) -> PartitionReport {
        self.0.report()
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        ExecutableTraits { times_steps: false, buffers: Some(self), tuning: Some(self) }
    }
}

impl BufferExchange for FallbackSession {
    fn return_buffer(&self, output: usize, tensor: Tensor) {
        self.0.return_buffer(output, tensor);
    }

    fn allocate_input(
        &self,
        input: usize,
        dtype: DataType,
        shape: &[usize],
    ) -> Result<Option<Tensor>, RuntimeError> {
        let known = self.0.inputs().get(input).is_some_and(|info| info.dtype == dtype);
        if known { self.0.allocate_input(input, shape) } else { Ok(None) }
    }
}

impl TunableKernels for FallbackSession {
    fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        self.0.compiled.problems(inputs, pause)
    }
}
