//! State that every front end shares: the core, the limits and the process.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use galatea_serving::Core;
use tokio::sync::watch;

use crate::access::AccessControl;
use crate::body_budget::BodyBudget;
use crate::browser::BrowserRules;
use crate::client_pace::CLIENT_STALL;
use crate::connection_count::ConnectionCount;
use crate::forward::HeaderForwarding;
use crate::in_flight::{InFlightCounter, InFlightEntry};
use crate::listen;
use crate::metrics::{self, GpuMeters, MemoryRefusals, MetricsConfig, MetricsSources};
use crate::overrides::OverrideRules;
use crate::restricted::EndpointRestrictions;
use crate::sagemaker::SageMaker;
use crate::shm::SharedMemory;
use crate::trace::RequestTracer;
use galatea::Engine;
use galatea::host::{HostMonitor, machine_memory_bytes};
use galatea::profile::Profiler;

/// Limits on what clients may send.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Longest JSON part of a request, and longest tensor in it, in bytes.
    pub max_input_bytes: usize,
    /// Time in which a client must send or take [`MIN_PACE_BYTES`](crate::client_pace::MIN_PACE_BYTES) over HTTP.
    pub stall: Duration,
}

impl Default for ClientLimits {
    /// Triton's 64 MiB, and a minute.
    fn default() -> Self {
        Self { max_input_bytes: 64 << 20, stall: CLIENT_STALL }
    }
}

/// Rules of a front end for requests and their headers.
#[derive(Debug, Clone, Default)]
pub struct FrontEndRules {
    /// Endpoints that need a header.
    pub restrictions: EndpointRestrictions,
    /// OpenAI's endpoints that need a header, at every front end that has them.
    pub openai: EndpointRestrictions,
    /// Headers that become parameters.
    pub forward: HeaderForwarding,
}

/// Place of the page of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MetricsPlace {
    /// A port, with TLS or without.
    Port { address: SocketAddr, tls: bool },
    /// A socket in the file system.
    Socket { path: String, tls: bool },
}

/// The server behind the front ends.
#[derive(Debug)]
pub struct ServerState {
    core: Arc<Core>,
    limits: ClientLimits,
    stop: watch::Sender<bool>,
    requests: Arc<InFlightCounter>,
    connections: Arc<InFlightCounter>,
    connections_open: Arc<ConnectionCount>,
    body_budget: Arc<BodyBudget>,
    /// Memory of answers that clients have not read yet.
    answer_budget: BodyBudget,
    host: Option<HostMonitor>,
    gpus: Option<GpuMeters>,
    metrics: MetricsConfig,
    http_rules: FrontEndRules,
    grpc_rules: FrontEndRules,
    browser_rules: BrowserRules,
    override_rules: OverrideRules,
    access: Option<Arc<AccessControl>>,
    tracer: RequestTracer,
    engine: Engine,
    shared_memory: SharedMemory,
    sagemaker: SageMaker,
    metrics_place: OnceLock<MetricsPlace>,
    /// Distinguishes this run of the program from others.
    instance: String,
}

impl ServerState {
    /// A server that runs models on the devices of an engine.
    #[must_use]
    pub fn new(core: Arc<Core>, engine: Engine, limits: ClientLimits) -> Self {
        Self {
            host: None,
            gpus: None,
            metrics: MetricsConfig::default(),
            http_rules: FrontEndRules::default(),
            grpc_rules: FrontEndRules::default(),
            browser_rules: BrowserRules::default(),
            override_rules: OverrideRules::default(),
            access: None,
            tracer: RequestTracer::default(),
            engine,
            shared_memory: SharedMemory::default(),
            sagemaker: SageMaker::default(),
            metrics_place: OnceLock::new(),
            instance: format!("{:016x}", RandomState::new().build_hasher().finish()),
            core,
            limits,
            stop: watch::Sender::new(false),
            requests: Arc::default(),
            connections: Arc::default(),
            connections_open: Arc::new(ConnectionCount::new(listen::descriptors())),
            body_budget: Arc::new(BodyBudget::of_machine(machine_memory_bytes())),
            answer_budget: BodyBudget::of_machine(machine_memory_bytes()),
        }
    }

    /// The same server with rules for its front ends.
    #[must_use]
    pub fn with_rules(self, http_rules: FrontEndRules, grpc_rules: FrontEndRules) -> Self {
        Self { http_rules, grpc_rules, ..self }
    }

    /// The same server with rules for the pages of browsers.
    #[must_use]
    pub fn with_browser_rules(self, browser_rules: BrowserRules) -> Self {
        Self { browser_rules, ..self }
    }

    /// The same server with rules for what loads bring along.
    #[must_use]
    pub fn with_override_rules(self, override_rules: OverrideRules) -> Self {
        Self { override_rules, ..self }
    }

    /// The same server, opened by keys if there are any.
    #[must_use]
    pub fn with_access(self, access: Option<Arc<AccessControl>>) -> Self {
        Self { access, ..self }
    }

    /// Returns the keys that open the server; none where it is open to everybody.
    #[must_use]
    pub(crate) fn access(&self) -> Option<&AccessControl> {
        self.access.as_deref()
    }

