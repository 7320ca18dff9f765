//! The thread of an engine whose model reads a text whole and writes another one.
//!
//! Every turn reads the next text that has room, and appends a token to all texts that are being written;
//! these begin and end at any turn. There are no blocks: each answer has a row of the model's tensors.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::answer::{AnswerMemory, OngoingAnswer};
use super::command_loop::{self, EngineWork, SubmittedRequest};
use super::request::{EventReceiver, GenerationEvent, GenerationRequest, RequestTimes, TokenUsage};
use super::worker::ns;
use super::{EngineOptions, EngineShared, EngineStatistics, GenerationEngine, start_thread};
use crate::encoder_decoder::{EncoderDecoder, MAX_TOKENS, RowId, WritingRows};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::grammar::GrammarConstraint;
use crate::guarded::guarded;
use crate::observe::{EngineOutcome, ObserverHandle};
use crate::sampling::{LogitRow, SamplingParameters, TokenSampler};
use crate::schedule::SequenceId;
use crate::stop::FinishReason;
use crate::tokens::Tokenizer;

/// The most memory of rows that are written together, unless one request needs more.
const MAX_BYTES: usize = 1 << 30;

impl GenerationEngine {
    /// Starts the thread of a model that reads a text whole and writes another one.
    ///
    /// # Errors
    /// Options that contradict each other or ask for what such models have not, and a thread that does
    /// not start.
    pub fn start_encoder_decoder(
        model: EncoderDecoder,
        tokenizer: Arc<Tokenizer>,
        options: EngineOptions,
    ) -> Result<Self> {
        options.validate()?;
        let refused =
            |field: &str, text: String| Err(LlmError::new(LlmErrorKind::Parameter, field, text));
        if options.speculative.is_some() {
            let text = "a model that reads a text whole has its tokens guessed by nobody";
            return refused("speculative", text.to_owned());
        }
        let context = options.context.unwrap_or(MAX_TOKENS);
        if !(2..=MAX_TOKENS).contains(&context) {
            let text = format!("{context} tokens found, expected 2 to {MAX_TOKENS}");
            return refused("context", text);
        }
        let shared = Arc::new(EngineShared {
            waiting: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            statistics: Mutex::new(EngineStatistics::new(options.max_sequences, 0)),
            observed: ObserverHandle::default(),
        });
        let (commands, receiver) = mpsc::channel();
        let vocabulary = model.shape().vocabulary;
        let writer = Seq2SeqWorker::new(
            model,
            Arc::clone(&tokenizer),
            Arc::clone(&shared),
            options.max_sequences,
            MAX_BYTES,
        );
        let thread = start_thread(move || command_loop::run(writer, &receiver))?;
        Ok(Self {
            commands,
            shared,
            tokenizer,
            options,
            vocabulary,
            context,
            reads: true,
            next: AtomicU64::new(0),
            thread: Some(thread),
        })
    }

    /// Refuses what a model that reads prompts whole cannot give.
    pub(super) fn check_read(&self, request: &GenerationRequest) -> Result<()> {
        let refused =
            |field: &str, text: String| Err(LlmError::new(LlmErrorKind::Parameter, field, text));
        if request.sampling.prompt_logprobs.is_some() {
            let text = "this model reads prompts whole, and their tokens have no probabilities";
            return refused("prompt_logprobs", text.to_owned());
        }
        let most = self.options.max_sequences;
        if usize::try_from(request.sampling.n).is_ok_and(|n| n > most) {
            let text = format!("{} found, expected at most {most}", request.sampling.n);
            return refused("n", text);
        }
        Ok(())
    }
}

/// A request. Its answers are rows whose numbers follow its own.
struct Seq2SeqRequest {
    id: SequenceId,
    /// Name that the front end gives it.
    name: String,
    priority: i32,
    reply: EventReceiver,
    sampling: SamplingParameters,
    constraint: Option<GrammarConstraint>,
    prompt: Vec<u32>,
    /// Answers that have not ended.
    open: Vec<Seq2SeqAnswer>,
    usage: TokenUsage,
    times: RequestTimes,
}

