//! Keeps a worker ready for an instance: one that ends is followed by the next at once, before anybody asks for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea_runtime::worker::{RestartDecision, RestartHistory, RestartPolicy};

use super::worker::{StartedWorker, WorkerProcess};
use super::{WorkerRecipe, locked};
use crate::backend::ShutdownSignal;
use crate::custom_metrics::{CustomMetric, MetricKind, MetricLabels};
use crate::error::ServingError;

/// A worker that did not come to an execution is followed by the next after so long, and twice as long each time.
const RESTARTS: RestartPolicy = RestartPolicy {
    window: None,
    free_ends: 0,
    first_rest: Duration::from_millis(100),
    max_rest: Duration::from_secs(5),
    max_ends: None,
};

/// Starts the workers of an instance.
#[derive(Debug)]
pub(super) struct WorkerSupervisor(Arc<SupervisorShared>);

#[derive(Debug)]
struct SupervisorShared {
    made: Arc<WorkerRecipe>,
    args: serde_json::Value,
    instance: String,
    kept: Mutex<SupervisedWorker>,
    changed: Condvar,
}

#[derive(Debug)]
struct SupervisedWorker {
    state: WorkerState,
    /// The one that is being started. Nobody else can end it where its model never gets ready.
    begun: Option<Arc<WorkerProcess>>,
    /// From then on nobody waits for the next one, as the model is being unloaded.
    until: Option<Instant>,
}

impl SupervisedWorker {
    /// Whether no more are started.
    fn is_over(&self) -> bool {
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        late || matches!(self.state, WorkerState::Stopped)
    }
}

#[derive(Debug)]
enum WorkerState {
    /// It waits for its first execution.
    Ready(Box<StartedWorker>),
    /// The instance has it.
    Taken,
    /// Being started, with what the last one that did not start said.
    Starting(Option<ServingError>),
    /// Nobody wants one any more.
    Stopped,
}

impl WorkerSupervisor {
    /// Starts the first worker.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start(
        made: &Arc<WorkerRecipe>,
        instance: &str,
        args: serde_json::Value,
    ) -> Result<Self, ServingError> {
        let started = made.start().instance(&args, &|_| ())?;
        let process = Arc::clone(&started.process);
        let kept = SupervisedWorker {
            state: WorkerState::Ready(Box::new(started)),
            begun: None,
            until: None,
        };
        let shared = Arc::new(SupervisorShared {
            made: Arc::clone(made),
            args,
            instance: instance.to_owned(),
            kept: Mutex::new(kept),
            changed: Condvar::new(),
        });
        let keeper = Self(Arc::clone(&shared));
        let name = "worker-keeper".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || shared.keep(process));
        match thread {
            Ok(_) => Ok(keeper),
            Err(error) => {
                keeper.stop();
                Err(ServingError::internal(format!(
                    "no worker of '{instance}' can be kept: {error}"
                )))
            }
        }
    }

    /// The worker, or the next one where that one has ended.
    ///
    /// # Errors
    /// With what the last one said that did not start; UNAVAILABLE where the model is being unloaded and it does not
    /// start in time.
    pub(super) fn take(&self) -> Result<StartedWorker, ServingError> {
        let mut kept = locked(&self.0.kept);
        loop {
            match std::mem::replace(&mut kept.state, WorkerState::Taken) {
                WorkerState::Ready(started) => return Ok(*started),
                WorkerState::Starting(Some(error)) => {
                    kept.state = WorkerState::Starting(Some(error.clone()));
                    return Err(error);
                }
                // The end of one that was taken is about to be seen.
                before => kept.state = before,
            }
            if kept.is_over() {
                let begun = kept.begun.take();
                drop(kept);
                begun.inspect(|process| process.kill());
                let instance = &self.0.instance;
                return Err(ServingError::unavailable(format!("'{instance}' is being unloaded")));
            }
            kept = self.0.wait(kept, None);
        }
    }

    /// Starts no more, and ends a worker that nobody has taken.
    pub(super) fn stop(&self) {
        let mut kept = locked(&self.0.kept);
        let before = std::mem::replace(&mut kept.state, WorkerState::Stopped);
        let begun = kept.begun.take();
        drop(kept);
        self.0.changed.notify_all();
        begun.inspect(|process| process.kill());
        if let WorkerState::Ready(started) = before {
            started.process.stop(&self.0.made.files.name);
        }
    }

    /// Signal for the model's unload.
    pub(super) fn leaving(&self) -> Arc<dyn ShutdownSignal> {
        Arc::<SupervisorShared>::clone(&self.0)
    }
}

impl ShutdownSignal for SupervisorShared {
    fn drain(&self) {
        let until = Instant::now() + self.made.settings.timeout;
        locked(&self.kept).until.get_or_insert(until);
        self.changed.notify_all();
    }

