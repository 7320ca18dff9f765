//! A version that serves.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use galatea_runtime::IntervalKind;
use galatea_tensor::OrderedMap;

use super::arithmetic::VersionArithmetic;
use super::describe::{ModelMetadata, TensorMetadata};
use super::spare_instances::SpareInstances;
use crate::backend::llm::ResidentCheckpoint;
use crate::backend::{BackendModel, BackgroundTuner, KernelTuner};
use crate::cache::ResponseCache;
use crate::config::inference::ModelVersionPolicy;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::{self, ModelConfig, datatype};
use crate::driver::{DriverHandle, RefusedRequest};
use crate::ensemble::ServedEnsemble;
use crate::error::ServingError;
use crate::latency::LatencyRecorder;
use crate::payload::{ActiveRequest, ExecutionContext, now_ms};
use crate::repository::ModelId;
use crate::request::{
    CorrelationId, InferenceRequest, InferenceResponse, ResponseSink, SinkAnswer,
};
use crate::schedule::InstanceMoves;
use crate::statistics::{FailureReason, GoalCounts, ModelMetricsRow, ModelStatistics};
use crate::trace;
use crate::validate::{RequestChecker, RequestFault};

/// Executor of a version's requests.
#[derive(Debug)]
pub(super) enum VersionExecutor {
    /// Its own instances.
    Instances(DriverHandle),
    /// Other models.
    Ensemble(Arc<ServedEnsemble>),
}

/// The labels of each output that classifies.
pub(super) type OutputLabels = OrderedMap<String, Arc<Vec<String>>>;

/// A version that serves.
#[derive(Debug)]
pub(super) struct LoadedVersion {
    pub(super) id: ModelId,
    /// Tells this load from every other one of the server.
    pub(super) load: u64,
    pub(super) context: Arc<ExecutionContext>,
    pub(super) executor: VersionExecutor,
    /// For calls that lead back to this model, where it may call others.
    pub(super) spares: Option<Arc<SpareInstances>>,
    pub(super) checker: RequestChecker,
    pub(super) labels: Arc<OutputLabels>,
    pub(super) load_duration: Duration,
    /// The server's response cache, where the model uses it.
    pub(super) cache: Option<Arc<ResponseCache>>,
    /// The policy that chose this version, where that has changed since it was loaded.
    pub(super) policy: RwLock<Option<ModelVersionPolicy>>,
    /// Arithmetic that it computes, where that is counted.
    pub(super) arithmetic: Option<VersionArithmetic>,
    /// Tuner that finds the best devices of its runs.
    pub(super) tending: Option<BackgroundTuner>,
    /// Tuner of its kernels.
    pub(super) kernels: Option<Arc<dyn KernelTuner>>,
    /// Checkpoint behind it, for front ends that speak of prompts and tokens.
    pub(super) checkpoint: Option<Arc<ResidentCheckpoint>>,
    /// Whether it is out of service, or another load has taken its place.
    pub(super) left: AtomicBool,
    /// Maker of its instances; none for an ensemble.
    pub(super) model: Option<InstanceMaker>,
    /// Places of the instances that it has from the version before.
    pub(super) moves: InstanceMoves,
}

/// A model that makes instances, also for the version that follows where nothing but their number changes.
#[derive(Clone)]
pub(super) struct InstanceMaker(pub(super) Arc<dyn BackendModel>);

impl std::fmt::Debug for InstanceMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstanceMaker")
    }
}

/// Hands a request to a version, and if that leaves the service meanwhile, to its successor, which `find` gives.
///
/// # Errors
/// When there is no successor or the request is refused; the sink is not called then.
pub(super) fn enqueue(
    mut loaded: Arc<LoadedVersion>,
    find: impl Fn() -> Result<Arc<LoadedVersion>, ServingError>,
    mut request: InferenceRequest,
    mut sink: ResponseSink,
) -> Result<(), ServingError> {
    loop {
        request.model_version.clone_from(&loaded.context.version);
        let Err(refused) = loaded.enqueue(request, sink) else { return Ok(()) };
        let Some(again) = refused.again else { return Err(refused.error) };
        let next = find()?;
        if next.load == loaded.load {
            return Err(refused.error);
        }
        loaded = next;
        (request, sink) = *again;
    }
}

