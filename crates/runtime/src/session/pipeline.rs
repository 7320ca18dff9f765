//! Steps of a run, in their order: select a placement, acquire its devices, pad, execute, learn, fall back.
//!
//! [`super::Run::bind`] has checked the inputs before. Devices are acquired part by part, and inputs are padded,
//! in [`CompiledPartitions::run`].

use std::sync::Arc;

use galatea_graph::Datum;
use galatea_tensor::is_interrupted;

use super::compiled::{CompiledPartitions, PartFailure};
use super::compiled_graph::CompiledGraph;
use super::parts::PartsRun;
use super::placements::{ChosenPlacement, PlacementSet, SelectionTerms};
use super::recover::is_light;
use super::run::{BoundRun, OutputMask, PartsResult};
use crate::device_selector::{ComputeDevice, OccupiedDevice};
use crate::error::RuntimeError;

/// The parts of a session that a run passes through.
#[derive(Clone, Copy)]
pub(super) struct RunPipeline<'s> {
    pub(super) graph: &'s CompiledGraph,
    /// Placements to choose from, where runs are divided between devices.
    pub(super) placements: Option<&'s PlacementSet>,
    /// The device of each provider, where runs wait for their turns.
    pub(super) devices: Option<&'s [Arc<ComputeDevice>]>,
}

