//! The GPUs that are open, and what is watched on them.

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
mod none;
#[cfg(any(target_os = "macos", feature = "gpu"))]
mod open;
#[cfg(any(target_os = "macos", feature = "gpu"))]
mod pressure;

use std::path::PathBuf;
use std::time::Duration;

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
pub use none::{NoGpus as GpuPool, Watch};
#[cfg(any(target_os = "macos", feature = "gpu"))]
pub use open::GpuPool;
#[cfg(any(target_os = "macos", feature = "gpu"))]
pub use pressure::Watch;

/// Message of a program that was built without GPUs.
#[cfg(not(any(target_os = "macos", feature = "gpu")))]
pub const WITHOUT: &str = "this program was built without GPUs (cargo feature 'gpu')";

/// Capture of a GPU's runs for Xcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuCapture {
    /// The file.
    pub file: PathBuf,
    /// Number of runs.
    pub runs: u64,
}

/// Activity of a GPU since measuring began.
#[cfg_attr(
    not(any(target_os = "macos", feature = "gpu")),
    allow(dead_code, reason = "only a program with GPUs makes one")
)]
#[derive(Debug, Clone, PartialEq)]
pub struct GpuUse {
    /// Its number.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Time at work.
    pub busy: Duration,
    /// Bytes that kernels moved at least.
    pub bytes: u64,
}

/// Memory of a GPU that is open.
#[cfg_attr(
    not(any(target_os = "macos", feature = "gpu")),
    allow(dead_code, reason = "only a program with GPUs makes one")
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuMemory {
    /// Runs that the GPU reported as done though a part of them did not come to its end.
    pub lost_runs: u64,
    /// Its number.
    pub number: usize,
    /// The name that its driver gives.
    pub name: String,
    /// Bytes by what they are.
    pub bytes: Vec<(&'static str, u64)>,
    /// Buffers of a size: who addresses them, the size, how many are in use and how many are kept.
    pub buffers: Vec<(&'static str, u64, usize, usize)>,
    /// Weights that were streamed because memory had no room for them; none if that never happened.
    pub prefetch: Option<GpuPrefetch>,
}

/// Weights that were brought to a GPU while its models ran.
#[cfg_attr(
    not(any(target_os = "macos", feature = "gpu")),
    allow(dead_code, reason = "only a program with GPUs makes one")
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuPrefetch {
    /// Uses that found the weights there.
    pub hits: u64,
    /// Uses that were foreseen and found them on their way.
    pub late: u64,
    /// Uses that nobody had foreseen.
    pub misses: u64,
    /// Bytes that were brought.
    pub loaded_bytes: u64,
    /// Nanoseconds that uses waited.
    pub stall_ns: u64,
    /// Uses ahead at present.
    pub distance: usize,
}
