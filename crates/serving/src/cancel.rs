//! A flag that says "nobody waits for this any more", and wakes whom it concerns.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type CancelCallback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct CancelShared {
    cancelled: AtomicBool,
    callbacks: Mutex<Vec<CancelCallback>>,
}

/// Cancellation of one request; clones share the flag.
#[derive(Clone, Default)]
pub struct CancelToken {
    shared: Arc<CancelShared>,
}

impl CancelToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag and runs the callbacks, each once. Further calls do nothing.
    pub fn cancel(&self) {
        if self.shared.cancelled.swap(true, Ordering::AcqRel) {
            return;
        }
        let callbacks = std::mem::take(&mut *self.callbacks());
        for callback in callbacks {
            callback();
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// Runs `callback` at cancellation: on the cancelling thread, or here and now when that has happened already.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        let mut callbacks = self.callbacks();
        if !self.is_cancelled() {
            callbacks.push(Box::new(callback));
            return;
        }
        drop(callbacks);
        callback();
    }

    fn callbacks(&self) -> std::sync::MutexGuard<'_, Vec<CancelCallback>> {
        self.shared.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_callback_runs_once_also_one_that_comes_late() {
        let token = CancelToken::new();
        let runs = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let runs = Arc::clone(&runs);
            token.on_cancel(move || {
                runs.fetch_add(1, Ordering::Relaxed);
            });
        }
        token.clone().cancel();
        token.cancel();
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        let late = Arc::clone(&runs);
        token.on_cancel(move || {
            late.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(runs.load(Ordering::Relaxed), 3);
    }
}
