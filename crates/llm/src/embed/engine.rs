//! Texts of many requests through an encoder, on one thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{MAX_TEXTS, MAX_TOKENS, TextEncoder, TextTokens};
use crate::engine::{
    EngineShared, EngineStatistics, RequestEngine, RequestLife, RequestSize, RequestTicket,
    StepWorker,
};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::guarded::guarded;
use crate::observe::{EngineObserver, EngineOutcome};

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

/// Reason that is counted for all requests that end well.
const FINISHED: &str = "stop";

/// An encoder whose runs hold texts of several requests. Dropping it fails those that are open, and ends
/// its thread.
#[derive(Debug)]
pub struct EncoderEngine {
    requests: RequestEngine<EncodeJob>,
    model: Arc<TextEncoder>,
}

impl EncoderEngine {
    /// Starts the engine's thread. At most so many requests wait.
    ///
    /// # Errors
    /// A classifier whose labels are no score, and a thread that does not start.
    pub fn start(model: TextEncoder, max_waiting: usize) -> Result<Self> {
        model.encoder().check_labels()?;
        let model = Arc::new(model);
        let mut statistics = EngineStatistics::new(0, 0);
        statistics.finished.insert(FINISHED, 0);
        let shared = EngineShared::new("encoder", max_waiting, statistics);
        let worker = EncoderWorker {
            model: Arc::clone(&model),
            shared: Arc::clone(&shared),
            open: VecDeque::new(),
        };
        Ok(Self { requests: RequestEngine::start(shared, worker)?, model })
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
    pub fn submit(&self, texts: Vec<TextTokens>, sink: ResultSink) -> Result<RequestTicket> {
        for (at, text) in texts.iter().enumerate() {
            self.model.encoder().check_text(at, text)?;
        }
        let tokens = texts.iter().map(|text| text.tokens.len()).sum();
        let size = RequestSize { sequences: 1, tokens };
        self.requests.submit(String::new(), size, |life| EncodeJob {
            life,
            results: vec![Vec::new(); texts.len()],
            texts,
            next: 0,
            sink: Some(sink),
        })
    }

    /// Tells somebody of every step and every request from now on; the first one who asks stays.
    pub fn observe(&self, observer: Arc<dyn EngineObserver>) {
        self.requests.observe(observer);
    }

    /// Counters so far.
    #[must_use]
    pub fn statistics(&self) -> EngineStatistics {
        let waiting = self.requests.shared().waiting();
        EngineStatistics { waiting, ..self.requests.statistics() }
    }
}

/// The texts of a request, and the results so far.
struct EncodeJob {
    // Counted before the client is told, where it is dropped.
    life: RequestLife,
    texts: Vec<TextTokens>,
    results: Vec<Vec<f32>>,
    /// The first text that was not computed.
    next: usize,
    sink: Option<ResultSink>,
}

impl EncodeJob {
    fn is_done(&self) -> bool {
        self.next == self.texts.len()
    }

    /// Counts the end and tells the results.
    fn finish(mut self) {
        self.life.admit(0);
        self.life.observe_times();
        self.life.shared().count_finished(FINISHED, 1);
        let results = std::mem::take(&mut self.results);
        let queue = Duration::from_nanos(self.life.usage().queue_ns);
        self.end(EngineOutcome::Finished, Ok(EncodedTexts { results, queue }));
    }

    /// Counts the end and tells what went wrong.
    fn fail(mut self, error: LlmError) {
        self.end(EngineOutcome::Failed, Err(error));
    }

