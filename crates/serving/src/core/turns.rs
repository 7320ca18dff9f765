//! One load or reload of a model at a time.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Who is at work on which model.
#[derive(Debug, Default)]
pub(super) struct Turns {
    busy: Mutex<HashMap<String, Arc<Condvar>>>,
}

impl Turns {
    /// Waits until nobody else loads the model.
    pub(super) fn take(&self, name: &str) -> Turn<'_> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = busy.get(name).cloned() {
            busy = ended.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        busy.insert(name.to_owned(), Arc::default());
        Turn { turns: self, name: name.to_owned() }
    }
}

/// The right to load a model; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    name: String,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut busy = self.turns.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = busy.remove(&self.name) {
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
        let turns = Turns::default();
        let inside = AtomicUsize::new(0);
        let other = turns.take("other");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take("m");
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
