//! Strategies that select the candidates to measure next: state machines that see times and have no clock.

use super::config_space::ConfigSpace;

/// A candidate that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCandidate {
    /// Its number in the space.
    pub candidate: usize,
    /// The least time, in nanoseconds; `None` where it failed or gave wrong results.
    pub time_ns: Option<f64>,
}

/// Decides what to measure.
pub trait SearchStrategy {
    /// The next candidates, none of them measured before; none ends the search.
    fn next(&mut self, space: &ConfigSpace, seen: &[MeasuredCandidate]) -> Vec<usize>;
}

/// The candidates that were not measured.
pub(super) fn unseen(space: &ConfigSpace, seen: &[MeasuredCandidate]) -> Vec<usize> {
    let mut open = vec![true; space.len()];
    for trial in seen {
        if let Some(slot) = open.get_mut(trial.candidate) {
            *slot = false;
        }
    }
    (0..space.len()).filter(|&candidate| open[candidate]).collect()
}

/// The trials that worked, the fastest first.
pub(super) fn ranked(seen: &[MeasuredCandidate]) -> Vec<(usize, f64)> {
    let worked = seen.iter().filter_map(|trial| Some((trial.candidate, trial.time_ns?)));
    let mut ranked: Vec<(usize, f64)> = worked.collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranked
}

/// Repeatable random numbers.
///
/// Source: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016.
#[derive(Clone, Debug)]
pub(super) struct RepeatableRandom(u64);

impl RepeatableRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `end`, which is above zero.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap_or(0) % end.max(1)
    }

    /// Returns true with this chance, in percent.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
