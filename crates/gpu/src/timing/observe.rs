//! Observation of a device's runs.

use std::sync::Arc;
use std::time::Instant;

use super::{RunStamps, TimingLevel};
use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::timers::{ClockPair, TimingObserver};

/// Times that the device's clock is read to set it beside the host's.
const ROUNDS: usize = 8;

impl GpuDevice {
    /// Tells somebody of every run from now on, with the times of all dispatches, and nobody else.
    ///
    /// # Errors
    /// Fails when the device cannot tell the time, or is lost.
    pub fn observe(&self, observer: Arc<dyn TimingObserver>) -> Result<(), GpuError> {
        if !self.capabilities().pass_timestamps {
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
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let timestamp_writes = stamps.writes(0);
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
        drop(encoder.begin_compute_pass(&descriptor));
        stamps.resolve(&mut encoder);
        let handed = Instant::now();
        let submission = self.submit(encoder.finish());
        stamps.map();
        self.wait(&submission)?;
        let over = Instant::now();
        let ticks = stamps.ticks(self)?;
        let (begin, end) = ticks.first().copied().unwrap_or_default();
        Ok(ClockPair { handed, over, device: (self.nanoseconds(begin), self.nanoseconds(end)) })
    }
}
