//! Loading models: from a folder to a version that serves.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::models::{LoadedVersion, VersionEntry};
use super::{ControlMode, Core, LoadFailure, warmup};
use crate::backend::{Backend, ModelFiles, ModelInstance, Placement, PlacementKind};
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_instance_group::Kind;
use crate::config::{self, InstanceDefaults, ModelConfig};
use crate::error::{Code, Error};
use crate::payload::ExecutionContext;
use crate::repository::{self, FoundModel};
use crate::schedule;
use crate::sequence::SequencePlan;
use crate::validate::RequestChecker;

/// A configuration file larger than this is not one.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// A model folder whose configuration was read and makes sense.
struct PolledModel {
    dir: PathBuf,
    config: ModelConfig,
    versions: Vec<i64>,
}

impl Core {
    /// Loads what the control mode asks for.
    pub(super) fn load_at_start(&self) -> Result<(), Error> {
        if self.options.repositories.is_empty() {
            return Err(Error::invalid_arg("at least one model repository must be given"));
        }
        let found = repository::scan(&self.options.repositories)?;
        self.write_models(|models| found.iter().for_each(|model| models.know(&model.name)));
        let wanted: Vec<FoundModel> = match &self.options.control_mode {
            ControlMode::None => found,
            ControlMode::Explicit { load } => {
                for name in load
                    .iter()
                    .filter(|name| *name != "*" && found.iter().all(|m| m.name != **name))
                {
                    let text = format!(
                        "failed to load '{name}', no folder of this name in the model repositories"
                    );
                    self.record_failure(name, None, &text);
                }
                let all = load.iter().any(|name| name == "*");
                found.into_iter().filter(|model| all || load.contains(&model.name)).collect()
            }
        };
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
        Ok(())
    }

