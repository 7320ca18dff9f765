//! Runs on the way that is done first, on one that is asked for, or on the one that was planned.

use galatea_graph::Datum;
use galatea_tensor::Tensor;

use super::placements::ChosenPlacement;
use super::{DeviceHandover, OutputMask, RunOptions, Session};
use crate::binding::bind;
use crate::error::RuntimeError;
use crate::provider::ProfileRow;

impl Session {
    /// Works like [`Session::run`], with every node that the provider of that name can run placed on it.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`], and fails if there is no such provider. In a session whose
    /// runs are not divided between devices, it also fails if the provider runs nothing of the model.
    pub fn run_on(
        &self,
        location: &str,
        inputs: &[(&str, Tensor)],
    ) -> Result<Vec<Tensor>, RuntimeError> {
        self.run_by(RunOptions { location: Some(location), ..RunOptions::default() }, inputs)
    }

    /// Works like [`Session::run`], with the location and deadline of its terms.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run_on`].
    pub fn run_by(
        &self,
        terms: RunOptions<'_>,
        inputs: &[(&str, Tensor)],
    ) -> Result<Vec<Tensor>, RuntimeError> {
        let inputs = bind(&self.inputs, inputs)?;
        if let Some(location) = terms.location.filter(|_| self.routes.is_none()) {
            let planned = self.partition_providers();
            if !planned.contains(&location) {
                let planned = planned.join(", ");
                let text =
                    format!("'{location}' runs nothing of this model, which runs on {planned}");
                return Err(RuntimeError::Input(text));
            }
        }
        let outputs = self.run_located(terms, &inputs, OutputMask::All, &mut None)?;
        self.tensors(outputs, OutputMask::All)
    }

    /// Runs on the way that is done first; where that fails, on the one that was planned first.
    pub(super) fn run_or_demote(
        &self,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        self.run_located(RunOptions::default(), inputs, wanted, rows)
    }

    /// Works like [`Session::run_or_demote`], with the location and deadline of its terms.
    fn run_located(
        &self,
        terms: RunOptions<'_>,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let _permit = self.options.pace.enter();
        let whole = rows.is_some() || !matches!(wanted, OutputMask::All);
        let route = self.route_by(inputs, terms, whole)?;
        let Some((route, routes)) = route.as_ref().zip(self.routes.as_ref()) else {
            return self.run_in_turn(terms, inputs, wanted, rows);
        };
        let ran = match route.is_first() {
            true => self.run_planned(inputs, wanted, rows, &|part| route.acquire(part)),
            false => route.run(inputs, wanted, rows),
        };
        match ran {
            Ok(outputs) => {
                routes.learn(route);
                Ok(outputs)
            }
            Err(error) if error.is_input() => Err(error),
            Err(error) => {
                routes.give_up(route, &error);
                if let Some(rows) = rows {
                    rows.clear();
                }
                self.run_after(route, error, inputs, wanted, rows)
            }
        }
    }

    /// Runs on another way than the one that failed; its error where there is none.
    fn run_after(
        &self,
        failed: &ChosenPlacement,
        error: RuntimeError,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        // What was planned first is there for all others; after it, whatever another unit can do alone.
        if !failed.is_first() {
            let model = &self.graph.name;
            tracing::warn!(%model, "a way failed, the one that was planned first goes on: {error}");
            return self.run_planned(inputs, wanted, rows, &|_| None);
        }
        match self.way_without(failed) {
            Some(other) => {
                let model = &self.graph.name;
                tracing::warn!(%model, "what was planned first failed, other units go on: {error}");
                other.run(inputs.to_vec(), wanted, rows).map_err(|_| error)
            }
            None => Err(error),
        }
    }

    /// Runs as planned first; where a partition fails that has never run, tries once without its provider and
    /// keeps the new partitions if they succeed.
    pub(super) fn run_planned(
        &self,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
        occupy: &DeviceHandover<'_>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let compiled = self.current();
        match compiled.run_watched(inputs.to_vec(), wanted, rows, occupy) {
            Ok(outputs) => Ok(outputs),
            Err(failure) => self.run_elsewhere(compiled, failure, inputs, wanted, rows),
        }
    }
}
