//! The intra-operator thread pool: a fixed set of threads that share one loop at a time with
//! their callers.
//!
//! A loop is a number of tasks, an equal span for each thread. A thread claims the tasks of its own
//! span one by one from the front, then those of others from the back: it meets again, in its own
//! caches, what it worked on in the loop before, and nobody waits for a slow one. Which thread runs
//! a task is not fixed; what each task computes is, so results do not depend on timing. Several callers may share one pool: workers help whoever has tasks left,
//! and every caller works on its own loop, so nobody waits for a worker to become free.

use crate::pieces::Pieces;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an idle worker looks for work before it sleeps. Operators of one inference follow
/// each other within tens of microseconds; waking a sleeping thread takes about as long.
const SPIN: Duration = Duration::from_micros(150);

/// Most spans of a loop; more threads share them.
const MOST_SPANS: usize = 16;

/// A pool of threads for the loops inside operators.
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Loops that may have unclaimed tasks.
    open: Mutex<Vec<Arc<Loop>>>,
    /// Counts openings, so that a spinning worker need not take the lock.
    opened: AtomicU64,
    /// Workers asleep on `wake`, counted under the `open` lock.
    asleep: AtomicUsize,
    wake: Condvar,
    stop: AtomicBool,
}

/// One call of [`ThreadPool::run`].
struct Loop {
    body: *const (dyn Fn(usize) + Sync),
    /// Unclaimed tasks of each span, as [`join`] writes them.
    unclaimed: [AtomicU64; MOST_SPANS],
    /// How many spans there are.
    spans: usize,
    finished: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `body` is Sync, and it is only called for a claimed task; `run` does not return before
// every claimed task has finished, so the borrow behind the pointer is live at every call.
unsafe impl Send for Loop {}
// SAFETY: as for Send; all other fields are Sync by themselves.
unsafe impl Sync for Loop {}

/// A range of tasks in one word, so that either end moves in one step.
fn join(first: u64, end: u64) -> u64 {
    first << 32 | end
}

/// The first and the end of a range of tasks.
fn parts(word: u64) -> (u64, u64) {
    (word >> 32, word & u64::from(u32::MAX))
}

/// A task's number.
#[allow(clippy::cast_possible_truncation, reason = "it was a `usize` before")]
fn index(task: u64) -> usize {
    task as usize
}

impl Loop {
    fn new(body: *const (dyn Fn(usize) + Sync), tasks: usize, threads: usize) -> Self {
        let spans = threads.clamp(1, MOST_SPANS);
        let bound = |i: usize| (tasks as u64 * i.min(spans) as u64) / spans as u64;
        Self {
            body,
            unclaimed: std::array::from_fn(|i| AtomicU64::new(join(bound(i), bound(i + 1)))),
            spans,
            finished: AtomicUsize::new(0),
            panic: Mutex::new(None),
        }
    }

    /// Claims a task: the first of span `own`, or the last of another.
    fn claim(&self, own: usize) -> Option<usize> {
        let first = |span: &AtomicU64| {
            let next = |(first, end): (u64, u64)| (first < end).then(|| join(first + 1, end));
            let claimed =
                span.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |s| next(parts(s)));
            claimed.ok().map(|was| index(parts(was).0))
        };
        let last = |span: &AtomicU64| {
            let next = |(first, end): (u64, u64)| (first < end).then(|| join(first, end - 1));
            let claimed =
                span.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |s| next(parts(s)));
            claimed.ok().map(|was| index(parts(was).1) - 1)
        };
        let others = (1..self.spans).map(|i| &self.unclaimed[(own + i) % self.spans]);
        first(&self.unclaimed[own]).or_else(|| others.map(last).find_map(|task| task))
    }

    /// Claims and runs tasks until none is left, as the thread that `own` counts.
    fn work(&self, own: usize) {
        while let Some(task) = self.claim(own % self.spans) {
            // SAFETY: this task is claimed and not finished, so `run` still holds the borrow.
            let body = unsafe { &*self.body };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(task))) {
                lock(&self.panic).get_or_insert(payload);
            }
            // Release: the caller's Acquire of the last count sees what the task wrote.
            self.finished.fetch_add(1, Ordering::Release);
        }
    }

    fn has_unclaimed(&self) -> bool {
        self.unclaimed[..self.spans].iter().any(|span| {
            let (first, end) = parts(span.load(Ordering::Relaxed));
            first < end
        })
    }
}

