//! Loading models: which, from where, and what becomes of those that serve.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use galatea_tensor::{OrderedMap, read_plain_text};

use super::ab_variants::PlannedAbTest;
use super::agents;
use super::change::{ChangeExtent, ModelChange};
use super::load_record::{LoadRecord, ModelSource, PolledModel};
use super::loaded::LoadedVersion;
use super::models::{AMBIGUOUS, LoadEpoch, UNLOADED, WantedBy};
use super::{ControlMode, Core, FailedStage, LoadFailure};
use crate::ab_test::{AbTestPlan, ModelVersions};
use crate::backend::ModelBackend;
use crate::config::{self, BackendNames, ModelConfig};
use crate::error::ServingError;
use crate::repository::{self, FolderStamp, FoundModel, ModelId};

/// A configuration file larger than this is not one.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// How often files are read to which somebody writes meanwhile.
const MAX_ATTEMPTS: usize = 4;
/// The longest wait for such files to settle.
const MAX_SETTLING: Duration = Duration::from_secs(5);

/// How a load ends that does not succeed.
#[derive(Debug)]
pub(super) enum LoadError {
    /// The folder or its configuration cannot be read or makes no sense; the model is as it was.
    Poll(ServingError),
    /// The model as a whole or some of its versions cannot be loaded.
    Load(ServingError),
}

impl Core {
    /// Loads what the control mode asks for.
    pub(super) fn load_at_start(&self) -> Result<(), ServingError> {
        if self.options.repositories.is_empty() {
            return Err(ServingError::invalid_arg("at least one model repository must be given"));
        }
        let found = repository::scan(&self.repositories(), self.options.naming)?;
        self.write_models(|models| found.iter().for_each(|model| models.know(&model.id)));
        let wanted: Vec<FoundModel> = match &self.options.control_mode {
            ControlMode::None | ControlMode::Poll { .. } => found,
            ControlMode::Explicit { load } => {
                for name in load
                    .iter()
                    .filter(|name| *name != "*" && found.iter().all(|m| m.id.name != **name))
                {
                    let text = format!(
                        "failed to load '{name}', no folder of this name in the model repositories"
                    );
                    self.record_unread(&ModelId::plain(name), &text);
                }
                let all = load.iter().any(|name| name == "*");
                found.into_iter().filter(|model| all || load.contains(&model.id.name)).collect()
            }
        };
        self.load_all(&wanted);
        Ok(())
    }