    /// Files and settings that loads of models may bring along.
    #[must_use]
    pub(crate) fn override_rules(&self) -> OverrideRules {
        self.override_rules
    }

    /// Returns the rules on browser pages that may speak to the server.
    #[must_use]
    pub(crate) fn browser_rules(&self) -> &BrowserRules {
        &self.browser_rules
    }

    /// The same server, in which clients may register shared memory or not.
    #[must_use]
    pub fn with_shared_memory(self, allowed: bool) -> Self {
        Self { shared_memory: SharedMemory::new(allowed), ..self }
    }

    /// Notes where the page of metrics is, once its front end is open.
    pub(crate) fn set_metrics_place(&self, place: MetricsPlace) {
        // A server opens it once.
        self.metrics_place.set(place).ok();
    }

    /// Name of this run of the program, by which its front ends are known to belong together.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// Place of the page of metrics; none where that front end is not open.
    pub(crate) fn metrics_place(&self) -> Option<&MetricsPlace> {
        self.metrics_place.get()
    }

    /// Shared memory that clients have registered.
    pub(crate) fn shared_memory(&self) -> &SharedMemory {
        &self.shared_memory
    }

    /// The same server with traces of requests.
    #[must_use]
    pub fn with_tracer(self, tracer: RequestTracer) -> Self {
        Self { tracer, ..self }
    }

    /// Returns the engine of the models' devices.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the profiler of the models.
    #[must_use]
    pub fn profiler(&self) -> &Arc<Profiler> {
        self.engine.profiler()
    }

    /// Traces of requests.
    #[must_use]
    pub fn tracer(&self) -> &RequestTracer {
        &self.tracer
    }

    /// The same server with a front end for SageMaker.
    #[must_use]
    pub fn with_sagemaker(self, sagemaker: SageMaker) -> Self {
        Self { sagemaker, ..self }
    }

    /// Settings of the front end for SageMaker.
    #[must_use]
    pub fn sagemaker(&self) -> &SageMaker {
        &self.sagemaker
    }

    /// Rules of the HTTP front end.
    #[must_use]
    pub fn http_rules(&self) -> &FrontEndRules {
        &self.http_rules
    }

    /// Rules of the gRPC front end.
    #[must_use]
    pub fn grpc_rules(&self) -> &FrontEndRules {
        &self.grpc_rules
    }

    /// The models.
    #[must_use]
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Limits on requests.
    #[must_use]
    pub fn limits(&self) -> ClientLimits {
        self.limits
    }

    /// The same server with these families of metrics, and with those of the machine, which is looked at no more often
    /// than every interval, if there is one.
    #[must_use]
    pub fn with_metrics(self, metrics: MetricsConfig, host: Option<Duration>) -> Self {
        Self { metrics, host: host.map(HostMonitor::new), ..self }
    }

    /// The same server, whose metrics tell how busy GPUs are, looked at no more often than every interval.
    #[must_use]
    pub fn with_gpu_metrics(self, interval: Option<Duration>) -> Self {
        let gpus = interval.map(|interval| GpuMeters::start(self.engine.gpus(), interval));
        Self { gpus, ..self }
    }

    /// Writes the page of metrics.
    #[must_use]
    pub fn metrics_page(&self) -> String {
        metrics::render(MetricsSources {
            core: &self.core,
            config: &self.metrics,
            engine: &self.engine,
            host: self.host.as_ref(),
            gpus: self.gpus.as_ref(),
            refusals: MemoryRefusals {
                requests: self.body_budget.refusals(),
                answers: self.answer_budget.refusals(),
            },
        })
    }

    /// Families of metrics.
    #[must_use]
    pub fn metrics(&self) -> &MetricsConfig {
        &self.metrics
    }

    /// Makes the front ends stop accepting.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Returns whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Ends when the server stops.
    pub async fn stopping(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as the borrow of self.
        stop.wait_for(|stop| *stop).await.ok();
    }

    /// Returns the count of open connections.
    pub(crate) fn connections_open(&self) -> &Arc<ConnectionCount> {
        &self.connections_open
    }

    /// Returns the memory that answers share which their clients have not read yet.
    #[must_use]
    pub(crate) fn answer_budget(&self) -> &BodyBudget {
        &self.answer_budget
    }

    /// Returns the memory for bodies that have not come as a whole.
    pub(crate) fn body_budget(&self) -> &Arc<BodyBudget> {
        &self.body_budget
    }

    /// Counts a request until the entry is dropped.
    pub fn count_request(&self) -> InFlightEntry {
        self.requests.enter()
    }

    /// Counts a connection that says goodbye to its peer when the server stops, until the entry is dropped.
    pub fn count_connection(&self) -> InFlightEntry {
        self.connections.enter()
    }

    /// Requests being answered.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.requests.open()
    }

    /// Waits until no request is being answered, or until the time is over; says which.
    pub async fn drained(&self, timeout: Duration) -> bool {
        tokio::time::timeout(timeout, self.requests.none()).await.is_ok()
    }

    /// Waits until the counted connections have ended, or until the time is over; says which.
    pub async fn parted(&self, timeout: Duration) -> bool {
        tokio::time::timeout(timeout, self.connections.none()).await.is_ok()
    }
}
