//! Spare instances, for calls that lead back to the model that made them.
//!
//! They are made when they are first needed and go with the version. Each depth of calls has as many turns as the model
//! has instances; further calls of that depth wait for those, which need only deeper ones.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_tensor::OrderedMap;

use crate::backend::{BackendModel, InstancePlacement, ModelInstance, ShutdownSignal};
use crate::error::ServingError;
use crate::payload::{ActiveRequest, BatchPayload, ExecutionContext};
use crate::request::{InferenceRequest, ResponseSink, SinkAnswer};
use crate::statistics::FailureReason;
use crate::waiting_models::CallGraph;

/// The spare instances of a version.
pub(super) struct SpareInstances {
    model: Arc<dyn BackendModel>,
    graph: Arc<CallGraph>,
    placement: InstancePlacement,
    context: Arc<ExecutionContext>,
    /// Turns of each depth.
    turns: usize,
    /// Whether requests need a slot of a sequence, which only the version's own instances have.
    sequences: bool,
    state: Mutex<SparesState>,
}

#[derive(Default)]
struct SparesState {
    free: Vec<Box<dyn ModelInstance>>,
    made: usize,
    levels: OrderedMap<usize, SpareDepth>,
    /// Instances that are told of the version's end, and whether they were.
    leaving: Vec<Arc<dyn ShutdownSignal>>,
    draining: bool,
}

#[derive(Default)]
struct SpareDepth {
    busy: usize,
    waiting: VecDeque<ActiveRequest>,
}

impl std::fmt::Debug for SpareInstances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spares").field("model", &self.context.name).finish_non_exhaustive()
    }
}

/// A turn of a depth; the next one begins when the request is answered and its instance idle.
struct SparePermit {
    spares: Arc<SpareInstances>,
    depth: usize,
}

impl Drop for SparePermit {
    fn drop(&mut self) {
        self.spares.leave(self.depth);
    }
}

impl SpareInstances {
    /// For a model that may call others; its instances are made as `placement` says.
    pub(super) fn new(
        model: Arc<dyn BackendModel>,
        graph: &Arc<CallGraph>,
        placement: InstancePlacement,
        context: &Arc<ExecutionContext>,
        turns: usize,
        sequences: bool,
    ) -> Arc<Self> {
        let graph = Arc::clone(graph);
        let context = Arc::clone(context);
        let turns = turns.max(1);
        let state = Mutex::default();
        Arc::new(Self { model, graph, placement, context, turns, sequences, state })
    }

    /// Whether the request is for a spare instance.
    ///
    /// # Errors
    /// UNSUPPORTED for models over sequences, which would wait for themselves.
    pub(super) fn wants(&self, request: &InferenceRequest) -> Result<bool, ServingError> {
        let Some(caller) = request.callers.last() else { return Ok(false) };
        if !self.graph.leads_back(caller, &self.context.name) {
            return Ok(false);
        }
        if self.sequences {
            return Err(ServingError::unsupported(format!(
                "model '{}' takes sequences, so models that it calls cannot call it",
                self.context.name
            )));
        }
        Ok(true)
    }

    /// Runs a checked request, now or when its depth has a turn.
    pub(super) fn enqueue(
        self: &Arc<Self>,
        request: InferenceRequest,
        batch_size: u64,
        sink: ResponseSink,
    ) {
        let depth = request.callers.depth();
        let active = ActiveRequest::new(request, batch_size, Arc::clone(&self.context), sink);
        let mut state = self.state();
        let level = state.levels.entry(depth).or_default();
        if level.busy >= self.turns {
            level.waiting.push_back(active);
            return;
        }
        level.busy += 1;
        drop(state);
        self.begin(active, depth);
    }

    /// No more requests come than those that were taken, and those that they lead to.
    pub(super) fn drain(&self) {
        let mut state = self.state();
        state.draining = true;
        let leaving = state.leaving.clone();
        drop(state);
        leaving.iter().for_each(|instance| instance.drain());
    }

    /// Ends the instances that are idle.
    pub(super) fn clear(&self) {
        let free = std::mem::take(&mut self.state().free);
        drop(free);
    }

    fn begin(self: &Arc<Self>, mut active: ActiveRequest, depth: usize) {
        let turn = Arc::new(SparePermit { spares: Arc::clone(self), depth });
        let kept = Arc::clone(&turn);
        active.wrap_sink(|mut sink| {
            // It goes with the sink, behind the last answer.
            let held = kept;
            Box::new(move |answer: SinkAnswer| {
                let _held = &held;
                sink(answer);
            })
        });
        let run = move || turn.spares.run(active);
        let thread = std::thread::Builder::new().name("spare".to_owned()).spawn(run);
        if let Err(error) = thread {
            // The request, which the thread would have had, is answered as one that was dropped.
            tracing::error!(model = %self.context.name, "no thread for a call: {error}");
        }
    }

    fn run(&self, active: ActiveRequest) {
        if active.is_cancelled() {
            let error = ServingError::cancelled("the request was cancelled");
            return active.fail(FailureReason::Canceled, error);
        }
        let mut instance = match self.instance() {
            Ok(instance) => instance,
            Err(error) => return active.fail(FailureReason::Other, error),
        };
        let mut payload = BatchPayload::new(vec![active], Arc::clone(&self.context));
        payload.mark_started();
        let ran = catch_unwind(AssertUnwindSafe(|| instance.execute(payload)));
        match ran {
            Ok(()) => self.state().free.push(instance),
            Err(_) => tracing::error!(model = %self.context.name, "a spare instance panicked"),
        }
    }

    fn instance(&self) -> Result<Box<dyn ModelInstance>, ServingError> {
        let mut state = self.state();
        if let Some(free) = state.free.pop() {
            return Ok(free);
        }
        state.made += 1;
        let name = format!("{}_spare_{}", self.placement.name, state.made);
        drop(state);
        let made = self.model.instance(&InstancePlacement { name, ..self.placement.clone() })?;
        if let Some(leaving) = made.leaving() {
            let mut state = self.state();
            state.leaving.push(Arc::clone(&leaving));
            let draining = state.draining;
            drop(state);
            if draining {
                leaving.drain();
            }
        }
        Ok(made)
    }

    fn leave(self: &Arc<Self>, depth: usize) {
        let mut state = self.state();
        let Some(level) = state.levels.get_mut(&depth) else { return };
        match level.waiting.pop_front() {
            None => level.busy = level.busy.saturating_sub(1),
            Some(next) => {
                drop(state);
                self.begin(next, depth);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, SparesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
