//! The GPUs that are open, and what is watched on them.

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
mod none;
#[cfg(any(target_os = "macos", feature = "gpu"))]
mod open;
#[cfg(any(target_os = "macos", feature = "gpu"))]
mod pressure;

use std::time::Duration;

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
pub(crate) use none::{
    Watch, forget, known_peaks, limit_memory, measure_peaks, measure_use, memory, name, observe,
    peaks, uses,
};
#[cfg(any(target_os = "macos", feature = "gpu"))]
pub(crate) use open::{
    device, forget, known_peaks, limit_memory, measure_peaks, measure_use, memory, name, observe,
    peaks, trim, uses,
};
#[cfg(any(target_os = "macos", feature = "gpu"))]
pub(crate) use pressure::Watch;

/// Message of a program that was built without GPUs.
#[cfg(not(any(target_os = "macos", feature = "gpu")))]
pub(crate) const WITHOUT: &str = "this program was built without GPUs (cargo feature 'gpu')";

/// Activity of a GPU since measuring began.
#[cfg_attr(
    not(any(target_os = "macos", feature = "gpu")),
    allow(dead_code, reason = "only a program with GPUs makes one")
)]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GpuUse {
    /// Its number.
    pub(crate) number: usize,
    /// Its name.
    pub(crate) name: String,
    /// Time at work.
    pub(crate) busy: Duration,
    /// Bytes that kernels moved at least.
    pub(crate) bytes: u64,
}

/// Memory of a GPU that is open.
#[cfg_attr(
    not(any(target_os = "macos", feature = "gpu")),
    allow(dead_code, reason = "only a program with GPUs makes one")
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GpuMemory {
    /// Its number.
    pub(crate) number: usize,
    /// The name that its driver gives.
    pub(crate) name: String,
    /// Bytes by what they are.
    pub(crate) bytes: Vec<(&'static str, u64)>,
    /// Buffers of a size: who addresses them, the size, how many are in use and how many are kept.
    pub(crate) buffers: Vec<(&'static str, u64, usize, usize)>,
    /// Weights that were streamed because memory had no room for them; none if that never happened.
    pub(crate) prefetch: Option<GpuPrefetch>,
}

/// Weights that were brought to a GPU while its models ran.
#[cfg_attr(
    not(any(target_os = "macos", feature = "gpu")),
    allow(dead_code, reason = "only a program with GPUs makes one")
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GpuPrefetch {
    /// Uses that found the weights there.
    pub(crate) hits: u64,
    /// Uses that were foreseen and found them on their way.
    pub(crate) late: u64,
    /// Uses that nobody had foreseen.
    pub(crate) misses: u64,
    /// Bytes that were brought.
    pub(crate) loaded_bytes: u64,
    /// Nanoseconds that uses waited.
    pub(crate) stall_ns: u64,
    /// Uses ahead at present.
    pub(crate) distance: usize,
}
