//! The facade: models by name and version, and what can be asked of them.

mod ab_tests;
mod ab_variants;
mod agents;
mod arithmetic;
mod backend_names;
mod build;
mod change;
mod changed_files;
mod control;
mod describe;
mod ensembles;
mod handle;
mod host;
mod load;
mod load_permits;
mod load_record;
mod loaded;
mod models;
mod options;
mod overrides;
mod poll;
mod registered;
mod seats;
mod served;
mod spare_instances;
mod tuning;
mod warmup;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

pub use crate::backend::{LoadOverrides, UnloadDependents};
pub use describe::{
    EXTENSIONS, FailedStage, LoadFailure, ModelIndexEntry, ModelMetadata, ServerMetadata,
    TensorMetadata, VersionState,
};
pub use handle::ModelHandle;
pub use options::{ControlMode, CoreOptions, ShutdownReport};
pub use served::{ListedCheckpoint, ServedCheckpoint};
pub use tuning::{CoreActivity, TunableVersion};

use crate::backend::ModelBackend;
use crate::cache::{CacheUse, ResponseCache};
use crate::custom_metrics::{CustomMetrics, FamilySnapshot};
use crate::driver::LaneDriver;
use crate::error::ServingError;
use crate::repository::{self, ModelRepository};
use crate::request::{InferenceRequest, ResponseSink};
use crate::statistics::{ModelMetricsRow, ModelStatistics};
use crate::temporary_folder;
use crate::waiting_models::CallGraph;
use changed_files::ChangedModels;
use load_permits::LoadPermits;
use loaded::LoadedVersion;
use models::{ModelTable, parse_version};
use poll::RepositoryPoller;

/// Between two looks at whether all requests are answered during a shutdown.
const DRAIN_STEP: Duration = Duration::from_millis(2);

