//! Schedulers: which waiting requests run next, together, where and when.
//!
//! A scheduler is a state machine. It has no thread, no lock and no clock: the [driver](crate::driver) tells it the
//! time, and tests tell it any time they like. It knows of a request only what a [`ScheduleTicket`] says.
//!
//! A new policy is one file here and one arm in [`for_config`].

mod default;
mod direct;
mod dynamic;
mod oldest;
mod queue;
mod refusal;
mod release;
mod slots;

use std::fmt::Debug;

pub use default::DefaultScheduler;
pub use direct::DirectScheduler;
pub use dynamic::{DynamicOptions, DynamicScheduler};
pub use oldest::OldestScheduler;
pub use queue::QueuePolicy;
pub(crate) use refusal::stopping;
pub use refusal::{QueueExpiry, QueueRefusal};
pub use release::OrderedRelease;

use crate::config::ModelConfig;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_sequence_batching::{StrategyChoice, StrategyDirect};
use crate::request::CorrelationId;

/// A time in nanoseconds since an arbitrary start.
pub type Nanos = u64;

/// Properties that must be equal in requests that share a batch: the shapes of the inputs that have variable dimensions, the
/// values of shape tensors, and which optional inputs are there. [`crate::validate`] makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchKey(pub Vec<i64>);

/// Request as a scheduler knows it.
#[derive(Clone, Debug, Default)]
pub struct ScheduleTicket {
    /// Number of the request, never used twice for one scheduler.
    pub id: u64,
    /// Items that it adds to a batch; at least 1.
    pub batch_size: u64,
    /// Priority that the request asks for; 0 for the default.
    pub priority: u64,
    /// Longest wait that the request asks for, in microseconds; 0 for none.
    pub timeout_us: u64,
    /// How soon it is to be answered, from its arrival; none where that is not said.
    pub goal: Option<Nanos>,
    /// How long its goal lets it wait for company; none for any time.
    pub patience: Option<Nanos>,
    /// Properties that must be equal in a batch.
    pub key: BatchKey,
    /// Its place in a sequence; only policies over sequences look at it.
    pub sequence: SequenceMark,
}

/// Sequence fields of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceMark {
    /// Which sequence.
    pub correlation: CorrelationId,
    /// The request is the first of it.
    pub start: bool,
    /// The request is the last of it.
    pub end: bool,
}

/// Instructions for one item of a batch of sequences: the values of the control tensors, and whose state
/// belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceStep {
    /// Slot of the instance that the sequence has.
    pub slot: usize,
    /// Which sequence; none for an item that only fills a gap.
    pub correlation: CorrelationId,
    /// The sequence begins.
    pub start: bool,
    /// The sequence ends.
    pub end: bool,
    /// The item is a request; `false` for one that only fills a gap.
    pub ready: bool,
}

/// One place in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPlace {
    /// The request; `None` where the place only has to be filled, because a model over sequences knows each by its
    /// place.
    pub request: Option<u64>,
    /// The step of its sequence, in models over sequences.
    pub step: Option<SequenceStep>,
}

/// Requests that are to be executed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledBatch {
    /// Where; `None` for any free instance.
    pub instance: Option<usize>,
    /// Requests in the order of the rows.
    pub items: Vec<BatchPlace>,
}

impl ScheduledBatch {
    /// A batch of requests that any instance can run.
    #[must_use]
    pub fn of(ids: impl IntoIterator<Item = u64>) -> Self {
        let item = |id| BatchPlace { request: Some(id), step: None };
        Self { instance: None, items: ids.into_iter().map(item).collect() }
    }
}

/// Work before a request that comes now, as far as a policy knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkAhead {
    /// Batches before the one that the request will be in.
    pub batches: usize,
    /// Items of each.
    pub size: u64,
}

/// Next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleDecision {
    /// Execute this; its requests have left the queue. Poll again.
    Dispatch(ScheduledBatch),
    /// Refuse these requests, whose time is over; they have left the scheduler. Poll again.
    Expire(Vec<u64>, QueueExpiry),
    /// Nothing before this time, unless something happens.
    WaitUntil(Nanos),
    /// Nothing, unless something happens.
    Idle,
}

/// Whether an instance may have its next batch while it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelineDepth {
    /// No: what happens until then may change the batch.
    Never,
    /// Where executions are so short that the pause between two counts for more than the requests that might still join
    /// the batch. Nothing else can change it.
    WhereShort,
    /// Yes: nothing changes the batch any more.
    Always,
}