impl Seq2SeqRequest {
    /// The most tokens that an answer may have.
    fn most(&self) -> usize {
        self.open.iter().map(|open| open.answer.left()).max().unwrap_or(0)
    }

    fn answers(&self) -> usize {
        usize::try_from(self.sampling.n).unwrap_or(usize::MAX)
    }
}

/// An answer that goes on.
struct Seq2SeqAnswer {
    row: RowId,
    answer: OngoingAnswer,
    /// The token that the next step takes.
    last: u32,
    told: Option<Instant>,
}

/// State of the thread.
struct Seq2SeqWorker {
    model: EncoderDecoder,
    tokenizer: Arc<Tokenizer>,
    shared: Arc<EngineShared>,
    memory: AnswerMemory,
    /// The most rows.
    max_rows: usize,
    /// The most memory of rows, unless one request needs more.
    max_bytes: usize,
    rows: WritingRows,
    waiting: VecDeque<Seq2SeqRequest>,
    running: Vec<Seq2SeqRequest>,
}

impl Seq2SeqWorker {
    fn new(
        model: EncoderDecoder,
        tokenizer: Arc<Tokenizer>,
        shared: Arc<EngineShared>,
        max_rows: usize,
        max_bytes: usize,
    ) -> Self {
        let memory = AnswerMemory::new(model.shape().vocabulary);
        Self {
            model,
            tokenizer,
            shared,
            memory,
            max_rows,
            max_bytes,
            rows: WritingRows::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
        }
    }

    /// Whether there is room for a request beside those that run.
    fn has_room(&self, request: &Seq2SeqRequest) -> bool {
        let rows = self.rows.len() + request.answers();
        let all = || self.running.iter().chain([request]);
        let source = all().map(|request| request.prompt.len()).max().unwrap_or(0);
        let past = all()
            .map(|request| request.usage.completion_tokens + request.most())
            .max()
            .unwrap_or(0);
        let bytes = WritingRows::bytes(&self.model, rows, source, past);
        self.running.is_empty() || rows <= self.max_rows && bytes <= self.max_bytes
    }

    /// Reads the text of the next request, where it has room.
    fn admit(&mut self) {
        if !self.waiting.front().is_some_and(|next| self.has_room(next)) {
            return;
        }
        let Some(mut request) = self.waiting.pop_front() else { return };
        self.shared.waiting.fetch_sub(1, Ordering::AcqRel);
        let now = Instant::now();
        request.times.admitted = Some(now);
        let queue = now.saturating_duration_since(request.times.submitted);
        request.usage.queue_ns = ns(queue);
        self.shared.statistics().queue_time.observe(queue.as_secs_f64());
        let begin = Instant::now();
        let begun = self.begin(&mut request);
        self.shared.observed.stepped(begin, request.prompt.len(), [request.id]);
        if let Err(error) = begun {
            self.fail(request, &error);
            return;
        }
        self.shared.statistics().prompt_tokens += request.prompt.len() as u64;
        let begun = GenerationEvent::Started { cached_tokens: 0, prompt_logprobs: None };
        let id = request.id;
        let heard = request.reply.tell(begun);
        self.running.push(request);
        if !heard {
            self.take_back(id);
        }
    }

