//! One engine for every kind of model: its queue, its thread, and how both end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use super::command_loop::{self, EngineCommand, StepWorker};
use super::life::{EngineShared, RequestLife, RequestSize};
use super::statistics::EngineStatistics;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::observe::EngineObserver;

/// A thread that works on requests, and their queue. Dropping it fails all requests and ends the thread.
pub(crate) struct RequestEngine<R> {
    shared: Arc<EngineShared>,
    commands: Arc<Sender<EngineCommand<R>>>,
    thread: Option<JoinHandle<()>>,
}

impl<R> fmt::Debug for RequestEngine<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestEngine").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl<R: Send + 'static> RequestEngine<R> {
    /// Starts the thread of a worker.
    ///
    /// # Errors
    /// When the system has none.
    pub(crate) fn start<W>(shared: Arc<EngineShared>, worker: W) -> Result<Self>
    where
        W: StepWorker<Request = R> + Send + 'static,
    {
        let (commands, receiver) = mpsc::channel();
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("llm-{}", shared.name));
        let thread = thread.spawn(move || command_loop::run(worker, &own, &receiver));
        let thread = thread.map_err(|error| {
            let text = format!("its thread does not start: {error}");
            LlmError::new(LlmErrorKind::Unavailable, shared.name, text)
        })?;
        Ok(Self { shared, commands: Arc::new(commands), thread: Some(thread) })
    }

    /// Hands a request to the thread: what `make` makes of its course. One that is lost is dropped, and tells its
    /// client that the engine stops.
    ///
    /// # Errors
    /// [`LlmErrorKind::Overloaded`] where too many requests wait, [`LlmErrorKind::Unavailable`] where the engine
    /// stops.
    pub(crate) fn submit(
        &self,
        name: String,
        size: RequestSize,
        make: impl FnOnce(RequestLife) -> R,
    ) -> Result<RequestTicket> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(self.shared.stopped());
        }
        let life = RequestLife::begin(&self.shared, name, size)?;
        let ticket = RequestTicket {
            number: life.number(),
            ended: Arc::clone(life.ended()),
            commands: Some(Arc::clone(&self.commands) as Arc<dyn CancelSender>),
        };
        drop(self.commands.send(EngineCommand::Submit(Box::new(make(life)))));
        Ok(ticket)
    }

    /// State that the thread shares.
    pub(crate) fn shared(&self) -> &EngineShared {
        &self.shared
    }

    /// Counters so far.
    pub(crate) fn statistics(&self) -> EngineStatistics {
        self.shared.statistics().clone()
    }

    /// Sets the observer; the first one stays.
    pub(crate) fn observe(&self, observer: Arc<dyn EngineObserver>) {
        self.shared.observed.set(observer);
    }
}

impl<R> RequestEngine<R> {
    /// Takes no more requests. Those that are there go on.
    pub(crate) fn refuse_requests(&self) {
        self.shared.stopping.store(true, Ordering::Release);
    }
}

impl<R> Drop for RequestEngine<R> {
    fn drop(&mut self) {
        self.refuse_requests();
        // An error says that the thread has ended already.
        let _ = self.commands.send(EngineCommand::Stop);
        // A client that is told something may hold the last reference, and drop it on the engine's own thread.
        let own = std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

/// Way to an engine's thread for those who take requests back.
trait CancelSender: fmt::Debug + Send + Sync {
    fn cancel(&self, number: u64);
}

impl<R: Send> CancelSender for Sender<EngineCommand<R>> {
    fn cancel(&self, number: u64) {
        // An error says that the engine has stopped, and with it the request.
        let _ = self.send(EngineCommand::Cancel(number));
    }
}

/// A request that was taken. Dropping it takes the request back, where it has not ended.
#[derive(Debug)]
pub struct RequestTicket {
    number: u64,
    /// Whether the request has ended, so that the thread need not be woken.
    ended: Arc<AtomicBool>,
    commands: Option<Arc<dyn CancelSender>>,
}

impl RequestTicket {
    /// Lets the request run to its end.
    pub fn detach(mut self) {
        self.commands = None;
    }
}

impl Drop for RequestTicket {
    fn drop(&mut self) {
        let open = !self.ended.load(Ordering::Acquire);
        if let Some(commands) = self.commands.take().filter(|_| open) {
            commands.cancel(self.number);
        }
    }
}
