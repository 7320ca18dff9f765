//! Course of the requests of every kind of engine: a place in the queue, times, counts and one end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea_runtime::RecordedInterval;

use super::request::TokenUsage;
use super::statistics::EngineStatistics;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::observe::{EngineOutcome, ObserverHandle, RequestRecord};

/// State that an engine's thread and its users share.
#[derive(Debug)]
pub(crate) struct EngineShared {
    /// Word for the engine in errors.
    pub(super) name: &'static str,
    /// Requests whose computation has not begun, and the most of them.
    waiting: AtomicUsize,
    max_waiting: usize,
    pub(super) stopping: AtomicBool,
    /// Number of the next request.
    next: AtomicU64,
    statistics: Mutex<EngineStatistics>,
    pub(super) observed: ObserverHandle,
}

impl EngineShared {
    /// State of an engine that has done nothing yet.
    pub(crate) fn new(
        name: &'static str,
        max_waiting: usize,
        statistics: EngineStatistics,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            waiting: AtomicUsize::new(0),
            max_waiting,
            stopping: AtomicBool::new(false),
            next: AtomicU64::new(0),
            statistics: Mutex::new(statistics),
            observed: ObserverHandle::default(),
        })
    }

    pub(crate) fn statistics(&self) -> MutexGuard<'_, EngineStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of requests whose computation has not begun.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Error of a request that the engine does not come to any more.
    pub(crate) fn stopped(&self) -> LlmError {
        LlmError::new(LlmErrorKind::Unavailable, self.name, "it stops")
    }

    /// Counts the end of so many answers, by the word of their reason.
    pub(crate) fn count_finished(&self, reason: &'static str, count: u64) {
        *self.statistics().finished.entry(reason).or_default() += count;
    }

    /// Tells the observer that a step begins.
    pub(crate) fn begins(&self) -> Option<RecordedInterval> {
        self.observed.begins()
    }

    /// Tells the observer of a step that began then.
    pub(crate) fn stepped(
        &self,
        begin: Instant,
        tokens: usize,
        sequences: impl IntoIterator<Item = u64>,
    ) {
        self.observed.stepped(begin, tokens, sequences);
    }

    /// Takes a place among the requests that wait.
    fn acquire(self: &Arc<Self>) -> Result<QueuePermit> {
        let most = self.max_waiting;
        let enter = |waiting: usize| (waiting < most).then_some(waiting + 1);
        match self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter) {
            Ok(_) => Ok(QueuePermit(Arc::clone(self))),
            Err(waiting) => {
                self.statistics().refused += 1;
                let text = format!("{waiting} requests wait, at most {most} may");
                Err(LlmError::new(LlmErrorKind::Overloaded, "queue", text))
            }
        }
    }
}

/// A place among the requests that wait, given back when it is dropped.
#[derive(Debug)]
struct QueuePermit(Arc<EngineShared>);

impl Drop for QueuePermit {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Facts about a request that every kind of engine needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSize {
    /// How many numbers its sequences take.
    pub(crate) sequences: u64,
    /// Tokens of its prompt or texts.
    pub(crate) tokens: usize,
}

/// Course of a request from its submission to its end, which is counted once. One that is dropped before has
/// failed.
#[derive(Debug)]
pub(crate) struct RequestLife {
    number: u64,
    /// Name that the front end gives it; may be empty.
    name: String,
    /// Place in the queue, until the computation begins.
    permit: Option<QueuePermit>,
    shared: Arc<EngineShared>,
    /// Whether it has ended, for its ticket.
    ended: Arc<AtomicBool>,
    submitted: Instant,
    admitted: Option<Instant>,
    first_token: Option<Instant>,
    usage: TokenUsage,
}

impl RequestLife {
    /// Begins the course of a request, which waits.
    ///
    /// # Errors
    /// Where too many requests wait.
    pub(super) fn begin(
        shared: &Arc<EngineShared>,
        name: String,
        size: RequestSize,
    ) -> Result<Self> {
        let permit = shared.acquire()?;
        shared.statistics().take_in(size.tokens);
        Ok(Self {
            number: shared.next.fetch_add(size.sequences, Ordering::Relaxed),
            name,
            permit: Some(permit),
            shared: Arc::clone(shared),
            ended: Arc::new(AtomicBool::new(false)),
            submitted: Instant::now(),
            admitted: None,
            first_token: None,
            usage: TokenUsage { prompt_tokens: size.tokens, ..TokenUsage::default() },
        })
    }