    fn close(&self) {
        let mut kept = locked(&self.kept);
        kept.until = Some(Instant::now());
        let begun = kept.begun.take();
        drop(kept);
        self.changed.notify_all();
        begun.inspect(|process| process.kill());
    }
}

impl SupervisorShared {
    /// Waits for a change, until then or the end of all patience.
    fn wait<'a>(
        &self,
        kept: MutexGuard<'a, SupervisedWorker>,
        then: Option<Instant>,
    ) -> MutexGuard<'a, SupervisedWorker> {
        match [kept.until, then].into_iter().flatten().min() {
            None => self.changed.wait(kept).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout(kept, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Waits for the end of one worker after the other, and starts the next.
    fn keep(&self, mut process: Arc<WorkerProcess>) {
        let mut history = RestartHistory::new(RESTARTS);
        // Held until the instance goes, and its line of the metrics page with it.
        let mut restarts = None;
        loop {
            process.wait();
            let untaken = {
                let mut kept = locked(&self.kept);
                match std::mem::replace(&mut kept.state, WorkerState::Starting(None)) {
                    WorkerState::Stopped => {
                        kept.state = WorkerState::Stopped;
                        return;
                    }
                    WorkerState::Ready(_) => {
                        kept.state =
                            WorkerState::Starting(Some(self.unhealthy("it ended before its use")));
                        true
                    }
                    WorkerState::Taken | WorkerState::Starting(_) => false,
                }
            };
            process.kill();
            if untaken {
                history.note_end(Instant::now());
            } else {
                history.note_use();
            }
            let Some(next) = self.next(&mut history) else { return };
            process = next;
            self.count(&mut restarts);
        }
    }

    /// Counts a worker that was started after another one ended.
    fn count(&self, restarts: &mut Option<Arc<CustomMetric>>) {
        if restarts.is_none() {
            *restarts = self.restarts().inspect_err(|error| tracing::warn!("{error}")).ok();
        }
        if let Some(Err(error)) = restarts.as_ref().map(|metric| metric.increment(1.0)) {
            tracing::warn!("{error}");
        }
    }

    fn restarts(&self) -> Result<Arc<CustomMetric>, ServingError> {
        let files = &self.made.files;
        let help = "Workers of models in Python that were started after another one ended";
        let metrics = files.host.metrics();
        let family =
            metrics.own_family("python_worker_restarts_total", help, MetricKind::Counter)?;
        let labels = [("model", files.name.clone()), ("version", files.version.to_string())];
        let labels = labels.map(|(name, value)| (name.to_owned(), value));
        family.metric(MetricLabels::from(labels), None)
    }

    /// The process of the next worker that starts; `None` once nobody wants it.
    fn next(&self, history: &mut RestartHistory) -> Option<Arc<WorkerProcess>> {
        loop {
            self.rest(rest_left(history, Instant::now()))?;
            let started = self.made.start().instance(&self.args, &|process| self.begun(process));
            let mut kept = locked(&self.kept);
            kept.begun = None;
            match started {
                Ok(started) => {
                    let process = Arc::clone(&started.process);
                    if matches!(kept.state, WorkerState::Stopped) {
                        drop(kept);
                        process.stop(&self.made.files.name);
                        return None;
                    }
                    kept.state = WorkerState::Ready(Box::new(started));
                    drop(kept);
                    self.changed.notify_all();
                    return Some(process);
                }
                Err(_) if kept.is_over() => return None,
                Err(error) => {
                    kept.state = WorkerState::Starting(Some(self.unhealthy(&error.message)));
                    drop(kept);
                    self.changed.notify_all();
                    let now = Instant::now();
                    history.note_end(now);
                    let pause = rest_left(history, now);
                    tracing::error!(instance = %self.instance, "{error}; again in {pause:?}");
                }
            }
        }
    }

    /// A process runs, whose model is not ready.
    fn begun(&self, process: &Arc<WorkerProcess>) {
        let mut kept = locked(&self.kept);
        if kept.is_over() {
            drop(kept);
            process.kill();
        } else {
            kept.begun = Some(Arc::clone(process));
        }
    }

    /// Waits so long; `None` once nobody wants a worker.
    fn rest(&self, pause: Duration) -> Option<()> {
        let until = Instant::now() + pause;
        let mut kept = locked(&self.kept);
        while !kept.is_over() {
            if Instant::now() >= until {
                return Some(());
            }
            kept = self.wait(kept, Some(until));
        }
        None
    }

    fn unhealthy(&self, why: &str) -> ServingError {
        let instance = &self.instance;
        ServingError::internal(format!(
            "Failed to process the request(s) for model '{instance}', message: Stub process '{instance}' is not \
             healthy. It does not start: {why}"
        ))
    }
}

/// What is left of the rest before the next start.
fn rest_left(history: &mut RestartHistory, now: Instant) -> Duration {
    match history.decide(now) {
        RestartDecision::Rest(rest) => rest.left,
        RestartDecision::Start | RestartDecision::Refuse => Duration::ZERO,
    }
}
