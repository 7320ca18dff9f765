//! A program that was built without GPUs.

use std::sync::Arc;

use galatea_runtime::DevicePeaks;

use super::{GpuMemory, GpuUse, WITHOUT};
use crate::memory_limit::MemoryBound;
use crate::profile::RunningProfile;

/// No GPU keeps memory.
pub(crate) struct Watch;

impl Watch {
    /// Watches nothing.
    pub(crate) fn start() -> Self {
        Self
    }
}

/// Accepts no limit, as there is no GPU memory.
///
/// # Errors
/// Fails when a limit is given.
pub(crate) fn limit_memory(limit: Option<MemoryBound>) -> Result<(), String> {
    limit.map_or(Ok(()), |_| Err(format!("--gpu-memory-limit: {WITHOUT}")))
}

/// Measures nothing.
pub(crate) fn measure_use() {}

/// No GPU is at work.
pub(crate) fn uses() -> Vec<GpuUse> {
    Vec::new()
}

/// No GPU has memory.
pub(crate) fn memory() -> Vec<GpuMemory> {
    Vec::new()
}

/// There is nothing to profile.
///
/// # Errors
/// Always fails.
pub(crate) fn observe(_profile: &Arc<RunningProfile>) -> Result<(), String> {
    Err(WITHOUT.to_owned())
}

/// There is nothing to forget.
pub(crate) fn forget() {}

/// Nothing has peaks.
pub(crate) fn known_peaks(_number: usize) -> Option<DevicePeaks> {
    None
}

/// There is nothing to measure.
pub(crate) fn measure_peaks() {}

/// The name of no GPU.
pub(crate) fn name(_number: usize) -> String {
    String::new()
}

/// Nothing has peaks.
///
/// # Errors
/// Always fails.
pub(crate) fn peaks(_number: usize) -> Result<(String, DevicePeaks), String> {
    Err(WITHOUT.to_owned())
}
