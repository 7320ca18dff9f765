//! An instance in its seat, which one lane may go on with when another has ended.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{BatchPayload, ModelInstance, ShutdownSignal};

/// An instance, and what its lanes must know of it while it executes.
#[derive(Clone)]
pub struct SeatedInstance {
    instance: Arc<Mutex<Box<dyn ModelInstance>>>,
    /// It takes batches before the one that it executes has ended.
    pub(super) pipelines: bool,
    /// The time of an execution depends on the sizes of its inputs alone.
    pub(super) by_sizes: bool,
    /// It is told of the end of the model.
    pub(super) leaving: Option<Arc<dyn ShutdownSignal>>,
}

impl SeatedInstance {
    /// An instance that is new.
    #[must_use]
    pub fn new(instance: Box<dyn ModelInstance>) -> Self {
        Self {
            pipelines: instance.pipelines_batches(),
            by_sizes: instance.time_depends_on_sizes_only(),
            leaving: instance.leaving(),
            instance: Arc::new(Mutex::new(instance)),
        }
    }

    /// Ends the instance, which no lane gives a batch any more.
    pub(super) fn end(&self) {
        let ended = std::mem::replace(&mut *self.lock(), Box::new(EndedInstance));
        drop(ended);
    }

    /// Waits until no other lane executes on it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Box<dyn ModelInstance>> {
        self.instance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an instance that has ended. Its requests would be answered INTERNAL.
struct EndedInstance;

impl ModelInstance for EndedInstance {
    fn execute(&mut self, _payload: BatchPayload) {}
}

impl fmt::Debug for SeatedInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeatedInstance").finish_non_exhaustive()
    }
}
