//! How busy a device is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use galatea_runtime::Work;

/// What runs took of a device since its use is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time from the begin to the end of each run, by the device's clock.
    pub busy: Duration,
    /// The least that their kernels had to do.
    pub work: Work,
    /// Runs.
    pub runs: u64,
}

/// Sums over runs.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    on: AtomicBool,
    busy_ns: AtomicU64,
    operations: AtomicU64,
    bytes: AtomicU64,
    runs: AtomicU64,
}

impl Meter {
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn start(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, busy_ns: u64, work: Work) {
        self.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
        self.operations.fetch_add(work.operations, Ordering::Relaxed);
        self.bytes.fetch_add(work.bytes, Ordering::Relaxed);
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// The sums, where they are measured.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        self.is_on().then(|| Usage {
            busy: Duration::from_nanos(read(&self.busy_ns)),
            work: Work { operations: read(&self.operations), bytes: read(&self.bytes) },
            runs: read(&self.runs),
        })
    }
}
