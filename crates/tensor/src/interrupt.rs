//! Interruption of work that nobody waits for any more.
//!
//! A thread that begins such work says by an [`InterruptibleScope`] who knows whether it is still wanted. Loops inside
//! ask [`is_interrupted`] now and then and give up. Threads that help take the source along.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Tells whether work is not wanted any more. Asking is cheap, and an answer of true stays.
#[derive(Clone)]
pub struct InterruptSource(Arc<dyn Fn() -> bool + Send + Sync>);

impl InterruptSource {
    /// Makes a source that asks a function.
    pub fn new(is_interrupted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_interrupted))
    }

    /// Returns whether the work is not wanted any more.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        (self.0)()
    }

    /// Returns the source of the work that the calling thread does, for threads that help it.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }
}

impl fmt::Debug for InterruptSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptSource").field("is_interrupted", &self.is_interrupted()).finish()
    }
}

thread_local! {
    static CURRENT: RefCell<Option<InterruptSource>> = const { RefCell::new(None) };
}

/// Work of the calling thread that may be interrupted, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct InterruptibleScope {
    outer: Option<InterruptSource>,
    /// A scope belongs to the thread that began it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl InterruptibleScope {
    /// Begins work that a source may interrupt; none lets it run to its end.
    pub fn new(source: Option<InterruptSource>) -> Self {
        let outer = CURRENT.replace(source);
        Self { outer, _thread: std::marker::PhantomData }
    }
}

impl Drop for InterruptibleScope {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

/// Returns whether the work of the calling thread is not wanted any more.
#[must_use]
pub fn is_interrupted() -> bool {
    CURRENT.with_borrow(|source| source.as_ref().is_some_and(InterruptSource::is_interrupted))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_scope_ends_with_what_was_before_it() {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&flag);
        assert!(!is_interrupted());
        let scope = InterruptibleScope::new(Some(InterruptSource::new(move || {
            seen.load(Ordering::Relaxed)
        })));
        assert!(!is_interrupted());
        flag.store(true, Ordering::Relaxed);
        assert!(is_interrupted());
        {
            let _unbroken = InterruptibleScope::new(None);
            assert!(!is_interrupted());
        }
        assert!(is_interrupted());
        let source = InterruptSource::current();
        let helper = std::thread::spawn(move || {
            let _scope = InterruptibleScope::new(source);
            is_interrupted()
        });
        assert!(helper.join().unwrap());
        drop(scope);
        assert!(!is_interrupted());
    }
}
