//! Relations between an ensemble and the models that it is composed of.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use galatea_tensor::OrderedSet;

use super::Core;
use super::load::LoadError;
use super::load_record::{ModelSource, PolledModel};
use super::loaded::{LoadedVersion, VersionExecutor, enqueue, next_load};
use super::models::{ModelTable, WantedBy};
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_ensembling::Step;
use crate::config::{self, ModelConfig};
use crate::ensemble::{EnsemblePlan, StepServer};
use crate::error::ServingError;
use crate::repository::{self, ModelId, NameMeaning};
use crate::request::{InferenceRequest, ResponseSink};

/// The steps of an ensemble; nothing for other models.
fn steps(config: &ModelConfig) -> &[Step] {
    match &config.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensemble)) => &ensemble.step,
        _ => &[],
    }
}

/// The models that are loaded, as ensembles see them: also while the server stops, for what was begun before.
pub(super) struct EnsembleSteps(pub(super) Weak<RwLock<ModelTable>>);

impl EnsembleSteps {
    fn find(&self, model: &ModelId, version: i64) -> Result<Arc<LoadedVersion>, ServingError> {
        let Some(models) = self.0.upgrade() else {
            return Err(ServingError::unavailable("Server exiting"));
        };
        let models = models.read().unwrap_or_else(PoisonError::into_inner);
        models.find_in(model, (version > 0).then_some(version)).cloned()
    }
}

impl StepServer for EnsembleSteps {
    fn submit(
        &self,
        model: &ModelId,
        version: i64,
        mut request: InferenceRequest,
        sink: ResponseSink,
    ) -> Result<(), ServingError> {
        request.model_name.clone_from(&model.name);
        let find = || self.find(model, version);
        enqueue(find()?, find, request, sink)
    }

    fn loads(&self, model: &ModelId, version: i64, into: &mut Vec<u64>) {
        match self.find(model, version) {
            Ok(loaded) => loaded.loads(into),
            // The request fails there, or finds what no earlier one found.
            Err(_) => into.push(next_load()),
        }
    }
}

