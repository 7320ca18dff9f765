//! Counters of the engines of this process.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Packages that were compiled.
    pub compiles: u64,
    /// Packages that were found compiled.
    pub cache_hits: u64,
    /// Predictions.
    pub predictions: u64,
    /// Workers that were started after another one ended.
    pub worker_restarts: u64,
    /// Times that others answered in an engine's place: runs that it failed or lost, and partitions that it was given up
    /// for.
    pub fallbacks: u64,
    /// Runs of programs that gave no finite numbers where FP32 has some; others have answered in their place.
    pub nonfinite: u64,
    /// Runs of programs whose results were compared with those of others.
    pub comparisons: u64,
}

static COMPILES: AtomicU64 = AtomicU64::new(0);
static CACHE_HITS: AtomicU64 = AtomicU64::new(0);
static PREDICTIONS: AtomicU64 = AtomicU64::new(0);
static WORKER_RESTARTS: AtomicU64 = AtomicU64::new(0);
static FALLBACKS: AtomicU64 = AtomicU64::new(0);
static NONFINITE: AtomicU64 = AtomicU64::new(0);
static COMPARISONS: AtomicU64 = AtomicU64::new(0);

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn compile() {
    count(&COMPILES);
}

pub(super) fn hit() {
    count(&CACHE_HITS);
}

/// Counts a prediction that somebody starts.
pub fn prediction() {
    count(&PREDICTIONS);
}

pub(super) fn restart() {
    count(&WORKER_RESTARTS);
}

pub(crate) fn fallback() {
    count(&FALLBACKS);
}

pub(crate) fn nonfinite() {
    count(&NONFINITE);
}

pub(crate) fn comparison() {
    count(&COMPARISONS);
}

/// Returns the counters' current values.
#[must_use]
pub fn counts() -> EngineCounts {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    EngineCounts {
        compiles: of(&COMPILES),
        cache_hits: of(&CACHE_HITS),
        predictions: of(&PREDICTIONS),
        worker_restarts: of(&WORKER_RESTARTS),
        fallbacks: of(&FALLBACKS),
        nonfinite: of(&NONFINITE),
        comparisons: of(&COMPARISONS),
    }
}
