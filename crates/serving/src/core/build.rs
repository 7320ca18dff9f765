//! From a model folder whose configuration was read to a version that serves.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use galatea_tensor::OrderedMap;

use super::Core;
use super::arithmetic::VersionArithmetic;
use super::backend_names::unknown_backend;
use super::ensembles::EnsembleSteps;
use super::load_record::PolledModel;
use super::loaded::{InstanceMaker, LoadedVersion, OutputLabels, VersionExecutor, next_load};
use super::seats::{SeatsWanted, TakenSeats, placements};
use super::spare_instances::SpareInstances;
use crate::backend::{BackendModel, HostLink, ModelBackend, ModelFiles, PlacementKind};
use crate::cache::ResponseCache;
use crate::config::inference::ModelTransactionPolicy;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::{self, IdleField, InstanceDefaults, MetalConfig, ModelConfig, ServerAbilities};
use crate::ensemble::{EnsemblePlan, ServedEnsemble};
use crate::error::{ErrorCode, ServingError};
use crate::latency::LatencyRecorder;
use crate::latency_target::LatencyTargets;
use crate::payload::{ContextObservers, ExecutionContext};
use crate::repository::{self, ModelId};
use crate::schedule::{self, InstanceMoves};
use crate::sequence::SequencePlan;
use crate::statistics::StatisticsRecorder;
use crate::validate::RequestChecker;

/// A loaded model and the options by which its configuration is completed.
struct ConfigCompletion<'a> {
    backend: &'a dyn ModelBackend,
    model: &'a dyn BackendModel,
    metal: &'a MetalConfig,
    default_max_batch_size: i32,
    /// Whether the groups of instances are the configuration's, since the model served before.
    keeps_groups: bool,
}

impl Core {
    fn backend(&self, config: &ModelConfig) -> Result<&Arc<dyn ModelBackend>, ServingError> {
        let name = &config.backend;
        let platform = &config.platform;
        let named = || self.backends.iter().filter(|backend| backend.name() == name);
        let found = match name.is_empty() {
            true => self.backends.iter().find(|backend| backend.platform() == platform),
            // A name may stand for several, which their platforms tell apart.
            false => named().find(|one| one.platform() == platform).or_else(|| named().next()),
        };
        let Some(backend) = found else {
            return Err(ServingError::invalid_arg(match name.is_empty() {
                true => format!("unexpected platform type '{platform}' for {}", config.name),
                false => unknown_backend(name, &self.backends),
            }));
        };
        if !platform.is_empty() && !backend.platform().is_empty() && platform != backend.platform()
        {
            return Err(ServingError::invalid_arg(format!(
                "unexpected 'platform' and 'backend' pair, got:{platform}, {name}"
            )));
        }
        Ok(backend)
    }

    /// Whether loading a model runs a program of it, which may write to the model's folder.
    pub(super) fn runs_programs(&self, config: &ModelConfig) -> bool {
        self.backend(config).is_ok_and(|backend| backend.runs_programs())
    }

    fn settings(&self, backend: &str) -> OrderedMap<String, String> {
        let of = |name: &str| self.options.backend_config.get(name).cloned().unwrap_or_default();
        let mut settings = of("");
        settings.extend(of(backend));
        settings
    }

    /// Arguments of a backend that loads a version.
    fn files(
        &self,
        polled: &PolledModel,
        version: i64,
        backend: &dyn ModelBackend,
    ) -> Result<ModelFiles, ServingError> {
        let config = &polled.config;
        let metal = MetalConfig::of_model(config, &polled.dir, &self.options.metal_config)?;
        if !backend.takes_metal_config() {
            metal.check_foreign(&config.name, backend.name())?;
        }
        Ok(ModelFiles {
            name: config.name.clone(),
            version,
            model_dir: polled.dir.clone(),
            version_dir: polled.dir.join(version.to_string()),
            config: Arc::new(config.clone()),
            settings: self.settings(backend.name()),
            metal: Arc::new(metal),
            auto_complete: self.options.auto_complete,
            host: HostLink::new(self.this.clone(), Arc::clone(&self.custom_metrics)),
        })
    }

