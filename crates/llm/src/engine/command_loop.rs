//! Common parts of the threads of engines: they take what arrives, work, and begin anew behind a panic.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::answer::OngoingAnswer;
use super::request::EventReceiver;
use crate::error::{LlmError, LlmErrorKind};
use crate::grammar::GrammarConstraint;
use crate::guarded::panicked;
use crate::sampling::SamplingParameters;
use crate::schedule::{ArrivingSequence, SequenceId};

/// Messages to an engine's thread.
pub(super) enum EngineCommand {
    Submit(Box<SubmittedRequest>),
    Cancel(SequenceId),
    Stop,
}

impl std::fmt::Debug for EngineCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Submit(submission) => f.debug_tuple("Submit").field(&submission.arrival).finish(),
            Self::Cancel(id) => f.debug_tuple("Cancel").field(id).finish(),
            Self::Stop => f.write_str("Stop"),
        }
    }
}

/// A request that was checked.
pub(super) struct SubmittedRequest {
    pub(super) arrival: ArrivingSequence,
    /// Name that the front end gives it.
    pub(super) name: String,
    pub(super) answer: OngoingAnswer,
    /// For answers behind the first one.
    pub(super) constraint: Option<GrammarConstraint>,
    pub(super) sampling: SamplingParameters,
    pub(super) reply: EventReceiver,
    pub(super) submitted: Instant,
}

/// Worker on requests.
pub(super) trait EngineWork {
    /// Whether there is nothing to do before something arrives.
    fn is_idle(&self) -> bool;

    /// Tells what goes on now.
    fn publish(&self);

    /// Takes a request.
    fn accept(&mut self, submission: SubmittedRequest);

    /// Takes a request back.
    fn cancel(&mut self, id: SequenceId);

    /// Works for a while; there is something to do.
    fn work(&mut self);

    /// Fails the requests that a panic may have left half done.
    fn recover(&mut self, error: &LlmError);

    /// Fails all requests.
    fn give_up(&mut self, error: &LlmError);
}

/// Works until it is told to stop.
pub(super) fn run(mut work: impl EngineWork, commands: &Receiver<EngineCommand>) {
    loop {
        match catch_unwind(AssertUnwindSafe(|| turn(&mut work, commands))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(panic) => {
                work.recover(&LlmError::new(LlmErrorKind::Model, "engine", panicked(&*panic)))
            }
        }
    }
    work.give_up(&LlmError::new(LlmErrorKind::Unavailable, "engine", "it stops"));
}

/// Takes what has arrived, waiting where there is nothing to do, and works.
fn turn(work: &mut impl EngineWork, commands: &Receiver<EngineCommand>) -> ControlFlow<()> {
    if work.is_idle() {
        work.publish();
        let Ok(command) = commands.recv() else { return ControlFlow::Break(()) };
        obey(work, command)?;
    }
    while let Ok(command) = commands.try_recv() {
        obey(work, command)?;
    }
    if !work.is_idle() {
        work.work();
    }
    ControlFlow::Continue(())
}

fn obey(work: &mut impl EngineWork, command: EngineCommand) -> ControlFlow<()> {
    match command {
        EngineCommand::Submit(submission) => work.accept(*submission),
        EngineCommand::Cancel(id) => work.cancel(id),
        EngineCommand::Stop => return ControlFlow::Break(()),
    }
    ControlFlow::Continue(())
}
