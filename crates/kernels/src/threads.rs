//! The intra-operator thread pool: a fixed set of threads that share one loop at a time with
//! their callers.
//!
//! A loop is a number of tasks, an equal span for each thread. A thread claims the tasks of its own
//! span one by one from the front, then those of others from the back: it meets again, in its own
//! caches, what it worked on in the loop before, and nobody waits for a slow one. Which thread runs
//! a task is not fixed; what each task computes is, so results do not depend on timing.
//!
//! Several callers may share one pool: every caller works on its own loop, so nobody waits for a
//! worker to become free, and workers help whoever has tasks left. Pools may share their workers
//! ([`ThreadPool::sharing`]): a loop has as many helpers as its pool has, but callers and workers
//! that are busy are together no more than the threads of the largest pool, or than the callers
//! where these are more. A worker steps aside for a caller between two tasks.

use crate::pieces::WorkPieces;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galatea_tensor::InterruptSource;

/// How long an idle worker looks for work before it sleeps. Operators of one inference follow
/// each other within tens of microseconds; waking a sleeping thread takes about as long.
const SPIN: Duration = Duration::from_micros(150);

/// Most spans of a loop; more threads share them.
const MAX_SPANS: usize = 16;

/// A pool of threads for the loops inside operators.
pub struct ThreadPool {
    crew: Arc<WorkerPool>,
    threads: usize,
}

/// The workers of one or several pools.
struct WorkerPool {
    shared: Arc<PoolShared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    on_start: fn(),
}

/// How much a caller's work matters, as a word that [`ThreadPool::with_hooks`] gives a meaning; 0 says nothing.
#[derive(Debug)]
#[must_use = "the word counts until this is dropped"]
pub struct TaskPriority(u8);

impl TaskPriority {
    /// Loops of the calling thread are helped with under this word until the guard is dropped.
    pub fn word(word: u8) -> Self {
        Self(WORD.replace(word))
    }
}

impl Drop for TaskPriority {
    fn drop(&mut self) {
        WORD.set(self.0);
    }
}

/// Most threads of a pool. Each has a stack, and a slip of the pen must not take all that the system has.
pub const MAX_POOL_THREADS: usize = 1024;

struct PoolShared {
    /// Loops that may have unclaimed tasks.
    open: Mutex<Vec<Arc<ParallelLoop>>>,
    /// Counts openings, so that a spinning worker need not take the lock.
    opened: AtomicU64,
    /// Workers asleep on `wake`, counted under the `open` lock.
    asleep: AtomicUsize,
    wake: Condvar,
    stop: AtomicBool,
    /// Threads of the largest pool: as many as may be busy.
    capacity: AtomicUsize,
    /// Callers with a [`CallerSlot`].
    callers: AtomicUsize,
    /// Workers that work or look for work.
    active: AtomicUsize,
    /// Called by a worker that helps under another word than before.
    on_word: fn(u8),
}

/// A thread's place among those that are busy.
#[derive(Debug)]
#[must_use = "the place is given up when this is dropped"]
pub struct CallerSlot<'a>(Option<&'a ThreadPool>);

thread_local! {
    /// True if this thread is counted among the busy ones.
    static SEATED: Cell<bool> = const { Cell::new(false) };
    /// The word of the loops of this thread, and of a worker that of the loop that it helped with last.
    static WORD: Cell<u8> = const { Cell::new(0) };
}

