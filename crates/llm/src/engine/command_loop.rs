//! Loop of the engine's thread: it takes what arrives, works, and goes on behind a panic.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;

use super::life::EngineShared;
use crate::error::{LlmError, LlmErrorKind};
use crate::guarded::panicked;

/// Messages to an engine's thread.
pub(super) enum EngineCommand<R> {
    Submit(Box<R>),
    Cancel(u64),
    Stop,
}

/// Steps of one kind of model: how they are planned and computed, and what requests are told of them.
pub(crate) trait StepWorker {
    /// A request that was checked. Dropping it tells its client that the engine stops.
    type Request;

    /// Whether there is nothing to do before something arrives.
    fn is_idle(&self) -> bool;

    /// Writes what goes on now into the statistics.
    fn publish(&self);

    /// Takes a request.
    fn accept(&mut self, request: Self::Request);

    /// Takes a request back, where it has not ended.
    fn cancel(&mut self, number: u64);

    /// Plans and computes a step; there is something to do.
    fn work(&mut self);

    /// Fails the requests that a panic may have left half done.
    fn recover(&mut self, error: &LlmError);

    /// Fails all requests.
    fn give_up(&mut self, error: &LlmError);
}

/// Works until it is told to stop.
pub(super) fn run<W: StepWorker>(
    mut worker: W,
    shared: &EngineShared,
    commands: &Receiver<EngineCommand<W::Request>>,
) {
    loop {
        match catch_unwind(AssertUnwindSafe(|| turn(&mut worker, commands))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(panic) => {
                let error = LlmError::new(LlmErrorKind::Model, shared.name, panicked(&*panic));
                tracing::error!(%error, "the requests of an engine fail");
                worker.recover(&error);
            }
        }
    }
    worker.give_up(&shared.stopped());
}

/// Takes what has arrived, waiting where there is nothing to do, and works.
fn turn<W: StepWorker>(
    worker: &mut W,
    commands: &Receiver<EngineCommand<W::Request>>,
) -> ControlFlow<()> {
    if worker.is_idle() {
        worker.publish();
        let Ok(command) = commands.recv() else { return ControlFlow::Break(()) };
        obey(worker, command)?;
    }
    while let Ok(command) = commands.try_recv() {
        obey(worker, command)?;
    }
    if !worker.is_idle() {
        worker.work();
    }
    ControlFlow::Continue(())
}

fn obey<W: StepWorker>(worker: &mut W, command: EngineCommand<W::Request>) -> ControlFlow<()> {
    match command {
        EngineCommand::Submit(request) => worker.accept(*request),
        EngineCommand::Cancel(number) => worker.cancel(number),
        EngineCommand::Stop => return ControlFlow::Break(()),
    }
    ControlFlow::Continue(())
}
