//! Supervisor of an instance's workers: one that ends is followed by the next at once, before anybody asks for it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use galatea_runtime::worker::{
    RestartCounter, RestartPolicy, SupervisedProcess, SupervisorSignal, WaitingWorkerKind,
    WorkerKind, WorkerSupervisor,
};

use super::WorkerRecipe;
use super::worker::StartedWorker;
use super::worker_process::WorkerProcess;
use crate::backend::ShutdownSignal;
use crate::custom_metrics::{CustomMetric, MetricKind, MetricLabels};
use crate::error::ServingError;

/// A worker that did not come to an execution is followed by the next after so long, and twice as long each time.
const RESTARTS: RestartPolicy = RestartPolicy {
    window: None,
    free_ends: 0,
    first_rest: Duration::from_millis(100),
    max_rest: Duration::from_secs(5),
    max_ends: None,
};

/// Starts the workers of an instance.
pub(super) type InstanceSupervisor = WorkerSupervisor<InstanceWorkers>;

/// The workers of an instance.
#[derive(Debug)]
pub(super) struct InstanceWorkers {
    made: Arc<WorkerRecipe>,
    args: serde_json::Value,
    instance: String,
}

impl InstanceWorkers {
    pub(super) fn new(made: &Arc<WorkerRecipe>, instance: &str, args: serde_json::Value) -> Self {
        Self { made: Arc::clone(made), args, instance: instance.to_owned() }
    }
}

/// The metric that counts the restarts of a model's workers.
fn restarts(made: &WorkerRecipe) -> Result<Arc<CustomMetric>, ServingError> {
    let files = &made.files;
    let help = "Workers of models in Python that were started after another one ended";
    let metrics = files.host.metrics();
    let family = metrics.own_family("python_worker_restarts_total", help, MetricKind::Counter)?;
    let labels = [("model", files.name.clone()), ("version", files.version.to_string())];
    let labels = labels.map(|(name, value)| (name.to_owned(), value));
    family.metric(MetricLabels::from(labels), None)
}

impl WorkerKind for InstanceWorkers {
    type Process = WorkerProcess;
    type Worker = StartedWorker;
    type Error = ServingError;

    fn policy(&self) -> RestartPolicy {
        RESTARTS
    }

    fn start(&self, begun: &dyn Fn(&Arc<WorkerProcess>)) -> Result<StartedWorker, ServingError> {
        self.made.start().instance(&self.args, begun)
    }

    fn restart_counter(&self) -> RestartCounter {
        let made = Arc::clone(&self.made);
        let mut metric = None;
        Box::new(move || {
            if metric.is_none() {
                metric = restarts(&made).inspect_err(|error| tracing::warn!("{error}")).ok();
            }
            if let Some(Err(error)) = metric.as_ref().map(|metric| metric.increment(1.0)) {
                tracing::warn!("{error}");
            }
        })
    }
}

impl WaitingWorkerKind for InstanceWorkers {
    fn process(worker: &StartedWorker) -> &Arc<WorkerProcess> {
        &worker.process
    }

    fn unhealthy(&self, why: &str) -> ServingError {
        let instance = &self.instance;
        ServingError::internal(format!(
            "Failed to process the request(s) for model '{instance}', message: Stub process '{instance}' is not \
             healthy. It does not start: {why}"
        ))
    }

    fn over(&self) -> ServingError {
        ServingError::unavailable(format!("'{}' is being unloaded", self.instance))
    }

    fn unsupervised(&self, error: &io::Error) -> ServingError {
        ServingError::internal(format!("no worker of '{}' can be kept: {error}", self.instance))
    }

    fn patience(&self) -> Duration {
        self.made.settings.timeout
    }

    fn log_failure(&self, error: &ServingError, rest: Option<Duration>) {
        match rest {
            Some(rest) => {
                tracing::error!(instance = %self.instance, "{error}; again in {rest:?}");
            }
            None => tracing::error!(instance = %self.instance, "{error}"),
        }
    }
}

impl SupervisedProcess for WorkerProcess {
    fn wait(&self) {
        Self::wait(self);
    }

    fn kill(&self) {
        Self::kill(self);
    }

    fn stop(&self) {
        Self::stop(self);
    }
}

impl ShutdownSignal for SupervisorSignal<InstanceWorkers> {
    fn drain(&self) {
        Self::drain(self);
    }

    fn close(&self) {
        Self::close(self);
    }
}
