//! Counts what is open, and tells when nothing is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Count of open entries.
#[derive(Debug, Default)]
pub struct InFlightCounter {
    open: AtomicUsize,
    awaited: AtomicBool,
    none: Notify,
}

impl InFlightCounter {
    /// Counts one more until the entry is dropped.
    pub fn enter(self: &Arc<Self>) -> InFlightEntry {
        self.open.fetch_add(1, Ordering::AcqRel);
        InFlightEntry { tally: Arc::clone(self) }
    }

    /// Returns the number of open entries.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Waits until none is open.
    pub async fn none(&self) {
        loop {
            // Created before the look: it hears of an entry that goes between the look and the wait.
            let told = self.none.notified();
            // One order for both sides: either the last entry sees this, or this sees that it is gone.
            self.awaited.store(true, Ordering::SeqCst);
            if self.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            told.await;
        }
    }
}

/// One that is open.
#[derive(Debug)]
pub struct InFlightEntry {
    tally: Arc<InFlightCounter>,
}

impl Drop for InFlightEntry {
    fn drop(&mut self) {
        let last = self.tally.open.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.tally.awaited.load(Ordering::SeqCst) {
            self.tally.none.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_ends_with_the_last_entry() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(async {
            let tally = Arc::new(InFlightCounter::default());
            tally.none().await;
            for _ in 0..200 {
                let entries: Vec<InFlightEntry> = (0..3).map(|_| tally.enter()).collect();
                let leaving = tokio::spawn(async move { drop(entries) });
                tally.none().await;
                assert_eq!(tally.open(), 0);
                leaving.await.unwrap();
            }
        });
    }
}
