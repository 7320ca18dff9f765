//! Load and unload on request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::load::LoadError;
use super::load_record::ModelSource;
use super::models::WantedBy;
use super::overrides::GivenFolder;
use super::{ControlMode, Core, LoadOverrides, UnloadDependents};
use crate::error::{ErrorCode, ServingError};
use crate::repository::{self, ModelId, NameMeaning};

/// How a model is unloaded.
#[derive(Clone, Copy, Debug)]
struct UnloadStep {
    dependents: UnloadDependents,
    /// Whether a load that is under way is waited for.
    waits: bool,
}

impl Core {
    /// Loads a model on request, or anew what has changed of it since it was loaded, and waits for the end. A
    /// configuration given earlier holds on until the one on disk is written anew or the model is unloaded.
    ///
    /// # Errors
    /// When the control mode does not permit it, there is no such model, or it cannot be loaded; what served before
    /// goes on then.
    pub fn load_model(&self, name: &str, overrides: LoadOverrides) -> Result<(), ServingError> {
        self.check_control()?;
        check_name(name)?;
        let wanted = match self.wanted(name, overrides) {
            Ok(wanted) => wanted,
            Err(error) => return Err(unreadable(name, &error)),
        };
        let mut failed = String::new();
        let mut unread = None;
        for (id, overrides) in wanted {
            let turn = self.turns.take(&id);
            let result = self.source_of(&id, overrides).map_err(LoadError::Poll);
            let result = result.and_then(|source| self.bring_up(&id, source, WantedBy::Name));
            drop(turn);
            match result {
                Ok(()) => self.revive_ensembles_over(&id),
                Err(LoadError::Poll(error)) => unread = Some(unreadable(name, &error)),
                Err(LoadError::Load(error)) => {
                    failed += &format!("load failed for model '{id}': {}\n", error.message);
                }
            }
        }
        match unread {
            _ if !failed.is_empty() => Err(ServingError::new(ErrorCode::InvalidArg, failed)),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The models that a load of this name is about, with what each is given. Files are a model of no repository.
    fn wanted(
        &self,
        name: &str,
        overrides: LoadOverrides,
    ) -> Result<Vec<(ModelId, LoadOverrides)>, ServingError> {
        let naming = self.options.naming;
        if naming == NameMeaning::Unique || !overrides.files.is_empty() {
            return Ok(vec![(ModelId::plain(name), overrides)]);
        }
        let found = repository::find(&self.repositories(), naming, name)?;
        Ok(found.into_iter().map(|(id, _)| (id, overrides.clone())).collect())
    }

    /// Unloads a model on request. It takes no more requests and answers those that it has; this does not wait for
    /// that. A model that is not loaded stays so. A load that is under way ends first, as it would have alone.
    ///
    /// # Errors
    /// When the control mode does not permit it.
    pub fn unload_model(
        &self,
        name: &str,
        dependents: UnloadDependents,
    ) -> Result<(), ServingError> {
        self.unload_named(name, UnloadStep { dependents, waits: true })
    }

    /// Unloads a model for another one, which may be what a load that is under way waits for: such a load becomes void.
    ///
    /// # Errors
    /// Fails like [`unload_model`](Self::unload_model).
    pub(super) fn unload_for_model(
        &self,
        name: &str,
        dependents: UnloadDependents,
    ) -> Result<(), ServingError> {
        self.unload_named(name, UnloadStep { dependents, waits: false })
    }

    fn unload_named(&self, name: &str, how: UnloadStep) -> Result<(), ServingError> {
        self.check_control()?;
        let ids = match self.options.naming {
            NameMeaning::Unique => vec![ModelId::plain(name)],
            NameMeaning::Namespaced => self.models().named(name),
        };
        ids.iter().for_each(|id| self.unload(id, how));
        Ok(())
    }

    fn unload(&self, id: &ModelId, how: UnloadStep) {
        let turn = how.waits.then(|| self.turns.take(id));
        let steps = self.steps_of(id);
        self.take_down(id);
        drop(turn);
        if how.dependents == UnloadDependents::Keep {
            return;
        }
        for step in steps {
            let wanted = self.models().is_wanted_by_name(&step);
            if !wanted && !self.is_step_of_any(&step) {
                self.unload(&step, how);
            }
        }
    }

    /// Takes a model out of service, and the ensembles over it.
    pub(super) fn take_down(&self, id: &ModelId) {
        let retired = self.write_models(|models| models.unload(id));
        self.drain_all(id, retired);
        self.stop_ensembles_over(id);
    }

    /// The folder of a model in the repositories.
    pub(super) fn folder_of(&self, id: &ModelId) -> Result<PathBuf, ServingError> {
        repository::folder_of(&self.repositories(), self.options.naming, id)
    }

    fn check_control(&self) -> Result<(), ServingError> {
        match self.options.control_mode {
            ControlMode::Explicit { .. } => Ok(()),
            ControlMode::None | ControlMode::Poll { .. } => Err(ServingError::unavailable(
                "explicit model load / unload is not allowed if polling is enabled",
            )),
        }
    }

    /// The files and the configuration that a load is about.
    fn source_of(
        &self,
        id: &ModelId,
        overrides: LoadOverrides,
    ) -> Result<ModelSource, ServingError> {
        let now = SystemTime::now();
        let given_config = overrides.config.map(|text| (text, now));
        if !overrides.files.is_empty() {
            if given_config.is_none() {
                return Err(ServingError::invalid_arg("files are given without a configuration"));
            }
            let folder = Arc::new(GivenFolder::write(&overrides.files)?);
            let dir = folder.path().to_owned();
            return Ok(ModelSource { dir, given_config, given_files: Some(folder) });
        }
        let dir = self.folder_of(id)?;
        let kept = || {
            let before = self.models().record(id)?;
            let before = before.source.clone();
            let given = before.given_config.filter(|_| before.given_files.is_none())?;
            (!is_newer(&dir.join("config.pbtxt"), given.1)).then_some(given)
        };
        Ok(ModelSource { given_config: given_config.or_else(kept), dir, given_files: None })
    }
}

fn is_newer(file: &Path, than: SystemTime) -> bool {
    let modified = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified > than)
}

fn check_name(name: &str) -> Result<(), ServingError> {
    if name.contains('/') || name.contains("..") {
        return Err(ServingError::invalid_arg(format!(
            "invalid model name '{name}', model name must not contain path traversal characters"
        )));
    }
    Ok(())
}

fn unreadable(name: &str, error: &ServingError) -> ServingError {
    tracing::error!(model = name, reason = %error.message, "a model could not be read");
    poll_failed(name, error)
}

/// Triton gives no reason here; a reason about what the client itself sent helps it.
fn poll_failed(name: &str, error: &ServingError) -> ServingError {
    let text = format!("failed to load '{name}', failed to poll from model repository");
    let of_client = error.message.contains("given file");
    ServingError::internal(if of_client { format!("{text}: {}", error.message) } else { text })
}
