//! Asking for residency in time, and ending it when nobody computes any more.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time from one request to the next: well under the second after which the system takes memory away.
const BEAT: Duration = Duration::from_millis(500);
/// Time since the last use for which memory is kept.
const KEPT: Duration = Duration::from_secs(180);

/// A set of buffers that the system can keep on the GPU. Calls come one at a time.
pub(in crate::buffers) trait ResidencySet<M>: Send + fmt::Debug {
    /// Adds a buffer, from the next commit on.
    fn add(&self, member: &M);
    /// Takes a buffer out, from the next commit on.
    fn remove(&self, member: &M);
    /// Lets what was added and removed take effect.
    fn commit(&self);
    /// Asks for the buffers to be on the GPU.
    fn request(&self);
    /// Lets the system take them away.
    fn end(&self);
}

/// The set, and what has not been committed to it.
#[derive(Debug)]
struct KeptSet<M> {
    set: Box<dyn ResidencySet<M>>,
    changed: bool,
}

impl<M> KeptSet<M> {
    fn commit(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.set.commit();
        }
    }
}

/// Keeps the memory of a device on it while it is in use.
///
/// The first use begins a thread that asks for residency twice a second. It ends when the last use is some minutes ago,
/// and with it the residency.
#[derive(Debug)]
pub(crate) struct ResidencyKeeper<M> {
    kept: Mutex<KeptSet<M>>,
    /// True while a thread asks for residency.
    beating: AtomicBool,
    /// Milliseconds from the start to the last use.
    used_ms: AtomicU64,
    start: Instant,
}

/// Membership of a buffer in the set, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ResidentMember<M> {
    keeper: Arc<ResidencyKeeper<M>>,
    member: M,
}

impl<M> Drop for ResidentMember<M> {
    fn drop(&mut self) {
        let mut kept = self.keeper.kept();
        kept.set.remove(&self.member);
        kept.changed = true;
        if !self.keeper.beating.load(Ordering::Relaxed) {
            // The set owns its members until then, and no beat would end that.
            kept.commit();
        }
    }
}

impl<M> ResidencyKeeper<M> {
    /// Makes a keeper of what joins a set.
    pub(super) fn new(set: Box<dyn ResidencySet<M>>) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::new(KeptSet { set, changed: false }),
            beating: AtomicBool::new(false),
            used_ms: AtomicU64::new(0),
            start: Instant::now(),
        })
    }

    fn kept(&self) -> MutexGuard<'_, KeptSet<M>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a buffer, which is kept from the next use or beat on.
    pub(in crate::buffers) fn join(self: &Arc<Self>, member: M) -> ResidentMember<M> {
        let mut kept = self.kept();
        kept.set.add(&member);
        kept.changed = true;
        drop(kept);
        ResidentMember { keeper: Arc::clone(self), member }
    }

    /// Notes a use, and says whether beats are to begin.
    fn note_use(&self, now: Duration) -> bool {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.used_ms.store(now, Ordering::Relaxed);
        !self.beating.load(Ordering::Relaxed) && !self.beating.swap(true, Ordering::Relaxed)
    }

    /// Asks once for residency, or ends it where the last use is too long ago. Returns whether another beat is due.
    fn beat(&self, now: Duration) -> bool {
        let mut kept = self.kept();
        kept.commit();
        let used = Duration::from_millis(self.used_ms.load(Ordering::Relaxed));
        if now.saturating_sub(used) < KEPT {
            kept.set.request();
            return true;
        }
        kept.set.end();
        self.beating.store(false, Ordering::Relaxed);
        false
    }
}