/// A number that no other load has.
pub(super) fn next_load() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl LoadedVersion {
    /// Takes it out of service: who has found it before looks for its successor.
    pub(super) fn leave_service(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Number of the version.
    pub(super) fn version_number(&self) -> i64 {
        self.context.version.parse().unwrap_or_default()
    }

    /// Whether it is out of service, or another load has taken its place.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// The completed configuration.
    pub(super) fn config(&self) -> Arc<ModelConfig> {
        let config = &self.context.config;
        match &*self.policy.read().unwrap_or_else(PoisonError::into_inner) {
            None => Arc::clone(config),
            changed => {
                let version_policy = changed.clone();
                Arc::new(ModelConfig { version_policy, ..(**config).clone() })
            }
        }
    }

    /// Takes the version policy of a newer configuration over, which concerns nothing else here.
    pub(super) fn adopt_policy(&self, newer: &ModelConfig) {
        let mut newer =
            ModelConfig { version_policy: newer.version_policy.clone(), ..ModelConfig::default() };
        config::normalise(&mut newer);
        let changed = newer.version_policy != self.context.config.version_policy;
        let policy = newer.version_policy.filter(|_| changed);
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// The loads that answers of this version come from: its own and, of an ensemble, those of the models that it is
    /// composed of now.
    pub(super) fn loads(&self, into: &mut Vec<u64>) {
        into.push(self.load);
        if let VersionExecutor::Ensemble(ensemble) = &self.executor {
            ensemble.loads(into);
        }
    }

    /// Says that a version is not in memory, which serves all the same.
    pub(super) fn out_of_memory(&self) -> Option<String> {
        let resident = self.checkpoint.as_ref()?;
        resident.loaded().is_none().then(|| "not in memory; the next request loads it".to_owned())
    }

    /// Checks a request and takes it.
    ///
    /// # Errors
    /// When it does not fit the model or the scheduler refuses it; the sink is not called then.
    pub(super) fn enqueue(
        &self,
        mut request: InferenceRequest,
        sink: ResponseSink,
    ) -> Result<(), RefusedRequest> {
        let has_inputs = request.prepared.items().is_none();
        let ticket = if has_inputs {
            match self.checker.check(&mut request) {
                Ok(ticket) => ticket,
                Err(RequestFault::Refused(error)) => return Err(error.into()),
                Err(RequestFault::BrokenStrings(error)) => {
                    ActiveRequest::new(request, 1, Arc::clone(&self.context), sink)
                        .fail(FailureReason::Backend, error);
                    return Ok(());
                }
            }
        } else {
            self.adapt_prepared(&mut request)?;
            self.checker.ticket(&request)?
        };
        let sink = match self.cache.as_ref().filter(|_| has_inputs) {
            None => sink,
            Some(cache) => match self.answer_from_cache(cache, &request, sink) {
                Some(sink) => sink,
                None => return Ok(()),
            },
        };
        if let Some(spares) = &self.spares
            && spares.wants(&request)?
        {
            spares.enqueue(request, ticket.batch_size, sink);
            return Ok(());
        }
        match &self.executor {
            VersionExecutor::Instances(handle) => handle.enqueue(request, ticket, sink),
            VersionExecutor::Ensemble(ensemble) => {
                ensemble.start(request, ticket.batch_size, sink);
                Ok(())
            }
        }
    }

    /// Gives a request with prepared work what the schedulers of this version look for.
    ///
    /// # Errors
    /// Refuses it where the model is no checkpoint, such as a successor that has only its name.
    fn adapt_prepared(&self, request: &mut InferenceRequest) -> Result<(), ServingError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if self.checkpoint.is_none() {
            let text = format!("model '{}' takes tensors, and no texts", self.context.name);
            return Err(ServingError::invalid_arg(text));
        }
        let choice = &self.context.config.scheduling_choice;
        if matches!(choice, Some(SchedulingChoice::SequenceBatching(_))) {
            // Each is a sequence of its own. Clients count theirs from the other end.
            let number = u64::MAX - NEXT.fetch_add(1, Ordering::Relaxed);
            request.correlation = CorrelationId::Uint(number);
            request.sequence_start = true;
            request.sequence_end = true;
        }
        Ok(())
    }

    /// Answers a request that the cache knows. One that it does not know keeps its sink, which now tells the cache.
    fn answer_from_cache(
        &self,
        cache: &Arc<ResponseCache>,
        request: &InferenceRequest,
        mut sink: ResponseSink,
    ) -> Option<ResponseSink> {
        let arrived = Instant::now();
        let mut loads = Vec::new();
        self.loads(&mut loads);
        let key = cache.key(&loads, request);
        let known = cache.get(key);
        let lookup = arrived.elapsed();
        if let Some(outputs) = known {
            let intervals = &self.context.intervals;
            let _recorded = intervals.begin(IntervalKind::Request, &self.context.name);
            let response = InferenceResponse {
                model_name: self.context.name.clone(),
                model_version: self.context.version.clone(),
                id: request.id.clone(),
                parameters: Vec::new(),
                outputs: outputs.to_vec(),
            };
            self.context.statistics.cache_hit(arrived.elapsed(), lookup, now_ms());
            if let Some(trace) = &request.trace {
                trace.begin(&self.context.name, &self.context.version, request);
                trace.respond(&response.outputs);
                trace.stamp(trace::REQUEST_END);
            }
            sink(SinkAnswer { result: Ok(Some(response)), is_final: true });
            return None;
        }
        let cache = Arc::clone(cache);
        let context = Arc::clone(&self.context);
        Some(Box::new(move |answer| {
            if let Ok(Some(response)) = &answer.result {
                let start = Instant::now();
                if let Err(error) = cache.insert(key, &response.outputs) {
                    tracing::warn!(model = %context.name, "{}", error.message);
                }
                context.statistics.cache_miss(lookup + start.elapsed());
            }
            sink(answer);
        }))
    }

    /// Goes on with the instances of the version before that are its own now, with what waits there and with sequences.
    /// Nobody has handed a request to this version before.
    pub(super) fn take_over(&self, before: &Self) {
        let (VersionExecutor::Instances(own), VersionExecutor::Instances(old)) =
            (&self.executor, &before.executor)
        else {
            return;
        };
        if self.moves.instances > 0 && !self.moves.places.is_empty() {
            let taken = self.moves.places.iter().enumerate();
            let taken = taken.filter_map(|(from, to)| to.map(|_| from));
            old.hand_over(&taken.collect::<Vec<_>>());
            own.take_over(old, self.moves.clone());
        }
    }

    /// Begins with what it has taken over, and waits for the end of instances that nothing needs any more.
    pub(super) fn resume(&self) {
        if let VersionExecutor::Instances(handle) = &self.executor {
            handle.resume();
        }
    }

    /// The version before goes on with the instances that this one was to have.
    pub(super) fn give_back(&self) {
        if let VersionExecutor::Instances(handle) = &self.executor {
            handle.hand_over(&self.moves.places.iter().copied().flatten().collect::<Vec<_>>());
        }
    }

    /// Nothing more will come: what waits for company goes now.
    pub(super) fn begin_drain(&self) {
        match &self.executor {
            VersionExecutor::Instances(handle) => handle.begin_drain(),
            VersionExecutor::Ensemble(_) => {}
        }
        if let Some(spares) = &self.spares {
            spares.drain();
        }
    }

    /// Waits until every request that was taken is answered, and ends the instances.
    pub(super) fn remove(&self) {
        self.begin_drain();
        match &self.executor {
            VersionExecutor::Instances(handle) => handle.remove(),
            VersionExecutor::Ensemble(ensemble) => ensemble.drain(),
        }
        if let Some(spares) = &self.spares {
            spares.clear();
        }
    }

    pub(super) fn statistics(&self) -> ModelStatistics {
        self.context.statistics.snapshot(&self.context.name, &self.context.version)
    }

    pub(super) fn metrics(&self) -> ModelMetricsRow {
        let statistics = self.statistics();
        let config = &self.context.config;
        let latencies = self.context.statistics.latencies();
        let goals = self.context.statistics.goals();
        let any = self.checker.has_goal() || goals != GoalCounts::default();
        ModelMetricsRow {
            goals: any.then_some(goals),
            model: statistics.name,
            namespace: self.id.namespace.clone(),
            version: statistics.version,
            tags: config
                .metric_tags
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            failures: self.context.statistics.failures(),
            inference_count: statistics.inference_count,
            execution_count: statistics.execution_count,
            stats: statistics.inference_stats,
            pending: self.context.pending.load(Ordering::Relaxed),
            load_duration: self.load_duration,
            response_cache: self.cache.is_some(),
            summaries: latencies.map(LatencyRecorder::summaries).unwrap_or_default(),
            first_response: latencies.and_then(LatencyRecorder::first_response),
            arithmetic: self
                .arithmetic
                .as_ref()
                .map(|found| found.read(statistics.inference_stats.compute_infer.ns)),
        }
    }
}

/// Describes a model of which these versions are ready.
pub(super) fn metadata(config: &ModelConfig, versions: Vec<String>) -> ModelMetadata {
    let batch = (config.max_batch_size > 0).then_some(-1);
    let tensor = |name: &str, data_type: i32, dims: &[i64], is_shape: bool| {
        let batch = batch.filter(|_| !is_shape);
        let shape = batch.into_iter().chain(dims.iter().copied()).collect();
        datatype(data_type).map(|datatype| TensorMetadata {
            name: name.to_owned(),
            datatype,
            shape,
        })
    };
    ModelMetadata {
        name: config.name.clone(),
        versions,
        platform: if config.platform.is_empty() {
            config.backend.clone()
        } else {
            config.platform.clone()
        },
        inputs: config
            .input
            .iter()
            .filter_map(|io| tensor(&io.name, io.data_type, &io.dims, io.is_shape_tensor))
            .collect(),
        outputs: config
            .output
            .iter()
            .filter_map(|io| tensor(&io.name, io.data_type, &io.dims, io.is_shape_tensor))
            .collect(),
    }
}
