//! Tuning of a model's kernels for the shapes that its runs have or will have.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use galatea_runtime::device_selector::ShapeBucket;
use galatea_runtime::tune::TuningGate;
use galatea_runtime::{KernelTuningLimits, KernelTuningReport, Session, SessionGate, TuningInput};

use crate::backend::{KernelTuner, KernelTuningPolicy};
use crate::config::ModelConfig;
use crate::config::inference::model_config::SchedulingChoice;

/// The most rows of a run whose kernels are measured before any request has come.
const MAX_ROWS: i32 = 64;

/// Tunes the kernels of a version's sessions. It keeps no memory of a model that is gone.
#[derive(Debug)]
pub(super) struct GraphKernelTuner {
    model: String,
    sessions: Vec<Weak<Session>>,
    /// Rows of runs that are expected.
    rows: Vec<usize>,
    cores: usize,
    progress: Mutex<TunedShapes>,
}

/// Shapes that were measured, and the time that is left.
#[derive(Debug)]
struct TunedShapes {
    /// Sessions, by their places, with buckets of shapes.
    done: HashSet<(usize, ShapeBucket)>,
    /// Time that is left for the version.
    left: Duration,
}

/// A session and shapes of its runs.
struct OpenShapes {
    place: usize,
    session: Arc<Session>,
    inputs: Vec<TuningInput>,
    bucket: ShapeBucket,
}

impl GraphKernelTuner {
    /// Makes the tuner of sessions whose runs have the batches of this completed configuration.
    pub(super) fn new(
        model: &str,
        sessions: &[Arc<Session>],
        config: &ModelConfig,
        policy: &KernelTuningPolicy,
    ) -> Self {
        sessions.iter().for_each(|session| session.watch_shapes());
        let progress = TunedShapes { done: HashSet::new(), left: policy.time };
        Self {
            model: model.to_owned(),
            sessions: sessions.iter().map(Arc::downgrade).collect(),
            rows: expected_rows(config),
            cores: policy.cores,
            progress: Mutex::new(progress),
        }
    }

    /// The next shapes: those of most requests, and before any those that are expected.
    fn next(&self, progress: &TunedShapes) -> Option<OpenShapes> {
        let live = self.sessions.iter().enumerate();
        let mut live = live.filter_map(|(place, session)| Some((place, session.upgrade()?)));
        live.find_map(|(place, session)| {
            let seen = session.seen_shapes();
            let expected = self.rows.iter().filter_map(|&rows| session.usual_shapes(rows));
            let mut all = seen.into_iter().chain(expected).map(|inputs| {
                let bucket = ShapeBucket::of(inputs.iter().map(|input| &*input.shape));
                (inputs, bucket)
            });
            let open = all.find(|(_, bucket)| !progress.done.contains(&(place, bucket.clone())));
            drop(all);
            let (inputs, bucket) = open?;
            Some(OpenShapes { place, session, inputs, bucket })
        })
    }
}

/// Rows of the runs that a configuration lets expect: one, and the largest batch that it prefers.
#[must_use]
pub fn expected_rows(config: &ModelConfig) -> Vec<usize> {
    let preferred = match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => &*batching.preferred_batch_size,
        _ => &[],
    };
    let largest = preferred.iter().max().copied().unwrap_or(config.max_batch_size);
    let largest = usize::try_from(largest.clamp(1, MAX_ROWS)).unwrap_or(1);
    let mut rows = vec![1, largest];
    rows.dedup();
    rows
}

impl KernelTuner for GraphKernelTuner {
    fn tune(&self, gate: &dyn TuningGate) -> Option<KernelTuningReport> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.left.is_zero() {
            return None;
        }
        let OpenShapes { place, session, inputs, bucket } = self.next(&progress)?;
        let limits = KernelTuningLimits { time: progress.left, cores: self.cores };
        let gate = SessionGate::new(gate, &session);
        let report = session.tune_kernels(&inputs, &gate, limits).unwrap_or_else(|error| {
            tracing::info!(model = %self.model, "kernels could not be measured: {error}");
            KernelTuningReport::default()
        });
        progress.left = progress.left.saturating_sub(report.spent);
        // Another set of shapes shares what remains.
        if !report.closed {
            progress.done.insert((place, bucket));
        }
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    #[test]
    fn one_row_and_the_largest_preferred_batch_are_expected() {
        for (config, rows) in [
            ("max_batch_size: 0", &[1][..]),
            ("max_batch_size: 1", &[1]),
            ("max_batch_size: 16", &[1, 16]),
            ("max_batch_size: 4096", &[1, 64]),
            ("max_batch_size: 32 dynamic_batching { preferred_batch_size: [4, 8] }", &[1, 8]),
            ("max_batch_size: 32 dynamic_batching { }", &[1, 32]),
        ] {
            let config = from_text(&format!("name: 'm' {config}")).unwrap();
            assert_eq!(expected_rows(&config), rows);
        }
    }
}