/// Partitions that a run takes.
enum SelectedPlacement<'s> {
    /// The planned ones, without waiting for devices.
    Planned(Arc<CompiledPartitions>),
    /// The planned ones, each when its device is free.
    Queued(Arc<CompiledPartitions>, &'s [Arc<ComputeDevice>]),
    /// One of several placements.
    Chosen(&'s PlacementSet, ChosenPlacement),
}

/// A failed attempt to run.
enum RunFailure {
    /// A part of the planned partitions failed.
    Planned(Arc<CompiledPartitions>, PartFailure),
    /// Another placement failed.
    Other(RuntimeError),
}

impl RunPipeline<'_> {
    /// Runs to the end.
    ///
    /// # Errors
    /// Fails when a named placement is unknown, neither the placement nor its fallbacks can run, or the run is
    /// interrupted.
    pub(super) fn run(self, mut run: BoundRun<'_>) -> Result<PartsResult, RuntimeError> {
        let _permit = self.graph.options.pace.enter();
        let selected = self.select_placement(&run)?;
        let inputs = std::mem::take(&mut run.inputs);
        let kept = self.keeps_inputs(&selected, run.owned, &inputs).then(|| inputs.clone());
        let parts = |inputs| PartsRun { inputs, outputs: run.outputs, profile: run.profile };
        let executed = self.execute(&selected, parts(inputs), &run);
        // What was computed for nobody may be incomplete, and says nothing of providers.
        if is_interrupted() {
            return Err(RuntimeError::Interrupted);
        }
        match executed {
            Ok(result) => {
                selected.learn();
                Ok(result)
            }
            Err(failure) => self.fall_back(&selected, failure, kept.map(parts)),
        }
    }

    /// Selects the placement that is done first, or the one that is asked for. A run that overwrites its inputs
    /// takes the planned partitions: another placement keeps them elsewhere.
    fn select_placement(&self, run: &BoundRun<'_>) -> Result<SelectedPlacement<'_>, RuntimeError> {
        if let Some(placements) = self.placements.filter(|_| !run.owned) {
            let whole = run.profile || !matches!(run.outputs, OutputMask::All);
            let BoundRun { placement, deadline, .. } = *run;
            let terms = SelectionTerms { placement, deadline, whole };
            let chosen = placements.select(&run.inputs, terms)?;
            return Ok(SelectedPlacement::Chosen(placements, chosen));
        }
        let current = self.graph.current();
        if let Some(name) = run.placement {
            check_placement(name, &current)?;
        }
        Ok(match self.devices.filter(|_| !run.owned) {
            Some(devices) => SelectedPlacement::Queued(current, devices),
            None => SelectedPlacement::Planned(current),
        })
    }

    /// Returns whether the inputs are kept for another attempt. Those that may be overwritten are kept only
    /// where that costs little and a partition has yet to prove itself.
    fn keeps_inputs(
        &self,
        selected: &SelectedPlacement<'_>,
        owned: bool,
        inputs: &[Datum],
    ) -> bool {
        match selected {
            SelectedPlacement::Planned(compiled) if owned => {
                self.graph.may_fall_back(compiled) && inputs.iter().all(is_light)
            }
            _ => true,
        }
    }

    /// Runs the parts, each when its device is acquired.
    fn execute(
        &self,
        selected: &SelectedPlacement<'_>,
        parts: PartsRun<'_>,
        run: &BoundRun<'_>,
    ) -> Result<PartsResult, RunFailure> {
        let (compiled, ran) = match selected {
            SelectedPlacement::Planned(compiled) => {
                (Arc::clone(compiled), compiled.run(parts, &|_| None))
            }
            SelectedPlacement::Queued(compiled, devices) => {
                let acquire = |at: usize| -> Option<OccupiedDevice> {
                    let part = compiled.parts.get(at)?;
                    let device = devices.get(part.provider)?;
                    Some(device.enter(part.typical.time(), run.deadline))
                };
                (Arc::clone(compiled), compiled.run(parts, &acquire))
            }
            SelectedPlacement::Chosen(_, chosen) if chosen.is_first() => {
                let compiled = self.graph.current();
                let ran = compiled.run(parts, &|part| chosen.acquire(part));
                (compiled, ran)
            }
            SelectedPlacement::Chosen(_, chosen) => {
                return chosen.run(parts).map_err(RunFailure::Other);
            }
        };
        ran.map_err(|failure| RunFailure::Planned(compiled, failure))
    }

    /// Lets others run what failed: after planned partitions the other providers, after another placement the planned
    /// partitions, and after those whatever another device can do alone.
    fn fall_back(
        &self,
        selected: &SelectedPlacement<'_>,
        failure: RunFailure,
        parts: Option<PartsRun<'_>>,
    ) -> Result<PartsResult, RuntimeError> {
        let Some(parts) = parts else {
            return Err(match failure {
                RunFailure::Planned(compiled, failure) => {
                    self.graph.fall_back_later(&compiled, &failure);
                    failure.error
                }
                RunFailure::Other(error) => error,
            });
        };
        let error = match failure {
            RunFailure::Other(error) => error,
            RunFailure::Planned(compiled, failure) => {
                match self.graph.run_again(compiled, failure, &parts) {
                    Ok(result) => {
                        selected.learn();
                        return Ok(result);
                    }
                    Err(error) => error,
                }
            }
        };
        let SelectedPlacement::Chosen(placements, chosen) = selected else { return Err(error) };
        if error.is_input() {
            return Err(error);
        }
        placements.give_up(chosen, &error);
        self.run_after(placements, chosen, error, parts)
    }

    /// Runs on another placement than the one that failed; its error where there is none.
    fn run_after(
        &self,
        placements: &PlacementSet,
        failed: &ChosenPlacement,
        error: RuntimeError,
        parts: PartsRun<'_>,
    ) -> Result<PartsResult, RuntimeError> {
        let model = &self.graph.graph.name;
        if !failed.is_first() {
            tracing::warn!(%model, "a placement failed, the planned partitions go on: {error}");
            return self.graph.run_planned(parts);
        }
        match placements.without(failed) {
            Some(other) => {
                tracing::warn!(%model, "the planned partitions failed, other devices go on: {error}");
                other.run(parts, &|_| None).map_err(|_| error)
            }
            None => Err(error),
        }
    }
}

impl SelectedPlacement<'_> {
    /// Takes note of a run that went well.
    fn learn(&self) {
        if let Self::Chosen(placements, chosen) = self {
            placements.learn(chosen);
        }
    }
}

impl CompiledGraph {
    /// Runs the planned partitions without waiting for devices; where one fails that has never run, tries once without
    /// its provider and keeps the new partitions if they succeed.
    ///
    /// # Errors
    /// Returns the first failure where nobody can run it.
    pub(super) fn run_planned(&self, parts: PartsRun<'_>) -> Result<PartsResult, RuntimeError> {
        let compiled = self.current();
        let ran = compiled.run(parts.clone(), &|_| None);
        ran.or_else(|failure| self.run_again(compiled, failure, &parts))
    }
}

/// Checks that a provider runs something of the model, in a session that has one placement only.
fn check_placement(name: &str, compiled: &CompiledPartitions) -> Result<(), RuntimeError> {
    if compiled.parts.iter().any(|part| part.name == name) {
        return Ok(());
    }
    let planned: Vec<&str> = compiled.parts.iter().map(|part| part.name).collect();
    let planned = planned.join(", ");
    let text = format!("'{name}' runs nothing of this model, which runs on {planned}");
    Err(RuntimeError::Input(text))
}
