//! Texts of many requests through an encoder, on one thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{MAX_TEXTS, MAX_TOKENS, TextEncoder, TextTokens};
use crate::engine::EngineHistogram;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::guarded::guarded;
use crate::observe::{EngineObserver, EngineOutcome, ObserverHandle, RequestRecord};

/// Result of a request's texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodedTexts {
    /// The vector of each text, or of a classifier a list of its one score.
    pub results: Vec<Vec<f32>>,
    /// From submission until the first text was computed.
    pub queue: Duration,
}

/// Takes what became of a request, on the engine's thread: it must not block.
pub type ResultSink = Box<dyn FnOnce(Result<EncodedTexts>) + Send>;

/// Counters of an encoder's engine, which only grow, and what it does now.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderStatistics {
    /// Requests that run now.
    pub running: usize,
    /// Requests that wait now.
    pub waiting: usize,
    /// Requests that were taken.
    pub requests: u64,
    /// Requests that were refused because too many waited.
    pub refused: u64,
    /// Requests that ended well.
    pub finished: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were taken back.
    pub cancelled: u64,
    /// Tokens of texts that were computed.
    pub tokens: u64,
    /// From submission until the end, in seconds.
    pub request_latency: EngineHistogram,
    /// From submission until the first text was computed, in seconds.
    pub queue_time: EngineHistogram,
    /// Tokens of the texts of a request.
    pub request_tokens: EngineHistogram,
    /// Tokens of the texts that were computed together.
    pub step_tokens: EngineHistogram,
}

impl EncoderStatistics {
    fn new() -> Self {
        Self {
            running: 0,
            waiting: 0,
            requests: 0,
            refused: 0,
            finished: 0,
            failed: 0,
            cancelled: 0,
            tokens: 0,
            request_latency: EngineHistogram::of_requests(),
            queue_time: EngineHistogram::of_requests(),
            request_tokens: EngineHistogram::of_tokens(),
            step_tokens: EngineHistogram::of_steps(),
        }
    }
}

/// State that the engine's thread and its users share.
struct EncoderShared {
    /// Requests none of whose texts was computed yet.
    waiting: AtomicUsize,
    stopping: AtomicBool,
    statistics: Mutex<EncoderStatistics>,
    observed: ObserverHandle,
    /// The number of the next request.
    next: AtomicU64,
}

impl EncoderShared {
    fn statistics(&self) -> MutexGuard<'_, EncoderStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An encoder whose runs hold texts of several requests. Dropping it fails those that are open, and ends
/// its thread.
pub struct EncoderEngine {
    model: Arc<TextEncoder>,
    shared: Arc<EncoderShared>,
    max_waiting: usize,
    jobs: Option<Sender<EncodeJob>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for EncoderEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncoderEngine").field("model", &self.model).finish_non_exhaustive()
    }
}

