//! When a run is to be done, and the turns that it waits for where runs are not divided between units.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use galatea_graph::Datum;

use super::{Session, Wanted};
use crate::error::RuntimeError;
use crate::options::SessionOptions;
use crate::power::UnitChoice;
use crate::provider::{ExecutionProvider, ProfileRow};
use crate::route::{Aim, Goal, Occupied, Unit};

/// How much of what was known of a part's time gives way to a run.
const NEWS: u64 = 8;

/// What a run asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTerms<'t> {
    /// The provider that runs whatever it can; the session chooses where nothing is said.
    pub location: Option<&'t str>,
    /// When it is to be done: at units that have much to do its turn comes by that.
    pub deadline: Option<Instant>,
}

impl RunTerms<'_> {
    /// What a way is chosen by.
    pub(super) fn aim(&self, goal: Goal, power: UnitChoice) -> Aim {
        let left = |due: Instant| (due, due.saturating_duration_since(Instant::now()));
        Aim { goal, power, deadline: self.deadline.map(left) }
    }
}

/// How long runs of a part take, on the average of the last ones.
#[derive(Debug, Default)]
pub(super) struct Usual(AtomicU64);

impl Usual {
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
) -> Option<Vec<Arc<Unit>>> {
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
        terms: RunTerms<'_>,
        inputs: &[Datum],
        wanted: Wanted<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let compiled = self.current();
        let occupy = |at: usize| -> Option<Occupied> {
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