/// Places of a scheduler's instances when it goes on over others.
#[derive(Clone, Debug, Default)]
pub struct InstanceMoves {
    /// New place of each instance; none where it has gone.
    pub places: Vec<Option<usize>>,
    /// Instances that there are now.
    pub instances: usize,
    /// Number of them that take new work. Those behind them only end the sequences that they have.
    pub seated: usize,
}

impl InstanceMoves {
    /// Returns the new place of an instance.
    #[must_use]
    pub fn to(&self, from: usize) -> Option<usize> {
        self.places.get(from).copied().flatten()
    }
}

/// A scheduling policy of one model version.
pub trait RequestScheduler: Send + Debug {
    /// Takes a request.
    ///
    /// # Errors
    /// When the policy refuses it at once.
    fn enqueue(&mut self, ticket: ScheduleTicket, now: Nanos) -> Result<(), QueueRefusal>;

    /// Decides what to do, given the time and which instances wait for work. Call it after every event, until it
    /// answers `WaitUntil` or `Idle`.
    fn poll(&mut self, now: Nanos, free: &[bool]) -> ScheduleDecision;

    /// A dispatched request has had its last answer.
    fn released(&mut self, _id: u64, _now: Nanos) {}

    /// A dispatched request has to run once more; `false` if the policy cannot do that, and then the request is no
    /// longer its concern.
    fn reschedule(&mut self, _id: u64, _now: Nanos) -> bool {
        false
    }

    /// Whether the policy must hear of every [`released`](Self::released).
    fn follows_releases(&self) -> bool {
        false
    }

    /// Whether the only instance may be given its next batch before it has ended the last one.
    fn early(&self) -> PipelineDepth {
        PipelineDepth::Never
    }

    /// Removes a waiting request and all that cannot run without it; gives what was removed.
    fn cancel(&mut self, id: u64, now: Nanos) -> Vec<u64>;

    /// Nothing more will come: what waits for company goes now, and sequences whose requests have all come are over.
    fn drain(&mut self, _now: Nanos) {}

    /// Goes on over other instances; only policies over sequences know theirs.
    fn reseat(&mut self, _moves: &InstanceMoves, _now: Nanos) {}

    /// Whether an instance has sequences that only it can go on with.
    fn holds(&self, _instance: usize) -> bool {
        false
    }

    /// How many requests wait.
    fn pending(&self) -> usize;

    /// Returns the work before such a request, if it came now; policies that cannot tell know of nothing.
    fn ahead(&self, _ticket: &ScheduleTicket) -> WorkAhead {
        WorkAhead::default()
    }
}

/// Whether answers leave in the order in which the requests were handed to the batcher.
#[must_use]
pub fn preserves_ordering(config: &ModelConfig) -> bool {
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => batching.preserve_ordering,
        Some(SchedulingChoice::SequenceBatching(sequences)) => {
            matches!(&sequences.strategy_choice, Some(StrategyChoice::Oldest(oldest)) if oldest.preserve_ordering)
        }
        Some(SchedulingChoice::EnsembleScheduling(_)) | None => false,
    }
}

/// Keeps a batcher still until so many requests wait, once, for tests that need a full queue; 0 is normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldUntil {
    /// Requests that must wait.
    pub requests: usize,
    /// Requests that must wait for a slot, beyond those that have one.
    pub backlog: usize,
}

/// The scheduler that a configuration asks for, over so many instances.
#[must_use]
pub fn for_config(
    config: &ModelConfig,
    instances: usize,
    hold: HoldUntil,
) -> Box<dyn RequestScheduler> {
    let size = config.max_batch_size;
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => {
            let options = DynamicOptions::from_config(batching, size);
            Box::new(DynamicScheduler::new(DynamicOptions { hold_until: hold.requests, ..options }))
        }
        Some(SchedulingChoice::SequenceBatching(sequences)) => match &sequences.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => {
                Box::new(OldestScheduler::new(sequences, oldest, size, instances, hold))
            }
            Some(StrategyChoice::Direct(direct)) => {
                Box::new(DirectScheduler::new(sequences, direct, size, instances, hold))
            }
            None => {
                let direct = StrategyDirect::default();
                Box::new(DirectScheduler::new(sequences, &direct, size, instances, hold))
            }
        },
        Some(SchedulingChoice::EnsembleScheduling(_)) | None => {
            Box::new(DefaultScheduler::default())
        }
    }
}

fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod simulation;
