//! One load or reload of a model at a time.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::repository::ModelId;

/// Permits to work on models.
#[derive(Debug, Default)]
pub(super) struct LoadPermits {
    busy: Mutex<HashMap<ModelId, Arc<Condvar>>>,
}

impl LoadPermits {
    /// Waits until nobody else loads the model.
    pub(super) fn take(&self, id: &ModelId) -> LoadPermit<'_> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = busy.get(id).cloned() {
            busy = ended.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        busy.insert(id.clone(), Arc::default());
        LoadPermit { turns: self, id: id.clone() }
    }
}

/// The right to load a model; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct LoadPermit<'a> {
    turns: &'a LoadPermits,
    id: ModelId,
}

impl Drop for LoadPermit<'_> {
    fn drop(&mut self) {
        let mut busy = self.turns.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = busy.remove(&self.id) {
            ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn turns_on_one_model_exclude_each_other_and_others_do_not_wait() {
        let turns = LoadPermits::default();
        let inside = AtomicUsize::new(0);
        let other = turns.take(&ModelId::plain("other"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take(&ModelId::plain("m"));
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        drop(other);
        assert!(turns.busy.lock().unwrap().is_empty());
    }
}