/// One call of [`ThreadPool::run`].
struct ParallelLoop {
    body: *const (dyn Fn(usize) + Sync),
    /// Unclaimed tasks of each span, as [`join`] writes them.
    unclaimed: [AtomicU64; MAX_SPANS],
    /// Number of spans.
    spans: usize,
    /// Workers at work on it, and how many may be.
    helpers: AtomicUsize,
    most_helpers: usize,
    /// The word of its caller.
    word: u8,
    finished: AtomicUsize,
    /// Source that tells whether anybody still wants the result; the tasks that are left are skipped then.
    interrupt: Option<InterruptSource>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `body` is Sync, and it is only called for a claimed task; `run` does not return before
// every claimed task has finished, so the borrow behind the pointer is live at every call.
unsafe impl Send for ParallelLoop {}
// SAFETY: as for Send; all other fields are Sync by themselves.
unsafe impl Sync for ParallelLoop {}

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

impl ParallelLoop {
    fn new(body: *const (dyn Fn(usize) + Sync), tasks: usize, threads: usize) -> Self {
        let spans = threads.clamp(1, MAX_SPANS);
        let bound = |i: usize| (tasks as u64 * i.min(spans) as u64) / spans as u64;
        Self {
            body,
            unclaimed: std::array::from_fn(|i| AtomicU64::new(join(bound(i), bound(i + 1)))),
            spans,
            helpers: AtomicUsize::new(0),
            most_helpers: threads.saturating_sub(1),
            word: WORD.get(),
            finished: AtomicUsize::new(0),
            interrupt: InterruptSource::current(),
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

    /// Claims and runs tasks of the span `own` first, until none is left or the thread is wanted to
    /// `leave`; whether it was.
    fn work(&self, own: usize, leave: impl Fn() -> bool) -> bool {
        loop {
            if leave() {
                return true;
            }
            let Some(task) = self.claim(own) else { return false };
            // SAFETY: this task is claimed and not finished, so `run` still holds the borrow.
            let body = unsafe { &*self.body };
            let skipped = self.interrupt.as_ref().is_some_and(InterruptSource::is_interrupted);
            if !skipped && let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(task))) {
                lock(&self.panic).get_or_insert(payload);
            }
            // Release: the caller's Acquire of the last count sees what the task wrote.
            self.finished.fetch_add(1, Ordering::Release);
        }
    }

    /// The span of the worker with this number; span 0 is the caller's.
    fn span_of(&self, number: usize) -> usize {
        if self.spans == 1 { 0 } else { 1 + (number - 1) % (self.spans - 1) }
    }

