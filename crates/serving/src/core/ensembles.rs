//! What holds between an ensemble and the models that it is composed of.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::Core;
use super::load::{LoadError, PolledModel, Source};
use super::loaded::Executor;
use super::models::{Models, WantedBy};
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::{self, ModelConfig};
use crate::ensemble::{EnsemblePlan, StepServer};
use crate::error::Error;
use crate::repository;
use crate::request::{InferenceRequest, ResponseSink};

/// The models that an ensemble is composed of and the versions that it wants, -1 for the latest; nothing for other
/// models.
fn steps(config: &ModelConfig) -> Vec<(&str, i64)> {
    match &config.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensemble)) => {
            ensemble.step.iter().map(|step| (&*step.model_name, step.model_version)).collect()
        }
        _ => Vec::new(),
    }
}

/// The models that are loaded, as ensembles see them: also while the server stops, for what was begun before.
pub(super) struct Steps(pub(super) Weak<RwLock<Models>>);

impl StepServer for Steps {
    fn submit(
        &self,
        model: &str,
        version: i64,
        mut request: InferenceRequest,
        sink: ResponseSink,
    ) -> Result<(), Error> {
        let Some(models) = self.0.upgrade() else {
            return Err(Error::unavailable("Server exiting"));
        };
        let version = (version > 0).then_some(version);
        let loaded = {
            let models = models.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(models.find(model, version)?)
        };
        model.clone_into(&mut request.model_name);
        request.model_version.clone_from(&loaded.context.version);
        loaded.enqueue(request, sink)
    }
}

impl Core {
    /// Loads the models that an ensemble is composed of, as far as they do not serve, and checks it beside them.
    pub(super) fn load_dependencies(&self, polled: &PolledModel) -> Result<(), LoadError> {
        let ensemble = &polled.config.name;
        let steps = steps(&polled.config);
        if steps.is_empty() {
            return Ok(());
        }
        let (mut path, mut done) = (vec![ensemble.clone()], BTreeSet::new());
        self.check_circular(&polled.config, &mut path, &mut done)?;
        let mut missing = BTreeSet::new();
        for (step, _) in &steps {
            if self.models().is_ready(step) {
                continue;
            }
            let Ok(dir) = repository::find(&self.options.repositories, step) else {
                missing.insert(*step);
                continue;
            };
            let _turn = self.turns.take(step);
            if self.models().is_ready(step) {
                continue;
            }
            let source = Source { dir, given_config: None, given_files: None };
            if let Err(LoadError::Poll(error) | LoadError::Load(error)) =
                self.bring_up(step, source, WantedBy::Ensemble)
            {
                return Err(LoadError::Load(Error::invalid_arg(format!(
                    "ensemble '{ensemble}' depends on '{step}' which has no loaded version. Model '{step}' loading \
                     failed with error: {}",
                    error.message
                ))));
            }
        }
        if !missing.is_empty() {
            let names: Vec<&str> = missing.into_iter().collect();
            return Err(LoadError::Load(Error::invalid_arg(format!(
                "ensemble {ensemble} contains models that are not available or ambiguous: {}",
                names.join(", ")
            ))));
        }
        for (step, version) in steps.into_iter().filter(|(_, version)| *version > 0) {
            if !self.models().ready_of(step).any(|(number, _)| number == version) {
                return Err(LoadError::Load(Error::invalid_arg(format!(
                    "ensemble '{ensemble}' depends on '{step}' whose required version {version} is not loaded."
                ))));
            }
        }
        let mut config = polled.config.clone();
        config::normalise(&mut config);
        EnsemblePlan::new(&config, &|step, version| self.step_config(step, version))
            .map_err(LoadError::Load)?;
        Ok(())
    }

