//! A program that was built without GPUs.

use std::sync::Arc;

use galatea_runtime::Peaks;

use super::{GpuMemory, GpuUse, WITHOUT};
use crate::profile::Profile;

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
/// Always.
pub(crate) fn observe(_profile: &Arc<Profile>) -> Result<(), String> {
    Err(WITHOUT.to_owned())
}

/// Nothing has peaks.
///
/// # Errors
/// Always.
pub(crate) fn peaks(_number: usize) -> Result<(String, Peaks), String> {
    Err(WITHOUT.to_owned())
}
