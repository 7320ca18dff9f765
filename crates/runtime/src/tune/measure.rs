//! Measuring candidates under limits, fairly: samples in turn, early drop of what is far behind.

use std::time::Duration;

use super::config_space::ConfigSpace;
use super::strategy::{MeasuredCandidate, SearchStrategy, ranked};

/// Something whose speed depends on a candidate.
pub trait TuningTarget {
    /// Runs a candidate and gives what it computes, to be compared with the default's.
    ///
    /// # Errors
    /// Fails when the candidate cannot run.
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String>;

    /// Runs a candidate and gives its time, in nanoseconds.
    ///
    /// # Errors
    /// Fails when the candidate cannot run.
    fn sample(&mut self, candidate: usize) -> Result<f64, String>;

    /// Returns the correct result of a candidate, if it is known from elsewhere, such as from the operators'
    /// reference. Otherwise the default candidate is trusted.
    ///
    /// # Errors
    /// Fails when it cannot be computed.
    fn expected(&mut self) -> Result<Option<Vec<f32>>, String> {
        Ok(None)
    }

    /// Returns the distance that results may have from the expected ones, relative to the largest of them, if
    /// it differs from [`SearchLimits::tolerance`].
    fn tolerance(&self) -> Option<f32> {
        None
    }

    /// The least time that the hardware allows, in nanoseconds, where that is known.
    fn roofline_ns(&self) -> Option<f64> {
        None
    }

    /// The least time that the hardware allows for a candidate, in nanoseconds, where that is
    /// known: one on half of the cores has half of their peak.
    fn least_ns(&self, _candidate: usize) -> Option<f64> {
        self.roofline_ns()
    }
}

/// Limits at which a search stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLimits {
    /// The most candidates to measure.
    pub trials: usize,
    /// The most time to take.
    pub time: Duration,
    /// Samples of a candidate that is not dropped early.
    pub samples: usize,
    /// Distance that results may have from the default's, relative to the largest of them.
    pub tolerance: f32,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self { trials: 64, time: Duration::from_secs(10), samples: 9, tolerance: 1e-3 }
    }
}

/// Reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The strategy had nothing more to measure.
    Searched,
    /// [`SearchLimits::trials`].
    Trials,
    /// [`SearchLimits::time`].
    Time,
    /// The best candidate is as fast as the hardware allows.
    Roofline,
}

/// A candidate that was dropped for another reason than its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCandidate {
    /// Its number in the space.
    pub candidate: usize,
    /// Reason of the refusal.
    pub reason: String,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningOutcome {
    /// The fastest candidate, of those that compute what the default computes.
    pub best: usize,
    /// Its time, in nanoseconds.
    pub best_ns: f64,
    /// The default's time, in nanoseconds; the best's where the default failed.
    pub default_ns: f64,
    /// All candidates that were measured.
    pub trials: Vec<MeasuredCandidate>,
    /// Candidates that failed or computed something else.
    pub refused: Vec<RefusedCandidate>,
    /// Reason why the search ended.
    pub ended: SearchEnd,
}

/// Ratios to the best time at which a candidate is dropped after so many samples. Times only fall with more
/// samples, and the first are the noisiest.
const DROPPED: &[(usize, f64)] = &[(1, 3.0), (2, 1.6), (4, 1.25), (6, 1.1)];
/// Ratio of a time to the roofline's at which nothing more is to be gained.
const AT_ROOFLINE: f64 = 1.05;
/// Candidates whose samples are taken in turn.
const TOGETHER: usize = 16;
/// The improvement below which the default stays: less is noise.
const WORTH: f64 = 0.98;

/// Inputs of a search.
pub struct TuningSearch<'a> {
    /// The candidates.
    pub space: &'a ConfigSpace,
    /// Device that runs them.
    pub device: &'a mut dyn TuningTarget,
    /// Limits at which to stop.
    pub limits: SearchLimits,
    /// Time since any start.
    pub clock: &'a mut dyn FnMut() -> Duration,
    /// Told the number of candidates measured and the best time so far.
    pub progress: &'a mut dyn FnMut(usize, f64),
}

impl std::fmt::Debug for TuningSearch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").field("space", &self.space).finish_non_exhaustive()
    }
}