    /// Loads models side by side. Failures are recorded.
    pub(super) fn load_all(&self, wanted: &[FoundModel]) {
        let next = AtomicUsize::new(0);
        let threads = self.options.model_load_threads.clamp(1, wanted.len().max(1));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(model) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.load_found(model);
                    }
                });
            }
        });
    }

    pub(super) fn write_models<T>(&self, change: impl FnOnce(&mut super::ModelTable) -> T) -> T {
        change(&mut self.models.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn record_failure(&self, model: &ModelId, version: Option<i64>, reason: &str) {
        tracing::error!(%model, version, reason, "a model failed to load");
        let version = version.map(|version| version.to_string());
        self.note_failure(model, version, reason, FailedStage::Loading);
    }

    /// Notes a model that could not even be tried, which no client waits for.
    fn record_unread(&self, model: &ModelId, reason: &str) {
        tracing::error!(%model, reason, "a model cannot be read");
        self.note_failure(model, None, reason, FailedStage::Reading);
    }

    fn note_failure(
        &self,
        model: &ModelId,
        version: Option<String>,
        reason: &str,
        stage: FailedStage,
    ) {
        let model = model.to_string();
        let failure = LoadFailure { model, version, reason: reason.to_owned(), stage };
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }

    pub(super) fn forget_failures(&self, model: &ModelId) {
        let model = model.to_string();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|failure| failure.model != model);
    }

    fn load_found(&self, found: &FoundModel) {
        let id = &found.id;
        if found.ambiguous {
            let reason = AMBIGUOUS;
            self.write_models(|models| models.set_unusable(id, Some(reason.to_owned())));
            self.record_unread(id, reason);
            return;
        }
        let source = ModelSource { dir: found.dir.clone(), given_config: None, given_files: None };
        let _turn = self.turns.take(id);
        // An ensemble may have brought it already, as one of its steps.
        if self.models().is_ready(id) {
            self.write_models(|models| models.want_by_name(id));
            return;
        }
        if let Err(LoadError::Poll(error)) = self.bring_up(id, source, WantedBy::Name) {
            // As in Triton, the index shows such a model by name only; the reason goes to the log.
            self.record_unread(id, &error.message);
        }
    }

    /// Loads a model from its source, or anew what has changed of it. What serves goes on until its successor is
    /// ready, and also if that fails. The caller holds the model's turn.
    ///
    /// Files to which somebody writes meanwhile are read again when they have settled: what serves is made of files
    /// that were there at the same time.
    pub(super) fn bring_up(
        &self,
        id: &ModelId,
        source: ModelSource,
        by: WantedBy,
    ) -> Result<(), LoadError> {
        let mut stamps = FolderStamp::of(&source.dir).map_err(LoadError::Poll)?;
        for _ in 1..MAX_ATTEMPTS {
            let result = self.bring_up_as(id, source.clone(), by, stamps.clone());
            let unchanged = FolderStamp::of(&source.dir).is_ok_and(|now| now == stamps);
            let own = || self.poll(id, &source).is_ok_and(|now| self.runs_programs(&now.config));
            // An unload meanwhile holds, and so does the end of the server.
            let overtaken = matches!(result, Err(LoadError::Load(_)))
                && !(self.models().is_named(id) && self.accepting.load(Ordering::Acquire));
            if result.is_ok() || unchanged || overtaken || own() {
                return result;
            }
            tracing::info!(model = %id, "files were written to while they were read: they are read again");
            match FolderStamp::settled(&source.dir, MAX_SETTLING) {
                Some(settled) => stamps = settled,
                None => return result,
            }
        }
        self.bring_up_as(id, source, by, stamps)
    }

    /// Loads a model whose folder looks as the stamps say.
    fn bring_up_as(
        &self,
        id: &ModelId,
        source: ModelSource,
        by: WantedBy,
        stamps: FolderStamp,
    ) -> Result<(), LoadError> {
        let mut polled = self.poll(id, &source).map_err(LoadError::Poll)?;
        polled.stamps.clone_from(&stamps);
        agents::run(&polled).map_err(LoadError::Poll)?;
        let before = self.models().record(id);
        let epoch = self.write_models(|models| {
            models.set_unusable(id, None);
            models.begin(id, by)
        });
        self.forget_failures(id);
        if polled.versions.is_empty() {
            let text = format!(
                "at least one version must be available under the version policy of model '{id}'"
            );
            self.write_models(|models| models.set_versionless(id, epoch));
            self.record_failure(id, None, &text);
            return Err(LoadError::Load(ServingError::invalid_arg(text)));
        }
        let change = match self.steps_are_current(id) && !self.changed.contains(id) {
            true => ModelChange::between(before.as_deref(), &polled, &source, &stamps),
            false => ModelChange::everything(),
        };
        if let Err(error) = self.load_dependencies(&polled) {
            if let LoadError::Load(error) = &error {
                self.record_failure(id, None, &error.message);
            }
            return Err(error);
        }
        let plan = self.ab_plan(&polled, &source);
        let asked = plan.as_ref().is_ok_and(Option::is_some);
        let planned = plan.and_then(|plan| self.plan_ab_test(&mut polled, plan, &change));
        let planned = planned.map_err(|error| self.fail_all(&polled, epoch, error))?;
        if let Err(error) = self.load_versions(&mut polled, &change, epoch) {
            planned.iter().for_each(PlannedAbTest::drop_instances);
            return Err(LoadError::Load(error));
        }
        match planned {
            Some(planned) => self.begin_ab_test(id, epoch, planned).map_err(|error| {
                self.record_failure(id, None, &error.message);
                LoadError::Load(error)
            })?,
            None if !asked => self.end_ab_test(id, epoch),
            None => {}
        }
        let record = LoadRecord { source, config: polled.config, stamps };
        self.write_models(|models| models.set_record(id, epoch, Arc::new(record)));
        self.retire(id, |version| polled.versions.contains(&version));
        Ok(())
    }

    /// The A/B test that a configuration asks for.
    fn ab_plan(
        &self,
        polled: &PolledModel,
        source: &ModelSource,
    ) -> Result<Option<AbTestPlan>, ServingError> {
        let present = repository::versions(&source.dir)?;
        let versions = ModelVersions { present: &present, chosen: &polled.versions };
        AbTestPlan::of_model(&polled.config, versions)
    }

    /// Notes that no version can be loaded; those that serve go on.
    fn fail_all(&self, polled: &PolledModel, epoch: LoadEpoch, error: ServingError) -> LoadError {
        let id = &polled.id;
        self.write_models(|models| {
            for &version in &polled.versions {
                models.failed(id, version, epoch, &error.nested());
            }
        });
        self.record_failure(id, None, &error.message);
        LoadError::Load(error)
    }

    pub(super) fn serving(&self, id: &ModelId, version: i64) -> Option<Arc<LoadedVersion>> {
        let models = self.models();
        let mut ready = models.ready_of(id);
        ready.find(|(number, _)| *number == version).map(|(_, serving)| Arc::clone(serving))
    }

    /// Makes the versions that have changed anew and puts them into service together: when one of them fails, none of
    /// this load serves, as in Triton, and those that served before go on.
    fn load_versions(
        &self,
        polled: &mut PolledModel,
        change: &ModelChange,
        epoch: LoadEpoch,
    ) -> Result<(), ServingError> {
        let mut built = Vec::new();
        let mut failures = String::new();
        for version in polled.versions.clone() {
            if let Some(serving) = self.serving(&polled.id, version) {
                match change.of(version, &serving.context.config) {
                    ChangeExtent::Nothing => {
                        serving.adopt_policy(&polled.config);
                        continue;
                    }
                    ChangeExtent::Instances => {
                        let counters = Arc::clone(&serving.context.statistics);
                        polled.counters.insert(version, counters);
                        polled.before.insert(version, serving);
                    }
                    ChangeExtent::Model => {}
                }
            }
            match self.make_version(polled, version, epoch) {
                Ok(loaded) => built.push((version, loaded)),
                Err(error) => {
                    let nested = error.nested();
                    failures += &format!("version {version} is at UNAVAILABLE state: {nested};");
                }
            }
        }
        let id = &polled.id;
        if !failures.is_empty() {
            for (version, loaded) in built {
                tracing::warn!(model = %id, version, "unloaded, since another version of the load failed");
                loaded.give_back();
                loaded.remove();
                self.write_models(|models| models.failed(id, version, epoch, UNLOADED));
            }
            return Err(ServingError::invalid_arg(failures));
        }
        self.serve_versions(id, epoch, built)
    }

    /// Puts versions into service.
    ///
    /// # Errors
    /// When the load was overtaken, such as by the end of the server.
    fn serve_versions(
        &self,
        id: &ModelId,
        epoch: LoadEpoch,
        built: Vec<(i64, Arc<LoadedVersion>)>,
    ) -> Result<(), ServingError> {
        let mut overtaken = Ok(());
        for (version, loaded) in built {
            let took = loaded.load_duration.as_secs_f64();
            let serving = Arc::clone(&loaded);
            match self.write_models(|models| models.serve(id, version, epoch, loaded)) {
                Ok(before) => {
                    tracing::info!(model = %id, version, "loaded in {took:.3} s");
                    if let Some(before) = before {
                        drain(before, || {});
                    }
                    serving.resume();
                }
                Err(loaded) => {
                    loaded.give_back();
                    loaded.remove();
                    let error = ServingError::unavailable("the load was overtaken by an unload");
                    overtaken = Err(ServingError::invalid_arg(format!(
                        "version {version} is at UNAVAILABLE state: {};",
                        error.nested()
                    )));
                }
            }
        }
        overtaken
    }

    /// Makes a version, which does not serve yet, and notes why it could not be made.
    fn make_version(
        &self,
        polled: &PolledModel,
        version: i64,
        epoch: LoadEpoch,
    ) -> Result<Arc<LoadedVersion>, ServingError> {
        let id = &polled.id;
        self.write_models(|models| models.loading(id, version, epoch));
        let mut result = self.build_version(polled, version);
        for _ in 0..self.options.model_load_retries {
            if result.is_err() {
                result = self.build_version(polled, version);
            }
        }
        if let Ok(loaded) = &result
            && !self.runs_programs(&polled.config)
            && !polled.is_unchanged(version)
        {
            loaded.give_back();
            loaded.remove();
            let text = "its files were written to while they were read";
            result = Err(ServingError::unavailable(text));
        }
        result.map(Arc::new).inspect_err(|error| {
            let reason = error.nested();
            self.write_models(|models| models.failed(id, version, epoch, &reason));
            if self.serving(id, version).is_some() {
                tracing::error!(model = %id, version, %reason, "the version that serves goes on");
            } else {
                self.record_failure(id, Some(version), &reason);
            }
        })
    }

    /// Takes the versions that `keep` does not name out of service; they answer what they have taken.
    pub(super) fn retire(&self, id: &ModelId, keep: impl Fn(i64) -> bool) {
        let retired = self.write_models(|models| models.retire(id, keep));
        self.drain_all(id, retired);
    }

    pub(super) fn drain_all(&self, id: &ModelId, retired: Vec<(i64, Arc<LoadedVersion>)>) {
        for (version, loaded) in retired {
            let models = Arc::clone(&self.models);
            let id = id.clone();
            let kept = Arc::clone(&loaded);
            drain(loaded, move || {
                models.write().unwrap_or_else(PoisonError::into_inner).settled(&id, version, &kept);
                tracing::info!(model = %id, version, "unloaded");
            });
        }
    }

    /// Reads a model folder: its configuration, as far as it can be judged without the model, and its versions.
    pub(super) fn poll(
        &self,
        id: &ModelId,
        source: &ModelSource,
    ) -> Result<PolledModel, ServingError> {
        let mut config = match &source.given_config {
            Some((text, _)) => given_config(text)?,
            None => self.read_config(&source.dir)?,
        };
        let name = &id.name;
        if config.name.is_empty() || self.is_renamed(name) {
            name.clone_into(&mut config.name);
        }
        if config.name != *name {
            return Err(ServingError::invalid_arg(format!(
                "unexpected directory name '{}' for model '{}', directory name must equal model name",
                name, config.name
            )));
        }
        let present = repository::versions(&source.dir)?;
        if config.backend.is_empty() && config.platform.is_empty() && self.options.auto_complete {
            self.guess_backend(&mut config, &source.dir, &present)?;
        }
        for backend in &self.backends {
            let names = BackendNames {
                backend: backend.name(),
                platform: backend.platform(),
                filename: backend.default_model_filename(),
            };
            config::fill_backend(&mut config, names);
        }
        config::validate(&config)?;
        let versions = repository::chosen_versions(&config, &present);
        let dir = source.dir.clone();
        Ok(PolledModel {
            id: id.clone(),
            dir,
            config,
            versions,
            stamps: FolderStamp::default(),
            counters: OrderedMap::new(),
            before: OrderedMap::new(),
        })
    }

    fn read_config(&self, dir: &Path) -> Result<ModelConfig, ServingError> {
        let custom = self
            .options
            .model_config_name
            .as_ref()
            .map(|name| dir.join(format!("configs/{name}.pbtxt")));
        let path = custom.filter(|path| path.is_file()).unwrap_or_else(|| dir.join("config.pbtxt"));
        let of_path =
            |error: &dyn std::fmt::Display| format!("failed to read {}: {error}", path.display());
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            // A model that is one file has no folder for a configuration.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
                    && self.options.auto_complete =>
            {
                return Ok(ModelConfig::default());
            }
            Err(error) => return Err(ServingError::internal(of_path(&error))),
        };
        if size > MAX_CONFIG_BYTES {
            return Err(ServingError::invalid_arg(of_path(&format!(
                "{size} bytes are too many for a configuration"
            ))));
        }
        let text =
            read_plain_text(&path).map_err(|error| ServingError::internal(of_path(&error)))?;
        config::from_text(&text).map_err(|error| {
            ServingError::invalid_arg(format!(
                "failed to read {}:\n{}",
                path.display(),
                error.message
            ))
        })
    }

    /// Finds the backend by the file in the newest version folder.
    fn guess_backend(
        &self,
        config: &mut ModelConfig,
        dir: &Path,
        present: &[i64],
    ) -> Result<(), ServingError> {
        let newest = present.last().map(|version| dir.join(version.to_string()));
        let fits = |backend: &&Arc<dyn ModelBackend>| {
            let file = match config.default_model_filename.is_empty() {
                true => backend.default_model_filename(),
                false => &config.default_model_filename,
            };
            let extension =
                |name: &str| name.rsplit_once('.').map(|(_, extension)| extension.to_owned());
            let mine = extension(file) == extension(backend.default_model_filename());
            // Backends without model files are only ever named.
            let has_file = !backend.default_model_filename().is_empty();
            has_file && mine && newest.as_ref().is_some_and(|folder| folder.join(file).exists())
        };
        let recognised =
            |backend: &&Arc<dyn ModelBackend>| backend.recognises(dir, newest.as_deref());
        let mut backends = self.backends.iter();
        let found = backends.clone().find(fits).or_else(|| backends.find(recognised));
        if let Some(backend) = found {
            backend.name().clone_into(&mut config.backend);
            return Ok(());
        }
        self.name_backend(config).map_err(|text| {
            let found = instead_of_a_model(dir, newest.as_deref());
            ServingError::invalid_arg(format!("{text}{found}"))
        })
    }

    /// Takes the backend from a model's name such as `model.identity`, as Triton does where no file tells it.
    fn name_backend(&self, config: &mut ModelConfig) -> Result<(), String> {
        let ending = config.name.split_once('.').map(|(_, ending)| ending);
        let Some(ending) = ending.filter(|_| config.default_model_filename.is_empty()) else {
            return Err(format!(
                "Invalid model name: Could not determine backend for model '{}' with no backend in model \
                 configuration. Expected model name of the form 'model.<backend_name>'.",
                config.name
            ));
        };
        let Some(backend) = self.backends.iter().find(|backend| backend.name() == ending) else {
            return Err(format!(
                "unable to find backend library for backend '{ending}', try specifying runtime on the model \
                 configuration."
            ));
        };
        let filename = backend.default_model_filename();
        config.default_model_filename =
            if filename.is_empty() { format!("model.{ending}") } else { filename.to_owned() };
        backend.name().clone_into(&mut config.backend);
        Ok(())
    }
}

