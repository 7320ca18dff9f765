//! Roofline of a kernel: its bound is the arithmetic of its device, the memory, or the start of kernels.

use std::time::Duration;

use crate::profile::{ArithmeticUnit, ProfileRow};
use crate::work::ArithmeticWork;

/// Peak rates of a device, as far as they were measured or are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DevicePeaks {
    /// Multiplications and additions of FP32 a second by ordinary instructions.
    pub vector_f32: Option<f64>,
    /// The same of FP16.
    pub vector_f16: Option<f64>,
    /// Multiplications and additions a second by instructions on matrices of FP16.
    pub matrix_f16: Option<f64>,
    /// The same of BF16, of a CPU's kernels.
    pub bf16: Option<f64>,
    /// Multiplications and additions of bytes a second, of a CPU's kernels.
    pub int8: Option<f64>,
    /// Bytes a second, those read and those written together.
    pub bytes: Option<f64>,
    /// Time of a kernel that does nothing, among others.
    pub dispatch: Option<Duration>,
    /// Time to hand one such kernel over and to wait for it.
    pub submit: Option<Duration>,
}

/// Limit on the speed of a kernel or a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RooflineBound {
    /// Arithmetic.
    Compute,
    /// Bytes to and from memory.
    Memory,
    /// Starting kernels, and what the host does around them.
    Launch,
}

impl RooflineBound {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Launch => "launch",
        }
    }
}

/// A kernel that takes no longer than so many empty ones is bound by its start.
const NEAR_EMPTY: u32 = 2;

impl DevicePeaks {
    /// The most multiplications and additions a second of a unit. Kernels on ordinary instructions sum in
    /// FP32.
    #[must_use]
    pub fn operations(&self, unit: ArithmeticUnit) -> Option<f64> {
        match unit {
            ArithmeticUnit::Vector => self.vector_f32,
            ArithmeticUnit::Matrix => self.matrix_f16,
            ArithmeticUnit::Bf16 => self.bf16,
            ArithmeticUnit::Int8 => self.int8,
        }
    }

    /// The share of the most arithmetic that work reached in a time, and the share of the most bytes;
    /// absent where the device's peak is. Bytes that come from a cache may be more than the most of memory.
    #[must_use]
    pub fn shares(
        &self,
        work: ArithmeticWork,
        unit: ArithmeticUnit,
        time: Duration,
    ) -> [Option<f64>; 2] {
        let share = |amount: u64, peak: Option<f64>| {
            #[allow(clippy::cast_precision_loss, reason = "a share")]
            let least = amount as f64 / peak.filter(|peak| *peak > 0.0)?;
            (!time.is_zero()).then(|| least / time.as_secs_f64())
        };
        [share(work.operations, self.operations(unit)), share(work.bytes, self.bytes)]
    }

    /// Returns the limit on a kernel that was started so many times and took this time in all. Returns `None`
    /// if the peaks required for this are not known.
    #[must_use]
    pub fn bound(
        &self,
        work: ArithmeticWork,
        unit: ArithmeticUnit,
        starts: usize,
        time: Duration,
    ) -> Option<RooflineBound> {
        let starts = u32::try_from(starts).unwrap_or(u32::MAX);
        if self.dispatch.is_some_and(|empty| time <= empty * NEAR_EMPTY.saturating_mul(starts)) {
            return Some(RooflineBound::Launch);
        }
        if work == ArithmeticWork::default() {
            return None;
        }
        match self.shares(work, unit, time) {
            [Some(compute), Some(memory)] if compute > memory => Some(RooflineBound::Compute),
            [Some(_), Some(_)] => Some(RooflineBound::Memory),
            [None, Some(_)] if work.operations == 0 => Some(RooflineBound::Memory),
            _ => None,
        }
    }

