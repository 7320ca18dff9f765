//! Supervisor of a worker that is always ready: one that ends is followed by the next before anybody asks for it.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::restart::{RestartDecision, RestartHistory, RestartPolicy};

/// The process of a worker, as a supervisor that ends it handles it.
pub trait SupervisedProcess: Send + Sync + 'static {
    /// Waits until the process has ended.
    fn wait(&self);

    /// Ends the process without asking it, and takes its status.
    fn kill(&self);

    /// Asks the process to end, and ends it where that takes too long.
    fn stop(&self);
}

/// Counts a worker that was started after another one. The count goes when the supervisor goes.
pub type RestartCounter = Box<dyn FnMut() + Send>;

/// Properties of the workers of a supervisor.
pub trait WorkerKind: Send + Sync + 'static {
    /// The process of a worker.
    type Process: Send + Sync + 'static;
    /// A worker that is ready.
    type Worker: Send + 'static;
    /// Reason for which there is no worker.
    type Error: Clone + fmt::Display + Send + 'static;

    /// Returns when the next worker may start.
    fn policy(&self) -> RestartPolicy;

    /// Starts a worker and waits until it is ready. `begun` is told of a process that may never get ready.
    ///
    /// # Errors
    /// When it does not get ready.
    fn start(&self, begun: &dyn Fn(&Arc<Self::Process>)) -> Result<Self::Worker, Self::Error>;

    /// Returns what counts the restarts.
    fn restart_counter(&self) -> RestartCounter;
}

/// A kind of worker that is always ready, and what those are told who wait for one.
pub trait WaitingWorkerKind: WorkerKind<Process: SupervisedProcess> {
    /// The process of a worker.
    fn process(worker: &Self::Worker) -> &Arc<Self::Process>;

    /// Error while none starts, by why the last one did not.
    fn unhealthy(&self, why: &str) -> Self::Error;

    /// Error once no more are started.
    fn over(&self) -> Self::Error;

    /// Error where no thread starts the next worker.
    fn unsupervised(&self, error: &io::Error) -> Self::Error;

    /// How long somebody waits for a worker once it is to be drained.
    fn patience(&self) -> Duration;

    /// Logs that a worker did not start, and after what rest the next one does, if it does.
    fn log_failure(&self, error: &Self::Error, rest: Option<Duration>);
}

/// Starts the workers of one owner, the next as soon as one ends.
pub struct WorkerSupervisor<K: WaitingWorkerKind>(Arc<SupervisorShared<K>>);

struct SupervisorShared<K: WaitingWorkerKind> {
    kind: K,
    kept: Mutex<SupervisedWorker<K>>,
    changed: Condvar,
}

struct SupervisedWorker<K: WaitingWorkerKind> {
    state: WorkerState<K>,
    /// The one that is being started. Nobody else can end it where it never gets ready.
    begun: Option<Arc<K::Process>>,
    /// From then on nobody waits for the next one.
    until: Option<Instant>,
    /// True while the supervisor's thread starts the next one, or rests before.
    starts: bool,
}

/// Longest wait for a start that was given up. The process of such a start is ended as soon as it is known.
const MAX_FAREWELL: Duration = Duration::from_secs(5);

enum WorkerState<K: WaitingWorkerKind> {
    /// It waits for its first use.
    Ready(Box<K::Worker>),
    /// Its owner has it.
    Taken,
    /// Being started, with what the last one that did not start said.
    Starting(Option<K::Error>),
    /// Nobody wants one any more.
    Stopped,
}

impl<K: WaitingWorkerKind> SupervisedWorker<K> {
    /// Whether no more are started.
    fn is_over(&self) -> bool {
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        late || matches!(self.state, WorkerState::Stopped)
    }
}

impl<K: WaitingWorkerKind> fmt::Debug for WorkerSupervisor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSupervisor").finish_non_exhaustive()
    }
}

/// Drains or closes a supervisor, whoever owns that.
pub struct SupervisorSignal<K: WaitingWorkerKind>(Arc<SupervisorShared<K>>);

impl<K: WaitingWorkerKind> fmt::Debug for SupervisorSignal<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorSignal").finish_non_exhaustive()
    }
}

impl<K: WaitingWorkerKind> SupervisorSignal<K> {
    /// Nobody new wants a worker: those who wait do so for the kind's patience.
    pub fn drain(&self) {
        let until = Instant::now() + self.0.kind.patience();
        self.0.kept().until.get_or_insert(until);
        self.0.changed.notify_all();
    }

    /// Nobody waits for a worker any more.
    pub fn close(&self) {
        let mut kept = self.0.kept();
        kept.until = Some(Instant::now());
        let begun = kept.begun.take();
        drop(kept);
        self.0.changed.notify_all();
        begun.inspect(|process| process.kill());
    }
}

