//! What the threads of engines have alike: they take what arrives, work, and begin anew behind a panic.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::answer::Answer;
use super::request::Reply;
use crate::error::{Error, Kind};
use crate::grammar::Constraint;
use crate::guarded::panicked;
use crate::sampling::SamplingParameters;
use crate::schedule::{Arrival, SequenceId};

/// What an engine's thread is told.
pub(super) enum Command {
    Submit(Box<Submission>),
    Cancel(SequenceId),
    Stop,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Submit(submission) => f.debug_tuple("Submit").field(&submission.arrival).finish(),
            Self::Cancel(id) => f.debug_tuple("Cancel").field(id).finish(),
            Self::Stop => f.write_str("Stop"),
        }
    }
}

/// A request that was checked.
pub(super) struct Submission {
    pub(super) arrival: Arrival,
    /// What the door calls it.
    pub(super) name: String,
    pub(super) answer: Answer,
    /// For answers behind the first one.
    pub(super) constraint: Option<Constraint>,
    pub(super) sampling: SamplingParameters,
    pub(super) reply: Reply,
    pub(super) submitted: Instant,
}

/// What works on requests.
pub(super) trait Work {
    /// Whether there is nothing to do before something arrives.
    fn is_idle(&self) -> bool;

    /// Tells what goes on now.
    fn publish(&self);

    /// Takes a request.
    fn accept(&mut self, submission: Submission);

    /// Takes a request back.
    fn cancel(&mut self, id: SequenceId);

    /// Works for a while; there is something to do.
    fn work(&mut self);

    /// Fails the requests that a panic may have left half done.
    fn recover(&mut self, error: &Error);

    /// Fails all requests.
    fn give_up(&mut self, error: &Error);
}

/// Works until it is told to stop.
pub(super) fn run(mut work: impl Work, commands: &Receiver<Command>) {
    loop {
        match catch_unwind(AssertUnwindSafe(|| turn(&mut work, commands))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(panic) => work.recover(&Error::new(Kind::Model, "engine", panicked(&*panic))),
        }
    }
    work.give_up(&Error::new(Kind::Unavailable, "engine", "it stops"));
}

/// Takes what has arrived, waiting where there is nothing to do, and works.
fn turn(work: &mut impl Work, commands: &Receiver<Command>) -> ControlFlow<()> {
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

fn obey(work: &mut impl Work, command: Command) -> ControlFlow<()> {
    match command {
        Command::Submit(submission) => work.accept(*submission),
        Command::Cancel(id) => work.cancel(id),
        Command::Stop => return ControlFlow::Break(()),
    }
    ControlFlow::Continue(())
}
