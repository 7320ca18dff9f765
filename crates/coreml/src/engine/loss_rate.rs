//! Rate at which an engine loses runs that are no fault of its own, such as with a worker that is killed.

/// Most runs that may be lost among so many that were not.
const MAX_LOST: u32 = 8;
/// Runs without a loss after which earlier losses are forgotten.
const FORGOTTEN_AFTER: u32 = 256;

/// Runs that were lost lately. Each of them is answered by others, in their number format: an engine that loses many
/// gives answers that differ from one to the next.
#[derive(Debug, Default)]
pub(super) struct LossRate {
    lost: u32,
    kept: u32,
}

impl LossRate {
    /// Counts a run that was not lost.
    pub(super) fn keep(&mut self) {
        self.kept = self.kept.saturating_add(1);
        if self.kept >= FORGOTTEN_AFTER {
            *self = Self::default();
        }
    }

    /// Counts a run that was lost, and returns whether there are too many.
    pub(super) fn lose(&mut self) -> bool {
        self.kept = 0;
        self.lost = self.lost.saturating_add(1);
        self.lost >= MAX_LOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_forgotten_after_many_good_runs_only() {
        let mut rate = LossRate::default();
        for _ in 1..MAX_LOST {
            assert!(!rate.lose());
            (1..FORGOTTEN_AFTER).for_each(|_| rate.keep());
        }
        assert!(rate.lose());
        let mut rate = LossRate::default();
        for _ in 0..MAX_LOST * 2 {
            assert!(!rate.lose());
            (0..FORGOTTEN_AFTER).for_each(|_| rate.keep());
        }
    }
}
