//! Checkpoints that serve, for front ends that ask them without a lane between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_llm::model::LanguageModel;

use super::Core;
use super::loaded::LoadedVersion;
use crate::backend::CheckpointHandle;
use crate::backend::llm::{CheckpointTraits, InUse};
use crate::error::ServingError;
use crate::payload::{ExecutionContext, now_ms};
use crate::statistics::{ComputeTimes, FailureReason, RequestOutcome, ResponseKind};

/// A version whose checkpoint front ends ask themselves.
#[derive(Clone, Debug)]
pub struct ServedCheckpoint {
    /// Its name, with the namespace before it where repositories are namespaces.
    pub name: String,
    /// Checkpoint that it is.
    pub checkpoint: CheckpointHandle,
    context: Arc<ExecutionContext>,
    in_use: Arc<InUse>,
}

impl ServedCheckpoint {
    pub(super) fn of(loaded: &LoadedVersion) -> Result<Option<Self>, ServingError> {
        let Some(resident) = &loaded.checkpoint else { return Ok(None) };
        let (checkpoint, in_use) = resident.ask()?;
        let context = Arc::clone(&loaded.context);
        let in_use = Arc::new(in_use);
        Ok(Some(Self { name: loaded.id.to_string(), checkpoint, context, in_use }))
    }

    /// A request of so many items begins. An unload waits for its end, and the statistics of the version count it.
    #[must_use]
    pub fn begin(&self, items: u64) -> OpenRequest {
        self.context.took();
        let context = Arc::clone(&self.context);
        let _in_use = Arc::clone(&self.in_use);
        let policy = context.config.model_transaction_policy.as_ref();
        let decoupled = policy.is_some_and(|policy| policy.decoupled);
        let items = items.max(1);
        let now = Instant::now();
        OpenRequest {
            context,
            items,
            decoupled,
            responses: 0,
            from: now,
            arrived: now,
            ended: false,
            _in_use,
        }
    }
}

/// A checkpoint as it is told of, in memory or not.
#[derive(Clone, Debug)]
pub struct ListedCheckpoint {
    /// Its name, with the namespace before it where repositories are namespaces.
    pub name: String,
    /// Checkpoint that it is.
    pub traits: CheckpointTraits,
    /// It, where it is in memory. It may leave that at any time.
    pub loaded: Option<CheckpointHandle>,
    /// Bytes that it takes there, where memory is limited.
    pub memory_bytes: Option<u64>,
}

impl ListedCheckpoint {
    pub(super) fn of(loaded: &LoadedVersion) -> Option<Self> {
        let resident = loaded.checkpoint.as_ref()?;
        Some(Self {
            name: loaded.id.to_string(),
            traits: resident.traits()?,
            loaded: resident.loaded(),
            memory_bytes: resident.is_limited().then(|| resident.memory_bytes()),
        })
    }
}

/// A request of a front end that has not ended. Dropping it says that the client has left.
#[derive(Debug)]
pub struct OpenRequest {
    context: Arc<ExecutionContext>,
    items: u64,
    /// Whether the statistics have the responses of the model by their index.
    decoupled: bool,
    /// Responses so far.
    responses: usize,
    /// When the last response left, or the request arrived.
    from: Instant,
    arrived: Instant,
    ended: bool,
    _in_use: Arc<InUse>,
}

impl OpenRequest {
    /// A response leaves: a piece of the answer or the whole.
    pub fn respond(&mut self) {
        self.count_response(ResponseKind::Success);
        self.responses += 1;
        self.from = Instant::now();
    }

    fn count_response(&self, kind: ResponseKind) {
        if self.decoupled {
            let infer = self.from.elapsed();
            self.context.statistics.response(self.responses, kind, infer, Duration::ZERO);
        }
    }

    /// It was answered, and waited so long before it ran.
    pub fn finish(mut self, queue: Duration) {
        self.end(queue, None);
    }

    /// It was answered with an error.
    pub fn fail(mut self, reason: FailureReason) {
        self.end(Duration::ZERO, Some(reason));
    }

    fn end(&mut self, queue: Duration, failure: Option<FailureReason>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        match failure {
            None => {}
            Some(FailureReason::Canceled) => self.count_response(ResponseKind::Cancel),
            Some(_) => self.count_response(ResponseKind::Fail),
        }
        let total = self.arrived.elapsed();
        let queue = queue.min(total);
        let outcome = RequestOutcome {
            filler: false,
            failure,
            batch_size: self.items,
            queue,
            total,
            goal: None,
        };
        let times = ComputeTimes { infer: total.saturating_sub(queue), ..ComputeTimes::default() };
        match failure {
            // What was refused has not run.
            Some(reason @ (FailureReason::Rejected | FailureReason::Other)) => {
                self.context.statistics.failure(reason, total);
            }
            _ => self.context.statistics.execution(times, &[outcome], now_ms()),
        }
        self.context.answered();
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.end(Duration::ZERO, Some(FailureReason::Canceled));
    }
}

impl Core {
    /// The checkpoints that serve, of each the latest version, by name.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<ListedCheckpoint> {
        let mut found = BTreeMap::new();
        // Versions come in their order.
        for listed in self.models().all_ready().filter_map(|loaded| ListedCheckpoint::of(loaded)) {
            found.insert(listed.name.clone(), listed);
        }
        found.into_values().collect()
    }

    /// The language models that serve and are in memory, of each the latest version, by name.
    #[must_use]
    pub fn language_models(&self) -> Vec<(String, Arc<LanguageModel>)> {
        let language = |listed: ListedCheckpoint| match listed.loaded {
            Some(CheckpointHandle::Language(model)) => Some((listed.name, model)),
            Some(CheckpointHandle::Encoder(_)) | None => None,
        };
        self.checkpoints().into_iter().filter_map(language).collect()
    }
}