/// The pool's own code does not panic under a lock, so a poisoned one still holds good data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadPool {
    /// A pool in which `threads` threads (at least one) share each loop: the caller and
    /// `threads - 1` workers. Where the system refuses a thread, the pool has fewer.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            open: Mutex::new(Vec::new()),
            opened: AtomicU64::new(0),
            asleep: AtomicUsize::new(0),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let workers = (1..threads)
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name(format!("kernel-{i}"))
                    .spawn(move || shared.serve(i))
                    .ok()
            })
            .collect();
        Self { shared, workers }
    }

    /// Threads that share a loop, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `body(0)`, …, `body(tasks - 1)`, each once, on the threads of the pool, and returns
    /// when all have returned. A task may itself call `run` on the same pool.
    ///
    /// # Panics
    /// When a task panics: with the payload of the first, after all tasks have ended.
    pub fn run<F: Fn(usize) + Sync>(&self, tasks: usize, body: F) {
        // More tasks than a word counts are not worth sharing.
        if tasks <= 1 || self.workers.is_empty() || u32::try_from(tasks).is_err() {
            (0..tasks).for_each(body);
            return;
        }
        let body: &(dyn Fn(usize) + Sync) = &body;
        // SAFETY: only the lifetime changes. The pointer is used for claimed tasks only, and this
        // function waits for those before it returns.
        let body: *const (dyn Fn(usize) + Sync) = unsafe {
            std::mem::transmute::<
                *const (dyn Fn(usize) + Sync + '_),
                *const (dyn Fn(usize) + Sync + 'static),
            >(body)
        };
        let job = Arc::new(Loop::new(body, tasks, self.threads()));
        self.shared.publish(&job, tasks - 1);
        job.work(0);
        lock(&self.shared.open).retain(|other| !Arc::ptr_eq(other, &job));
        let mut rounds = 0u32;
        while job.finished.load(Ordering::Acquire) < tasks {
            // The last tasks run on other threads, which may share this processor.
            rounds += 1;
            if rounds < 20_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        if let Some(payload) = lock(&job.panic).take() {
            resume_unwind(payload);
        }
    }

    /// Splits `0..len` into ranges of `grain` or more, an equal share for each thread, and calls
    /// `body` on each.
    /// Ranges depend on `len`, `grain` and the number of threads only.
    ///
    /// # Panics
    /// When `body` does.
    pub fn run_ranges<F>(&self, len: usize, grain: usize, body: F)
    where
        F: Fn(std::ops::Range<usize>) + Sync,
    {
        if len == 0 {
            return;
        }
        let threads = self.threads();
        // The last range is an eighth of a thread's share.
        let fewest = grain.max(len / (8 * threads)).max(1);
        Pieces { len, threads, most: len, fewest, unit: 1 }.run(self, body);
    }
}

impl Shared {
    fn publish(&self, job: &Arc<Loop>, helpers: usize) {
        let mut open = lock(&self.open);
        open.push(Arc::clone(job));
        self.opened.fetch_add(1, Ordering::Release);
        let asleep = self.asleep.load(Ordering::Relaxed);
        drop(open);
        for _ in 0..asleep.min(helpers) {
            self.wake.notify_one();
        }
    }

    fn claim(open: &[Arc<Loop>]) -> Option<Arc<Loop>> {
        open.iter().find(|job| job.has_unclaimed()).cloned()
    }

    /// The life of a worker.
    fn serve(&self, number: usize) {
        loop {
            let seen = self.opened.load(Ordering::Acquire);
            let job = Self::claim(&lock(&self.open));
            if let Some(job) = job {
                job.work(number);
                continue;
            }
            if self.spin(seen) {
                continue;
            }
            let mut open = lock(&self.open);
            while Self::claim(&open).is_none() {
                if self.stop.load(Ordering::Acquire) {
                    return;
                }
                self.asleep.fetch_add(1, Ordering::Relaxed);
                open = self.wake.wait(open).unwrap_or_else(PoisonError::into_inner);
                self.asleep.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits a short while for a loop opened after `seen`; true when there was one.
    fn spin(&self, seen: u64) -> bool {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if self.opened.load(Ordering::Acquire) != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.stop.load(Ordering::Acquire) || start.elapsed() > SPIN {
                return false;
            }
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        {
            let _open = lock(&self.shared.open);
            self.shared.stop.store(true, Ordering::Release);
        }
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of tasks, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("threads", &self.threads()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_exactly_once() {
        for threads in [1, 2, 4] {
            let pool = ThreadPool::new(threads);
            for tasks in [0, 1, 2, 7, 1000] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(tasks, |t| {
                    counts[t].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_and_the_pool_goes_on() {
        let pool = ThreadPool::new(3);
        let done = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.run(50, |t| {
                assert!(t != 17, "task 17");
                done.fetch_add(1, Ordering::Relaxed);
            });
        }));
        let payload = caught.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"task 17"));
        assert_eq!(done.load(Ordering::Relaxed), 49);
        pool.run(8, |_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 57);
    }

    #[test]
    fn callers_share_a_pool_and_loops_nest() {
        let pool = ThreadPool::new(3);
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        pool.run(5, |_| {
                            pool.run(3, |_| {
                                total.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.load(Ordering::Relaxed), 4 * 200 * 15);
    }

    #[test]
    fn ranges_cover_the_length_once() {
        let pool = ThreadPool::new(2);
        for len in [0, 1, 5, 1000, 4097] {
            let sum = AtomicUsize::new(0);
            pool.run_ranges(len, 100, |r| {
                sum.fetch_add(r.len(), Ordering::Relaxed);
            });
            assert_eq!(sum.load(Ordering::Relaxed), len);
        }
    }
}