    fn end(&mut self, outcome: EngineOutcome, result: Result<EncodedTexts>) {
        let Some(sink) = self.sink.take() else { return };
        self.life.admit(0);
        self.life.end(outcome);
        let told = guarded(|| {
            sink(result);
            Ok(())
        });
        if let Err(error) = told {
            tracing::error!(%error, "who takes an encoder's results panicked");
        }
    }
}

impl Drop for EncodeJob {
    fn drop(&mut self) {
        let error = self.life.shared().stopped();
        self.end(EngineOutcome::Failed, Err(error));
    }
}

/// Place of a text among those that are computed together.
struct TextPlace {
    /// Place of its request among those that are open.
    job: usize,
    text: usize,
}

/// State of the thread.
struct EncoderWorker {
    model: Arc<TextEncoder>,
    shared: Arc<EngineShared>,
    /// Requests in the order of their arrival.
    open: VecDeque<EncodeJob>,
}

impl EncoderWorker {
    /// Chooses texts that are computed together: one of each request, and again, while they are few enough.
    fn plan(&mut self) -> Vec<TextPlace> {
        let mut places: Vec<TextPlace> = Vec::new();
        let mut tokens = 0;
        loop {
            let before = places.len();
            for (job, open) in self.open.iter_mut().enumerate() {
                let Some(text) = open.texts.get(open.next) else { continue };
                tokens += text.tokens.len();
                if places.len() == MAX_TEXTS || (tokens > MAX_TOKENS && !places.is_empty()) {
                    return places;
                }
                places.push(TextPlace { job, text: open.next });
                open.next += 1;
                open.life.admit(0);
            }
            if places.len() == before {
                return places;
            }
        }
    }

    fn step(&mut self) {
        let places = self.plan();
        self.publish();
        let _recorded = self.shared.begins();
        let begin = Instant::now();
        let texts = places.iter().filter_map(|at| self.open.get(at.job)?.texts.get(at.text));
        let texts: Vec<&TextTokens> = texts.collect();
        let tokens: usize = texts.iter().map(|text| text.tokens.len()).sum();
        let result = guarded(|| self.model.encoder().results(&texts));
        let mut statistics = self.shared.statistics();
        statistics.steps += 1;
        statistics.step_tokens.observe(tokens as f64);
        statistics.prompt_tokens += if result.is_ok() { tokens as u64 } else { 0 };
        drop(statistics);
        let jobs = places.iter().filter_map(|at| Some(self.open.get(at.job)?.life.number()));
        self.shared.stepped(begin, tokens, jobs);
        match result {
            Ok(results) => self.take(&places, results),
            Err(error) => {
                tracing::error!(%error, "the requests of a run fail");
                for job in self.take_out(|job| places.iter().any(|at| at.job == job)) {
                    job.fail(error.clone());
                }
            }
        }
        self.publish();
    }

    fn take(&mut self, places: &[TextPlace], results: Vec<Vec<f32>>) {
        for (at, result) in places.iter().zip(results) {
            let job = self.open.get_mut(at.job);
            if let Some(slot) = job.and_then(|job| job.results.get_mut(at.text)) {
                *slot = result;
            }
        }
        let done: Vec<bool> = self.open.iter().map(EncodeJob::is_done).collect();
        let done = self.take_out(|job| done.get(job).copied().unwrap_or(false));
        for job in done {
            job.finish();
        }
    }

    /// Takes requests out that end, by their places, before anybody is told.
    fn take_out(&mut self, ends: impl Fn(usize) -> bool) -> Vec<EncodeJob> {
        let mut taken = Vec::new();
        let mut open = VecDeque::with_capacity(self.open.len());
        for (at, job) in std::mem::take(&mut self.open).into_iter().enumerate() {
            if ends(at) { taken.push(job) } else { open.push_back(job) }
        }
        self.open = open;
        self.publish();
        taken
    }

    fn fail_all(&mut self, error: &LlmError) {
        for job in std::mem::take(&mut self.open) {
            job.fail(error.clone());
        }
    }
}

impl StepWorker for EncoderWorker {
    type Request = EncodeJob;

    fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    fn work(&mut self) {
        self.step();
    }

    fn accept(&mut self, job: EncodeJob) {
        if job.is_done() {
            // It has no texts.
            job.finish();
        } else {
            self.open.push_back(job);
        }
    }

    fn cancel(&mut self, number: u64) {
        let at = self.open.iter().position(|job| job.life.number() == number);
        if let Some(mut job) = at.and_then(|at| self.open.remove(at)) {
            self.publish();
            let left = LlmError::new(LlmErrorKind::Unavailable, "encoder", "the client left");
            job.end(EngineOutcome::Cancelled, Err(left));
        }
    }

    fn recover(&mut self, error: &LlmError) {
        self.fail_all(error);
    }

    fn give_up(&mut self, error: &LlmError) {
        self.fail_all(error);
    }

    fn publish(&self) {
        let running = self.open.iter().filter(|job| job.life.is_admitted()).count();
        self.shared.statistics().running = running;
    }
}
