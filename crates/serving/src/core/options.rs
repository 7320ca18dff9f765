//! Settings of the core: Triton's flags without the wire.

use std::path::PathBuf;
use std::time::Duration;

use galatea_runtime::IntervalSource;
use galatea_tensor::OrderedMap;

use crate::config::MetalConfig;
use crate::latency::LatencyOptions;
use crate::rate_limiter::ResourceLimit;
use crate::repository::NameMeaning;

/// Which models are loaded, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ControlMode {
    /// All models of the repositories, at the start.
    #[default]
    None,
    /// All models of the repositories, and what changes in them later.
    Poll {
        /// Between two looks at the repositories.
        interval: Duration,
    },
    /// The named models at the start; `*` for all.
    Explicit {
        /// Names.
        load: Vec<String>,
    },
}

/// Settings of the core.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// Model repositories, at least one.
    pub repositories: Vec<PathBuf>,
    /// Whether each repository is a namespace of its own.
    pub naming: NameMeaning,
    /// Which models are loaded.
    pub control_mode: ControlMode,
    /// Whether the server is ready only when all models that should be loaded are.
    pub strict_readiness: bool,
    /// Whether a model that fails to load at the start makes [`Core::start`](super::Core::start) fail.
    pub exit_on_error: bool,
    /// Whether configurations are completed from the models.
    pub auto_complete: bool,
    /// Models loaded at the same time.
    pub model_load_threads: usize,
    /// Further attempts after a failed load.
    pub model_load_retries: usize,
    /// Name of a configuration file in a model's `configs` folder that is preferred to `config.pbtxt`, without
    /// extension.
    pub model_config_name: Option<String>,
    /// Settings by backend name; those under the empty name are for all.
    pub backend_config: OrderedMap<String, OrderedMap<String, String>>,
    /// Requests to the devices of the machine for all models; a model's own fields win.
    pub metal_config: MetalConfig,
    /// Number of GPUs that instances may be placed on.
    pub gpus: u32,
    /// Name of the server.
    pub server_id: String,
    /// Version that the server reports.
    pub server_version: String,
    /// Distributions of durations that are kept for the metrics.
    pub latencies: LatencyOptions,
    /// Resources that executions share; `None` where nothing limits executions.
    pub rate_limits: Option<Vec<ResourceLimit>>,
    /// Recorder of requests and batches as they begin and end, where the system has one.
    pub intervals: IntervalSource,
    /// Bytes of the response cache; `None` for no cache.
    pub response_cache_bytes: Option<usize>,
    /// Holds dynamic batchers back until so many requests wait, once; for tests.
    pub delay_scheduler: usize,
    /// Holds sequence batchers back until so many requests wait for a slot, once; for tests.
    pub backlog_delay_scheduler: usize,
}

impl Default for CoreOptions {
    fn default() -> Self {
        Self {
            repositories: Vec::new(),
            naming: NameMeaning::Unique,
            control_mode: ControlMode::None,
            strict_readiness: true,
            exit_on_error: true,
            auto_complete: true,
            model_load_threads: 4,
            model_load_retries: 0,
            model_config_name: None,
            backend_config: OrderedMap::new(),
            metal_config: MetalConfig::default(),
            gpus: 0,
            server_id: "triton".to_owned(),
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            latencies: LatencyOptions::default(),
            rate_limits: None,
            intervals: IntervalSource::default(),
            response_cache_bytes: None,
            delay_scheduler: 0,
            backlog_delay_scheduler: 0,
        }
    }
}

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Whether every accepted request was answered by its model.
    pub complete: bool,
    /// Requests that were still without an answer when the time was over.
    pub unanswered: usize,
    /// Time taken.
    pub took: Duration,
}