    /// Number of the request, which is that of its first sequence.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// State of its engine.
    pub(crate) fn shared(&self) -> &EngineShared {
        &self.shared
    }

    /// Costs so far.
    pub(crate) fn usage(&self) -> TokenUsage {
        self.usage
    }

    /// Whether its computation has begun.
    pub(crate) fn is_admitted(&self) -> bool {
        self.admitted.is_some()
    }

    /// Whether it has had a token.
    pub(super) fn has_token(&self) -> bool {
        self.first_token.is_some()
    }

    /// Flag that says whether it has ended.
    pub(super) fn ended(&self) -> &Arc<AtomicBool> {
        &self.ended
    }

    /// Notes that the computation begins, the first time; so many tokens of the prompt were found in the cache.
    pub(crate) fn admit(&mut self, cached: usize) {
        if self.is_admitted() {
            return;
        }
        let now = Instant::now();
        self.admitted = Some(now);
        let queue = now.saturating_duration_since(self.submitted);
        self.usage.queue_ns = ns(queue);
        self.usage.cached_tokens = cached;
        self.shared.statistics().queue_time.observe(queue.as_secs_f64());
        self.permit = None;
    }

    /// Counts new tokens of an answer and the time that they took. `last` is the time of those before.
    pub(super) fn take_tokens(&mut self, tokens: usize, last: &mut Option<Instant>) {
        let now = Instant::now();
        self.usage.completion_tokens += tokens;
        let mut statistics = self.shared.statistics();
        statistics.generation_tokens += tokens as u64;
        if self.first_token.is_none() {
            self.first_token = Some(now);
            let time = now.saturating_duration_since(self.submitted);
            self.usage.first_token_ns = ns(time);
            statistics.time_to_first_token.observe(time.as_secs_f64());
        }
        if let Some(before) = last.replace(now) {
            let time = now.saturating_duration_since(before).as_secs_f64();
            statistics.inter_token_latency.observe(time);
        }
    }

    /// Adds its times and its tokens to the distributions.
    pub(crate) fn observe_times(&self) {
        let times = [Some(self.submitted), self.admitted, self.first_token];
        let tokens = self.usage.completion_tokens;
        self.shared.statistics().end(Instant::now(), times, tokens);
    }

    /// Notes the end, the first time, before the client is told.
    pub(crate) fn end(&mut self, outcome: EngineOutcome) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        self.permit = None;
        let end = Instant::now();
        self.usage.total_ns = ns(end.saturating_duration_since(self.submitted));
        match outcome {
            EngineOutcome::Finished => {}
            EngineOutcome::Cancelled => self.shared.statistics().cancelled += 1,
            EngineOutcome::Failed => self.shared.statistics().failed += 1,
        }
        let Some(observer) = self.shared.observed.get() else { return };
        observer.ended(RequestRecord {
            number: self.number,
            id: self.name.clone(),
            submitted: self.submitted,
            admitted: self.admitted,
            first_token: self.first_token,
            end,
            prompt_tokens: self.usage.prompt_tokens,
            cached_tokens: self.usage.cached_tokens,
            completion_tokens: self.usage.completion_tokens,
            outcome,
        });
    }
}

impl Drop for RequestLife {
    fn drop(&mut self) {
        self.end(EngineOutcome::Failed);
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
