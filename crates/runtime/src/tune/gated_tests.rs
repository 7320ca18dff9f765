//! Tests of measurements that give way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::super::config_space::{ConfigAxis, ConfigSpace};
use super::*;

/// Candidates that take 3, 1 and 2 µs.
struct TimedCandidates;

impl TuningTarget for TimedCandidates {
    fn compute(&mut self, _: usize) -> Result<Vec<f32>, String> {
        Ok(vec![1.0])
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        Ok([3e3, 1e3, 2e3][candidate])
    }
}

fn problem() -> TuningProblem {
    TuningProblem {
        node: "n".to_owned(),
        unit: None,
        family: "gemm-f32".to_owned(),
        bucket: "m1".to_owned(),
        space: ConfigSpace::new(vec![ConfigAxis::names("how", &["usual", "rows", "shared"])]),
        device: Box::new(TimedCandidates),
    }
}

/// A gate that closes after so many waits, and is found shut after each second measurement.
#[derive(Default)]
struct CountedGate {
    waits: Cell<usize>,
    looks: Cell<usize>,
    most: usize,
    measured: Cell<usize>,
    shut: bool,
}

impl TuningGate for CountedGate {
    fn wait(&self) -> TuningGateState {
        self.looks.set(self.looks.get() + 1);
        // Each wait finds it shut at first.
        if !self.looks.get().is_multiple_of(2) {
            return TuningGateState::Shut;
        }
        self.waits.set(self.waits.get() + 1);
        if self.waits.get() <= self.most { TuningGateState::Open } else { TuningGateState::Closed }
    }

    fn is_open(&self) -> bool {
        !self.shut && self.measured.get().is_multiple_of(2)
    }

    fn spent(&self, _: Duration, cores: usize) {
        assert_eq!(cores, 2);
        self.measured.set(self.measured.get() + 1);
    }
}

#[test]
fn every_measurement_waits_and_disturbed_samples_are_taken_again() {
    let gate = CountedGate { most: usize::MAX, ..CountedGate::default() };
    let found = search_gated(&mut problem(), &gate, Duration::from_secs(1), 2).unwrap();
    let record = found.record.unwrap();
    assert_eq!((record.choice.as_str(), record.trials, record.time_ns), ("how=rows", 3, 1e3));
    // Each measurement has passed the gate, and every second sample was taken twice.
    assert_eq!(gate.waits.get(), gate.measured.get());
    assert!(gate.measured.get() > 9, "{}", gate.measured.get());
}

#[test]
fn a_gate_that_closes_leaves_no_record() {
    for most in [0, 1, 3, 6] {
        let gate = CountedGate { most, ..CountedGate::default() };
        let found = search_gated(&mut problem(), &gate, Duration::from_secs(1), 2).unwrap();
        assert!(found.record.is_none(), "{most}");
        assert_eq!(gate.measured.get(), most);
        // Nothing more is asked of a closed gate.
        assert_eq!(gate.waits.get(), most + 1);
    }
}

#[test]
fn a_machine_that_is_never_quiet_gives_no_times() {
    let gate = CountedGate { most: usize::MAX, shut: true, ..CountedGate::default() };
    let error = search_gated(&mut problem(), &gate, Duration::from_secs(1), 2).unwrap_err();
    assert!(error.contains("something else ran during 64 samples"), "{error}");
}
