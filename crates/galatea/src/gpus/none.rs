//! A program that was built without GPUs.

use std::sync::Arc;
use std::time::Duration;

use galatea_runtime::DevicePeaks;

use super::{GpuCapture, GpuMemory, GpuUse, WITHOUT};
use crate::memory_limit::MemoryBound;

/// No GPU keeps memory.
#[derive(Debug)]
pub struct Watch;

impl Watch {
    /// Watches nothing.
    pub fn start(_gpus: &Arc<NoGpus>) -> Self {
        Self
    }
}

/// The GPUs of a program that has none.
#[derive(Debug, Default)]
pub struct NoGpus;

#[allow(clippy::unused_self, reason = "a program with GPUs has the same methods")]
impl NoGpus {
    /// Accepts no limit, as there is no GPU memory.
    ///
    /// # Errors
    /// Fails when a limit is given.
    pub fn limit_memory(&self, limit: Option<MemoryBound>) -> Result<(), String> {
        limit.map_or(Ok(()), |_| Err(format!("--gpu-memory-limit: {WITHOUT}")))
    }

    /// Accepts no bound, as nothing is submitted.
    ///
    /// # Errors
    /// Fails when a bound is given.
    pub fn bound_submissions(&self, bound: Option<Duration>) -> Result<(), String> {
        bound.map_or(Ok(()), |_| Err(format!("--gpu-submission-ms: {WITHOUT}")))
    }

    /// Measures nothing.
    pub fn measure_use(&self) {}

    /// No GPU is at work.
    pub fn uses(&self) -> Vec<GpuUse> {
        Vec::new()
    }

    /// No GPU has memory.
    pub fn memory(&self) -> Vec<GpuMemory> {
        Vec::new()
    }

    /// There is nothing to profile.
    ///
    /// # Errors
    /// Always fails.
    pub fn observe<P>(&self, _profile: &Arc<P>) -> Result<(), String> {
        Err(WITHOUT.to_owned())
    }

    /// There is nothing to capture.
    ///
    /// # Errors
    /// Always fails.
    pub fn capture(&self, _capture: &GpuCapture) -> Result<(), String> {
        Err(WITHOUT.to_owned())
    }

    /// No capture goes on.
    pub fn stop_capture(&self, _capture: &GpuCapture) -> u64 {
        0
    }

    /// There is nothing to forget.
    pub fn forget(&self) {}

    /// Nothing has peaks.
    pub fn known_peaks(&self, _number: usize) -> Option<DevicePeaks> {
        None
    }

    /// There is nothing to measure.
    pub fn measure_peaks(&self) {}

    /// The name of no GPU.
    pub fn name(&self, _number: usize) -> String {
        String::new()
    }

    /// Nothing has peaks.
    ///
    /// # Errors
    /// Always fails.
    pub fn peaks(&self, _number: usize) -> Result<(String, DevicePeaks), String> {
        Err(WITHOUT.to_owned())
    }
}
