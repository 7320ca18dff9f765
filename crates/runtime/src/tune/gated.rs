//! Measurements that give way to everything else: between two of them they wait until nothing else runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::database::TuningRecord;
use super::measure::{SearchLimits, TuningSearch, TuningTarget};
use super::strategy_kind::StrategyKind;
use super::tuning_cache::TuningProblem;

/// Samples that are taken again since something else ran meanwhile, before a candidate is given up.
const MAX_DISTURBED: usize = 64;
/// Candidates up to which every one is measured.
const FEW: usize = 16;

/// State of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningGateState {
    /// Nothing else runs: something may be measured.
    Open,
    /// Something else runs, or has just run.
    Shut,
    /// Nothing is to be measured any more.
    Closed,
}

/// Says when something may be measured.
pub trait TuningGate {
    /// Returns the state, after a moment of waiting where the gate is shut.
    fn wait(&self) -> TuningGateState;

    /// Returns whether nothing else runs now.
    fn is_open(&self) -> bool;

    /// Takes note of a measurement that took so long and kept so many cores busy.
    fn spent(&self, time: Duration, cores: usize);
}

/// Waits until a gate is open; `false` once it is closed.
pub(crate) fn wait_open(gate: &dyn TuningGate) -> bool {
    loop {
        match gate.wait() {
            TuningGateState::Open => return true,
            TuningGateState::Closed => return false,
            TuningGateState::Shut => {}
        }
    }
}

/// A target whose measurements wait for a gate.
struct GatedTarget<'a> {
    inner: &'a mut dyn TuningTarget,
    gate: &'a dyn TuningGate,
    cores: usize,
    /// Time of all measurements.
    spent: &'a Cell<Duration>,
    closed: &'a Cell<bool>,
}

impl GatedTarget<'_> {
    /// Measures something once the gate is open.
    fn pass<T>(
        &mut self,
        act: impl FnOnce(&mut dyn TuningTarget) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.closed.get() || !wait_open(self.gate) {
            self.closed.set(true);
            return Err("nothing is to be measured any more".to_owned());
        }
        let begin = Instant::now();
        let result = act(self.inner);
        let took = begin.elapsed();
        self.spent.set(self.spent.get() + took);
        self.gate.spent(took, self.cores);
        result
    }
}

impl TuningTarget for GatedTarget<'_> {
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
        self.pass(|inner| inner.compute(candidate))
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        for _ in 0..MAX_DISTURBED {
            let sample = self.pass(|inner| inner.sample(candidate))?;
            // What ran beside a request tells of the request.
            if self.gate.is_open() {
                return Ok(sample);
            }
        }
        Err(format!("something else ran during {MAX_DISTURBED} samples"))
    }

    fn expected(&mut self) -> Result<Option<Vec<f32>>, String> {
        self.pass(|inner| inner.expected())
    }

    fn tolerance(&self) -> Option<f32> {
        self.inner.tolerance()
    }

    fn roofline_ns(&self) -> Option<f64> {
        self.inner.roofline_ns()
    }

    fn least_ns(&self, candidate: usize) -> Option<f64> {
        self.inner.least_ns(candidate)
    }
}

/// Result of a gated search.
#[derive(Debug)]
pub(crate) struct GatedOutcome {
    /// The record; `None` where the gate closed before there was one.
    pub(crate) record: Option<TuningRecord>,
    /// Time of all measurements.
    pub(crate) spent: Duration,
}

/// Searches for the fastest candidate of a problem, for at most `time` of measurements on so many cores.
///
/// # Errors
/// Fails when the default cannot run.
pub(crate) fn search_gated(
    problem: &mut TuningProblem,
    gate: &dyn TuningGate,
    time: Duration,
    cores: usize,
) -> Result<GatedOutcome, String> {
    let (spent, closed) = Default::default();
    let inner = &mut *problem.device;
    let mut device = GatedTarget { inner, gate, cores, spent: &spent, closed: &closed };
    let few = problem.space.len() <= FEW;
    let strategy = if few { StrategyKind::Exhaustive } else { StrategyKind::Adaptive };
    let search = TuningSearch {
        space: &problem.space,
        device: &mut device,
        limits: SearchLimits { time, ..SearchLimits::default() },
        // Waiting is free.
        clock: &mut || spent.get(),
        progress: &mut |_, _| {},
    };
    let outcome = search.run(&mut *strategy.start(1));
    let record = match closed.get() {
        true => None,
        false => Some(TuningRecord::new(&problem.space, &outcome?)),
    };
    Ok(GatedOutcome { record, spent: spent.get() })
}

#[cfg(test)]
#[path = "gated_tests.rs"]
mod tests;