    /// `path` leads from the ensemble that is being loaded to the one of this configuration; from those in `done` no
    /// path leads back.
    fn check_circular(
        &self,
        config: &ModelConfig,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Result<(), LoadError> {
        for (step, _) in steps(config) {
            if path.iter().any(|name| name == step) {
                return Err(LoadError::Load(Error::invalid_arg(format!(
                    "circular dependency between ensembles: {step} -> ... -> {} -> {step}",
                    path.last().map_or("", String::as_str)
                ))));
            }
            if done.contains(step) {
                continue;
            }
            let Ok(dir) = repository::find(&self.options.repositories, step) else { continue };
            let source = Source { dir, given_config: None, given_files: None };
            // A step that cannot be read is reported when it is loaded.
            let Ok(polled) = self.poll(step, &source) else { continue };
            path.push(step.to_owned());
            self.check_circular(&polled.config, path, done)?;
            path.pop();
            done.insert(step.to_owned());
        }
        Ok(())
    }

    /// The models that a loaded ensemble is composed of.
    pub(super) fn steps_of(&self, name: &str) -> Vec<String> {
        let record = self.models().record(name);
        let names: BTreeSet<String> = record
            .iter()
            .flat_map(|record| steps(&record.config))
            .map(|(step, _)| step.to_owned())
            .collect();
        names.into_iter().collect()
    }

    /// Ensembles that serve and are composed of this model.
    fn ensembles_over(&self, name: &str) -> Vec<String> {
        let models = self.models();
        let over = |ensemble: &&str| {
            models
                .record(ensemble)
                .is_some_and(|record| steps(&record.config).iter().any(|(step, _)| *step == name))
        };
        models.attempted().filter(over).map(str::to_owned).collect()
    }

    pub(super) fn is_step_of_any(&self, name: &str) -> bool {
        !self.ensembles_over(name).is_empty()
    }

    /// Takes the ensembles out of service whose step is gone.
    pub(super) fn stop_ensembles_over(&self, name: &str) {
        if self.models().is_ready(name) {
            return;
        }
        for ensemble in self.ensembles_over(name) {
            tracing::warn!(%ensemble, step = name, "an ensemble lost a model that it is composed of");
            let retired = self.write_models(|models| models.suspend(&ensemble));
            self.drain_all(&ensemble, retired);
            self.stop_ensembles_over(&ensemble);
        }
    }

    /// The completed configuration of a step's model.
    pub(super) fn step_config(&self, name: &str, version: i64) -> Option<Arc<ModelConfig>> {
        let models = self.models();
        let found = models.find(name, (version > 0).then_some(version)).ok()?;
        Some(Arc::clone(&found.context.config))
    }

    /// Whether the models of an ensemble are still what it was checked against; true for other models.
    pub(super) fn steps_are_current(&self, name: &str) -> bool {
        let serving: Vec<_> =
            self.models().ready_of(name).map(|(_, loaded)| Arc::clone(loaded)).collect();
        serving.iter().all(|loaded| match &loaded.executor {
            Executor::Ensemble(ensemble) => {
                ensemble.plan().is_current(&|step, version| self.step_config(step, version))
            }
            Executor::Instances(_) => true,
        })
    }

    /// Checks and builds the ensembles anew whose step has another configuration than it had.
    fn refresh_ensembles_over(&self, name: &str) {
        for ensemble in self.ensembles_over(name) {
            let turn = self.turns.take(&ensemble);
            let record = self.models().record(&ensemble);
            let Some(record) = record.filter(|_| !self.steps_are_current(&ensemble)) else {
                continue;
            };
            let result = self.bring_up(&ensemble, record.source.clone(), self.wanted_by(&ensemble));
            drop(turn);
            match result {
                Ok(()) => self.refresh_ensembles_over(&ensemble),
                Err(LoadError::Poll(error) | LoadError::Load(error)) => {
                    tracing::error!(%ensemble, step = name, reason = %error.message, "an ensemble does not fit its changed model");
                }
            }
        }
    }

    fn wanted_by(&self, name: &str) -> WantedBy {
        if self.models().is_wanted_by_name(name) { WantedBy::Name } else { WantedBy::Ensemble }
    }

    /// Puts the ensembles back into service that wait for this model, and fits those to it that serve.
    pub(super) fn revive_ensembles_over(&self, name: &str) {
        self.refresh_ensembles_over(name);
        let suspended: Vec<String> = {
            let models = self.models();
            let waits = |ensemble: &&str| models.is_suspended(ensemble);
            models.attempted().filter(waits).map(str::to_owned).collect()
        };
        for ensemble in suspended {
            if self.revive(&ensemble, name) {
                self.revive_ensembles_over(&ensemble);
            }
        }
    }

    /// Puts an ensemble back into service if it is composed of `step` and all its models serve.
    fn revive(&self, ensemble: &str, step: &str) -> bool {
        let _turn = self.turns.take(ensemble);
        let Ok(dir) = repository::find(&self.options.repositories, ensemble) else { return false };
        let source = Source { dir, given_config: None, given_files: None };
        let concerned = self.poll(ensemble, &source).is_ok_and(|polled| {
            let steps = steps(&polled.config);
            let ready = |(step, _): &(&str, i64)| self.models().is_ready(step);
            steps.iter().any(|(name, _)| *name == step) && steps.iter().all(ready)
        });
        if !concerned {
            return false;
        }
        match self.bring_up(ensemble, source, self.wanted_by(ensemble)) {
            Ok(()) => true,
            Err(LoadError::Poll(error) | LoadError::Load(error)) => {
                tracing::error!(%ensemble, reason = %error.message, "an ensemble could not be loaded again");
                false
            }
        }
    }
}
