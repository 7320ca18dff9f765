//! Clock, meter of use, observer and stamps of a device: what it holds so that its work can be timed.

mod clock;
mod meter;
mod observer;
mod stamp_pair;
mod stamp_pool;

pub(crate) use clock::{ClockPair, DeviceClock};
pub use meter::DeviceUsage;
pub(crate) use meter::UsageMeter;
pub(crate) use observer::ObserverSlot;
pub use observer::{HostTimes, KernelLabel, KernelRun, RunRecord, TimingObserver};
pub(crate) use stamp_pair::StampPair;
pub(crate) use stamp_pool::{StampBuffers, StampPool};