impl Core {
    /// The model that a step of an ensemble in this namespace means: where names are not unique, that of the
    /// namespace which the step names, else that of the ensemble's own, else the only one.
    fn model_of_step(&self, near: &str, step: &Step) -> Option<ModelId> {
        let naming = self.options.naming;
        if naming == NameMeaning::Unique {
            return Some(ModelId::plain(&step.model_name));
        }
        let in_namespace = |namespace: &str| ModelId {
            namespace: namespace.to_owned(),
            name: step.model_name.clone(),
        };
        if !step.model_namespace.is_empty() {
            return Some(in_namespace(&step.model_namespace));
        }
        let mut known = self.models().named(&step.model_name);
        let found =
            repository::find(&self.repositories(), naming, &step.model_name).unwrap_or_default();
        known.extend(found.into_iter().map(|(id, _)| id));
        known.sort();
        known.dedup();
        let own = in_namespace(near);
        match known.as_slice() {
            known if known.contains(&own) => Some(own),
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    /// Writes into each step of an ensemble which namespace its model is of, as Triton shows it.
    pub(super) fn name_steps(&self, ensemble: &ModelId, config: &mut ModelConfig) {
        if let Some(SchedulingChoice::EnsembleScheduling(scheduling)) =
            &mut config.scheduling_choice
        {
            for step in &mut scheduling.step {
                let resolved = self.model_of_step(&ensemble.namespace, step);
                step.model_namespace = resolved.map(|id| id.namespace).unwrap_or_default();
            }
        }
    }

    /// Loads the models that an ensemble is composed of, as far as they do not serve, and checks it beside them.
    pub(super) fn load_dependencies(&self, polled: &PolledModel) -> Result<(), LoadError> {
        let ensemble = &polled.id;
        let refuse = |text: String| Err(LoadError::Load(ServingError::invalid_arg(text)));
        if steps(&polled.config).is_empty() {
            return Ok(());
        }
        let mut path = vec![ensemble.clone()];
        let mut done = OrderedSet::new();
        self.check_circular(&polled.config, &mut path, &mut done)?;
        let mut missing = OrderedSet::new();
        let mut wanted = Vec::new();
        for step in steps(&polled.config) {
            let found = self.model_of_step(&ensemble.namespace, step).filter(|id| self.provide(id));
            let Some(id) = found else {
                missing.insert(&*step.model_name);
                continue;
            };
            self.load_step(ensemble, &id)?;
            wanted.push((id, step.model_version));
        }
        if !missing.is_empty() {
            let names: Vec<&str> = missing.into_iter().collect();
            return refuse(format!(
                "ensemble {ensemble} contains models that are not available or ambiguous: {}",
                names.join(", ")
            ));
        }
        for (step, version) in wanted.into_iter().filter(|(_, version)| *version > 0) {
            if !self.models().ready_of(&step).any(|(number, _)| number == version) {
                return refuse(format!(
                    "ensemble '{ensemble}' depends on '{step}' whose required version {version} is not loaded."
                ));
            }
        }
        let mut config = polled.config.clone();
        config::normalise(&mut config);
        self.name_steps(ensemble, &mut config);
        EnsemblePlan::new(&config, &|step, version| self.step_config(step, version))
            .map_err(LoadError::Load)?;
        Ok(())
    }

    /// Whether a model serves or can be loaded.
    fn provide(&self, id: &ModelId) -> bool {
        self.models().is_ready(id) || self.folder_of(id).is_ok()
    }

    /// Loads a model that an ensemble is composed of, if it does not serve.
    fn load_step(&self, ensemble: &ModelId, step: &ModelId) -> Result<(), LoadError> {
        if self.models().is_ready(step) {
            return Ok(());
        }
        let _turn = self.turns.take(step);
        if self.models().is_ready(step) {
            return Ok(());
        }
        let loaded = self.folder_of(step).map_err(LoadError::Poll).and_then(|dir| {
            let source = ModelSource { dir, given_config: None, given_files: None };
            self.bring_up(step, source, WantedBy::Ensemble)
        });
        loaded.map_err(|(LoadError::Poll(error) | LoadError::Load(error))| {
            LoadError::Load(ServingError::invalid_arg(format!(
                "ensemble '{ensemble}' depends on '{step}' which has no loaded version. Model '{step}' loading \
                 failed with error: {}",
                error.message
            )))
        })
    }

    /// `path` leads from the ensemble that is being loaded to the one of this configuration; from those in `done` no
    /// path leads back.
    fn check_circular(
        &self,
        config: &ModelConfig,
        path: &mut Vec<ModelId>,
        done: &mut OrderedSet<ModelId>,
    ) -> Result<(), LoadError> {
        let near = path.last().map(|id| id.namespace.clone()).unwrap_or_default();
        for step in steps(config) {
            let Some(id) = self.model_of_step(&near, step) else { continue };
            if path.contains(&id) {
                return Err(LoadError::Load(ServingError::invalid_arg(format!(
                    "circular dependency between ensembles: {id} -> ... -> {} -> {id}",
                    path.last().map(ModelId::to_string).unwrap_or_default()
                ))));
            }
            if done.contains(&id) {
                continue;
            }
            let Ok(dir) = self.folder_of(&id) else { continue };
            let source = ModelSource { dir, given_config: None, given_files: None };
            // A step that cannot be read is reported when it is loaded.
            let Ok(polled) = self.poll(&id, &source) else { continue };
            path.push(id.clone());
            self.check_circular(&polled.config, path, done)?;
            path.pop();
            done.insert(id);
        }
        Ok(())
    }

    /// The models that an ensemble which serves is composed of.
    pub(super) fn steps_of(&self, id: &ModelId) -> Vec<ModelId> {
        let models = self.models();
        let mut composed = OrderedSet::new();
        for (_, loaded) in models.ready_of(id) {
            if let VersionExecutor::Ensemble(ensemble) = &loaded.executor {
                composed.extend(ensemble.plan().models().cloned());
            }
        }
        composed.into_iter().collect()
    }

    /// Ensembles that serve and are composed of this model.
    fn ensembles_over(&self, id: &ModelId) -> Vec<ModelId> {
        let known: Vec<ModelId> = self.models().attempted().collect();
        known.into_iter().filter(|ensemble| self.steps_of(ensemble).contains(id)).collect()
    }

    /// Ensembles that were loaded and have a step with this model's name, in whatever namespace.
    fn ensembles_naming(&self, id: &ModelId) -> Vec<ModelId> {
        let models = self.models();
        let over = |ensemble: &ModelId| {
            models.record(ensemble).is_some_and(|record| {
                steps(&record.config).iter().any(|step| step.model_name == id.name)
            })
        };
        models.attempted().filter(over).collect()
    }

    pub(super) fn is_step_of_any(&self, id: &ModelId) -> bool {
        !self.ensembles_over(id).is_empty()
    }

    /// Takes the ensembles out of service whose step is gone.
    pub(super) fn stop_ensembles_over(&self, id: &ModelId) {
        if self.models().is_ready(id) {
            return;
        }
        for ensemble in self.ensembles_over(id) {
            tracing::warn!(%ensemble, step = %id, "an ensemble lost a model that it is composed of");
            self.suspend(&ensemble);
        }
    }

    /// Takes an ensemble, and those over it, out of service until its steps are as it needs them.
    fn suspend(&self, ensemble: &ModelId) {
        let retired = self.write_models(|models| models.suspend(ensemble));
        self.stop_ensembles_over(ensemble);
        self.drain_all(ensemble, retired);
    }

    /// The completed configuration of a step's model.
    pub(super) fn step_config(&self, id: &ModelId, version: i64) -> Option<Arc<ModelConfig>> {
        let models = self.models();
        let found = models.find_in(id, (version > 0).then_some(version)).ok()?;
        Some(Arc::clone(&found.context.config))
    }

    /// Whether the models of an ensemble are still what it was checked against; true for other models.
    pub(super) fn steps_are_current(&self, id: &ModelId) -> bool {
        let (serving, record): (Vec<_>, _) = {
            let models = self.models();
            let serving = models.ready_of(id).map(|(_, loaded)| Arc::clone(loaded)).collect();
            (serving, models.record(id))
        };
        let meant: Vec<Option<ModelId>> = record
            .iter()
            .flat_map(|record| steps(&record.config))
            .map(|step| self.model_of_step(&id.namespace, step))
            .collect();
        serving.iter().all(|loaded| match &loaded.executor {
            VersionExecutor::Ensemble(ensemble) => {
                let plan = ensemble.plan();
                let same = plan
                    .models()
                    .zip(&meant)
                    .all(|(composed, meant)| meant.as_ref().is_none_or(|meant| meant == composed));
                same && plan.is_current(&|step, version| self.step_config(step, version))
            }
            VersionExecutor::Instances(_) => true,
        })
    }

    /// Checks and builds the ensembles anew whose step has another configuration than it had, or is another model.
    /// As in Triton, one that does not fit its steps any more leaves the service.
    fn refresh_ensembles_over(&self, id: &ModelId) {
        for ensemble in self.ensembles_naming(id) {
            let turn = self.turns.take(&ensemble);
            let record = self.models().record(&ensemble);
            let Some(record) = record.filter(|_| !self.steps_are_current(&ensemble)) else {
                continue;
            };
            let result = self.bring_up(&ensemble, record.source.clone(), self.wanted_by(&ensemble));
            if let Err(LoadError::Poll(error) | LoadError::Load(error)) = &result {
                tracing::error!(%ensemble, step = %id, reason = %error.message, "an ensemble does not fit its changed model and is unloaded");
                self.suspend(&ensemble);
                self.forget_failures(&ensemble);
            }
            drop(turn);
            if result.is_ok() {
                self.refresh_ensembles_over(&ensemble);
            }
        }
    }

    fn wanted_by(&self, id: &ModelId) -> WantedBy {
        if self.models().is_wanted_by_name(id) { WantedBy::Name } else { WantedBy::Ensemble }
    }

    /// Puts the ensembles back into service that wait for this model, and fits those to it that serve.
    pub(super) fn revive_ensembles_over(&self, id: &ModelId) {
        self.refresh_ensembles_over(id);
        let suspended: Vec<ModelId> = {
            let models = self.models();
            models.attempted().filter(|ensemble| models.is_suspended(ensemble)).collect()
        };
        for ensemble in suspended {
            if self.revive(&ensemble, id) {
                self.revive_ensembles_over(&ensemble);
            }
        }
    }

    /// Puts an ensemble back into service if it has a step of this model's name and all its models serve.
    fn revive(&self, ensemble: &ModelId, step: &ModelId) -> bool {
        let _turn = self.turns.take(ensemble);
        let Ok(dir) = self.folder_of(ensemble) else { return false };
        let source = ModelSource { dir, given_config: None, given_files: None };
        let concerned = self.poll(ensemble, &source).is_ok_and(|polled| {
            let steps = steps(&polled.config);
            let ready = |one: &Step| {
                let meant = self.model_of_step(&ensemble.namespace, one);
                meant.is_some_and(|id| self.models().is_ready(&id))
            };
            steps.iter().any(|one| one.model_name == step.name) && steps.iter().all(ready)
        });
        if !concerned {
            return false;
        }
        match self.bring_up(ensemble, source, self.wanted_by(ensemble)) {
            Ok(()) => true,
            Err(LoadError::Poll(error) | LoadError::Load(error)) => {
                tracing::error!(%ensemble, reason = %error.message, "an ensemble could not be loaded again");
                self.suspend(ensemble);
                self.forget_failures(ensemble);
                false
            }
        }
    }
}
