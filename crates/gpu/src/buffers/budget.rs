//! Budget of a device's memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that may be taken, which models may make fewer.
#[derive(Debug)]
pub(crate) struct MemoryBudget(AtomicU64);

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(None)
    }
}

impl MemoryBudget {
    /// Creates a budget of so many bytes; unlimited without a number.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        Self(AtomicU64::new(bytes.unwrap_or(u64::MAX)))
    }

    /// Returns the bytes of the budget; `None` if it is unlimited.
    pub(crate) fn bytes(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|bytes| *bytes < u64::MAX)
    }

    /// No more than these from now on.
    pub(crate) fn limit(&self, bytes: u64) {
        self.0.fetch_min(bytes, Ordering::Relaxed);
    }
}
