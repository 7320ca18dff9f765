//! Compilation of one provider's partition by the other providers of a session.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_graph::{Datum, Graph, infer};
use galatea_tensor::{DataType, Tensor};

use crate::error::RuntimeError;
use crate::explain::PlacedOperator;
use crate::options::{OptimiseLevel, PaceSource, SessionOptions, TurnSource};
use crate::partition::{live_bytes, partition, predicted_ns};
use crate::provider::{
    Executable, ExecutionProvider, MemoryReport, PlanReport, ProfileRow, RunFence,
};
use crate::session::{PreparedGraph, Session};
use crate::tune::TuningProblem;
use crate::typical_shapes::{sized, typical_shapes};
use crate::watch::WatchSource;

/// The most partitions that a prediction looks at, as sessions do.
const MAX_PARTS: usize = 16;

/// The other providers of a session than the one that a partition is given to: they can run it in its place, such as
/// while it is being compiled. Those behind that one in the session's list come first.
#[derive(Clone, Debug, Default)]
pub struct FallbackProviders(Vec<Arc<dyn ExecutionProvider>>);

impl FallbackProviders {
    /// These providers.
    #[must_use]
    pub fn new(providers: Vec<Arc<dyn ExecutionProvider>>) -> Self {
        Self(providers)
    }

    /// Returns whether there are no other providers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nanoseconds that these providers are predicted to need for a partition, in a run of usual lengths. None where a
    /// node is run by none of them.
    #[must_use]
    pub fn predicted_ns(&self, graph: &Graph) -> Option<f64> {
        let facts = infer::facts(graph, &HashMap::new()).ok()?;
        let usual = typical_shapes(graph, &facts, &[]).unwrap_or_else(|| sized(&facts));
        let claims = self.0.iter().map(|provider| provider.claim_usual(graph, &facts, &usual));
        let claims = claims.collect::<Vec<_>>();
        let live = live_bytes(graph, &usual);
        let parts = partition(graph.nodes.len(), &claims, &live, MAX_PARTS).ok()?;
        Some(predicted_ns(&parts, &claims, &live))
    }

    /// Prepares a partition as these providers run it: each of its nodes on the one that is predicted to be done
    /// soonest. `options` are those of the session that the partition is of.
    ///
    /// # Errors
    /// Fails when a node is run by none of them.
    pub fn compile(
        &self,
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
        Ok(Box::new(FallbackSession(Session::of_prepared(prepared, &self.0, &own)?)))
    }
}

/// A session as a partition of another one.
struct FallbackSession(Session);

impl Executable for FallbackSession {
    fn submit(&self, inputs: Vec<Datum>) -> RunFence {
        RunFence::ready(self.0.run_inner(inputs, None))
    }

    fn submit_wanted(&self, inputs: Vec<Datum>, wanted: &[bool]) -> RunFence {
        RunFence::ready(self.0.run_inner(inputs, Some(wanted)))
    }

    fn profile(&self, inputs: Vec<Datum>) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        self.0.profile_inner(&inputs, None)
    }

    fn profile_wanted(
        &self,
        inputs: Vec<Datum>,
        wanted: &[bool],
    ) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        self.0.profile_inner(&inputs, Some(wanted))
    }

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

    fn memory(&self) -> MemoryReport {
        self.0.memory()
    }

    fn problems(&self, inputs: &[Datum]) -> Result<Vec<TuningProblem>, RuntimeError> {
        self.0.problems_inner(inputs)
    }

    fn placed(&self) -> Vec<PlacedOperator> {
        self.0.explain().placed.into_iter().flatten().collect()
    }

    fn plans(&self) -> PlanReport {
        self.0.plans()
    }
}
