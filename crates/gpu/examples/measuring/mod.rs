//! Shared code of the measuring programs: arguments, the device, operands, and the number of runs of a trial.

#![allow(dead_code, reason = "every program uses some of it")]

use std::sync::Arc;

use galatea_gpu::{GpuDevice, GpuError, StepTrial};
use galatea_tensor::{DataType, f16};

/// Seconds that a measurement is to take, about.
const SECONDS: f64 = 0.2;
/// Measurements of which the middle one counts.
const RUNS: usize = 12;

/// The words behind a program's name.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn new() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// The number at a place, or the usual one where there is none.
    pub(crate) fn number(&self, at: usize, usual: usize) -> usize {
        self.0.get(at).map_or(usual, |text| text.parse().expect("a number"))
    }

    /// The word at a place, or the usual one where there is none.
    pub(crate) fn word<'a>(&'a self, at: usize, usual: &'a str) -> &'a str {
        self.0.get(at).map_or(usual, String::as_str)
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|one| one == word)
    }
}

/// The device that `GALATEA_GPU_DEVICE` numbers.
pub(crate) fn device() -> Arc<GpuDevice> {
    let index = std::env::var("GALATEA_GPU_DEVICE");
    let index = index.map_or(0, |text| text.parse().expect("a number"));
    GpuDevice::open(index).expect("a device")
}

/// Numbers from -1 to 1.
pub(crate) fn random(count: usize, dtype: DataType) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from((state >> 16) as u16) / 32_768.0 - 1.0
    };
    match dtype {
        DataType::Fp16 => (0..count).flat_map(|_| f16::from_f32(next()).to_le_bytes()).collect(),
        _ => (0..count).flat_map(|_| next().to_le_bytes()).collect(),
    }
}

/// Nanoseconds of a run, the best of three rounds that take a while.
pub(crate) fn best(trial: &StepTrial) -> Result<f64, GpuError> {
    let once = trial.run(1)?;
    let times = ((SECONDS * 1e9 / once.max(1.0)) as usize).clamp(1, 2000);
    (0..3).try_fold(f64::MAX, |best, _| Ok(best.min(trial.run(times)?)))
}

/// Nanoseconds of a run, the middle of several rounds of so many.
pub(crate) fn middle(trial: &StepTrial, times: usize) -> Result<f64, GpuError> {
    let mut all = (0..RUNS).map(|_| trial.run(times)).collect::<Result<Vec<f64>, _>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[RUNS / 2])
}
