//! Bound of the threads that the instances of all models have together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::ServingError;

/// Most threads of instances in a server. Linux maps 65,530 regions for a process by default, and a thread takes two:
/// beyond them it is not the start of a thread that fails, but the process.
const MAX_INSTANCE_THREADS: usize = 8192;

/// Number of threads that instances have.
#[derive(Debug, Default)]
pub(super) struct InstanceThreads(Arc<AtomicUsize>);

impl InstanceThreads {
    /// Counts threads until the reservation is dropped.
    ///
    /// # Errors
    /// Fails when there would be more than [`MAX_INSTANCE_THREADS`].
    pub(super) fn reserve(&self, count: usize) -> Result<ThreadReservation, ServingError> {
        let more = |threads: usize| {
            threads.checked_add(count).filter(|threads| *threads <= MAX_INSTANCE_THREADS)
        };
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(ThreadReservation { threads: Arc::clone(&self.0), count }),
            Err(threads) => Err(ServingError::unavailable(format!(
                "{count} instances need a thread each, and those of other models have {threads} of the \
                 {MAX_INSTANCE_THREADS} that a server may have"
            ))),
        }
    }
}

/// Threads that are counted.
#[derive(Debug)]
pub(super) struct ThreadReservation {
    threads: Arc<AtomicUsize>,
    count: usize,
}

impl Drop for ThreadReservation {
    fn drop(&mut self) {
        self.threads.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_all_models_are_bounded_and_come_back() {
        let threads = InstanceThreads::default();
        let most = threads.reserve(MAX_INSTANCE_THREADS - 1).unwrap();
        drop(threads.reserve(1).unwrap());
        let refusal = threads.reserve(2).unwrap_err().to_string();
        assert!(refusal.contains("8191 of the 8192"), "{refusal}");
        assert!(threads.reserve(usize::MAX).is_err());
        drop(most);
        threads.reserve(MAX_INSTANCE_THREADS).unwrap();
    }
}
