//! A program of FP16 that the interpreter runs, beside what runs the partition in FP32.
//!
//! Results of the first runs are compared with FP32's, whatever an accuracy probe has found on inputs that were made for
//! it, and so are those of inputs of other magnitudes than all before. Of the other runs a few are compared in the
//! background, and each is looked through for elements that are no finite numbers. A program that gives such where FP32
//! has numbers, or is off, is given up, and the session's other providers serve.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_graph::Datum;
use galatea_runtime::{
    Executable, PartitionReport, PartitionRun, PlanReport, RunFence, RuntimeError,
};

use super::engine::agree::{agree, all_finite, none_lost};
use super::engine::compared_inputs::{ComparedInputs, InputMagnitudes};
use super::engine::later_comparison::compare_later;
use super::engine::{StandbyExecutable, counts};

/// The runs that are compared with FP32 whatever their inputs are. Those of zeros do not count.
const COMPARED_RUNS: usize = 2;

/// Results of a program's checks so far.
enum ProgramTrust {
    /// It is compared on these first runs, and was on such inputs.
    Comparing(FirstRuns, ComparedInputs),
    /// Only what is no number is compared.
    Unasked,
    /// The other one serves for good.
    GivenUp(Arc<dyn Executable>),
}

/// Number of first runs that are still to be compared.
type FirstRuns = usize;

/// How much of a run's results is looked at.
enum RunCheck {
    /// Compared before they are given.
    Compared,
    /// Compared behind the answer.
    Sampled,
    /// Looked through for what is no number.
    Scanned,
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
        let trust = match limit {
            Some(_) => ProgramTrust::Comparing(COMPARED_RUNS, ComparedInputs::default()),
            None => ProgramTrust::Unasked,
        };
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
            ProgramTrust::Comparing(..) | ProgramTrust::Unasked => None,
        }
    }

    /// Says how much of a run is looked at.
    fn check_of(&self, inputs: &InputMagnitudes) -> RunCheck {
        let mut trust = self.trust();
        let ProgramTrust::Comparing(left, compared) = &mut *trust else { return RunCheck::Scanned };
        if *left > 0 || !compared.cover(inputs) {
            RunCheck::Compared
        } else if compared.is_sampled() {
            RunCheck::Sampled
        } else {
            RunCheck::Scanned
        }
    }

    /// Results of the program, or those of FP32 where it is wrong.
    fn judged(
        self: &Arc<Self>,
        found: Vec<Datum>,
        inputs: Vec<Datum>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let magnitudes = InputMagnitudes::of(&inputs);
        let check = self.check_of(&magnitudes);
        if !matches!(check, RunCheck::Compared) && all_finite(&found) {
            if matches!(check, RunCheck::Sampled) {
                let own = Arc::clone(self);
                let copy = found.clone();
                compare_later(move || {
                    if let Err(error) = own.compared(copy, inputs, &magnitudes, &check) {
                        tracing::debug!(partition = %own.name, "results are not compared: {error}");
                    }
                });
            }
            return Ok(found);
        }
        self.compared(found, inputs, &magnitudes, &check)
    }

    /// Runs the partition in FP32 and compares.
    fn compared(
        &self,
        found: Vec<Datum>,
        inputs: Vec<Datum>,
        magnitudes: &InputMagnitudes,
        check: &RunCheck,
    ) -> Result<Vec<Datum>, RuntimeError> {
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
        counts::comparison();
        let lost = none_lost(&found, &expected);
        if lost.is_err() {
            counts::nonfinite();
        }
        let compared = lost.and_then(|()| match check {
            RunCheck::Scanned => Ok(()),
            RunCheck::Compared | RunCheck::Sampled => agree(&found, &expected, self.limit),
        });
        match compared {
            Ok(()) => {
                self.note(magnitudes, check);
                Ok(found)
            }
            Err(text) => {
                if magnitudes.are_held() {
                    self.give_up(&text, other);
                }
                Ok(expected)
            }
        }
    }

    /// Counts a run that was compared and right.
    fn note(&self, inputs: &InputMagnitudes, check: &RunCheck) {
        let mut trust = self.trust();
        if let (ProgramTrust::Comparing(left, compared), RunCheck::Compared) = (&mut *trust, check)
            && inputs.tell()
        {
            *left = left.saturating_sub(1);
            compared.add(inputs);
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
