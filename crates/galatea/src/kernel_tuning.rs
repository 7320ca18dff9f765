//! Account of the kernels that a server measures while it is idle.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use galatea_runtime::KernelTuningReport;
use galatea_serving::TunableVersion;
use galatea_serving::backend::{AutoTuning, KernelTuningPolicy};
use galatea_tensor::OrderedMap;

/// The most of a core that measurements keep busy, where nobody says otherwise.
const SHARE: f64 = 0.5;

/// Settings of kernel tuning in idle moments.
///
/// ```
/// use galatea::{KernelTuningOptions, serving::backend::AutoTuning};
///
/// assert_eq!(KernelTuningOptions::default().models, AutoTuning::Asked);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelTuningOptions {
    /// Models whose kernels are measured.
    pub models: AutoTuning,
    /// The most time that the kernels of a version are measured.
    pub time: Duration,
    /// Share of a core that measurements keep busy at most, on average.
    pub share: f64,
}

impl Default for KernelTuningOptions {
    fn default() -> Self {
        let KernelTuningPolicy { models, time, .. } = KernelTuningPolicy::default();
        Self { models, time, share: SHARE }
    }
}

/// Account of the kernels of a version in service.
///
/// ```
/// let version = galatea::kernel_tuning::VersionTuning::default();
/// assert!(!version.settled);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionTuning {
    /// Model.
    pub model: String,
    /// Version.
    pub version: String,
    /// Choices that were measured.
    pub measured: usize,
    /// Choices of which another candidate than the default is the fastest.
    pub improved: usize,
    /// Choices that are left out for lack of time.
    pub left: usize,
    /// Time of all measurements.
    pub spent: Duration,
    /// Times that the version took faster kernels while it served.
    pub renewed: usize,
    /// Whether nothing is left to measure now.
    pub settled: bool,
}

/// Account of what a server measures of kernels while it is idle.
#[derive(Debug, Default)]
pub struct KernelTuningState(Mutex<OrderedMap<u64, VersionTuning>>);

impl KernelTuningState {
    fn lock(&self) -> MutexGuard<'_, OrderedMap<u64, VersionTuning>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the versions in service whose kernels are measured, in the order of their loads.
    #[must_use]
    pub fn versions(&self) -> Vec<VersionTuning> {
        self.lock().values().cloned().collect()
    }

    /// Takes note of the versions in service, and forgets all others.
    pub(crate) fn serve(&self, versions: &[TunableVersion]) {
        let mut known = self.lock();
        known.retain(|load, _| versions.iter().any(|version| version.load == *load));
        for TunableVersion { model, version, load, .. } in versions {
            known.entry(*load).or_insert_with(|| VersionTuning {
                model: model.clone(),
                version: version.clone(),
                ..VersionTuning::default()
            });
        }
    }

    /// Adds what was measured of a version; nothing is left where there is no report.
    pub(crate) fn add(&self, load: u64, report: Option<&KernelTuningReport>) {
        let mut known = self.lock();
        let Some(version) = known.get_mut(&load) else { return };
        version.settled = report.is_none();
        let Some(report) = report else { return };
        version.measured += report.measured;
        version.improved += report.improved;
        version.left += if report.closed { 0 } else { report.left };
        version.spent += report.spent;
        version.renewed += usize::from(report.renewed);
        if report.measured > 0 {
            let VersionTuning { model, version, .. } = &*version;
            let KernelTuningReport { measured, improved, spent, renewed, .. } = report;
            tracing::info!(
                %model, %version,
                "measured {measured} choices of kernels in {spent:.1?} while the server was idle: {improved} are faster \
                 than the default{}",
                if *renewed { ", and the model runs on them" } else { "" }
            );
        }
    }
}
