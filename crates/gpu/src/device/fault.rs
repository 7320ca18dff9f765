//! Failures that a device acts out, for tests of what happens then.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::GpuDevice;
use crate::timers::StampPair;

/// A way in which a device fails without a word: its work counts as done all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DeviceFault {
    /// The last dispatch of a pass is not done.
    LastDispatch = 1,
    /// The second pass of a run is not done.
    MiddlePass = 2,
    /// Nothing that is handed over is done.
    IgnoredWork = 3,
    /// Timestamps are zero.
    ZeroStamps = 4,
    /// 96 of 100 readings of timestamps are zero.
    RareStamps = 5,
    /// Bytes that the host hands over do not come.
    LostUploads = 6,
    /// Copies on the device are not done.
    LostCopies = 7,
}

/// The failure that a device acts out, if any, and how many of its successors do so too.
#[derive(Debug, Default)]
pub(super) struct ActedFault {
    fault: AtomicU8,
    successors: AtomicU32,
    /// Readings of timestamps so far.
    readings: AtomicU32,
}

impl ActedFault {
    /// Hands the failure on to the device that was opened in the place of this one.
    pub(super) fn hand_on(&self, next: &Self) {
        let successors = self.successors.load(Ordering::Relaxed);
        if let Some(left) = successors.checked_sub(1) {
            next.successors.store(left, Ordering::Relaxed);
            next.fault.store(self.fault.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

impl GpuDevice {
    /// Has the device fail like this from now on, for tests, and as many of the devices that are opened in its
    /// place, one after the other.
    pub fn act_out(&self, fault: DeviceFault, successors: u32) {
        self.fault.successors.store(successors, Ordering::Relaxed);
        self.fault.fault.store(fault as u8, Ordering::Relaxed);
    }

    /// Returns the stamps that the device says it wrote.
    pub(crate) fn told_stamps(&self, stamps: StampPair) -> StampPair {
        let rare = || self.fault.readings.fetch_add(1, Ordering::Relaxed) % 100 < 96;
        match self.acts(DeviceFault::ZeroStamps) || (self.acts(DeviceFault::RareStamps) && rare()) {
            true => StampPair { begin: 0, end: 0 },
            false => stamps,
        }
    }

    /// Returns whether copies on the device are done: not where it acts out that they are lost.
    pub(crate) fn copies(&self) -> bool {
        !self.acts(DeviceFault::LostCopies)
    }

    /// Returns whether the device acts this failure out.
    pub(crate) fn acts(&self, fault: DeviceFault) -> bool {
        self.fault.fault.load(Ordering::Relaxed) == fault as u8
    }
}
