//! When a batch runs on the thread that brought its last request, instead of the instance's own.
//!
//! Handing work to another thread and its answer back costs some 20 µs, more than a small model takes. An instance
//! whose executions have proved short therefore runs on whichever thread comes with work, as long as the inputs are
//! not larger than those of the proof.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An execution up to this long is short: no front end's thread is missed for that time.
const SHORT: Duration = Duration::from_micros(50);
/// Short executions in a row that prove an instance quick.
const PROOF: u64 = 32;
/// Executions inside each other on one thread: the answer of one may bring the next, as in an ensemble.
const MAX_DEPTH: u32 = 4;
/// Batches that a thread runs one after the other before it leaves the rest to the instance's own thread.
pub(super) const MAX_ROUNDS: usize = 8;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Estimate of the time that a model version's executions take.
#[derive(Debug, Default)]
pub(super) struct InlineEligibility {
    /// Short executions since the last long one.
    streak: AtomicU64,
    /// Input bytes of the largest of them.
    largest: AtomicU64,
}

impl InlineEligibility {
    /// Notes an execution.
    pub(super) fn ran(&self, took: Duration, bytes: u64) {
        if took > SHORT {
            self.streak.store(0, Ordering::Relaxed);
            self.largest.store(0, Ordering::Relaxed);
            return;
        }
        // A plain store is enough beyond the proof; the count needs no more than to be about right.
        if self.streak.load(Ordering::Relaxed) < PROOF {
            self.streak.fetch_add(1, Ordering::Relaxed);
        }
        if self.largest.load(Ordering::Relaxed) < bytes {
            self.largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// Whether inputs of this size can be expected to take a short time.
    pub(super) fn expects_short(&self, bytes: u64) -> bool {
        self.streak.load(Ordering::Relaxed) >= PROOF
            && bytes <= self.largest.load(Ordering::Relaxed)
    }
}

/// Permission to execute on this thread.
#[derive(Debug)]
pub(super) struct InlineGuard(());

/// Whether this thread executes for another: it may be that of a front end.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

impl InlineGuard {
    /// `None` when too many executions lie on this thread already.
    pub(super) fn enter() -> Option<Self> {
        DEPTH.with(|depth| {
            let free = depth.get() < MAX_DEPTH;
            free.then(|| depth.set(depth.get() + 1)).map(|()| Self(()))
        })
    }
}

impl Drop for InlineGuard {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proven_sizes_are_expected_to_be_short() {
        let quickness = InlineEligibility::default();
        let short = Duration::from_micros(3);
        for _ in 0..PROOF {
            assert!(!quickness.expects_short(64));
            quickness.ran(short, 64);
        }
        assert!(quickness.expects_short(64));
        assert!(!quickness.expects_short(65));
        quickness.ran(short, 100);
        assert!(quickness.expects_short(100));
        quickness.ran(SHORT * 2, 8);
        assert!(!quickness.expects_short(8));
    }

    #[test]
    fn executions_nest_to_a_limit() {
        let all: Vec<InlineGuard> = std::iter::from_fn(InlineGuard::enter).take(100).collect();
        assert_eq!(all.len(), MAX_DEPTH as usize);
        drop(all);
        assert!(InlineGuard::enter().is_some());
    }
}
