//! Observers that are told of what sessions run, while someone watches.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::intervals::{IntervalKind, IntervalSource, RecordedInterval};
use crate::profile::ProfileRow;

/// A partition that was run.
#[derive(Clone, Debug)]
pub struct PartRun {
    /// The model, as whoever made the session calls it.
    pub model: Arc<str>,
    /// The provider that ran it.
    pub provider: &'static str,
    /// It began.
    pub begin: Instant,
    /// Time that the caller waited.
    pub time: Duration,
    /// Its steps one behind the other, where its provider times them as it goes; nothing elsewhere.
    pub rows: Vec<ProfileRow>,
}

/// Takes what was run. It is called on the thread that ran it, and must not block.
pub trait RunObserver: Send + Sync {
    /// Returns whether runs of a model are of interest.
    fn wants(&self, model: &str) -> bool;

    /// A partition was run without an error.
    fn ran(&self, run: PartRun);
}

/// Tells an observer of runs while there is one: one look at a flag for each partition where there is none.
#[derive(Default)]
pub struct RunWatch {
    on: AtomicBool,
    observer: Mutex<Option<Arc<dyn RunObserver>>>,
    intervals: IntervalSource,
}

impl fmt::Debug for RunWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunWatch").field(&self.on).finish()
    }
}

impl RunWatch {
    /// Watch with a recorder that is told of begins and ends, whether anybody observes or not.
    #[must_use]
    pub fn recorded(intervals: IntervalSource) -> Self {
        Self { intervals, ..Self::default() }
    }

    /// Tells this observer from now on, and nobody else.
    pub fn start(&self, observer: Arc<dyn RunObserver>) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
        self.on.store(true, Ordering::Release);
    }

    /// Tells nobody any more. Runs under way may still be told.
    pub fn stop(&self) {
        self.on.store(false, Ordering::Release);
        self.observer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn observer(&self) -> Option<Arc<dyn RunObserver>> {
        if !self.on.load(Ordering::Acquire) {
            return None;
        }
        self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Observer of a session's runs, if any, and the name of the model.
#[derive(Clone, Debug, Default)]
pub struct WatchSource {
    /// Observer, which knows whether someone watches.
    pub watch: Option<Arc<RunWatch>>,
    /// The model.
    pub model: Arc<str>,
}

impl PartialEq for WatchSource {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.watch, &other.watch) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same && self.model == other.model
    }
}

impl Eq for WatchSource {}

thread_local! {
    /// The model whose partition is watched on this thread.
    static WATCHED: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
    /// True while this thread's runs belong to no request.
    static UNWATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Runs of the calling thread are told nobody while this is there: they are measurements and nobody's requests.
#[derive(Debug)]
#[must_use = "runs are told again when this is dropped"]
pub struct UnwatchedScope(bool);

impl UnwatchedScope {
    /// From now on.
    pub fn begin() -> Self {
        Self(UNWATCHED.replace(true))
    }
}

impl Drop for UnwatchedScope {
    fn drop(&mut self) {
        UNWATCHED.set(self.0);
    }
}

/// The model whose partition this thread runs, where that is watched: a device that tells of its own runs on the
/// thread that waits for them knows the graph's name only.
#[must_use]
pub fn watched_model() -> Option<Arc<str>> {
    WATCHED.with_borrow(Clone::clone)
}

/// A partition that is run and watched.
pub(crate) struct WatchedPartition<'s> {
    observer: Arc<dyn RunObserver>,
    source: &'s WatchSource,
    provider: &'static str,
    begin: Instant,
    before: Option<Arc<str>>,
}

impl WatchSource {
    /// Returns whether begins and ends of this thread's work are recorded at present.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.intervals.is_recording()) && !UNWATCHED.get()
    }

    /// Begins an interval of the model, which ends when the value is dropped. `None` while nobody records.
    #[must_use]
    pub fn interval(&self, kind: IntervalKind) -> Option<RecordedInterval> {
        self.interval_of(kind, &self.model)
    }

    /// Begins an interval of something else than the whole model, such as an operator.
    #[must_use]
    pub fn interval_of(&self, kind: IntervalKind, what: &str) -> Option<RecordedInterval> {
        let watch = self.watch.as_ref().filter(|_| !UNWATCHED.get())?;
        watch.intervals.begin(kind, what)
    }

    /// A partition begins; nothing where nobody wants to know.
    pub(crate) fn begin(&self, provider: &'static str) -> Option<WatchedPartition<'_>> {
        let observer = self.watch.as_ref()?.observer()?;
        if UNWATCHED.get() || !observer.wants(&self.model) {
            return None;
        }
        let before = WATCHED.replace(Some(Arc::clone(&self.model)));
        Some(WatchedPartition { observer, source: self, provider, begin: Instant::now(), before })
    }
}

impl WatchedPartition<'_> {
    /// It was run.
    pub(crate) fn end(&self, rows: Vec<ProfileRow>) {
        let model = Arc::clone(&self.source.model);
        let provider = self.provider;
        let begin = self.begin;
        let time = self.begin.elapsed();
        self.observer.ran(PartRun { model, provider, begin, time, rows });
    }
}

impl Drop for WatchedPartition<'_> {
    fn drop(&mut self) {
        WATCHED.set(self.before.take());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[derive(Default)]
    struct WatchRecord(Mutex<Vec<PartRun>>);

    impl RunObserver for WatchRecord {
        fn wants(&self, model: &str) -> bool {
            model != "other"
        }

        fn ran(&self, run: PartRun) {
            assert_eq!(watched_model().as_deref(), Some(&*run.model));
            self.0.lock().unwrap().push(run);
        }
    }

    #[test]
    fn runs_are_told_from_the_start_to_the_stop() {
        let watch = Arc::new(RunWatch::default());
        let named =
            |model: &str| WatchSource { watch: Some(Arc::clone(&watch)), model: model.into() };
        let mine = named("mine");
        let other = named("other");
        assert!(mine.begin("cpu").is_none(), "nobody wants to know yet");
        let kept = Arc::new(WatchRecord::default());
        watch.start(Arc::clone(&kept) as Arc<dyn RunObserver>);
        assert!(other.begin("cpu").is_none());
        let watched = mine.begin("cpu").unwrap();
        watched.end(vec![ProfileRow::default()]);
        drop(watched);
        assert_eq!(watched_model(), None);
        let unwatched = UnwatchedScope::begin();
        assert!(mine.begin("cpu").is_none(), "a measurement");
        drop(unwatched);
        assert!(mine.begin("cpu").is_some());
        watch.stop();
        assert!(mine.begin("cpu").is_none());
        let found = kept.0.lock().unwrap();
        assert_eq!((found.len(), &*found[0].model, found[0].provider), (1, "mine", "cpu"));
    }
}
