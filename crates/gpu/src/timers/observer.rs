//! Observers that are told of every run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use galatea_runtime::{ArithmeticUnit, ArithmeticWork};

/// Description of a dispatch of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLabel {
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// The node's name, or that of its first output where it has none.
    pub node: String,
    /// The operator.
    pub op: String,
    /// Types and shapes of the operands: `FP32[1,8] → FP32[1,4]`.
    pub shapes: String,
    /// Kind of instructions that multiply and add.
    pub unit: ArithmeticUnit,
}

/// A dispatch that was run.
#[derive(Clone, Debug)]
pub struct KernelRun {
    /// Time at which it began, by the host's clock.
    pub begin: Instant,
    /// Time that it took, by the device's clock.
    pub time: Duration,
    /// Least work that it had to do.
    pub work: ArithmeticWork,
}

/// Moments of the host's work around a run, in their order.
#[derive(Clone, Copy, Debug)]
pub struct HostTimes {
    /// It began: inputs are brought to the device, and where the plan is new it is made.
    pub begin: Instant,
    /// Commands are written down.
    pub encode: Instant,
    /// Commands are handed over.
    pub submit: Instant,
    /// They are handed over.
    pub submitted: Instant,
    /// The host waits for the device.
    pub wait: Instant,
    /// The device is done; outputs are read.
    pub done: Instant,
    /// It is over.
    pub end: Instant,
}

/// A run of a partition.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The device's number.
    pub device: usize,
    /// The model's name.
    pub model: String,
    /// Moments of the host's work.
    pub host: HostTimes,
    /// Time at which the device began, by the host's clock.
    pub begin: Instant,
    /// Time that it took, by the device's clock, including the gaps between the dispatches.
    pub time: Duration,
    /// Descriptions of the dispatches, in their order.
    pub labels: Arc<Vec<KernelLabel>>,
    /// The dispatches themselves.
    pub kernels: Vec<KernelRun>,
}

/// Takes what was run. It is called on the thread that waits for the run, and must not block.
pub trait TimingObserver: Send + Sync {
    /// A run is over.
    fn ran(&self, run: RunRecord);
}

/// The observer of a device: one look at a flag where there is none.
#[derive(Default)]
pub(crate) struct ObserverSlot {
    on: AtomicBool,
    observer: RwLock<Option<Arc<dyn TimingObserver>>>,
}

impl ObserverSlot {
    /// Sets the observer, or none.
    pub(crate) fn set(&self, observer: Option<Arc<dyn TimingObserver>>) {
        self.on.store(observer.is_some(), Ordering::Release);
        *self.observer.write().unwrap_or_else(PoisonError::into_inner) = observer;
    }

    pub(crate) fn get(&self) -> Option<Arc<dyn TimingObserver>> {
        if !self.on.load(Ordering::Acquire) {
            return None;
        }
        self.observer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