    fn write_models<T>(&self, change: impl FnOnce(&mut super::Models) -> T) -> T {
        change(&mut self.models.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn record_failure(&self, model: &str, version: Option<i64>, reason: &str) {
        tracing::error!(model, version, reason, "a model failed to load");
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(LoadFailure {
            model: model.to_owned(),
            version: version.map(|version| version.to_string()),
            reason: reason.to_owned(),
        });
    }

    fn load_found(&self, found: &FoundModel) {
        let name = &found.name;
        if found.ambiguous {
            let reason = "model appears in two or more repositories";
            self.write_models(|models| models.set_unusable(name, reason.to_owned()));
            self.record_failure(name, None, reason);
            return;
        }
        let polled = match self.poll(found) {
            Ok(polled) => polled,
            // As in Triton, the index shows such a model by name only; the reason goes to the log.
            Err(error) => return self.record_failure(name, None, &error.message),
        };
        self.write_models(|models| models.attempt(name));
        if polled.versions.is_empty() {
            let text = format!(
                "at least one version must be available under the version policy of model '{name}'"
            );
            return self.record_failure(name, None, &text);
        }
        for &version in &polled.versions {
            let mut result = self.load_version(&polled, version);
            for _ in 0..self.options.model_load_retries {
                if result.is_err() {
                    result = self.load_version(&polled, version);
                }
            }
            let entry = match result {
                Ok(loaded) => {
                    tracing::info!(model = %name, version, seconds = loaded.load_duration.as_secs_f64(), "loaded");
                    VersionEntry::Ready(Arc::new(loaded))
                }
                Err(error) => {
                    let reason = error.nested();
                    self.record_failure(name, Some(version), &reason);
                    VersionEntry::Unavailable(reason)
                }
            };
            self.write_models(|models| models.set_version(name, version, entry));
        }
    }

    /// Reads a model folder: its configuration, as far as it can be judged without the model, and its versions.
    fn poll(&self, found: &FoundModel) -> Result<PolledModel, Error> {
        let mut config = self.read_config(found)?;
        if config.name.is_empty() {
            config.name.clone_from(&found.name);
        }
        if config.name != found.name {
            return Err(Error::invalid_arg(format!(
                "unexpected directory name '{}' for model '{}', directory name must equal model name",
                found.name, config.name
            )));
        }
        let present = repository::versions(&found.dir)?;
        if config.backend.is_empty() && config.platform.is_empty() && self.options.auto_complete {
            self.guess_backend(&mut config, found, &present)?;
        }
        for backend in &self.backends {
            config::fill_backend(&mut config, backend.as_ref());
        }
        config::validate(&config)?;
        let versions = repository::chosen_versions(&config, &present);
        Ok(PolledModel { dir: found.dir.clone(), config, versions })
    }

    fn read_config(&self, found: &FoundModel) -> Result<ModelConfig, Error> {
        let custom = self
            .options
            .model_config_name
            .as_ref()
            .map(|name| found.dir.join(format!("configs/{name}.pbtxt")));
        let path =
            custom.filter(|path| path.is_file()).unwrap_or_else(|| found.dir.join("config.pbtxt"));
        let of_path =
            |error: &dyn std::fmt::Display| format!("failed to read {}: {error}", path.display());
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && self.options.auto_complete =>
            {
                return Ok(ModelConfig::default());
            }
            Err(error) => return Err(Error::internal(of_path(&error))),
        };
        if size > MAX_CONFIG_BYTES {
            return Err(Error::invalid_arg(of_path(&format!(
                "{size} bytes are too many for a configuration"
            ))));
        }
        let text = fs::read_to_string(&path).map_err(|error| Error::internal(of_path(&error)))?;
        config::from_text(&text).map_err(|error| {
            Error::invalid_arg(format!("failed to read {}:\n{}", path.display(), error.message))
        })
    }

    /// Finds the backend by the file in the newest version folder.
    fn guess_backend(
        &self,
        config: &mut ModelConfig,
        found: &FoundModel,
        present: &[i64],
    ) -> Result<(), Error> {
        let newest = present.last().map(|version| found.dir.join(version.to_string()));
        let fits = |backend: &&Arc<dyn Backend>| {
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
        let Some(backend) = self.backends.iter().find(fits) else {
            return Err(Error::invalid_arg(format!(
                "Invalid model name: Could not determine backend for model '{}' with no backend in model \
                 configuration. Expected model name of the form 'model.<backend_name>'.",
                config.name
            )));
        };
        backend.name().clone_into(&mut config.backend);
        Ok(())
    }

    fn backend(&self, config: &ModelConfig) -> Result<&Arc<dyn Backend>, Error> {
        let name = &config.backend;
        let platform = &config.platform;
        let found = match name.is_empty() {
            true => self.backends.iter().find(|backend| backend.platform() == platform),
            false => self.backends.iter().find(|backend| backend.name() == name),
        };
        let Some(backend) = found else {
            let what = if name.is_empty() { platform } else { name };
            return Err(Error::invalid_arg(format!(
                "unable to find backend library for backend '{what}', try specifying runtime on the model \
                 configuration."
            )));
        };
        if !platform.is_empty() && !backend.platform().is_empty() && platform != backend.platform()
        {
            return Err(Error::invalid_arg(format!(
                "unexpected 'platform' and 'backend' pair, got:{platform}, {name}"
            )));
        }
        Ok(backend)
    }

    fn settings(&self, backend: &str) -> BTreeMap<String, String> {
        let of = |name: &str| self.options.backend_config.get(name).cloned().unwrap_or_default();
        let mut settings = of("");
        settings.extend(of(backend));
        settings
    }

    fn load_version(&self, polled: &PolledModel, version: i64) -> Result<LoadedVersion, Error> {
        let start = Instant::now();
        let mut config = polled.config.clone();
        refuse_unsupported(&config)?;
        let backend = self.backend(&config)?;
        let settings = self.settings(backend.name());
        let default_max_batch_size = max_batch_size(&settings)?;
        let files = ModelFiles {
            name: config.name.clone(),
            version,
            model_dir: polled.dir.clone(),
            version_dir: polled.dir.join(version.to_string()),
            config: Arc::new(config.clone()),
            settings,
        };
        let model = backend.load(&files)?;
        if let Some(io) = model.io() {
            config::complete(&mut config, io, self.options.auto_complete, default_max_batch_size)?;
        }
        config::normalise(&mut config);
        config::validate_tensors(&config)?;
        let defaults = InstanceDefaults {
            gpus: self.options.gpus,
            cpu_count: backend.default_instance_count(PlacementKind::Cpu),
            gpu_count: backend.default_instance_count(PlacementKind::Gpu(0)),
        };
        config::normalise_instances(&mut config, defaults);
        config::validate_instances(&config, self.options.gpus)?;
        let sequences = SequencePlan::from_config(&config, &polled.dir)?;
        let labels = self.labels_of(polled, &config)?;
        let config = Arc::new(config);
        let mut instances: Vec<(String, Box<dyn ModelInstance>)> = Vec::new();
        for placement in placements(&config, self.options.gpus) {
            let mut instance = model.instance(&placement)?;
            warmup::run(&polled.dir, &config, sequences.as_ref(), instance.as_mut())?;
            instances.push((placement.name.clone(), instance));
        }
        let context = ExecutionContext::new(&config.name, version, Arc::clone(&config));
        let hold = schedule::Hold {
            requests: self.options.delay_scheduler,
            backlog: self.options.backlog_delay_scheduler,
        };
        let scheduler = schedule::for_config(&config, instances.len(), hold);
        let ordered = schedule::preserves_ordering(&config);
        let handle = self.driver.add(&context, scheduler, ordered, sequences, instances)?;
        let checker = RequestChecker::new(&config);
        Ok(LoadedVersion { context, handle, checker, labels, load_duration: start.elapsed() })
    }

    fn labels_of(
        &self,
        polled: &PolledModel,
        config: &ModelConfig,
    ) -> Result<BTreeMap<String, Arc<Vec<String>>>, Error> {
        let named = config.output.iter().filter(|output| !output.label_filename.is_empty());
        named
            .map(|output| {
                let labels = repository::read_labels(&polled.dir.join(&output.label_filename))?;
                Ok((output.name.clone(), Arc::new(labels)))
            })
            .collect()
    }
}

fn max_batch_size(settings: &BTreeMap<String, String>) -> Result<i32, Error> {
    let Some(text) = settings.get("default-max-batch-size") else {
        return Ok(config::DEFAULT_MAX_BATCH_SIZE);
    };
    text.parse().map_err(|_| {
        Error::new(
            Code::InvalidArg,
            format!("'default-max-batch-size' must be an integer, found '{text}'"),
        )
    })
}

/// What a configuration may ask for and this server does not do: better no model than one that answers wrongly.
fn refuse_unsupported(config: &ModelConfig) -> Result<(), Error> {
    let what = match &config.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(_)) => "'ensemble_scheduling'",
        _ if config.model_repository_agents.as_ref().is_some_and(|all| !all.agents.is_empty()) => {
            "'model_repository_agents'"
        }
        _ => return Ok(()),
    };
    Err(Error::unsupported(format!("{what} of model '{}' is not supported", config.name)))
}

/// The instances of all groups, by name.
fn placements(config: &Arc<ModelConfig>, gpus: u32) -> Vec<Placement> {
    let mut placements = Vec::new();
    for group in &config.instance_group {
        let kinds: Vec<PlacementKind> = match group.kind() {
            Kind::Gpu if group.gpus.is_empty() => (0..gpus).map(PlacementKind::Gpu).collect(),
            Kind::Gpu => group
                .gpus
                .iter()
                .filter_map(|&gpu| Some(PlacementKind::Gpu(gpu.try_into().ok()?)))
                .collect(),
            Kind::Model => vec![PlacementKind::Model],
            Kind::Auto | Kind::Cpu => vec![PlacementKind::Cpu],
        };
        let count = usize::try_from(group.count).unwrap_or(1);
        let all = kinds.iter().flat_map(|&kind| std::iter::repeat_n(kind, count));
        for (number, kind) in all.enumerate() {
            let name = format!("{}_{number}", group.name);
            placements.push(Placement { name, kind, config: Arc::clone(config) });
        }
    }
    placements
}
