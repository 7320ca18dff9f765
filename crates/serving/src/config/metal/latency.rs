//! Latency goals as numbers of a configuration.

use std::time::Duration;

/// The parameter of models and requests, and the field of `metal_config`.
pub(crate) const LATENCY_GOAL: &str = "latency_goal_ms";
/// The longest goal: an hour.
pub(crate) const MAX_MS: f64 = 3_600_000.0;

/// A goal of so many milliseconds.
pub(crate) fn of_ms(ms: f64) -> Option<Duration> {
    let fits = ms > 0.0 && ms <= MAX_MS;
    fits.then(|| Duration::try_from_secs_f64(ms / 1e3).ok()).flatten()
}
