//! Selection of the placement that a run takes.

use std::sync::MutexGuard;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use galatea_graph::Datum;

use super::split::{SplitRun, share};
use super::{
    ChosenPlacement, ExpectedPart, Placement, PlacementRunner, PlacementSet, PlacementState,
};
use crate::device_selector::{ExecutionGoal, Objective, ShapeBucket};
use crate::error::RuntimeError;
use crate::partition::Partition;
use crate::power::UnitChoice;

/// Terms by which a placement is selected.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct SelectionTerms<'t> {
    /// Name of the provider that gets every possible node.
    pub(in super::super) placement: Option<&'t str>,
    /// Time by which the run gets its turn.
    pub(in super::super) deadline: Option<Instant>,
    /// True if the rows of the run are not to be divided.
    pub(in super::super) whole: bool,
}

impl SelectionTerms<'_> {
    fn objective(&self, goal: ExecutionGoal, power: UnitChoice) -> Objective {
        let left = |due: Instant| (due, due.saturating_duration_since(Instant::now()));
        Objective { goal, power, deadline: self.deadline.map(left) }
    }
}

/// Returns whether a run may take a placement once it is compiled.
fn is_sound(placements: &[Placement], at: usize) -> bool {
    placements.get(at).is_some_and(|own| own.failed.is_none() && own.split.is_none())
}

/// Returns whether a run may take a placement at once.
fn is_ready(placements: &[Placement], at: usize, whole: bool) -> bool {
    let Some(own) = placements.get(at).filter(|own| own.failed.is_none()) else { return false };
    match own.split {
        Some(both) => !whole && both.iter().all(|&one| is_ready(placements, one, true)),
        None => at == 0 || own.compiled.is_some(),
    }
}

impl PlacementSet {
    /// Selects the placement of a run. It is one of those that are ready, or the one that gives every possible node
    /// to the provider named in the terms.
    ///
    /// # Errors
    /// Returns [`RuntimeError::Input`] when there is no such provider, or the error of compiling a placement.
    pub(in super::super) fn select(
        &self,
        inputs: &[Datum],
        terms: SelectionTerms<'_>,
    ) -> Result<ChosenPlacement, RuntimeError> {
        let location = terms.placement.map(|name| self.provider_named(name)).transpose()?;
        let bucket = ShapeBucket::of_inputs(inputs);
        let mut state = self.opened(&bucket, inputs);
        state.note(&bucket, inputs);
        let number = match location {
            Some(provider) => state.located(provider),
            None => self.select_fastest(&mut state, &bucket, terms),
        };
        let runner = match self.split_run(&state, &bucket, number, inputs) {
            Some(split) => PlacementRunner::Split(split),
            None => match self.ready(&state, number) {
                Ok(compiled) => PlacementRunner::Whole(compiled),
                Err(recipe) => {
                    drop(state);
                    let compiled = self.make_ready(number, &recipe)?;
                    state = self.state();
                    PlacementRunner::Whole(compiled)
                }
            },
        };
        let parts = state.selector.part_times(&bucket, number).into_iter();
        let parts: Vec<ExpectedPart> =
            parts.map(|(device, time)| ExpectedPart { device, time }).collect();
        drop(state);
        let alone = parts.iter().all(|part| !part.device.is_busy());
        let deadline = terms.deadline;
        let waited = AtomicBool::new(false);
        let begin = Instant::now();
        Ok(ChosenPlacement { number, runner, bucket, parts, alone, begin, deadline, waited })
    }

    /// Locks the placements with a bucket that has predictions.
    fn opened(&self, bucket: &ShapeBucket, inputs: &[Datum]) -> MutexGuard<'_, PlacementState> {
        let state = self.state();
        if state.selector.knows(bucket) {
            return state;
        }
        // Who asks meanwhile in another bucket need not wait.
        drop(state);
        let plan = self.plan(inputs);
        let recorded = self.recorded.as_ref().map(|own| own.find(bucket)).unwrap_or_default();
        let mut state = self.state();
        state.open(bucket.clone(), plan, self.planned_partitions(), recorded);
        state
    }

    /// Returns the placement that is expected to be done first. Where all failed, the first is tried again.
    fn select_fastest(
        &self,
        state: &mut PlacementState,
        bucket: &ShapeBucket,
        terms: SelectionTerms<'_>,
    ) -> usize {
        let objective = terms.objective(self.options.goal, self.options.units.preference());
        let PlacementState { selector, placements, .. } = state;
        let usable = |at: usize| is_ready(placements, at, terms.whole);
        let chosen = selector.choose(bucket, objective, usable);
        let chosen = chosen.map_or(0, |estimate| estimate.way);
        let chosen = match selector.takes_work(bucket, chosen) {
            true => chosen,
            // A placement that is not compiled is better than a device that is to have no work.
            false => {
                let sound = |at: usize| usable(at) || is_sound(placements, at);
                let other = selector.choose(bucket, objective, sound);
                other.map_or(chosen, |estimate| estimate.way)
            }
        };
        self.log_choice(state, bucket, chosen);
        chosen
    }

    /// Returns the division of the rows of these inputs by a placement, if it divides them.
    pub(super) fn split_run(
        &self,
        state: &PlacementState,
        bucket: &ShapeBucket,
        number: usize,
        inputs: &[Datum],
    ) -> Option<SplitRun> {
        let both = state.placements.get(number)?.split?;
        let rows = self.rows.clone()?;
        let all = state.selector.estimates(bucket);
        let ns = both.map(|one| all.get(one).map_or(f64::INFINITY, |one| one.ns));
        let first = share(rows.count(inputs)?, ns)?;
        let [one, two] = both.map(|one| self.ready(state, one).ok());
        Some(SplitRun { rows, placements: [one?, two?], first })
    }

    /// Returns the place of a provider among those of the session.
    fn provider_named(&self, name: &str) -> Result<usize, RuntimeError> {
        let names = &self.graph.names;
        names.iter().position(|own| *own == name).ok_or_else(|| {
            let known = names.join(", ");
            RuntimeError::Input(format!("there is no unit '{name}' here, there are {known}"))
        })
    }

    /// Returns the session's planned division of the graph.
    fn planned_partitions(&self) -> Vec<Partition> {
        let compiled = self.graph.current();
        let parts = compiled.parts.iter();
        parts.map(|part| Partition { provider: part.provider, nodes: part.nodes.clone() }).collect()
    }

    /// Logs which placement a run takes, with the estimate that it was chosen by.
    fn log_choice(&self, state: &PlacementState, bucket: &ShapeBucket, number: usize) {
        if !tracing::enabled!(tracing::Level::TRACE) {
            return;
        }
        let parts = state.placements.get(number).map_or(&[][..], |own| &own.partitions);
        let parts = parts.iter().map(|part| self.graph.names[part.provider]);
        let parts = parts.collect::<Vec<&str>>().join(", ");
        let units = if parts.is_empty() { "several" } else { &parts };
        let estimates = state.selector.estimates(bucket);
        let Some(estimate) = estimates.get(number) else { return };
        let model = &self.graph.graph.name;
        let us = estimate.end_ns / 1e3;
        let known = if estimate.measured { "measured" } else { "predicted" };
        tracing::trace!(%model, placement = number, %units, "a run takes this placement, {known} to be done in {us:.0} us");
    }
}