impl<M: Send + Sync + 'static> ResidencyKeeper<M> {
    /// Notes that the device is used, and begins to keep its memory there.
    pub(crate) fn used(self: &Arc<Self>) {
        if !self.note_use(self.start.elapsed()) {
            return;
        }
        let keeper = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("gpu-resident".into());
        if let Err(error) = thread.spawn(move || Self::beat_on(&keeper)) {
            tracing::warn!(%error, "no thread keeps memory on the GPU");
        }
    }

    /// Beats until the last use is too long ago, or the device is gone.
    fn beat_on(keeper: &Weak<Self>) {
        while let Some(living) = keeper.upgrade() {
            if !living.beat(living.start.elapsed()) {
                return;
            }
            drop(living);
            std::thread::sleep(BEAT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set that writes down what it is told.
    #[derive(Debug, Clone, Default)]
    struct RecordedSet {
        calls: Arc<Mutex<Vec<String>>>,
        /// Told of every call.
        listener: Option<std::sync::mpsc::Sender<()>>,
    }

    impl RecordedSet {
        fn note(&self, text: impl Into<String>) {
            self.calls.lock().unwrap().push(text.into());
            if let Some(listener) = &self.listener {
                listener.send(()).unwrap();
            }
        }

        /// Changes that it was told since the last time.
        fn told(&self) -> String {
            self.calls.lock().unwrap().drain(..).collect::<Vec<_>>().join(", ")
        }
    }

    impl ResidencySet<u32> for RecordedSet {
        fn add(&self, member: &u32) {
            self.note(format!("add {member}"));
        }
        fn remove(&self, member: &u32) {
            self.note(format!("remove {member}"));
        }
        fn commit(&self) {
            self.note("commit");
        }
        fn request(&self) {
            self.note("request");
        }
        fn end(&self) {
            self.note("end");
        }
    }

    fn keeper() -> (RecordedSet, Arc<ResidencyKeeper<u32>>) {
        let set = RecordedSet::default();
        let keeper = ResidencyKeeper::new(Box::new(set.clone()));
        (set, keeper)
    }

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn memory_is_asked_for_while_it_is_used_and_for_some_minutes_more() {
        let (set, keeper) = keeper();
        let members = [1, 2].map(|member| keeper.join(member));
        assert_eq!(set.told(), "add 1, add 2");
        assert!(keeper.note_use(seconds(5)), "the first use begins the beats");
        assert!(!keeper.note_use(seconds(6)), "they go on");
        assert!(keeper.beat(seconds(6)));
        assert_eq!(set.told(), "commit, request");
        assert!(keeper.beat(seconds(100)));
        assert_eq!(set.told(), "request");
        assert!(!keeper.note_use(seconds(101)));
        assert!(keeper.beat(seconds(6) + KEPT), "a later use counts");
        assert!(!keeper.beat(seconds(101) + KEPT));
        assert_eq!(set.told(), "request, end");
        assert!(keeper.note_use(seconds(400)), "the next use begins them again");
        assert!(keeper.beat(seconds(400)));
        assert_eq!(set.told(), "request");
        drop(members);
    }

    #[test]
    fn memory_of_a_model_that_is_unloaded_leaves_at_the_next_beat_or_at_once() {
        let (set, keeper) = keeper();
        let [one, two, three] = [1, 2, 3].map(|member| keeper.join(member));
        drop(one);
        assert_eq!(set.told(), "add 1, add 2, add 3, remove 1, commit");
        keeper.note_use(seconds(1));
        drop(two);
        assert_eq!(set.told(), "remove 2");
        assert!(keeper.beat(seconds(1)));
        assert_eq!(set.told(), "commit, request");
        assert!(!keeper.beat(seconds(1) + KEPT));
        drop(three);
        assert_eq!(set.told(), "end, remove 3, commit");
    }

    #[test]
    fn memory_that_comes_while_others_are_kept_is_kept_from_the_next_beat_on() {
        let (set, keeper) = keeper();
        keeper.note_use(seconds(1));
        assert!(keeper.beat(seconds(1)));
        let _late = keeper.join(7);
        assert!(keeper.beat(seconds(2)));
        assert_eq!(set.told(), "request, add 7, commit, request");
    }

    #[test]
    fn a_thread_asks_at_the_first_use_and_ends_with_its_keeper() {
        let (to, from) = std::sync::mpsc::channel();
        let set = RecordedSet { listener: Some(to), ..RecordedSet::default() };
        let keeper = ResidencyKeeper::new(Box::new(set.clone()));
        keeper.used();
        keeper.used();
        from.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(set.told().starts_with("request"));
        let RecordedSet { calls, listener } = set;
        drop(listener);
        drop(keeper);
        // The thread lets go of the set, and with it of the other end.
        while from.recv_timeout(Duration::from_secs(60)).is_ok() {}
        assert_eq!(Arc::strong_count(&calls), 1);
    }
}
