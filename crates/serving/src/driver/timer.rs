//! One thread that wakes lanes when their policies asked for it. It decides nothing.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galatea_tensor::OrderedMap;

use crate::error::ServingError;
use crate::schedule::Nanos;

/// A lane that the timer wakes.
pub(super) trait TimedLane: Send + Sync {
    /// Takes the call that was asked for at a time.
    fn on_time(&self, at: Nanos);
}

#[derive(Default)]
struct TimerQueue {
    wakes: OrderedMap<(Nanos, u64), Weak<dyn TimedLane>>,
    stopped: bool,
}

/// The clock of all lanes, and the thread that waits for them.
pub(super) struct LaneTimer {
    start: Instant,
    queue: Mutex<TimerQueue>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LaneTimer {
    pub(super) fn start() -> Result<Arc<Self>, ServingError> {
        let timer = Arc::new(Self {
            start: Instant::now(),
            queue: Mutex::default(),
            changed: Condvar::new(),
            thread: Mutex::new(None),
        });
        let shared = Arc::clone(&timer);
        let thread = std::thread::Builder::new()
            .name("scheduler".to_owned())
            .spawn(move || shared.run())
            .map_err(|error| {
                ServingError::internal(format!("cannot start the scheduler's thread: {error}"))
            })?;
        *timer.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(timer)
    }

    pub(super) fn now(&self) -> Nanos {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Wakes a lane at a time. Earlier wishes of the lane stay.
    pub(super) fn wake_at(&self, at: Nanos, number: u64, lane: Weak<dyn TimedLane>) {
        let mut queue = self.queue();
        let is_first = queue.wakes.first_key_value().is_none_or(|(&(first, _), _)| at < first);
        queue.wakes.insert((at, number), lane);
        drop(queue);
        if is_first {
            self.changed.notify_one();
        }
    }

    fn run(&self) {
        let mut queue = self.queue();
        while !queue.stopped {
            let now = self.now();
            let Some((&(at, number), _)) = queue.wakes.first_key_value() else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if at > now {
                let rest = Duration::from_nanos(at - now);
                queue = self
                    .changed
                    .wait_timeout(queue, rest)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            }
            let lane = queue.wakes.remove(&(at, number)).and_then(|lane| lane.upgrade());
            drop(queue);
            if let Some(lane) = lane {
                lane.on_time(at);
            }
            queue = self.queue();
        }
    }

    pub(super) fn stop(&self) {
        self.queue().stopped = true;
        self.changed.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last lane may be dropped by the thread itself, which then ends by itself.
        if let Some(thread) = thread.filter(|own| own.thread().id() != std::thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the scheduler's thread panicked");
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, TimerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
