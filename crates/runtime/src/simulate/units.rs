//! Units of a machine by number, and times as numbers.

use crate::cost::ComputeUnit;

/// Units of a machine, whether or not its chip has them: one of each sort, and a second Neural Engine.
pub(super) const UNITS: usize = ComputeUnit::ALL.len() + 1;

/// Returns the kind of a device from its number.
pub(super) fn unit_of(unit: usize) -> ComputeUnit {
    ComputeUnit::ALL.get(unit).copied().unwrap_or(ComputeUnit::NeuralEngine)
}

/// Seconds as nanoseconds.
pub(super) fn nanos(seconds: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times are bounded, and casts of floats saturate"
    )]
    let nanos = (seconds.max(0.0) * 1e9) as u64;
    nanos
}
