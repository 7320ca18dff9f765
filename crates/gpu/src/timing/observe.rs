//! Observation of a device's runs.

use std::sync::Arc;
use std::time::Instant;

use super::{RunStamps, TimingLevel};
use crate::completion::SinglePassMark;
use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::timers::{ClockPair, StampPair, TimingObserver};

/// Times that the device's clock is read to set it beside the host's.
const ROUNDS: usize = 8;

impl GpuDevice {
    /// Tells somebody of every run from now on, with the times of all dispatches, and nobody else.
    ///
    /// # Errors
    /// Fails when the device cannot tell the time, or is lost.
    pub fn observe(&self, observer: Arc<dyn TimingObserver>) -> Result<(), GpuError> {
        if !self.trusts_stamps() {
            let name = &self.capabilities().name;
            return Err(GpuError::Refusal(format!("'{name}' does not tell when kernels ran")));
        }
        let rounds = (0..ROUNDS).map(|_| self.round()).collect::<Result<Vec<_>, _>>()?;
        self.clock.set(&rounds);
        self.observers.set(Some(observer));
        Ok(())
    }

    /// Tells nobody of runs any more.
    pub fn forget_observer(&self) {
        self.observers.set(None);
    }

    /// Has the device look at its clock.
    fn round(&self) -> Result<ClockPair, GpuError> {
        let refused = || GpuError::Refusal("the device has no room for timestamps".to_owned());
        let stamps = RunStamps::new(self, 1, TimingLevel::Whole).ok_or_else(refused)?;
        let mark = SinglePassMark::new(self)?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let timestamp_writes = stamps.writes(0);
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
        // Some devices write no stamps for a pass without a dispatch, which the mark is.
        let mut pass = encoder.begin_compute_pass(&descriptor);
        mark.end_pass(self, &mut pass);
        drop(pass);
        mark.show(&mut encoder);
        stamps.resolve(&mut encoder);
        let handed = Instant::now();
        let submission = self.submit(encoder.finish());
        stamps.map();
        mark.wait(self, &submission)?;
        let over = Instant::now();
        let unread = || GpuError::Refusal("the device does not read its clock".to_owned());
        let ticks = stamps.ticks(self)?.ok_or_else(unread)?;
        let StampPair { begin, end } = ticks.first().copied().ok_or_else(unread)?;
        Ok(ClockPair { handed, over, device: (self.nanoseconds(begin), self.nanoseconds(end)) })
    }
}
