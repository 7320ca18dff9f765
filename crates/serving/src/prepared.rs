//! Work that a front end has prepared itself, as a request in the place of input tensors.
//!
//! The request takes the way of all others, through the queue and past the rate limiter, and is counted and traced
//! like them. Only the model's instance sees the difference.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Work of a kind that the backend knows which it is for.
pub(crate) type PreparedJob = Box<dyn Any + Send>;

/// Prepared work of a request. Without any, the request has inputs.
#[derive(Clone, Default)]
pub struct PreparedWork(Option<WorkSlot>);

#[derive(Clone)]
struct WorkSlot {
    items: u64,
    job: Arc<Mutex<Option<PreparedJob>>>,
}

impl fmt::Debug for PreparedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PreparedWork").field(&self.items()).finish()
    }
}

impl PreparedWork {
    /// Work that statistics count as so many batch items.
    pub(crate) fn new(items: usize, job: PreparedJob) -> Self {
        let items = u64::try_from(items).unwrap_or(u64::MAX).max(1);
        Self(Some(WorkSlot { items, job: Arc::new(Mutex::new(Some(job))) }))
    }

    /// Number of batch items; `None` where the request has inputs.
    #[must_use]
    pub fn items(&self) -> Option<u64> {
        self.0.as_ref().map(|slot| slot.items)
    }

    /// Takes the work out of the request, which is then begun.
    pub(crate) fn take(&self) -> Option<PreparedJob> {
        self.0.as_ref()?.job.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
