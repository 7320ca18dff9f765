//! Tuning of a checkpoint's kernels for the runs that its requests lead to.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use galatea_runtime::tune::TuningGate;
use galatea_runtime::{KernelTuningLimits, KernelTuningReport};

use super::ResidentCheckpoint;
use crate::backend::{CheckpointHandle, KernelTuner, KernelTuningPolicy};

/// Tunes the kernels of a checkpoint. It keeps none in memory: while one is out of it nothing is measured.
#[derive(Debug)]
pub(super) struct CheckpointKernelTuner {
    resident: Weak<ResidentCheckpoint>,
    model: String,
    cores: usize,
    progress: Mutex<TunedRuns>,
}

/// Runs that were measured, and the time that is left.
#[derive(Debug)]
struct TunedRuns {
    done: usize,
    left: Duration,
}

impl CheckpointKernelTuner {
    pub(super) fn new(resident: &Arc<ResidentCheckpoint>, policy: KernelTuningPolicy) -> Self {
        Self {
            resident: Arc::downgrade(resident),
            model: resident.name().to_owned(),
            cores: policy.cores,
            progress: Mutex::new(TunedRuns { done: 0, left: policy.time }),
        }
    }

    /// Measures a kind of runs; `None` where the checkpoint has no more, or is not in memory.
    fn measure(
        &self,
        run: usize,
        gate: &dyn TuningGate,
        limits: KernelTuningLimits,
    ) -> Option<KernelTuningReport> {
        // Whoever measures holds no checkpoint: one that is unloaded meanwhile leaves memory at once.
        let tuner = match self.resident.upgrade()?.loaded()? {
            CheckpointHandle::Language(model) => Arc::clone(model.tuner()?),
            CheckpointHandle::Encoder(engine) => Arc::new(engine.model().encoder().tuner()),
        };
        if run >= tuner.runs() {
            return None;
        }
        let report = tuner.tune(run, gate, limits).unwrap_or_else(|error| {
            tracing::info!(model = %self.model, "kernels could not be measured: {error}");
            KernelTuningReport::default()
        });
        Some(report)
    }
}

impl KernelTuner for CheckpointKernelTuner {
    fn tune(&self, gate: &dyn TuningGate) -> Option<KernelTuningReport> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.left.is_zero() {
            return None;
        }
        let limits = KernelTuningLimits { time: progress.left, cores: self.cores };
        let report = self.measure(progress.done, gate, limits)?;
        progress.left = progress.left.saturating_sub(report.spent);
        progress.done += usize::from(!report.closed);
        Some(report)
    }
}