    /// Reads a request's text and begins its answers.
    fn begin(&mut self, request: &mut Seq2SeqRequest) -> Result<()> {
        let source = guarded(|| self.model.source(&request.prompt))?;
        let room = request.open.first().map_or(0, |open| open.answer.room());
        for index in 1..request.sampling.n {
            let vocabulary = self.model.shape().vocabulary;
            let eos = self.tokenizer.eos();
            let sampler = TokenSampler::new(&request.sampling, vocabulary, &[], eos, index)?;
            let number = usize::try_from(index).unwrap_or(usize::MAX);
            let answer = OngoingAnswer::new(number, sampler, request.constraint.clone(), room);
            let row = request.id + u64::from(index);
            let last = self.model.shape().start;
            request.open.push(Seq2SeqAnswer { row, answer, last, told: None });
        }
        for open in &request.open {
            if let Err(error) = self.rows.add(&self.model, open.row, &source) {
                self.fail_running(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends a token to every answer.
    fn step(&mut self) {
        let begin = Instant::now();
        let open = self.running.iter().flat_map(|request| &request.open);
        let tokens: Vec<(RowId, u32)> = open.map(|open| (open.row, open.last)).collect();
        let rows = &mut self.rows;
        let model = &self.model;
        let logits = match guarded(|| rows.step(model, &tokens)) {
            Ok(logits) => logits,
            Err(error) => return self.fail_running(&error),
        };
        let mut statistics = self.shared.statistics();
        statistics.steps += 1;
        statistics.step_tokens.observe(tokens.len() as f64);
        drop(statistics);
        let mut logits = logits.into_iter();
        let rows = tokens.iter().map(|(row, _)| *row);
        self.shared.observed.stepped(begin, tokens.len(), rows);
        for mut request in std::mem::take(&mut self.running) {
            let count = request.open.len();
            let rows: Vec<Vec<f32>> = logits.by_ref().take(count).collect();
            match self.go_on(&mut request, rows) {
                Ok(true) => self.end(request, EngineOutcome::Finished),
                Ok(false) => self.running.push(request),
                Err(error) => self.fail(request, &error),
            }
        }
    }

    /// Chooses the next token of each answer of a request; whether all have ended.
    fn go_on(&mut self, request: &mut Seq2SeqRequest, rows: Vec<Vec<f32>>) -> Result<bool> {
        let mut ended = Vec::new();
        for (open, mut row) in request.open.iter_mut().zip(rows) {
            let choice = open.answer.choose(LogitRow::Logits(&mut row), &mut self.memory)?;
            let delta = open.answer.take(choice, &self.tokenizer)?;
            open.last = delta.tokens.last().copied().unwrap_or(open.last);
            let now = Instant::now();
            request.usage.completion_tokens += delta.tokens.len();
            let mut statistics = self.shared.statistics();
            statistics.generation_tokens += delta.tokens.len() as u64;
            if request.times.first_token.is_none() {
                request.times.first_token = Some(now);
                let time = now.saturating_duration_since(request.times.submitted);
                request.usage.first_token_ns = ns(time);
                statistics.time_to_first_token.observe(time.as_secs_f64());
            }
            if let Some(before) = open.told.replace(now) {
                let time = now.saturating_duration_since(before).as_secs_f64();
                statistics.inter_token_latency.observe(time);
            }
            if let Some(reason) = &delta.finish {
                *statistics.finished.entry(reason.as_str()).or_default() += 1;
                ended.push(open.row);
            }
            drop(statistics);
            if !request.reply.tell(GenerationEvent::Delta(delta)) {
                // Nobody listens: what is left of the request ends with it.
                let left = request.open.iter().filter(|open| !ended.contains(&open.row)).count();
                self.count_finished(FinishReason::Cancelled.as_str(), left as u64);
                return Ok(true);
            }
        }
        for row in &ended {
            self.drop_row(*row);
        }
        request.open.retain(|open| !ended.contains(&open.row));
        Ok(request.open.is_empty())
    }

    fn drop_row(&mut self, row: RowId) {
        let rows = &mut self.rows;
        let model = &self.model;
        if let Err(error) = rows.remove(model, row) {
            self.fail_running(&error);
        }
    }

    fn count_finished(&self, reason: &'static str, count: u64) {
        *self.shared.statistics().finished.entry(reason).or_default() += count;
    }

    /// Tells that all answers of a request have ended.
    fn end(&mut self, mut request: Seq2SeqRequest, outcome: EngineOutcome) {
        for open in std::mem::take(&mut request.open) {
            self.drop_row(open.row);
        }
        let now = Instant::now();
        let RequestTimes { submitted, admitted, first_token } = request.times;
        request.usage.total_ns = ns(now.saturating_duration_since(submitted));
        let times = [Some(submitted), admitted, first_token];
        self.shared.statistics().end(now, times, request.usage.completion_tokens);
        self.publish();
        self.note_end(&request, outcome);
        request.reply.tell(GenerationEvent::Finished(request.usage));
    }

    fn note_end(&self, request: &Seq2SeqRequest, outcome: EngineOutcome) {
        let Seq2SeqRequest { id, name, times, usage, .. } = request;
        self.shared.ended(*id, name, *times, usage, outcome);
    }

    fn take_back(&mut self, id: SequenceId) {
        let mut request = if let Some(at) = self.waiting.iter().position(|one| one.id == id) {
            self.shared.waiting.fetch_sub(1, Ordering::AcqRel);
            let Some(request) = self.waiting.remove(at) else { return };
            request
        } else if let Some(at) = self.running.iter().position(|one| one.id == id) {
            self.running.remove(at)
        } else {
            return;
        };
        for open in std::mem::take(&mut request.open) {
            self.drop_row(open.row);
            self.count_finished(FinishReason::Cancelled.as_str(), 1);
            request.reply.tell(GenerationEvent::Delta(open.answer.cancel()));
        }
        self.end(request, EngineOutcome::Cancelled);
    }

    fn fail(&mut self, mut request: Seq2SeqRequest, error: &LlmError) {
        if request.times.admitted.is_none() {
            self.shared.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        for open in &request.open {
            // Whatever goes wrong with the rows concerns those that run, which are told elsewhere.
            let _ = self.rows.remove(&self.model, open.row);
        }
        self.count_finished(FinishReason::Failed.as_str(), 1);
        self.shared.statistics().failed += 1;
        self.note_end(&request, EngineOutcome::Failed);
        request.reply.tell(GenerationEvent::Failed(error.clone()));
    }

    /// All that run fail, and nothing is kept.
    fn fail_running(&mut self, error: &LlmError) {
        self.rows = WritingRows::default();
        if !self.running.is_empty() {
            tracing::error!(%error, "the requests of a step fail");
        }
        for request in std::mem::take(&mut self.running) {
            self.fail(request, error);
        }
    }
}

impl EngineWork for Seq2SeqWorker {
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    fn work(&mut self) {
        self.admit();
        if !self.running.is_empty() {
            self.step();
        }
        self.publish();
    }

    fn accept(&mut self, submission: SubmittedRequest) {
        let SubmittedRequest { arrival, name, answer, constraint, sampling, reply, submitted } =
            submission;
        self.shared.statistics().take_in(&sampling, arrival.tokens.len());
        let id = arrival.id;
        let last = self.model.shape().start;
        let usage = TokenUsage { prompt_tokens: arrival.tokens.len(), ..TokenUsage::default() };
        let request = Seq2SeqRequest {
            id,
            name,
            priority: arrival.priority,
            reply,
            sampling,
            constraint,
            prompt: arrival.tokens,
            open: vec![Seq2SeqAnswer { row: id, answer, last, told: None }],
            usage,
            times: RequestTimes::of_new(submitted),
        };
        // Lower ones run first, and of the same those that came first.
        let at = self.waiting.partition_point(|other| other.priority <= request.priority);
        self.waiting.insert(at, request);
    }

    fn cancel(&mut self, id: SequenceId) {
        self.take_back(id);
    }

    fn recover(&mut self, error: &LlmError) {
        self.fail_running(error);
    }

    fn give_up(&mut self, error: &LlmError) {
        self.running.extend(self.waiting.drain(..));
        self.fail_running(error);
    }

    fn publish(&self) {
        let mut statistics = self.shared.statistics();
        statistics.running = self.rows.len();
        statistics.active_blocks = self.rows.len();
        statistics.waiting = self.waiting.len();
    }
}