/// Says what lies where a model was looked for, and what to do.
fn instead_of_a_model(dir: &Path, newest: Option<&Path>) -> String {
    let folder = newest.unwrap_or(dir);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| format!("'{}'", entry.file_name().display())).collect();
    names.sort();
    names.truncate(MAX_SHOWN_FILES);
    let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let advice = match newest {
        Some(_) => "name the model's file in default_model_filename, or its backend in backend",
        None => "a version is a folder whose name is a number, such as 1",
    };
    format!(" There is {found} in '{}'; {advice}.", folder.display())
}

/// The most files that an error names.
const MAX_SHOWN_FILES: usize = 8;

/// A configuration as a client gives it.
fn given_config(text: &str) -> Result<ModelConfig, ServingError> {
    let json = config::parse_json(text).map_err(|error| {
        ServingError::invalid_arg(format!("the given configuration is no JSON: {error}"))
    })?;
    config::from_json(&json)
}

/// Waits on a thread of its own until a version has answered what it has taken, and ends it.
pub(super) fn drain(loaded: Arc<LoadedVersion>, then: impl FnOnce() + Send + 'static) {
    let spawned = std::thread::Builder::new().name("unload".to_owned()).spawn(move || {
        loaded.remove();
        then();
    });
    if let Err(error) = spawned {
        // Its requests are answered when the last of them lets go of the version.
        tracing::error!("cannot start a thread that unloads a model: {error}");
    }
}
