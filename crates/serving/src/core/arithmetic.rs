//! How much a version computes, and how fast.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::backend::OperationCounter;
use crate::statistics::ArithmeticSnapshot;

/// Sample at one time.
#[derive(Clone, Copy, Debug)]
struct SeenArithmetic {
    operations: u64,
    compute_ns: u64,
}

/// The arithmetic of a version since it serves.
pub(super) struct VersionArithmetic {
    counter: OperationCounter,
    /// Time that warming up took.
    before: u64,
    last: Mutex<SeenArithmetic>,
}

impl fmt::Debug for VersionArithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arithmetic").field("last", &self.last).finish_non_exhaustive()
    }
}

impl VersionArithmetic {
    /// Arithmetic of a version whose executions have taken this time so far: counters may be older than it.
    pub(super) fn new(counter: OperationCounter, compute_ns: u64) -> Self {
        let before = counter();
        Self { counter, before, last: Mutex::new(SeenArithmetic { operations: 0, compute_ns }) }
    }

    /// Current value, when executions have taken this time.
    pub(super) fn read(&self, compute_ns: u64) -> ArithmeticSnapshot {
        let operations = (self.counter)().saturating_sub(self.before);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let more = operations.saturating_sub(last.operations);
        let took = compute_ns.saturating_sub(last.compute_ns);
        // An execution that is not over has been counted or timed, but not both.
        let per_ns = if took > 0 { more as f64 / took as f64 } else { 0.0 };
        *last = SeenArithmetic { operations, compute_ns };
        ArithmeticSnapshot { operations, per_ns }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn the_rate_is_that_since_the_look_before() {
        let count = Arc::new(AtomicU64::new(500));
        let counter = Arc::clone(&count);
        let arithmetic =
            VersionArithmetic::new(Arc::new(move || counter.load(Ordering::Relaxed)), 1_000);
        assert_eq!(arithmetic.read(1_000), ArithmeticSnapshot::default());
        count.store(2_500, Ordering::Relaxed);
        let found = arithmetic.read(1_100);
        assert_eq!((found.operations, found.per_ns), (2_000, 20.0));
        count.store(3_500, Ordering::Relaxed);
        assert_eq!(arithmetic.read(1_600).per_ns, 2.0);
        assert_eq!(arithmetic.read(1_600).per_ns, 0.0);
    }
}