impl<K: WaitingWorkerKind> WorkerSupervisor<K> {
    /// Starts the first worker.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(kind: K) -> Result<Self, K::Error> {
        let started = kind.start(&|_| ())?;
        let process = Arc::clone(K::process(&started));
        let state = WorkerState::Ready(Box::new(started));
        let kept = SupervisedWorker { state, begun: None, until: None, starts: false };
        let kept = Mutex::new(kept);
        let shared = Arc::new(SupervisorShared { kind, kept, changed: Condvar::new() });
        let supervisor = Self(Arc::clone(&shared));
        let name = "worker-keeper".to_owned();
        match thread::Builder::new().name(name).spawn(move || shared.keep(process)) {
            Ok(_) => Ok(supervisor),
            Err(error) => {
                supervisor.stop();
                Err(supervisor.0.kind.unsupervised(&error))
            }
        }
    }

    /// The worker, or the next one where that one has ended.
    ///
    /// # Errors
    /// With what the last one said that did not start; or where it is drained and none starts in time.
    pub fn take(&self) -> Result<K::Worker, K::Error> {
        let mut kept = self.0.kept();
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
                return Err(self.0.kind.over());
            }
            kept = self.0.wait(kept, None);
        }
    }

    /// Starts no more, and ends a worker that nobody has taken. One that is being started does not outlive this: the
    /// program may end next.
    pub fn stop(&self) {
        let mut kept = self.0.kept();
        let before = std::mem::replace(&mut kept.state, WorkerState::Stopped);
        let begun = kept.begun.take();
        drop(kept);
        self.0.changed.notify_all();
        begun.inspect(|process| process.kill());
        match before {
            WorkerState::Ready(started) => K::process(&started).stop(),
            WorkerState::Starting(_) => self.0.wait_for_start(),
            WorkerState::Taken | WorkerState::Stopped => {}
        }
    }

    /// Signal that drains or closes it.
    #[must_use]
    pub fn signal(&self) -> SupervisorSignal<K> {
        SupervisorSignal(Arc::clone(&self.0))
    }
}

impl<K: WaitingWorkerKind> SupervisorShared<K> {
    fn kept(&self) -> MutexGuard<'_, SupervisedWorker<K>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, until then or the end of all patience.
    fn wait<'a>(
        &self,
        kept: MutexGuard<'a, SupervisedWorker<K>>,
        then: Option<Instant>,
    ) -> MutexGuard<'a, SupervisedWorker<K>> {
        match [kept.until, then].into_iter().flatten().min() {
            None => self.changed.wait(kept).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout(kept, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Waits until no worker is being started any more.
    fn wait_for_start(&self) {
        let until = Instant::now() + MAX_FAREWELL;
        let mut kept = self.kept();
        while kept.starts {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(kept, left);
            kept = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the end of one worker after the other, and starts the next.
    fn keep(&self, mut process: Arc<K::Process>) {
        let mut history = RestartHistory::new(self.kind.policy());
        // Held until the owner goes, and its line of the metrics page with it.
        let mut count = self.kind.restart_counter();
        loop {
            process.wait();
            let Some(unused) = self.ended() else { return };
            process.kill();
            if unused {
                history.note_end(Instant::now());
            } else {
                history.note_use();
            }
            let next = self.next(&mut history);
            self.kept().starts = false;
            self.changed.notify_all();
            let Some(next) = next else { return };
            process = next;
            count();
        }
    }

    /// Notes the end of the worker. Returns whether nobody had taken it; `None` once nobody wants one.
    fn ended(&self) -> Option<bool> {
        let mut kept = self.kept();
        kept.starts = true;
        match std::mem::replace(&mut kept.state, WorkerState::Starting(None)) {
            WorkerState::Stopped => {
                kept.state = WorkerState::Stopped;
                kept.starts = false;
                None
            }
            WorkerState::Ready(_) => {
                let error = self.kind.unhealthy("it ended before its use");
                kept.state = WorkerState::Starting(Some(error));
                Some(true)
            }
            WorkerState::Taken | WorkerState::Starting(_) => Some(false),
        }
    }

    /// The process of the next worker that starts; `None` once nobody wants it.
    fn next(&self, history: &mut RestartHistory) -> Option<Arc<K::Process>> {
        loop {
            self.rest(rest_left(history, Instant::now())?)?;
            let started = self.kind.start(&|process| self.begun(process));
            let mut kept = self.kept();
            kept.begun = None;
            match started {
                Ok(started) => {
                    let process = Arc::clone(K::process(&started));
                    if matches!(kept.state, WorkerState::Stopped) {
                        drop(kept);
                        process.stop();
                        return None;
                    }
                    kept.state = WorkerState::Ready(Box::new(started));
                    drop(kept);
                    self.changed.notify_all();
                    return Some(process);
                }
                Err(_) if kept.is_over() => return None,
                Err(error) => {
                    let told = self.kind.unhealthy(&error.to_string());
                    kept.state = WorkerState::Starting(Some(told));
                    drop(kept);
                    self.changed.notify_all();
                    let now = Instant::now();
                    history.note_end(now);
                    self.kind.log_failure(&error, rest_left(history, now));
                }
            }
        }
    }

    /// A process runs that is not ready.
    fn begun(&self, process: &Arc<K::Process>) {
        let mut kept = self.kept();
        if kept.is_over() {
            drop(kept);
            process.kill();
        } else {
            kept.begun = Some(Arc::clone(process));
        }
    }

    /// Waits so long; `None` once nobody wants a worker.
    fn rest(&self, rest: Duration) -> Option<()> {
        let until = Instant::now() + rest;
        let mut kept = self.kept();
        while !kept.is_over() {
            if Instant::now() >= until {
                return Some(());
            }
            kept = self.wait(kept, Some(until));
        }
        None
    }
}

/// Returns the rest before the next start that is left; `None` where too many have ended.
fn rest_left(history: &mut RestartHistory, now: Instant) -> Option<Duration> {
    match history.decide(now) {
        RestartDecision::Start => Some(Duration::ZERO),
        RestartDecision::Rest(rest) => Some(rest.left),
        RestartDecision::Refuse => None,
    }
}
