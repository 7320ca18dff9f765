//! Reports about placements, for people.

use std::time::Duration;

use galatea_graph::Datum;

use super::{Placement, PlacementSet, PlacementState, SelectionTerms};
use crate::device_selector::{PlacementEstimate, ShapeBucket};
use crate::error::RuntimeError;

/// Result of one step of tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningStep {
    /// Nothing to do: the placements are measured for the shapes that runs had.
    Settled,
    /// Some placements were measured.
    Measured,
}

/// A placement of a model with some shapes, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementReport {
    /// The providers of its parts, in running order.
    pub providers: Vec<&'static str>,
    /// Time of a run with all devices free: measured, or predicted and corrected by what was measured otherwise.
    pub time: Duration,
    /// True if the placement was measured.
    pub measured: bool,
    /// Reason why it is not used, if any.
    pub failed: Option<String>,
}

impl PlacementSet {
    /// Returns the placements for inputs like these, the fastest first.
    ///
    /// # Errors
    /// Returns the errors of [`PlacementSet::select`].
    pub(in super::super) fn reports(
        &self,
        inputs: &[Datum],
    ) -> Result<Vec<PlacementReport>, RuntimeError> {
        self.select(inputs, SelectionTerms { whole: true, ..SelectionTerms::default() })?;
        let state = self.state();
        let mut all = state.selector.estimates(&ShapeBucket::of_inputs(inputs));
        all.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        let report = |one: &PlacementEstimate| {
            let own = state.placements.get(one.way)?;
            let providers = state.providers(own);
            Some(PlacementReport {
                providers: providers.map(|one| self.graph.names[one]).collect(),
                time: Duration::try_from_secs_f64(one.ns / 1e9).ok()?,
                measured: one.measured,
                failed: own.failed.clone(),
            })
        };
        Ok(all.iter().filter_map(report).collect())
    }
}

impl PlacementState {
    /// Returns the providers that a placement runs on, in running order.
    fn providers<'s>(&'s self, own: &'s Placement) -> Box<dyn Iterator<Item = usize> + 's> {
        let Some(both) = own.split else {
            return Box::new(own.partitions.iter().map(|part| part.provider));
        };
        let placements = both.into_iter().filter_map(|one| self.placements.get(one));
        Box::new(placements.flat_map(|own| own.partitions.iter().map(|part| part.provider)))
    }
}
