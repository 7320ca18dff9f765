//! Supervisor of a worker that several owners share: it starts when one of them asks for it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::restart::{RestartDecision, RestartHistory, RestartRest};
use super::supervisor::{RestartCounter, WorkerKind};

/// A kind of worker that is shared, and what those are told who ask for one that may not start.
pub trait SharedWorkerKind: WorkerKind<Worker = Arc<<Self as WorkerKind>::Process>> {
    /// When a worker was found to have ended, if it was.
    fn ended(worker: &Self::Process) -> Option<Instant>;

    /// Error while the next worker rests.
    fn resting(&self, rest: &RestartRest) -> Self::Error;

    /// Error once too many have ended.
    fn refused(&self) -> Self::Error;
}

/// A worker, and its number among all that its supervisor has started.
#[derive(Debug)]
pub struct WorkerGeneration<P> {
    /// The number, from 1 on.
    pub generation: u64,
    /// The worker.
    pub worker: Arc<P>,
}

/// Starts workers that are shared, one at a time, when they are asked for.
pub struct OnDemandSupervisor<K: SharedWorkerKind> {
    kind: K,
    state: Mutex<OnDemandState<K>>,
}

struct OnDemandState<K: SharedWorkerKind> {
    worker: Option<Arc<K::Process>>,
    /// How many were started.
    generation: u64,
    history: RestartHistory,
    count: RestartCounter,
}

impl<K: SharedWorkerKind> fmt::Debug for OnDemandSupervisor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemandSupervisor").finish_non_exhaustive()
    }
}

impl<K: SharedWorkerKind> OnDemandSupervisor<K> {
    /// A supervisor that has started no worker.
    #[must_use]
    pub fn new(kind: K) -> Self {
        let history = RestartHistory::new(kind.policy());
        let count = kind.restart_counter();
        let state = OnDemandState { worker: None, generation: 0, history, count };
        Self { kind, state: Mutex::new(state) }
    }

    /// Returns the kind of its workers.
    pub fn kind(&self) -> &K {
        &self.kind
    }

    /// The worker that runs; a new one where none does. Whoever else asks meanwhile waits for its start.
    ///
    /// # Errors
    /// When it does not start, or must not yet.
    pub fn take(&self) -> Result<WorkerGeneration<K::Process>, K::Error> {
        let mut state = self.state();
        if let Some(worker) = &state.worker {
            let Some(end) = K::ended(worker) else { return Ok(state.present(worker)) };
            state.worker = None;
            state.history.note_end(end);
        }
        match state.history.decide(Instant::now()) {
            RestartDecision::Start => {}
            RestartDecision::Rest(rest) => return Err(self.kind.resting(&rest)),
            RestartDecision::Refuse => return Err(self.kind.refused()),
        }
        let started = self.kind.start(&|_| ()).inspect_err(|_| {
            state.history.note_end(Instant::now());
        });
        let worker = started?;
        state.generation += 1;
        if state.generation > 1 {
            (state.count)();
        }
        let present = state.present(&worker);
        state.worker = Some(worker);
        Ok(present)
    }

    /// The worker that runs; `None` where none does.
    pub fn running(&self) -> Option<Arc<K::Process>> {
        let state = self.state();
        state.worker.as_ref().filter(|worker| K::ended(worker).is_none()).map(Arc::clone)
    }

    fn state(&self) -> MutexGuard<'_, OnDemandState<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: SharedWorkerKind> OnDemandState<K> {
    fn present(&self, worker: &Arc<K::Process>) -> WorkerGeneration<K::Process> {
        WorkerGeneration { generation: self.generation, worker: Arc::clone(worker) }
    }
}