/// The serving core: see the crate's documentation.
pub struct Core {
    options: CoreOptions,
    backends: Vec<Arc<dyn ModelBackend>>,
    /// Host of models that call others.
    this: Weak<Core>,
    calls: Arc<CallGraph>,
    custom_metrics: Arc<CustomMetrics>,
    driver: LaneDriver,
    models: Arc<RwLock<ModelTable>>,
    turns: LoadPermits,
    /// Models whose files changed while they served.
    changed: ChangedModels,
    cache: Option<Arc<ResponseCache>>,
    poller: Mutex<Option<RepositoryPoller>>,
    failures: Mutex<Vec<LoadFailure>>,
    registered: RwLock<Vec<ModelRepository>>,
    accepting: AtomicBool,
    /// Whether the machine can take more work.
    admitting: AtomicBool,
    /// Whether the repositories could be read at the start.
    initialised: AtomicBool,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Core {
    /// Loads the models and starts to serve them. A model that cannot be loaded stands in the index as UNAVAILABLE
    /// with the reason, see also [`load_failures`](Self::load_failures).
    ///
    /// # Errors
    /// When the options cannot be used or, with `exit_on_error`, a repository cannot be read or a model failed. Without,
    /// a server whose repositories cannot be read is up and neither live nor ready.
    pub fn start(
        mut options: CoreOptions,
        backends: Vec<Arc<dyn ModelBackend>>,
    ) -> Result<Arc<Self>, ServingError> {
        temporary_folder::remove_leftovers();
        options.repositories = repository::distinct(options.repositories);
        let cache = options.response_cache_bytes.map(|bytes| Arc::new(ResponseCache::new(bytes)));
        let driver = LaneDriver::start(options.rate_limits.clone())?;
        let models = Arc::new(RwLock::new(ModelTable::new(options.naming)));
        let core = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            calls: Arc::default(),
            custom_metrics: Arc::default(),
            cache,
            options,
            backends,
            driver,
            models,
            turns: LoadPermits::default(),
            changed: ChangedModels::default(),
            poller: Mutex::new(None),
            failures: Mutex::default(),
            registered: RwLock::default(),
            accepting: AtomicBool::new(true),
            admitting: AtomicBool::new(true),
            initialised: AtomicBool::new(true),
        });
        if let Err(error) = core.load_at_start() {
            if core.options.exit_on_error || core.options.repositories.is_empty() {
                return Err(error);
            }
            tracing::error!("the server is up and serves nothing: {error}");
            core.initialised.store(false, Ordering::Release);
            return Ok(core);
        }
        let failures = core.load_failures();
        if core.options.exit_on_error && !failures.is_empty() {
            let names: Vec<String> = failures
                .iter()
                .map(|failure| format!("{}: {}", failure.model, failure.reason))
                .collect();
            return Err(ServingError::internal(format!(
                "failed to load all models: {}",
                names.join("; ")
            )));
        }
        RepositoryPoller::start(&core)?;
        Ok(core)
    }

    /// The options in use.
    #[must_use]
    pub fn options(&self) -> &CoreOptions {
        &self.options
    }

    /// Models that failed to load at the start.
    #[must_use]
    pub fn load_failures(&self) -> Vec<LoadFailure> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the server is up and its start went as it should, but for single models.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.accepting.load(Ordering::Acquire) && self.initialised.load(Ordering::Acquire)
    }

    /// Takes new requests, or none for now, such as while the machine is critically hot; those that were taken
    /// go on.
    pub fn admit(&self, admits: bool) {
        self.admitting.store(admits, Ordering::Release);
    }

    /// Refuses requests of clients while the server stops, or the machine can take no more work.
    fn check_accepts(&self) -> Result<(), ServingError> {
        if !self.is_live() {
            return Err(ServingError::unavailable("Server exiting"));
        }
        self.check_admission()
    }

    /// Refuses work that the machine cannot take now, such as while it is critically hot.
    ///
    /// # Errors
    /// UNAVAILABLE where it can take none.
    pub fn check_admission(&self) -> Result<(), ServingError> {
        match self.admitting.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(ServingError::unavailable(
                "the machine is critically hot: no request is taken until it has cooled down",
            )),
        }
    }

    /// Whether inference can be expected to work: with strict readiness, every model that should be loaded is. As in
    /// Triton, folders that could not be read as models count as none.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let strict = self.options.strict_readiness;
        let read = |failure: &LoadFailure| failure.stage == FailedStage::Reading;
        let all_serve = || self.load_failures().iter().all(read) && self.models().all_serve();
        self.is_live() && (!strict || all_serve())
    }

    /// Whether a version, or with an empty text the latest one, can be used; unknown models are not ready.
    ///
    /// # Errors
    /// When the text is no version.
    pub fn model_ready(&self, name: &str, version: &str) -> Result<bool, ServingError> {
        let version = parse_version(version)?;
        Ok(self.is_live() && self.models().find(name, version).is_ok())
    }

    /// Name, version and extensions of the server.
    #[must_use]
    pub fn metadata(&self) -> ServerMetadata {
        ServerMetadata {
            name: self.options.server_id.clone(),
            version: self.options.server_version.clone(),
            extensions: EXTENSIONS.iter().map(|&extension| extension.to_owned()).collect(),
        }
    }

    /// The statistics of all ready versions of all models, or of one model, or of one version.
    ///
    /// # Errors
    /// When the model or version is unknown or not ready.
    pub fn model_statistics(
        &self,
        name: Option<&str>,
        version: &str,
    ) -> Result<Vec<ModelStatistics>, ServingError> {
        let version = parse_version(version)?;
        let models = self.models();
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(models.all_ready().map(|loaded| loaded.statistics()).collect());
        };
        let meant = models.find(name, None).map(|loaded| loaded.id.clone()).ok();
        let versions: Vec<_> = meant.iter().flat_map(|id| models.ready_of(id)).collect();
        if versions.is_empty() {
            return Err(ServingError::invalid_arg(format!(
                "requested model '{name}' is not available"
            )));
        }
        let chosen: Vec<_> = versions
            .into_iter()
            .filter(|(number, _)| version.is_none_or(|version| version == *number))
            .map(|(_, loaded)| loaded.statistics())
            .collect();
        if chosen.is_empty() {
            let text = format!("requested model version is not available for model '{name}'");
            return Err(ServingError::invalid_arg(text));
        }
        Ok(chosen)
    }

    /// The models whose folders are in the repositories now, with the states of their versions, by namespace and name; with
    /// `ready_only` the versions that serve. As in Triton, a model made of a client's files alone is not among them.
    #[must_use]
    pub fn repository_index(&self, ready_only: bool) -> Vec<ModelIndexEntry> {
        let found =
            repository::scan(&self.repositories(), self.options.naming).unwrap_or_else(|error| {
                tracing::error!("the index leaves out what cannot be read: {error}");
                Vec::new()
            });
        let models = self.models();
        let lines = found.iter().flat_map(|model| models.index_of(model));
        lines.filter(|line| !ready_only || line.state == Some(VersionState::Ready)).collect()
    }

    /// Runs a request on the model and version that it names: [`resolve`](Self::resolve) and
    /// [`ModelHandle::infer`] in one, for callers that ask nothing else of the model.
    ///
    /// # Errors
    /// Fails as these two do; the sink is not called then.
    pub fn infer(&self, request: InferenceRequest, sink: ResponseSink) -> Result<(), ServingError> {
        self.check_accepts()?;
        let model = self.resolve(&request.model_name, &request.model_version)?;
        model.infer(request, sink)
    }

    /// Counters of every ready version.
    #[must_use]
    pub fn metrics_snapshot(&self) -> Vec<ModelMetricsRow> {
        let models = self.models();
        let row = |loaded: &Arc<LoadedVersion>| {
            let mut row = loaded.metrics();
            // Instances of an A/B test count in the statistics of their version; what waits is their own.
            let own = models.ab_test(&loaded.id).into_iter().flat_map(|live| live.own());
            let own = own.filter(|own| own.context.version == loaded.context.version);
            row.pending += own.map(|own| own.context.pending.load(Ordering::Relaxed)).sum::<u64>();
            row
        };
        models.all_ready().map(row).collect()
    }

    /// The families of metrics that models have made, and those about their workers.
    #[must_use]
    pub fn custom_metrics(&self) -> Vec<FamilySnapshot> {
        self.custom_metrics.snapshot()
    }

    /// Contents and counters of the response cache, where there is one.
    #[must_use]
    pub fn cache_use(&self) -> Option<CacheUse> {
        self.cache.as_ref().map(|cache| cache.usage())
    }

    /// Accepts no more requests, waits until all are answered or the time is over, and ends the instances.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        let start = Instant::now();
        self.accepting.store(false, Ordering::Release);
        self.write_models(ModelTable::close);
        // The models that ensembles are composed of serve until the ensembles are done.
        while start.elapsed() < timeout && self.models().ensembles_unanswered() > 0 {
            std::thread::sleep(DRAIN_STEP);
        }
        self.models().all_running().for_each(|version| version.begin_drain());
        drop(self.poller.lock().unwrap_or_else(PoisonError::into_inner).take());
        let unanswered = loop {
            let unanswered = self.write_models(ModelTable::unanswered);
            if unanswered == 0 || start.elapsed() >= timeout {
                break unanswered;
            }
            std::thread::sleep(DRAIN_STEP);
        };
        if unanswered == 0 {
            let versions: Vec<Arc<LoadedVersion>> = self.models().all_running().cloned().collect();
            for version in versions {
                version.remove();
            }
        }
        self.driver.stop();
        ShutdownReport { complete: unanswered == 0, unanswered, took: start.elapsed() }
    }

    fn models(&self) -> std::sync::RwLockReadGuard<'_, ModelTable> {
        self.models.read().unwrap_or_else(PoisonError::into_inner)
    }
}
