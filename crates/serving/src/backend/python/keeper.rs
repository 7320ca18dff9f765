//! Keeps a worker ready for an instance: one that ends is followed by the next at once, before anybody asks for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Made;
use super::worker::{Process, Started};
use crate::custom_metrics::{CustomMetric, Labels, MetricKind};
use crate::error::Error;

/// A worker that did not come to an execution is followed by the next after so long, and twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Starts the workers of an instance.
#[derive(Debug)]
pub(super) struct Keeper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    made: Arc<Made>,
    args: serde_json::Value,
    instance: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    /// It waits for its first execution.
    Ready(Box<Started>),
    /// The instance has it.
    Taken,
    /// Being started, with what the last one that did not start said.
    Starting(Option<Error>),
    /// Nobody wants one any more.
    Stopped,
}

impl Keeper {
    /// Starts the first worker.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start(
        made: &Arc<Made>,
        instance: &str,
        args: serde_json::Value,
    ) -> Result<Self, Error> {
        let started = made.start().instance(&args)?;
        let process = Arc::clone(&started.process);
        let shared = Arc::new(Shared {
            made: Arc::clone(made),
            args,
            instance: instance.to_owned(),
            state: Mutex::new(State::Ready(Box::new(started))),
            changed: Condvar::new(),
        });
        let keeper = Self(Arc::clone(&shared));
        let name = "worker-keeper".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || shared.keep(process));
        match thread {
            Ok(_) => Ok(keeper),
            Err(error) => {
                keeper.stop();
                Err(Error::internal(format!("no worker of '{instance}' can be kept: {error}")))
            }
        }
    }

    /// The worker, or the next one where that one has ended.
    ///
    /// # Errors
    /// With what the last one said that did not start.
    pub(super) fn take(&self) -> Result<Started, Error> {
        let mut state = self.0.state();
        loop {
            match std::mem::replace(&mut *state, State::Taken) {
                State::Ready(started) => return Ok(*started),
                State::Starting(Some(error)) => {
                    *state = State::Starting(Some(error.clone()));
                    return Err(error);
                }
                State::Stopped => {
                    *state = State::Stopped;
                    let instance = &self.0.instance;
                    return Err(Error::unavailable(format!("'{instance}' is being unloaded")));
                }
                // The end of one that was taken is about to be seen.
                before @ (State::Starting(None) | State::Taken) => *state = before,
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Starts no more, and ends a worker that nobody has taken.
    pub(super) fn stop(&self) {
        let before = std::mem::replace(&mut *self.0.state(), State::Stopped);
        self.0.changed.notify_all();
        if let State::Ready(started) = before {
            started.process.stop(&self.0.made.files.name);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of one worker after the other, and starts the next.
    fn keep(&self, mut process: Arc<Process>) {
        let mut pause = Duration::ZERO;
        // Held until the instance goes, and its line of the metrics page with it.
        let mut restarts = None;
        loop {
            process.wait();
            let untaken = {
                let mut state = self.state();
                match std::mem::replace(&mut *state, State::Starting(None)) {
                    State::Stopped => {
                        *state = State::Stopped;
                        return;
                    }
                    State::Ready(_) => {
                        *state = State::Starting(Some(self.unhealthy("it ended before its use")));
                        true
                    }
                    State::Taken | State::Starting(_) => false,
                }
            };
            process.kill();
            pause = if untaken { longer(pause) } else { Duration::ZERO };
            let Some(next) = self.next(&mut pause) else { return };
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

    fn restarts(&self) -> Result<Arc<CustomMetric>, Error> {
        let files = &self.made.files;
        let help = "Workers of models in Python that were started after another one ended";
        let metrics = files.host.metrics();
        let family =
            metrics.own_family("python_worker_restarts_total", help, MetricKind::Counter)?;
        let labels = [("model", files.name.clone()), ("version", files.version.to_string())];
        let labels = labels.map(|(name, value)| (name.to_owned(), value));
        family.metric(Labels::from(labels), None)
    }

    /// The process of the next worker that starts; `None` once nobody wants it.
    fn next(&self, pause: &mut Duration) -> Option<Arc<Process>> {
        loop {
            self.rest(*pause)?;
            match self.made.start().instance(&self.args) {
                Ok(started) => {
                    let process = Arc::clone(&started.process);
                    let mut state = self.state();
                    if matches!(*state, State::Stopped) {
                        drop(state);
                        process.stop(&self.made.files.name);
                        return None;
                    }
                    *state = State::Ready(Box::new(started));
                    drop(state);
                    self.changed.notify_all();
                    return Some(process);
                }
                Err(error) => {
                    *pause = longer(*pause);
                    tracing::error!(instance = %self.instance, "{error}; again in {pause:?}");
                    let mut state = self.state();
                    if matches!(*state, State::Stopped) {
                        return None;
                    }
                    *state = State::Starting(Some(self.unhealthy(&error.message)));
                    drop(state);
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Waits so long; `None` once nobody wants a worker.
    fn rest(&self, pause: Duration) -> Option<()> {
        let until = Instant::now() + pause;
        let mut state = self.state();
        while !matches!(*state, State::Stopped) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(());
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    fn unhealthy(&self, why: &str) -> Error {
        let instance = &self.instance;
        Error::internal(format!(
            "Failed to process the request(s) for model '{instance}', message: Stub process '{instance}' is not \
             healthy. It does not start: {why}"
        ))
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}
