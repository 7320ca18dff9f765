//! A program of FP16 that the interpreter runs, beside what runs the partition in FP32.
//!
//! Results of the first runs are compared with FP32's, whatever an accuracy probe has found on inputs that were made for
//! it; every later run is looked through for elements that are no finite numbers. A program that gives such where FP32
//! has numbers is given up, and the session's other providers serve.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_graph::Datum;
use galatea_runtime::{
    Executable, PartitionReport, PartitionRun, PlanReport, RunFence, RuntimeError,
};

use super::engine::agree::{agree, all_finite, are_held, none_lost, tell};
use super::engine::{StandbyExecutable, counts};

/// The runs that are compared with FP32. Those of zeros do not count.
const COMPARED_RUNS: usize = 2;

/// Results of a program's checks so far.
enum ProgramTrust {
    /// Number of runs that are still to be compared.
    Compared(usize),
    /// It was right so far.
    Serving,
    /// The other one serves for good.
    GivenUp(Arc<dyn Executable>),
}

struct ProgramWatch {
    name: String,
    standby: Arc<StandbyExecutable>,
    /// The largest relative error of what is compared.
    limit: f64,
    trust: Mutex<ProgramTrust>,
}

/// An executable of FP16 whose results are watched.
pub(super) struct GuardedExecutable {
    inner: Box<dyn Executable>,
    watch: Arc<ProgramWatch>,
}

impl GuardedExecutable {
    /// Watches an executable. `standby` is its partition in FP32, `limit` the largest relative error of its first runs,
    /// which are not compared where there is none. `name` is for messages.
    pub(super) fn new(
        inner: Box<dyn Executable>,
        name: String,
        standby: Arc<StandbyExecutable>,
        limit: Option<f64>,
    ) -> Self {
        let trust = limit.map_or(ProgramTrust::Serving, |_| ProgramTrust::Compared(COMPARED_RUNS));
        let limit = limit.unwrap_or(f64::INFINITY);
        Self {
            inner,
            watch: Arc::new(ProgramWatch { name, standby, limit, trust: Mutex::new(trust) }),
        }
    }
}

impl ProgramWatch {
    fn trust(&self) -> MutexGuard<'_, ProgramTrust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that serves for good, where the program was given up.
    fn other(&self) -> Option<Arc<dyn Executable>> {
        match &*self.trust() {
            ProgramTrust::GivenUp(other) => Some(Arc::clone(other)),
            ProgramTrust::Compared(_) | ProgramTrust::Serving => None,
        }
    }

    /// Results of the program, or those of FP32 where it is wrong.
    fn judged(&self, found: Vec<Datum>, inputs: Vec<Datum>) -> Result<Vec<Datum>, RuntimeError> {
        let comparing = matches!(*self.trust(), ProgramTrust::Compared(_));
        if !comparing && all_finite(&found) {
            return Ok(found);
        }
        let says = tell(&inputs);
        let held = are_held(&inputs);
        let other = self.standby.get();
        let expected = other.and_then(|other| Ok((other.submit(inputs.into()).outputs()?, other)));
        let (expected, other) = match expected {
            Ok(expected) => expected,
            // Nobody else knows better.
            Err(error) => {
                tracing::debug!(partition = %self.name, "results are not compared: {error}");
                return Ok(found);
            }
        };
        let lost = none_lost(&found, &expected);
        if lost.is_err() {
            counts::nonfinite();
        }
        let compared = lost.and_then(|()| match comparing {
            true => agree(&found, &expected, self.limit),
            false => Ok(()),
        });
        match compared {
            Ok(()) => {
                if says {
                    self.note();
                }
                Ok(found)
            }
            Err(text) => {
                if held {
                    self.give_up(&text, other);
                }
                Ok(expected)
            }
        }
    }

    /// Counts a run that was compared and right.
    fn note(&self) {
        let mut trust = self.trust();
        if let ProgramTrust::Compared(left) = &mut *trust {
            *left = left.saturating_sub(1);
            if *left == 0 {
                *trust = ProgramTrust::Serving;
            }
        }
    }

    fn give_up(&self, why: &str, other: Arc<dyn Executable>) {
        let before = std::mem::replace(&mut *self.trust(), ProgramTrust::GivenUp(other));
        if !matches!(before, ProgramTrust::GivenUp(_)) {
            counts::fallback();
            tracing::warn!(partition = %self.name, "the program of FP16 is given up, others serve: {why}");
        }
    }
}

impl Executable for GuardedExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        if let Some(other) = self.watch.other() {
            return other.submit(run);
        }
        let inputs = run.inputs;
        let fence = self.inner.submit(inputs.clone().into());
        let watch = Arc::clone(&self.watch);
        RunFence::pending(move || watch.judged(fence.outputs()?, inputs))
    }

    fn report(&self) -> PartitionReport {
        let report = match self.watch.other() {
            Some(other) => other.report(),
            None => self.inner.report(),
        };
        PartitionReport { plans: PlanReport::default(), ..report }
    }
}