    pub(super) fn build_version(
        &self,
        polled: &PolledModel,
        version: i64,
    ) -> Result<LoadedVersion, ServingError> {
        let start = Instant::now();
        if matches!(polled.config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_)))
        {
            return self.build_ensemble(polled, version);
        }
        let mut config = polled.config.clone();
        let backend = self.backend(&config)?;
        if backend.default_model_filename().is_empty() {
            // Without a file of a model nothing will complete what the configuration says of the tensors.
            config::validate_tensors(&config)?;
        }
        let files = self.files(polled, version, backend.as_ref())?;
        let metal = &core_fields(backend.as_ref(), &files);
        let default_max_batch_size = metal.completed_batch(max_batch_size(&files.settings)?);
        let before = polled.before.get(&version);
        let reused = before.and_then(|before| before.model.as_ref()).map(|maker| &maker.0);
        let reused = reused.filter(|model| model.seats_groups(&config.instance_group));
        let model =
            reused.map_or_else(|| backend.load(&files).map(Arc::from), |m| Ok(Arc::clone(m)))?;
        let completion = ConfigCompletion {
            backend: backend.as_ref(),
            model: model.as_ref(),
            metal,
            default_max_batch_size,
            keeps_groups: reused.is_some(),
        };
        self.complete(&mut config, &completion)?;
        let sequences = SequencePlan::from_config(&config, &polled.dir)?;
        let labels = self.labels_of(polled, &config, model.labels())?;
        let goals = LatencyTargets::of_model(&config, &files.metal)?;
        let config = Arc::new(config);
        let wanted = SeatsWanted {
            dir: &polled.dir,
            config: &config,
            sequences: sequences.as_ref(),
            gpus: self.options.gpus,
        };
        let before = before.filter(|_| reused.is_some());
        let TakenSeats { seats, moves } = wanted.seats(model.as_ref(), before.map(Arc::as_ref))?;
        let statistics = polled.counters.get(&version).cloned().unwrap_or_default();
        let context = self.context(&config, version, statistics);
        let hold = schedule::HoldUntil {
            requests: self.options.delay_scheduler,
            backlog: self.options.backlog_delay_scheduler,
        };
        let scheduler = schedule::for_config(&config, moves.seated, hold);
        let ordered = schedule::preserves_ordering(&config);
        let handle =
            self.driver.add(&context, scheduler, goals.admission, ordered, sequences, seats)?;
        let executor = VersionExecutor::Instances(handle);
        let cache = self.cache_of(&context.config);
        let spent = context.statistics.snapshot(&context.name, &context.version).inference_stats;
        let counter = model.operations();
        let arithmetic = counter.map(|all| VersionArithmetic::new(all, spent.compute_infer.ns));
        let load_duration = start.elapsed();
        let checkpoint = model.checkpoint();
        let tending = model.background_tuner();
        let kernels = model.kernel_tuner(&context.config);
        let checker = RequestChecker::new(&config).with_goals(goals);
        let checker = checker.leaving_missing(model.sees_missing_inputs());
        let maker = Some(InstanceMaker(Arc::clone(&model)));
        let spares = self.spares(model, &context);
        Ok(LoadedVersion {
            id: polled.id.clone(),
            load: next_load(),
            context,
            executor,
            spares,
            checker,
            labels: Arc::new(labels),
            load_duration,
            cache,
            policy: RwLock::default(),
            arithmetic,
            checkpoint,
            tending,
            kernels,
            left: AtomicBool::new(false),
            model: maker,
            moves,
        })
    }

    /// State that instances and requests of a version share, with its statistics.
    fn context(
        &self,
        config: &Arc<ModelConfig>,
        version: i64,
        statistics: Arc<StatisticsRecorder>,
    ) -> Arc<ExecutionContext> {
        let intervals = self.options.intervals.clone();
        let observers = ContextObservers { statistics, intervals };
        let context =
            ExecutionContext::observed(&config.name, version, Arc::clone(config), observers);
        context.statistics.keep(LatencyRecorder::new(&self.options.latencies, config));
        context
    }

    /// Completes what a configuration leaves to its model, and checks it.
    fn complete(
        &self,
        config: &mut ModelConfig,
        completion: &ConfigCompletion<'_>,
    ) -> Result<(), ServingError> {
        let ConfigCompletion { backend, model, metal, .. } = completion;
        if let Some(completed) = model.completed_config() {
            let groups = std::mem::take(&mut config.instance_group);
            config.clone_from(completed);
            if completion.keeps_groups {
                config.instance_group = groups;
            }
            config::validate(config)?;
        }
        if let Some(io) = model.io() {
            let batch_size = completion.default_max_batch_size;
            config::complete(config, io, self.options.auto_complete, batch_size)?;
        }
        if self.options.auto_complete && model.answers_freely() {
            decouple(config);
        }
        metal.prefer_batch(config)?;
        config::normalise(config);
        config::validate_tensors(config)?;
        let defaults = InstanceDefaults {
            gpus: self.options.gpus,
            cpu_count: backend.default_instance_count(PlacementKind::Cpu),
            gpu_count: backend.default_instance_count(PlacementKind::Gpu(0)),
        };
        config::normalise_instances(config, defaults);
        config::validate_instances(config, self.options.gpus)?;
        let server = ServerAbilities {
            response_cache: self.cache.is_some(),
            rate_limits: self.options.rate_limits.is_some(),
            histograms: self.options.latencies.histograms,
        };
        let idle = config::idle_fields(config).into_iter().chain(config::idle_here(config, server));
        for IdleField { field, reason } in idle {
            tracing::info!(model = %config.name, field, "this field has no effect here: {reason}");
        }
        Ok(())
    }

    /// Maker of spare instances of a model that may call others.
    fn spares(
        &self,
        model: Arc<dyn BackendModel>,
        context: &Arc<ExecutionContext>,
    ) -> Option<Arc<SpareInstances>> {
        let config = &context.config;
        let placements = placements(config, self.options.gpus);
        let turns = placements.len();
        let (placement, _) = placements.into_iter().next().filter(|_| model.calls_others())?;
        let sequences =
            matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
        Some(SpareInstances::new(model, &self.calls, placement, context, turns, sequences))
    }

    /// The response cache for a model whose configuration asks for it.
    fn cache_of(&self, config: &ModelConfig) -> Option<Arc<ResponseCache>> {
        let wanted = config.response_cache.as_ref().is_some_and(|cache| cache.enable);
        let decoupled =
            config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled);
        self.cache.clone().filter(|_| wanted && !decoupled)
    }

    /// Builds like [`build_version`](Self::build_version) an ensemble, whose models serve already.
    fn build_ensemble(
        &self,
        polled: &PolledModel,
        version: i64,
    ) -> Result<LoadedVersion, ServingError> {
        let start = Instant::now();
        let mut config = polled.config.clone();
        let metal = MetalConfig::of_model(&config, &polled.dir, &MetalConfig::default())?;
        metal.check_foreign(&config.name, "ensemble")?;
        metal.refuse_batch(&config.name)?;
        LatencyTargets::of_model(&config, &metal)?;
        config::normalise(&mut config);
        config::validate_tensors(&config)?;
        self.name_steps(&polled.id, &mut config);
        let step = |id: &ModelId, version: i64| {
            let models = self.models();
            models.find_in(id, (version > 0).then_some(version)).cloned().ok()
        };
        let plan = EnsemblePlan::new(&config, &|id, version| self.step_config(id, version))?;
        config.model_transaction_policy =
            Some(ModelTransactionPolicy { decoupled: plan.is_decoupled() });
        config::validate(&config)?;
        let mut labels = self.labels_of(polled, &config, OrderedMap::new())?;
        for output in &config.output {
            let inherited = plan.producer(&output.name).and_then(|producer| {
                let step = step(producer.model, producer.version)?;
                step.labels.get(producer.output).cloned()
            });
            if let Some(inherited) = inherited {
                labels.entry(output.name.clone()).or_insert(inherited);
            }
        }
        let config = Arc::new(config);
        let context = self.context(&config, version, Default::default());
        let server = Arc::new(EnsembleSteps(Arc::downgrade(&self.models)));
        let executor = VersionExecutor::Ensemble(ServedEnsemble::new(plan, server, &context));
        let checker = RequestChecker::new(&config);
        let cache = self.cache_of(&context.config);
        let load_duration = start.elapsed();
        Ok(LoadedVersion {
            id: polled.id.clone(),
            load: next_load(),
            context,
            executor,
            spares: None,
            checker,
            labels: Arc::new(labels),
            load_duration,
            cache,
            policy: RwLock::default(),
            arithmetic: None,
            tending: None,
            kernels: None,
            checkpoint: None,
            left: AtomicBool::new(false),
            model: None,
            moves: InstanceMoves::default(),
        })
    }

    /// The labels of outputs that classify: those in files that the configuration names, else the model's own.
    fn labels_of(
        &self,
        polled: &PolledModel,
        config: &ModelConfig,
        own: OrderedMap<String, Vec<String>>,
    ) -> Result<OutputLabels, ServingError> {
        let mut labels: OutputLabels =
            own.into_iter().map(|(output, labels)| (output, Arc::new(labels))).collect();
        for output in config.output.iter().filter(|output| !output.label_filename.is_empty()) {
            let path = repository::file_in(&polled.dir, &output.label_filename)?;
            labels.insert(output.name.clone(), Arc::new(repository::read_labels(&path)?));
        }
        Ok(labels)
    }
}

/// Lets a request have any number of answers, unless the configuration says how many.
fn decouple(config: &mut ModelConfig) {
    let freely = ModelTransactionPolicy { decoupled: true };
    config.model_transaction_policy.get_or_insert(freely);
}

fn max_batch_size(settings: &OrderedMap<String, String>) -> Result<i32, ServingError> {
    let Some(text) = settings.get("default-max-batch-size") else {
        return Ok(config::DEFAULT_MAX_BATCH_SIZE);
    };
    text.parse().map_err(|_| {
        ServingError::new(
            ErrorCode::InvalidArg,
            format!("'default-max-batch-size' must be an integer, found '{text}'"),
        )
    })
}

/// Settings of `metal_config` for the core: a backend whose requests it does not put together takes `batch_size` itself.
fn core_fields(backend: &dyn ModelBackend, files: &ModelFiles) -> MetalConfig {
    match backend.has_batches() {
        true => MetalConfig::clone(&files.metal),
        false => files.metal.without("batch_size"),
    }
}
