//! Meter of a device's use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use galatea_runtime::ArithmeticWork;

/// Use of a device by runs since measuring began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    /// Time from the begin to the end of each run, by the device's clock.
    pub busy: Duration,
    /// The least that their kernels had to do.
    pub work: ArithmeticWork,
    /// Runs.
    pub runs: u64,
}

/// Sums over runs.
#[derive(Debug, Default)]
pub(crate) struct UsageMeter {
    on: AtomicBool,
    busy_ns: AtomicU64,
    operations: AtomicU64,
    bytes: AtomicU64,
    runs: AtomicU64,
}

impl UsageMeter {
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn start(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, busy_ns: u64, work: ArithmeticWork) {
        self.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
        self.operations.fetch_add(work.operations, Ordering::Relaxed);
        self.bytes.fetch_add(work.bytes, Ordering::Relaxed);
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// The sums, where they are measured.
    pub(crate) fn usage(&self) -> Option<DeviceUsage> {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        self.is_on().then(|| DeviceUsage {
            busy: Duration::from_nanos(read(&self.busy_ns)),
            work: ArithmeticWork { operations: read(&self.operations), bytes: read(&self.bytes) },
            runs: read(&self.runs),
        })
    }
}