    /// Returns the limit on a whole run of these kernels that took `whole` for the caller. It is the start if
    /// the host and the way to the device take longer than all kernels, otherwise the limit on most of their
    /// time.
    #[must_use]
    pub fn run_bound(&self, kernels: &[ProfileRow], whole: Duration) -> Option<RooflineBound> {
        let device: Duration = kernels.iter().map(|row| row.time).sum();
        if device.is_zero() {
            return None;
        }
        if whole > device * 2 {
            return Some(RooflineBound::Launch);
        }
        let mut times = [RooflineBound::Compute, RooflineBound::Memory, RooflineBound::Launch]
            .map(|of| (of, Duration::ZERO));
        for row in kernels {
            if row.work == ArithmeticWork::default() && self.dispatch.is_none() {
                continue;
            }
            let bound = self.bound(row.work, row.unit, 1, row.time)?;
            for (_, time) in times.iter_mut().filter(|(of, _)| *of == bound) {
                *time += row.time;
            }
        }
        let most = times.into_iter().max_by_key(|(_, time)| *time);
        most.filter(|(_, time)| !time.is_zero()).map(|(bound, _)| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAKS: DevicePeaks = DevicePeaks {
        vector_f32: Some(1e12),
        vector_f16: None,
        matrix_f16: Some(1e13),
        bf16: Some(2e12),
        int8: None,
        bytes: Some(1e11),
        dispatch: Some(Duration::from_micros(1)),
        submit: None,
    };

    fn row(operations: u64, bytes: u64, us: u64) -> ProfileRow {
        ProfileRow {
            work: ArithmeticWork { operations, bytes },
            time: Duration::from_micros(us),
            ..ProfileRow::default()
        }
    }

    #[test]
    fn the_nearer_peak_bounds_a_kernel() {
        let bound = |operations, bytes, unit, us| {
            PEAKS.bound(ArithmeticWork { operations, bytes }, unit, 1, Duration::from_micros(us))
        };
        // Half of the arithmetic against a tenth of the bytes.
        assert_eq!(
            bound(50_000_000, 1_000_000, ArithmeticUnit::Vector, 100),
            Some(RooflineBound::Compute)
        );
        assert_eq!(
            bound(50_000_000, 1_000_000, ArithmeticUnit::Matrix, 100),
            Some(RooflineBound::Memory)
        );
        assert_eq!(bound(0, 1_000_000, ArithmeticUnit::Vector, 100), Some(RooflineBound::Memory));
        assert_eq!(bound(50_000_000, 1, ArithmeticUnit::Vector, 2), Some(RooflineBound::Launch));
        // Half of its own peak, which is a quarter of that of BF16.
        let bytes = 4_000_000;
        assert_eq!(
            bound(50_000_000, bytes, ArithmeticUnit::Vector, 100),
            Some(RooflineBound::Compute)
        );
        assert_eq!(
            bound(50_000_000, bytes, ArithmeticUnit::Bf16, 100),
            Some(RooflineBound::Memory)
        );
        assert_eq!(bound(50_000_000, bytes, ArithmeticUnit::Int8, 100), None);
        assert_eq!(bound(0, 0, ArithmeticUnit::Vector, 100), None);
    }

    #[test]
    fn without_a_peak_nothing_is_said() {
        let work = ArithmeticWork { operations: 10, bytes: 10 };
        let time = Duration::from_micros(10);
        let unknown = DevicePeaks::default();
        assert_eq!(unknown.shares(work, ArithmeticUnit::Vector, time), [None, None]);
        assert_eq!(unknown.bound(work, ArithmeticUnit::Vector, 1, time), None);
        let no_matrices = DevicePeaks { matrix_f16: None, ..PEAKS };
        assert_eq!(no_matrices.bound(work, ArithmeticUnit::Matrix, 1, time), None);
    }

    #[test]
    fn a_run_is_bound_by_what_most_of_its_time_is() {
        let rows = [row(50_000_000, 1, 100), row(0, 10_000_000, 300), row(1, 1, 1)];
        let us = Duration::from_micros;
        assert_eq!(PEAKS.run_bound(&rows, us(410)), Some(RooflineBound::Memory));
        assert_eq!(PEAKS.run_bound(&rows[..1], us(110)), Some(RooflineBound::Compute));
        assert_eq!(PEAKS.run_bound(&rows, us(900)), Some(RooflineBound::Launch));
        assert_eq!(PEAKS.run_bound(&[], us(900)), None);
    }
}