impl EncoderEngine {
    /// Starts the engine's thread. At most so many requests wait.
    ///
    /// # Errors
    /// A classifier whose labels are no score, and a thread that does not start.
    pub fn start(model: TextEncoder, max_waiting: usize) -> Result<Self> {
        model.encoder().check_labels()?;
        let model = Arc::new(model);
        let shared = Arc::new(EncoderShared {
            waiting: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            statistics: Mutex::new(EncoderStatistics::new()),
            observed: ObserverHandle::default(),
            next: AtomicU64::new(0),
        });
        let (jobs, arrivals) = mpsc::channel();
        let worker = EncoderWorker {
            model: Arc::clone(&model),
            shared: Arc::clone(&shared),
            arrivals,
            open: VecDeque::new(),
        };
        let thread = std::thread::Builder::new().name("encoder".to_owned());
        let thread = thread.spawn(move || worker.run()).map_err(|error| {
            LlmError::new(
                LlmErrorKind::Unavailable,
                "encoder",
                format!("its thread does not start: {error}"),
            )
        })?;
        Ok(Self { model, shared, max_waiting, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Code between texts and tokens, and between results and scores.
    #[must_use]
    pub fn model(&self) -> &Arc<TextEncoder> {
        &self.model
    }

    /// Takes texts. `sink` is told what became of them.
    ///
    /// # Errors
    /// [`LlmErrorKind::Parameter`] for texts that cannot be computed, [`LlmErrorKind::Overloaded`] where too many
    /// requests wait, [`LlmErrorKind::Unavailable`] where the engine stops. The sink is not called then.
    pub fn submit(&self, texts: Vec<TextTokens>, sink: ResultSink) -> Result<EncoderTicket> {
        for (at, text) in texts.iter().enumerate() {
            self.model.encoder().check_text(at, text)?;
        }
        let unavailable = || LlmError::new(LlmErrorKind::Unavailable, "encoder", "it stops");
        let jobs = self.jobs.as_ref().ok_or_else(unavailable)?;
        let most = self.max_waiting;
        let enter = |waiting: usize| (waiting < most).then_some(waiting + 1);
        let entered = self.shared.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter);
        if let Err(waiting) = entered {
            self.shared.statistics().refused += 1;
            let text = format!("{waiting} requests wait, at most {most} may");
            return Err(LlmError::new(LlmErrorKind::Overloaded, "queue", text));
        }
        let mut statistics = self.shared.statistics();
        statistics.requests += 1;
        let tokens: usize = texts.iter().map(|text| text.tokens.len()).sum();
        statistics.request_tokens.observe(tokens as f64);
        drop(statistics);
        let cancelled = Arc::new(AtomicBool::new(false));
        let job = EncodeJob {
            number: self.shared.next.fetch_add(1, Ordering::Relaxed),
            results: vec![Vec::new(); texts.len()],
            texts,
            next: 0,
            sink: Some(sink),
            cancelled: Arc::clone(&cancelled),
            submitted: Instant::now(),
            shared: Arc::clone(&self.shared),
            queue: None,
        };
        // A job that is lost tells its sink that the engine has stopped.
        drop(jobs.send(job));
        Ok(EncoderTicket(cancelled))
    }

    /// Tells somebody of every step and every request from now on; the first one who asks stays.
    pub fn observe(&self, observer: Arc<dyn EngineObserver>) {
        self.shared.observed.set(observer);
    }

    /// Counters so far.
    #[must_use]
    pub fn statistics(&self) -> EncoderStatistics {
        let mut statistics = self.shared.statistics().clone();
        statistics.waiting = self.shared.waiting.load(Ordering::Acquire);
        statistics
    }
}

impl Drop for EncoderEngine {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A sink may hold the last reference, and be dropped on the engine's own thread.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// A request that was taken. Dropping it takes the request back, where it has not ended.
#[derive(Debug)]
pub struct EncoderTicket(Arc<AtomicBool>);

impl Drop for EncoderTicket {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The texts of a request, and the results so far.
struct EncodeJob {
    number: u64,
    texts: Vec<TextTokens>,
    results: Vec<Vec<f32>>,
    /// The first text that was not computed.
    next: usize,
    sink: Option<ResultSink>,
    cancelled: Arc<AtomicBool>,
    submitted: Instant,
    shared: Arc<EncoderShared>,
    /// How long it waited, once it does no more.
    queue: Option<Duration>,
}

impl EncodeJob {
    fn begin(&mut self) {
        if self.queue.is_none() {
            self.shared.waiting.fetch_sub(1, Ordering::AcqRel);
            let queue = self.submitted.elapsed();
            self.queue = Some(queue);
            self.shared.statistics().queue_time.observe(queue.as_secs_f64());
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn is_done(&self) -> bool {
        self.next == self.texts.len()
    }

    /// Tells the results or what went wrong, and counts the end.
    fn end(&mut self, result: Result<()>) {
        let Some(sink) = self.sink.take() else { return };
        self.begin();
        let mut statistics = self.shared.statistics();
        match &result {
            Ok(()) => {
                statistics.finished += 1;
                statistics.request_latency.observe(self.submitted.elapsed().as_secs_f64());
            }
            Err(_) if self.is_cancelled() => statistics.cancelled += 1,
            Err(_) => statistics.failed += 1,
        }
        drop(statistics);
        self.note_end(result.is_ok());
        let results = std::mem::take(&mut self.results);
        let queue = self.queue.unwrap_or_default();
        let told = guarded(|| {
            sink(result.map(|()| EncodedTexts { results, queue }));
            Ok(())
        });
        if let Err(error) = told {
            tracing::error!(%error, "who takes an encoder's results panicked");
        }
    }
}

impl EncodeJob {
    fn note_end(&self, well: bool) {
        let Some(observer) = self.shared.observed.get() else { return };
        let outcome = match well {
            true => EngineOutcome::Finished,
            false if self.is_cancelled() => EngineOutcome::Cancelled,
            false => EngineOutcome::Failed,
        };
        observer.ended(RequestRecord {
            number: self.number,
            id: String::new(),
            submitted: self.submitted,
            admitted: self.queue.map(|queue| self.submitted + queue),
            first_token: None,
            end: Instant::now(),
            prompt_tokens: self.texts.iter().map(|text| text.tokens.len()).sum(),
            cached_tokens: 0,
            completion_tokens: 0,
            outcome,
        });
    }
}

impl Drop for EncodeJob {
    fn drop(&mut self) {
        self.end(Err(LlmError::new(LlmErrorKind::Unavailable, "encoder", "it stops")));
    }
}

/// State of the thread.
struct EncoderWorker {
    model: Arc<TextEncoder>,
    shared: Arc<EncoderShared>,
    arrivals: Receiver<EncodeJob>,
    /// Requests in the order of their arrival.
    open: VecDeque<EncodeJob>,
}

impl EncoderWorker {
    fn run(mut self) {
        loop {
            if self.open.is_empty() {
                match self.arrivals.recv() {
                    Ok(job) => self.open.push_back(job),
                    Err(_) => return,
                }
            }
            self.open.extend(self.arrivals.try_iter());
            if self.shared.stopping.load(Ordering::Acquire) {
                return;
            }
            self.open.retain_mut(|job| {
                if job.is_cancelled() {
                    job.end(Err(LlmError::new(
                        LlmErrorKind::Unavailable,
                        "encoder",
                        "the client left",
                    )));
                } else if job.is_done() {
                    // It has no texts.
                    job.end(Ok(()));
                }
                job.sink.is_some()
            });
            self.step();
        }
    }

    /// Computes some texts of those who wait: one of each request, and again, while they are few enough.
    fn step(&mut self) {
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut tokens = 0;
        'full: loop {
            let before = places.len();
            for (at, job) in self.open.iter_mut().enumerate() {
                let Some(text) = job.texts.get(job.next) else { continue };
                let all = tokens + text.tokens.len();
                if places.len() == MAX_TEXTS || (all > MAX_TOKENS && !places.is_empty()) {
                    break 'full;
                }
                tokens = all;
                places.push((at, job.next));
                job.next += 1;
                job.begin();
            }
            if places.len() == before {
                break;
            }
        }
        if places.is_empty() {
            return;
        }
        self.publish();
        let begin = Instant::now();
        let texts = places.iter().filter_map(|(job, text)| self.open.get(*job)?.texts.get(*text));
        let texts: Vec<&TextTokens> = texts.collect();
        let result = guarded(|| self.model.encoder().results(&texts));
        self.shared.statistics().step_tokens.observe(tokens as f64);
        let jobs = places.iter().filter_map(|(job, _)| Some(self.open.get(*job)?.number));
        self.shared.observed.stepped(begin, tokens, jobs);
        match result {
            Ok(results) => self.take(&places, results, tokens),
            Err(error) => {
                tracing::error!(%error, "the requests of a run fail");
                for (job, _) in &places {
                    if let Some(job) = self.open.get_mut(*job) {
                        job.end(Err(error.clone()));
                    }
                }
            }
        }
        self.open.retain(|job| job.sink.is_some());
        self.publish();
    }

    fn take(&mut self, places: &[(usize, usize)], results: Vec<Vec<f32>>, tokens: usize) {
        self.shared.statistics().tokens += tokens as u64;
        for ((job, text), result) in places.iter().zip(results) {
            let slot = self.open.get_mut(*job).and_then(|job| job.results.get_mut(*text));
            if let Some(slot) = slot {
                *slot = result;
            }
        }
        for job in self.open.iter_mut().filter(|job| job.is_done()) {
            job.end(Ok(()));
        }
    }

    /// Tells what goes on now.
    fn publish(&self) {
        self.shared.statistics().running =
            self.open.iter().filter(|job| job.queue.is_some()).count();
    }
}