impl TuningSearch<'_> {
    /// Looks for the fastest candidate.
    ///
    /// # Errors
    /// Fails when the default cannot run and nothing else says what is right, or nothing could be measured.
    pub fn run(mut self, strategy: &mut dyn SearchStrategy) -> Result<TuningOutcome, String> {
        let start = (self.clock)();
        let deadline = start + self.limits.time;
        let expected = match self.device.expected()? {
            Some(expected) => expected,
            None => self.device.compute(0)?,
        };
        let mut seen: Vec<MeasuredCandidate> = Vec::new();
        let mut refused = Vec::new();
        let ended = loop {
            let left = self.limits.trials.saturating_sub(seen.len());
            if left == 0 {
                break SearchEnd::Trials;
            }
            let mut chosen = strategy.next(self.space, &seen);
            if chosen.is_empty() {
                break SearchEnd::Searched;
            }
            if seen.is_empty() && !chosen.contains(&0) {
                chosen.insert(0, 0);
            }
            chosen.truncate(left);
            let found = chosen
                .chunks(TOGETHER)
                .find_map(|part| self.measure(part, &expected, &mut seen, &mut refused, deadline));
            if let Some(ended) = found {
                break ended;
            }
        };
        self.outcome(seen, refused, ended)
    }

    /// Measures some candidates; says so where the search is over.
    fn measure(
        &mut self,
        chosen: &[usize],
        expected: &[f32],
        seen: &mut Vec<MeasuredCandidate>,
        refused: &mut Vec<RefusedCandidate>,
        deadline: Duration,
    ) -> Option<SearchEnd> {
        let mut right = Vec::with_capacity(chosen.len());
        let best = ranked(seen).first().map_or(f64::INFINITY, |&(_, time)| time);
        for &candidate in chosen {
            // What cannot be faster on any day is not worth a run.
            let least = self.device.least_ns(candidate).filter(|&least| least >= best);
            let runs = least.map_or(Ok(()), |least| {
                Err(format!("the hardware needs {least:.0} ns for it, the best takes {best:.0}"))
            });
            match runs.and_then(|()| self.right(candidate, expected)) {
                Ok(()) => right.push(candidate),
                Err(reason) => {
                    refused.push(RefusedCandidate { candidate, reason });
                    seen.push(MeasuredCandidate { candidate, time_ns: None });
                }
            }
        }
        self.race(&right, seen, refused, deadline);
        let best = ranked(seen).first().map_or(f64::INFINITY, |&(_, time)| time);
        (self.progress)(seen.len(), best);
        if self.device.roofline_ns().is_some_and(|least| best <= least * AT_ROOFLINE) {
            return Some(SearchEnd::Roofline);
        }
        ((self.clock)() >= deadline).then_some(SearchEnd::Time)
    }

    fn outcome(
        &self,
        seen: Vec<MeasuredCandidate>,
        refused: Vec<RefusedCandidate>,
        ended: SearchEnd,
    ) -> Result<TuningOutcome, String> {
        let time = |candidate: usize| {
            seen.iter().find(|trial| trial.candidate == candidate).and_then(|trial| trial.time_ns)
        };
        let failed = || {
            let reason = refused.iter().find(|refused| refused.candidate == 0);
            reason.map_or("the default was not measured".to_owned(), |found| found.reason.clone())
        };
        let fastest = ranked(&seen).first().copied();
        let default_ns = time(0).or(fastest.map(|(_, time)| time)).ok_or_else(failed)?;
        let (mut best, mut best_ns) = fastest.unwrap_or((0, default_ns));
        if time(0).is_some() && best_ns > default_ns * WORTH {
            (best, best_ns) = (0, default_ns);
        }
        Ok(TuningOutcome { best, best_ns, default_ns, trials: seen, refused, ended })
    }

    /// Checks that a candidate computes what the default does.
    fn right(&mut self, candidate: usize, expected: &[f32]) -> Result<(), String> {
        let found = self.device.compute(candidate)?;
        if found.len() != expected.len() {
            return Err(format!("{} results instead of {}", found.len(), expected.len()));
        }
        let most = expected.iter().filter(|x| x.is_finite()).fold(0.0_f32, |m, x| m.max(x.abs()));
        let tolerance = self.device.tolerance().unwrap_or(self.limits.tolerance);
        let limit = (most * tolerance).max(f32::MIN_POSITIVE);
        let differs = |(a, b): &(&f32, &f32)| {
            // Equal infinities and numbers that are none on both sides are the same result.
            let same = *a == *b || (a.is_nan() && b.is_nan());
            let near = (**a - **b).abs() <= limit;
            !same && !near
        };
        match found.iter().zip(expected).position(|pair| differs(&pair)) {
            None => Ok(()),
            Some(at) => Err(format!(
                "result {at} is {}, expected {}",
                found.get(at).copied().unwrap_or_default(),
                expected.get(at).copied().unwrap_or_default()
            )),
        }
    }

    /// Takes samples of all candidates in turn, so that a load on the machine falls on each.
    fn race(
        &mut self,
        chosen: &[usize],
        seen: &mut Vec<MeasuredCandidate>,
        refused: &mut Vec<RefusedCandidate>,
        deadline: Duration,
    ) {
        // The best so far runs along: what it loses now is the machine's doing.
        let rival = ranked(seen).first().map(|&(candidate, _)| candidate);
        let mut times: Vec<(usize, f64, bool)> = chosen
            .iter()
            .chain(&rival)
            .map(|&candidate| (candidate, f64::INFINITY, true))
            .collect();
        for round in 0..self.limits.samples.max(1) {
            for (candidate, time, alive) in &mut times {
                // Every candidate has a sample at least, however little time there is.
                if !*alive || (round > 0 && (self.clock)() >= deadline) {
                    continue;
                }
                let sample = self.device.sample(*candidate);
                // A time of nothing is no time: the candidate would win for good.
                let sample = sample.and_then(|sample| match sample > 0.0 {
                    true => Ok(sample),
                    false => Err(format!("it took {sample} ns")),
                });
                match sample {
                    Ok(sample) => *time = time.min(sample),
                    Err(reason) => {
                        *alive = false;
                        *time = f64::INFINITY;
                        refused.push(RefusedCandidate { candidate: *candidate, reason });
                    }
                }
            }
            let best = times.iter().map(|(_, time, _)| *time).fold(f64::INFINITY, f64::min);
            let factor = DROPPED.iter().rev().find(|(samples, _)| round + 1 >= *samples);
            if let Some((_, factor)) = factor {
                for (_, time, alive) in &mut times {
                    *alive = *alive && *time <= best * factor;
                }
            }
        }
        for (candidate, time, _) in times {
            let time_ns = time.is_finite().then_some(time);
            match seen.iter_mut().find(|trial| trial.candidate == candidate) {
                Some(trial) => trial.time_ns = trial.time_ns.zip(time_ns).map(|(a, b)| a.min(b)),
                None => seen.push(MeasuredCandidate { candidate, time_ns }),
            }
        }
    }
}
