//! Tuning in idle moments: what there is to tune, and whether the server is idle.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Core;
use crate::backend::KernelTuner;

/// Requests and loads of all models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreActivity {
    /// Requests that the versions in service have accepted so far.
    pub accepted: u64,
    /// Requests without an answer.
    pub unanswered: usize,
    /// Versions that are being loaded.
    pub loading: usize,
}

/// A version whose kernels can be tuned.
#[derive(Clone, Debug)]
pub struct TunableVersion {
    /// Model.
    pub model: String,
    /// Version.
    pub version: String,
    /// Number of its load, which no other load has.
    pub load: u64,
    /// Tuner of its kernels.
    pub tuner: Arc<dyn KernelTuner>,
}

impl Core {
    /// Finds out which units the runs of a model had best go to, for so long at most, at a time when nobody waits;
    /// whether there was something to find out.
    #[must_use]
    pub fn tune_placements(&self, limit: Duration) -> bool {
        let serving: Vec<_> = self.models().all_ready().cloned().collect();
        serving
            .iter()
            .filter_map(|loaded| loaded.tending.as_ref())
            .any(|one| one.tune_placements(limit))
    }

    /// Versions in service whose kernels can be tuned.
    #[must_use]
    pub fn tunable_versions(&self) -> Vec<TunableVersion> {
        let models = self.models();
        let tunable = models.all_ready().filter_map(|loaded| {
            Some(TunableVersion {
                model: loaded.context.name.clone(),
                version: loaded.context.version.clone(),
                load: loaded.load,
                tuner: Arc::clone(loaded.kernels.as_ref()?),
            })
        });
        tunable.collect()
    }

    /// Requests and loads of all models.
    #[must_use]
    pub fn activity(&self) -> CoreActivity {
        self.models.read().unwrap_or_else(PoisonError::into_inner).activity()
    }
}
