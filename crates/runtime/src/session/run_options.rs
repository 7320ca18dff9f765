//! Deadlines of runs, and the turns that they wait for where runs are not divided between devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use galatea_graph::Datum;

use super::{OutputMask, Session};
use crate::device_selector::{ComputeDevice, ExecutionGoal, Objective, OccupiedDevice};
use crate::error::RuntimeError;
use crate::options::SessionOptions;
use crate::power::UnitChoice;
use crate::provider::{ExecutionProvider, ProfileRow};

/// Reciprocal of the weight of a new run in the average of a part's time.
const NEWS: u64 = 8;

/// Terms of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions<'t> {
    /// The provider that runs whatever it can; the session chooses where nothing is said.
    pub location: Option<&'t str>,
    /// Deadline: on busy devices the run gets its turn by then.
    pub deadline: Option<Instant>,
}

impl RunOptions<'_> {
    /// Returns the criteria by which a placement is chosen.
    pub(super) fn aim(&self, goal: ExecutionGoal, power: UnitChoice) -> Objective {
        let left = |due: Instant| (due, due.saturating_duration_since(Instant::now()));
        Objective { goal, power, deadline: self.deadline.map(left) }
    }
}

/// Average time of the last runs of a part.
#[derive(Debug, Default)]
pub(super) struct MovingAverage(AtomicU64);

impl MovingAverage {
    pub(super) fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / NEWS);
        let known = self.0.load(Ordering::Relaxed);
        let next = match known {
            0 => took,
            known => known - known / NEWS + took / NEWS,
        };
        // Of two runs that end at the same time one may be forgotten.
        self.0.store(next, Ordering::Relaxed);
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The units of providers, where runs of a session wait for turns.
pub(super) fn units(
    providers: &[Arc<dyn ExecutionProvider>],
    options: &SessionOptions,
) -> Option<Vec<Arc<ComputeDevice>>> {
    let routed = options.routing.as_ref().map(|routing| &routing.units);
    let units = routed.or(options.turns.0.as_ref())?;
    let unit = |provider: &Arc<dyn ExecutionProvider>| {
        let unit = units.named(provider.name());
        unit.set_lanes(provider.lanes());
        unit
    };
    Some(providers.iter().map(unit).collect())
}

impl Session {
    /// Runs as planned, each part when its turn on its unit has come.
    pub(super) fn run_in_turn(
        &self,
        terms: RunOptions<'_>,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let compiled = self.current();
        let occupy = |at: usize| -> Option<OccupiedDevice> {
            let part = compiled.parts.get(at)?;
            let unit = self.units.as_ref()?.get(part.provider)?;
            Some(unit.enter(part.usual.time(), terms.deadline))
        };
        let ran = compiled.run_watched(inputs.to_vec(), wanted, rows, &occupy);
        ran.or_else(|failure| {
            self.run_elsewhere(Arc::clone(&compiled), failure, inputs, wanted, rows)
        })
    }
}
