//! Schedulers: which waiting requests run next, together, and when.
//!
//! A scheduler is a state machine. It has no thread, no lock and no clock: the [driver](crate::driver) tells it the
//! time, and tests tell it any time they like. It knows of a request only what a [`Ticket`] says.
//!
//! A new policy is one file here and one arm in [`for_config`].

mod default;
mod dynamic;
mod queue;
mod release;

use std::fmt::Debug;

pub use default::DefaultScheduler;
pub use dynamic::{DynamicOptions, DynamicScheduler};
pub use queue::QueuePolicy;
pub use release::OrderedRelease;

use crate::config::ModelConfig;
use crate::config::inference::model_config::SchedulingChoice;

/// A time in nanoseconds since an arbitrary start.
pub type Nanos = u64;

/// What must be equal in requests that share a batch: the shapes of the inputs that have variable dimensions, and
/// which optional inputs are there. [`crate::validate`] makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchKey(pub Vec<i64>);

/// What a scheduler knows of a request.
#[derive(Clone, Debug, Default)]
pub struct Ticket {
    /// Number of the request, never used twice for one scheduler.
    pub id: u64,
    /// Items that it adds to a batch; at least 1.
    pub batch_size: u64,
    /// Priority that the request asks for; 0 for the default.
    pub priority: u64,
    /// Longest wait that the request asks for, in microseconds; 0 for none.
    pub timeout_us: u64,
    /// What must be equal in a batch.
    pub key: BatchKey,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Execute these requests as one batch, in this order; they have left the scheduler. Poll again.
    Dispatch(Vec<u64>),
    /// Refuse these requests, whose time is over; they have left the scheduler. Poll again.
    Expire(Vec<u64>),
    /// Nothing before this time, unless something happens.
    WaitUntil(Nanos),
    /// Nothing, unless something happens.
    Idle,
}

/// Why a request was not taken into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The queue holds as many requests as its policy allows.
    QueueFull,
}

/// A scheduling policy of one model version.
pub trait Scheduler: Send + Debug {
    /// Takes a request.
    ///
    /// # Errors
    /// When the policy refuses it at once.
    fn enqueue(&mut self, ticket: Ticket, now: Nanos) -> Result<(), Refusal>;

    /// Decides what to do, given the time and how many instances wait for work. Call it after every event, until it
    /// answers `WaitUntil` or `Idle`.
    fn poll(&mut self, now: Nanos, free_instances: usize) -> Decision;

    /// Removes a waiting request; `false` if it does not wait here.
    fn cancel(&mut self, id: u64) -> bool;

    /// How many requests wait.
    fn pending(&self) -> usize;
}

/// Whether answers leave in the order in which the requests came.
#[must_use]
pub fn preserves_ordering(config: &ModelConfig) -> bool {
    matches!(&config.scheduling_choice, Some(SchedulingChoice::DynamicBatching(batching)) if batching.preserve_ordering)
}

/// The scheduler that a configuration asks for. `hold_until` keeps the dynamic batcher still until so many requests
/// wait, for tests that need a full queue; 0 is normal.
#[must_use]
pub fn for_config(config: &ModelConfig, hold_until: usize) -> Box<dyn Scheduler> {
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => {
            let options = DynamicOptions::from_config(batching, config.max_batch_size);
            Box::new(DynamicScheduler::new(DynamicOptions { hold_until, ..options }))
        }
        Some(SchedulingChoice::SequenceBatching(_) | SchedulingChoice::EnsembleScheduling(_))
        | None => Box::new(DefaultScheduler::default()),
    }
}