    /// Lets a worker help where there is something left to do and room for one more.
    fn admit(&self) -> bool {
        let one_more = |helpers: usize| (helpers < self.most_helpers).then_some(helpers + 1);
        self.has_unclaimed()
            && self.helpers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
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

impl WorkerPool {
    /// Has workers for pools of so many threads, at most [`MAX_POOL_THREADS`]. Where the system refuses one, there are
    /// fewer. Returns how many threads share a loop of such a pool.
    fn grow(&self, threads: usize) -> usize {
        let threads = threads.clamp(1, MAX_POOL_THREADS);
        let mut workers = lock(&self.workers);
        while workers.len() + 1 < threads {
            let number = workers.len() + 1;
            let shared = Arc::clone(&self.shared);
            let on_start = self.on_start;
            let work = move || {
                on_start();
                shared.serve(number);
            };
            match std::thread::Builder::new().name(format!("kernel-{number}")).spawn(work) {
                Ok(worker) => workers.push(worker),
                Err(_) => break,
            }
        }
        self.shared.capacity.fetch_max(workers.len() + 1, Ordering::Relaxed);
        threads
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        {
            let _open = lock(&self.shared.open);
            self.shared.stop.store(true, Ordering::Release);
        }
        self.shared.wake.notify_all();
        for worker in lock(&self.workers).drain(..) {
            // A worker catches the panics of tasks, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

impl ThreadPool {
    /// A pool in which `threads` threads (at least one, at most [`MAX_POOL_THREADS`]) share each loop: the caller and
    /// `threads - 1` workers. Where the system refuses a thread, fewer share the same tasks.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self::with_hooks(threads, || (), |_| ())
    }

    /// The same with workers that each call `on_start` first, and `on_word` whenever the loop that they help with next
    /// has another word ([`TaskPriority`]) than the one before, unless that word is 0.
    #[must_use]
    pub fn with_hooks(threads: usize, on_start: fn(), on_word: fn(u8)) -> Self {
        let shared = Arc::new(PoolShared {
            open: Mutex::new(Vec::new()),
            opened: AtomicU64::new(0),
            asleep: AtomicUsize::new(0),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            capacity: AtomicUsize::new(1),
            callers: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            on_word,
        });
        let crew = Arc::new(WorkerPool { shared, workers: Mutex::new(Vec::new()), on_start });
        let threads = crew.grow(threads);
        Self { crew, threads }
    }

    /// A pool of `threads` threads (at least one) with the workers of this one, which become more
    /// where there are too few. What is computed depends on `threads` only.
    #[must_use]
    pub fn sharing(&self, threads: usize) -> Self {
        let threads = self.crew.grow(threads);
        Self { crew: Arc::clone(&self.crew), threads }
    }

    /// Threads that share a loop, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Counts the calling thread among the busy ones until the seat is dropped, so that workers leave
    /// it a processor. A loop has a seat of its own where its caller has none.
    pub fn seat(&self) -> CallerSlot<'_> {
        if SEATED.replace(true) {
            return CallerSlot(None);
        }
        self.crew.shared.callers.fetch_add(1, Ordering::Relaxed);
        CallerSlot(Some(self))
    }

    /// Calls `body(0)`, …, `body(tasks - 1)`, each once, on the threads of the pool, and returns
    /// when all have returned. A task may itself call `run` on the same pool. Tasks that have not begun when the work of
    /// the calling thread is interrupted are left out; whoever computes something looks at that before it is used.
    ///
    /// # Panics
    /// Panics when a task panics: with the payload of the first, after all tasks have ended.
    pub fn run<F: Fn(usize) + Sync>(&self, tasks: usize, body: F) {
        // More tasks than a word counts are not worth sharing.
        if tasks <= 1 || self.threads == 1 || u32::try_from(tasks).is_err() {
            match InterruptSource::current() {
                None => (0..tasks).for_each(body),
                Some(source) => (0..tasks).take_while(|_| !source.is_interrupted()).for_each(body),
            }
            return;
        }
        self.share(tasks, &body);
    }

    /// Shares two tasks or more among threads. Apart from `run`, since each kernel would have a copy
    /// of it otherwise.
    fn share(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        let _seat = self.seat();
        let shared = &self.crew.shared;
        // SAFETY: only the lifetime changes. The pointer is used for claimed tasks only, and this
        // function waits for those before it returns.
        let body: *const (dyn Fn(usize) + Sync) = unsafe {
            std::mem::transmute::<
                *const (dyn Fn(usize) + Sync + '_),
                *const (dyn Fn(usize) + Sync + 'static),
            >(body)
        };
        let job = Arc::new(ParallelLoop::new(body, tasks, self.threads));
        shared.publish(&job, (tasks - 1).min(self.threads - 1));
        job.work(0, || false);
        lock(&shared.open).retain(|other| !Arc::ptr_eq(other, &job));
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
    /// Panics when `body` does.
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
        WorkPieces { len, threads, most: len, fewest, unit: 1 }.run(self, body);
    }
}

impl PoolShared {
    fn publish(&self, job: &Arc<ParallelLoop>, helpers: usize) {
        let mut open = lock(&self.open);
        open.push(Arc::clone(job));
        self.opened.fetch_add(1, Ordering::Release);
        let asleep = self.asleep.load(Ordering::Relaxed);
        drop(open);
        for _ in 0..asleep.min(helpers).min(self.room()) {
            self.wake.notify_one();
        }
    }

    /// How many more threads may be busy.
    fn room(&self) -> usize {
        let busy = self.callers.load(Ordering::Relaxed) + self.active.load(Ordering::Relaxed);
        self.capacity.load(Ordering::Relaxed).saturating_sub(busy)
    }

    /// A loop that a worker may help with.
    fn find(open: &[Arc<ParallelLoop>]) -> Option<Arc<ParallelLoop>> {
        open.iter().find(|job| job.admit()).cloned()
    }

    /// Makes the calling worker an active one where there is room for it.
    fn activate(&self) -> bool {
        let free = |active: usize| {
            let busy = active + self.callers.load(Ordering::Relaxed);
            (busy < self.capacity.load(Ordering::Relaxed)).then_some(active + 1)
        };
        self.active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).is_ok()
    }

    /// Makes the calling worker an inactive one where callers want its processor.
    fn step_aside(&self) -> bool {
        let fewer = |active: usize| {
            let busy = active + self.callers.load(Ordering::Relaxed);
            (busy > self.capacity.load(Ordering::Relaxed)).then(|| active - 1)
        };
        self.active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok()
    }

    /// The life of a worker.
    fn serve(&self, number: usize) {
        SEATED.set(true);
        loop {
            let mut open = lock(&self.open);
            let job = loop {
                if self.stop.load(Ordering::Acquire) {
                    return;
                }
                if self.activate() {
                    if let Some(job) = Self::find(&open) {
                        break job;
                    }
                    self.active.fetch_sub(1, Ordering::Relaxed);
                }
                self.asleep.fetch_add(1, Ordering::Relaxed);
                open = self.wake.wait(open).unwrap_or_else(PoisonError::into_inner);
                self.asleep.fetch_sub(1, Ordering::Relaxed);
            };
            drop(open);
            self.help(job, number);
        }
    }

    /// Helps with loop after loop while the worker is active.
    fn help(&self, job: Arc<ParallelLoop>, number: usize) {
        let mut next = Some(job);
        loop {
            if let Some(job) = next.take() {
                if job.word != 0 && WORD.replace(job.word) != job.word {
                    (self.on_word)(job.word);
                }
                let left = job.work(job.span_of(number), || self.step_aside());
                job.helpers.fetch_sub(1, Ordering::Relaxed);
                if left {
                    return;
                }
            }
            let seen = self.opened.load(Ordering::Acquire);
            next = Self::find(&lock(&self.open));
            if next.is_none() && !self.spin(seen) {
                return;
            }
        }
    }

    /// Waits a short while for a loop opened after `seen`; true when there was one. Otherwise the
    /// worker is no active one any more.
    fn spin(&self, seen: u64) -> bool {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if self.opened.load(Ordering::Acquire) != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.step_aside() {
                return false;
            }
            if self.stop.load(Ordering::Acquire) || start.elapsed() > SPIN {
                self.active.fetch_sub(1, Ordering::Relaxed);
                return false;
            }
        }
    }
}

impl Drop for CallerSlot<'_> {
    fn drop(&mut self) {
        let Some(pool) = self.0 else { return };
        SEATED.set(false);
        let shared = &pool.crew.shared;
        shared.callers.fetch_sub(1, Ordering::Relaxed);
        // A worker that found no room may have some now. It looks and falls asleep under the lock.
        if shared.room() > 0 && lock(&shared.open).iter().any(|job| job.has_unclaimed()) {
            shared.wake.notify_one();
        }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("threads", &self.threads()).finish()
    }
}

impl WorkPieces {
    /// Calls `body` on every piece that is not empty, on the threads of `pool`.
    pub(crate) fn run(self, pool: &ThreadPool, body: impl Fn(Range<usize>) + Sync) {
        pool.run(self.count(), |i| {
            let piece = self.get(i);
            if !piece.is_empty() {
                body(piece);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_left_out_once_nobody_wants_the_result() {
        use galatea_tensor::InterruptibleScope;
        for threads in [1, 4] {
            let pool = ThreadPool::new(threads);
            let gone = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&gone);
            let source = InterruptSource::new(move || seen.load(Ordering::Relaxed));
            let scope = InterruptibleScope::new(Some(source));
            let count = AtomicUsize::new(0);
            pool.run(100_000, |_| {
                count.fetch_add(1, Ordering::Relaxed);
                gone.store(true, Ordering::Relaxed);
            });
            assert!(count.load(Ordering::Relaxed) <= threads);
            drop(scope);
            // The pool is whole for the next one.
            let count = AtomicUsize::new(0);
            pool.run(100, |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.load(Ordering::Relaxed), 100);
        }
    }

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
    fn workers_hear_the_word_of_the_caller_that_they_help_when_it_is_another() {
        static HEARD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        let pool = ThreadPool::with_hooks(2, || (), |word| lock(&HEARD).push(word));
        // Each of two tasks waits for the other, so that the worker helps every time.
        let together = std::sync::Barrier::new(2);
        let run = || pool.run(2, |_| _ = together.wait());
        run();
        for word in [3, 3, 1] {
            let _help = TaskPriority::word(word);
            run();
        }
        run();
        assert_eq!(*lock(&HEARD), [3, 1]);
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
    fn pools_that_share_workers_compute_what_they_would_alone() {
        let first = ThreadPool::new(2);
        let pools = [first.sharing(4), first.sharing(1), first.sharing(3), first];
        assert_eq!(pools.each_ref().map(ThreadPool::threads), [4, 1, 3, 2]);
        assert_eq!(lock(&pools[0].crew.workers).len(), 3);
        std::thread::scope(|scope| {
            for pool in &pools {
                scope.spawn(move || {
                    for _ in 0..200 {
                        let ranges = |pool: &ThreadPool| {
                            let found = Mutex::new(Vec::new());
                            pool.run_ranges(1000, 10, |range| lock(&found).push(range));
                            let mut found = lock(&found).clone();
                            found.sort_by_key(|range| range.start);
                            found
                        };
                        let alone = ThreadPool { threads: pool.threads, ..ThreadPool::new(1) };
                        assert_eq!(ranges(pool), ranges(&alone));
                    }
                });
            }
        });
    }

    /// Loops of `callers` seated threads, each on a pool of three that share their workers; the names
    /// of the threads that ran tasks, and most of the workers that did so at once.
    fn busy(callers: usize) -> (Vec<String>, usize) {
        let pool = ThreadPool::new(3);
        let names = Mutex::new(Vec::new());
        let at_once = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let here = std::sync::Barrier::new(callers);
        std::thread::scope(|scope| {
            for _ in 0..callers {
                let pool = pool.sharing(3);
                let names = &names;
                let at_once = &at_once;
                let most = &most;
                let here = &here;
                scope.spawn(move || {
                    let seat = pool.seat();
                    here.wait();
                    for _ in 0..300 {
                        pool.run(12, |_| {
                            let thread = std::thread::current();
                            let name = thread.name().unwrap_or("caller").to_owned();
                            let worker = usize::from(name.starts_with("kernel"));
                            most.fetch_max(
                                at_once.fetch_add(worker, Ordering::SeqCst) + worker,
                                Ordering::SeqCst,
                            );
                            std::hint::black_box((0..2000).sum::<u64>());
                            at_once.fetch_sub(worker, Ordering::SeqCst);
                            lock(names).push(name);
                        });
                    }
                    here.wait();
                    drop(seat);
                });
            }
        });
        let mut names = names.into_inner().unwrap();
        names.sort();
        names.dedup();
        (names, most.into_inner())
    }

    #[test]
    fn callers_and_workers_are_no_more_than_the_threads() {
        // One caller leaves room for two workers, two for one, three for none.
        assert!(busy(1).1 <= 2);
        assert!(busy(2).1 <= 1);
        for callers in [3, 5] {
            let (names, workers) = busy(callers);
            assert_eq!((names, workers), (vec!["caller".to_owned()], 0));
        }
    }

    #[test]
    fn a_worker_helps_again_once_a_caller_has_left() {
        let pool = ThreadPool::new(2);
        let other = pool.sharing(2);
        let helped = AtomicBool::new(false);
        let seats = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let seat = other.seat();
                seats.wait();
                drop(seat);
            });
            let _seat = pool.seat();
            seats.wait();
            let main = std::thread::current().id();
            // The caller waits in its task for a worker, which comes when the seat is free.
            pool.run(2, |_| {
                if std::thread::current().id() == main {
                    while !helped.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                } else {
                    helped.store(true, Ordering::Release);
                }
            });
        });
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
