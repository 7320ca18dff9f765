//! Times of a model version's executions, and predictions of when a request is done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::schedule::{Nanos, WorkAhead};

/// Sizes of batches that are told apart: by powers of two.
const CLASSES: usize = 24;
/// How much of what was known gives way to an execution: more where it was faster, so that one slow execution does
/// not keep requests away for long.
const NEWS: u64 = 8;
const GOOD_NEWS: u64 = 2;
/// An execution is taken to last longer by one part of so many when it is decided how long it may be put off.
const DOUBT: u64 = 4;
/// Age from which measurements say nothing of a version that has nothing to do.
const STALE: Nanos = 1_000_000_000;

/// Times of executions by the size of the batch, on the average of the last ones.
#[derive(Debug, Default)]
pub(super) struct ExecutionTimes {
    /// Twice the nanoseconds and one; 1 after the first execution, which prepares what later ones find and says
    /// nothing; 0 before it.
    means: [AtomicU64; CLASSES],
    ended: AtomicU64,
}

/// When a request is predicted to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompletionPrediction {
    /// How long it waits for an execution.
    pub(super) wait: Duration,
    /// How long that takes.
    pub(super) run: Duration,
}

impl CompletionPrediction {
    pub(super) fn total(self) -> Duration {
        self.wait.saturating_add(self.run)
    }
}

fn class(rows: u64) -> usize {
    let log = u64::from(rows.max(1).ilog2());
    usize::try_from(log).unwrap_or(CLASSES).min(CLASSES - 1)
}

impl ExecutionTimes {
    /// Takes note of an execution of so many rows that ended `now`.
    pub(super) fn ran(&self, rows: u64, took: Duration, now: Nanos) {
        let Some(mean) = self.means.get(class(rows)) else { return };
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4);
        let next = match mean.load(Ordering::Relaxed) {
            0 => 0,
            1 => took,
            known if took < known / 2 => known / 2 - (known / 2 - took) / GOOD_NEWS,
            known => known / 2 + (took - known / 2) / NEWS,
        };
        // Of two executions that end at the same time one may be forgotten.
        mean.store(next * 2 + 1, Ordering::Relaxed);
        self.ended.store(now, Ordering::Relaxed);
    }

    /// Nanoseconds of an execution of so many rows: of the nearest size that was measured, rather of a smaller one.
    pub(super) fn of(&self, rows: u64) -> Option<Nanos> {
        let own = class(rows);
        let smaller = self.means.get(..=own).into_iter().flatten().rev();
        let larger = self.means.get(own + 1..).into_iter().flatten();
        let known = |mean: &AtomicU64| Some(mean.load(Ordering::Relaxed)).filter(|&mean| mean > 1);
        smaller.chain(larger).find_map(known).map(|mean| mean / 2)
    }

    /// How long a goal lets a request wait for company, which makes a batch of so many rows at most.
    pub(super) fn max_queue_delay(&self, goal: Nanos, most: u64) -> Nanos {
        match self.of(most) {
            Some(run) => goal.saturating_sub(run.saturating_add(run / DOUBT)),
            None => goal / 2,
        }
    }

    /// Whether the last execution was long ago.
    pub(super) fn are_stale(&self, now: Nanos) -> bool {
        now.saturating_sub(self.ended.load(Ordering::Relaxed)) > STALE
    }

    /// When a request of so many rows is done, where instances are free after these times, and work is ahead of it.
    /// None where nothing is known.
    pub(super) fn predict(
        &self,
        mut instances: Vec<Nanos>,
        ahead: WorkAhead,
        rows: u64,
    ) -> Option<CompletionPrediction> {
        let WorkAhead { batches, size } = ahead;
        let run = self.of(rows)?;
        let each = if batches > 0 { self.of(size)? } else { 0 };
        // Whole rounds first: there may be many batches.
        let count = instances.len();
        let rounds = u64::try_from(batches.checked_div(count)?).unwrap_or(u64::MAX);
        for _ in 0..batches.checked_rem(count)? {
            instances.sort_unstable();
            if let Some(first) = instances.first_mut() {
                *first = first.saturating_add(each);
            }
        }
        let wait = instances.into_iter().min()?.saturating_add(rounds.saturating_mul(each));
        Some(CompletionPrediction {
            wait: Duration::from_nanos(wait),
            run: Duration::from_nanos(run),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn nothing_is_known_before_the_second_execution() {
        let times = ExecutionTimes::default();
        assert_eq!(times.of(1), None);
        times.ran(1, 100 * MS, 0);
        assert_eq!(times.predict(vec![0], WorkAhead { batches: 0, size: 1 }, 1), None);
        times.ran(1, 2 * MS, 0);
        assert_eq!(times.of(1), Some(2_000_000));
        assert_eq!((times.of(8), times.of(9)), (times.of(1), times.of(1)), "of the nearest size");
    }

    #[test]
    fn sizes_are_told_apart_and_slow_executions_are_forgotten_soon() {
        let times = ExecutionTimes::default();
        for (rows, ms) in [(1, 1), (8, 6)] {
            (0..4).for_each(|_| times.ran(rows, ms * MS, 0));
        }
        assert_eq!(
            (times.of(1), times.of(5), times.of(15)),
            (Some(1_000_000), Some(1_000_000), Some(6_000_000))
        );
        times.ran(1, 80 * MS, 5);
        assert!(times.of(1).unwrap() > 10_000_000);
        (0..5).for_each(|_| times.ran(1, MS, 5));
        assert!(times.of(1).unwrap() < 2_000_000, "{:?}", times.of(1));
        assert!(!times.are_stale(STALE) && times.are_stale(STALE + 6));
    }

    #[test]
    fn a_goal_leaves_time_for_the_execution() {
        let times = ExecutionTimes::default();
        assert_eq!(times.max_queue_delay(10_000_000, 8), 5_000_000);
        (0..4).for_each(|_| times.ran(8, 4 * MS, 0));
        assert_eq!(
            (times.max_queue_delay(10_000_000, 8), times.max_queue_delay(1_000_000, 8)),
            (5_000_000, 0)
        );
    }

    #[test]
    fn a_request_waits_for_the_batches_before_it() {
        let times = ExecutionTimes::default();
        (0..4).for_each(|_| times.ran(1, 10 * MS, 0));
        let wait = |free: &[u64], batches| {
            let free = free.iter().map(|ms| ms * 1_000_000).collect();
            let found = times.predict(free, WorkAhead { batches, size: 1 }, 1).unwrap();
            assert_eq!(found.run, 10 * MS);
            found.wait.as_millis()
        };
        assert_eq!(wait(&[0, 4], 0), 0);
        assert_eq!(wait(&[6, 4], 0), 4);
        assert_eq!(wait(&[6, 4], 1), 6);
        assert_eq!(wait(&[6, 4], 3), 16);
        assert_eq!(wait(&[0], 100), 1000);
        assert_eq!(times.predict(Vec::new(), WorkAhead { batches: 1, size: 1 }, 1), None);
    }
}
