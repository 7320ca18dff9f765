//! The thread of an engine whose model reads a text whole and writes another one.
//!
//! Every turn reads the next text that has room, and appends a token to all texts that are being written;
//! these begin and end at any turn. There are no blocks: each answer has a row of the model's tensors.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::answer::{Answer, Memory};
use super::intake::{self, Submission, Work};
use super::request::{GenerationEvent, GenerationRequest, Reply, Usage};
use super::worker::ns;
use super::{Engine, EngineOptions, EngineStatistics, Shared, start_thread};
use crate::encoder_decoder::{EncoderDecoder, MOST_TOKENS, RowId, Rows};
use crate::error::{Error, Kind, Result};
use crate::grammar::Constraint;
use crate::guarded::guarded;
use crate::observe::{Observed, Outcome};
use crate::sampling::{Row, Sampler, SamplingParameters};
use crate::schedule::SequenceId;
use crate::stop::FinishReason;
use crate::tokens::Tokenizer;

/// The most memory of rows that are written together, unless one request needs more.
const MOST_BYTES: usize = 1 << 30;

impl Engine {
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
        let refused = |field: &str, text: String| Err(Error::new(Kind::Parameter, field, text));
        if options.speculative.is_some() {
            let text = "a model that reads a text whole has its tokens guessed by nobody";
            return refused("speculative", text.to_owned());
        }
        let context = options.context.unwrap_or(MOST_TOKENS);
        if !(2..=MOST_TOKENS).contains(&context) {
            let text = format!("{context} tokens found, expected 2 to {MOST_TOKENS}");
            return refused("context", text);
        }
        let shared = Arc::new(Shared {
            waiting: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            statistics: Mutex::new(EngineStatistics::new(options.max_sequences, 0)),
            observed: Observed::default(),
        });
        let (commands, receiver) = mpsc::channel();
        let vocabulary = model.shape().vocabulary;
        let most = [options.max_sequences, MOST_BYTES];
        let writer = Writer::new(model, Arc::clone(&tokenizer), Arc::clone(&shared), most);
        let thread = start_thread(move || intake::run(writer, &receiver))?;
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
        let refused = |field: &str, text: String| Err(Error::new(Kind::Parameter, field, text));
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
struct Request {
    id: SequenceId,
    /// What the door calls it.
    name: String,
    priority: i32,
    reply: Reply,
    sampling: SamplingParameters,
    constraint: Option<Constraint>,
    prompt: Vec<u32>,
    /// Answers that have not ended.
    open: Vec<Open>,
    usage: Usage,
    submitted: Instant,
    admitted: Option<Instant>,
    first_token: Option<Instant>,
}

impl Request {
    /// The most tokens that an answer may have.
    fn most(&self) -> usize {
        self.open.iter().map(|open| open.answer.left()).max().unwrap_or(0)
    }

    fn answers(&self) -> usize {
        usize::try_from(self.sampling.n).unwrap_or(usize::MAX)
    }
}

/// An answer that goes on.
struct Open {
    row: RowId,
    answer: Answer,
    /// The token that the next step takes.
    last: u32,
    told: Option<Instant>,
}

/// What the thread knows.
struct Writer {
    model: EncoderDecoder,
    tokenizer: Arc<Tokenizer>,
    shared: Arc<Shared>,
    memory: Memory,
    /// The most rows.
    max_rows: usize,
    /// The most memory of rows, unless one request needs more.
    max_bytes: usize,
    rows: Rows,
    waiting: VecDeque<Request>,
    running: Vec<Request>,
}

impl Writer {
    fn new(
        model: EncoderDecoder,
        tokenizer: Arc<Tokenizer>,
        shared: Arc<Shared>,
        [max_rows, max_bytes]: [usize; 2],
    ) -> Self {
        let memory = Memory::new(model.shape().vocabulary);
        Self {
            model,
            tokenizer,
            shared,
            memory,
            max_rows,
            max_bytes,
            rows: Rows::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
        }
    }

    /// Whether there is room for a request beside those that run.
    fn has_room(&self, request: &Request) -> bool {
        let rows = self.rows.len() + request.answers();
        let all = || self.running.iter().chain([request]);
        let source = all().map(|request| request.prompt.len()).max().unwrap_or(0);
        let past = all()
            .map(|request| request.usage.completion_tokens + request.most())
            .max()
            .unwrap_or(0);
        let bytes = Rows::bytes(&self.model, rows, source, past);
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
        request.admitted = Some(now);
        let queue = now.saturating_duration_since(request.submitted);
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
    fn begin(&mut self, request: &mut Request) -> Result<()> {
        let source = guarded(|| self.model.source(&request.prompt))?;
        let room = request.open.first().map_or(0, |open| open.answer.room());
        for index in 1..request.sampling.n {
            let (vocabulary, eos) = (self.model.shape().vocabulary, self.tokenizer.eos());
            let sampler = Sampler::new(&request.sampling, vocabulary, &[], eos, index)?;
            let number = usize::try_from(index).unwrap_or(usize::MAX);
            let answer = Answer::new(number, sampler, request.constraint.clone(), room);
            let (row, last) = (request.id + u64::from(index), self.model.shape().start);
            request.open.push(Open { row, answer, last, told: None });
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
        let (rows, model) = (&mut self.rows, &self.model);
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
                Ok(true) => self.end(request, Outcome::Finished),
                Ok(false) => self.running.push(request),
                Err(error) => self.fail(request, &error),
            }
        }
    }

    /// Chooses the next token of each answer of a request; whether all have ended.
    fn go_on(&mut self, request: &mut Request, rows: Vec<Vec<f32>>) -> Result<bool> {
        let mut ended = Vec::new();
        for (open, mut row) in request.open.iter_mut().zip(rows) {
            let choice = open.answer.choose(Row::Logits(&mut row), &mut self.memory)?;
            let delta = open.answer.take(choice, &self.tokenizer)?;
            open.last = delta.tokens.last().copied().unwrap_or(open.last);
            let now = Instant::now();
            request.usage.completion_tokens += delta.tokens.len();
            let mut statistics = self.shared.statistics();
            statistics.generation_tokens += delta.tokens.len() as u64;
            if request.first_token.is_none() {
                request.first_token = Some(now);
                let time = now.saturating_duration_since(request.submitted);
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
        let (rows, model) = (&mut self.rows, &self.model);
        if let Err(error) = rows.remove(model, row) {
            self.fail_running(&error);
        }
    }

    fn count_finished(&self, reason: &'static str, count: u64) {
        *self.shared.statistics().finished.entry(reason).or_default() += count;
    }

    /// Tells that all answers of a request have ended.
    fn end(&mut self, mut request: Request, outcome: Outcome) {
        for open in std::mem::take(&mut request.open) {
            self.drop_row(open.row);
        }
        let now = Instant::now();
        request.usage.total_ns = ns(now.saturating_duration_since(request.submitted));
        let times = [Some(request.submitted), request.admitted, request.first_token];
        self.shared.statistics().end(now, times, request.usage.completion_tokens);
        self.publish();
        self.note_end(&request, outcome);
        request.reply.tell(GenerationEvent::Finished(request.usage));
    }

    fn note_end(&self, request: &Request, outcome: Outcome) {
        let times = (request.submitted, [request.admitted, request.first_token]);
        self.shared.ended((request.id, &request.name), times, &request.usage, outcome);
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
        self.end(request, Outcome::Cancelled);
    }

    fn fail(&mut self, mut request: Request, error: &Error) {
        if request.admitted.is_none() {
            self.shared.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        for open in &request.open {
            // Whatever goes wrong with the rows concerns those that run, which are told elsewhere.
            let _ = self.rows.remove(&self.model, open.row);
        }
        self.count_finished(FinishReason::Failed.as_str(), 1);
        self.shared.statistics().failed += 1;
        self.note_end(&request, Outcome::Failed);
        request.reply.tell(GenerationEvent::Failed(error.clone()));
    }

    /// All that run fail, and nothing is kept.
    fn fail_running(&mut self, error: &Error) {
        self.rows = Rows::default();
        if !self.running.is_empty() {
            tracing::error!(%error, "the requests of a step fail");
        }
        for request in std::mem::take(&mut self.running) {
            self.fail(request, error);
        }
    }
}

impl Work for Writer {
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

    fn accept(&mut self, submission: Submission) {
        let Submission { arrival, name, answer, constraint, sampling, reply, submitted } =
            submission;
        self.shared.statistics().take_in(&sampling, arrival.tokens.len());
        let (id, last) = (arrival.id, self.model.shape().start);
        let usage = Usage { prompt_tokens: arrival.tokens.len(), ..Usage::default() };
        let request = Request {
            id,
            name,
            priority: arrival.priority,
            reply,
            sampling,
            constraint,
            prompt: arrival.tokens,
            open: vec![Open { row: id, answer, last, told: None }],
            usage,
            submitted,
            admitted: None,
            first_token: None,
        };
        // Lower ones run first, and of the same those that came first.
        let at = self.waiting.partition_point(|other| other.priority <= request.priority);
        self.waiting.insert(at, request);
    }

    fn cancel(&mut self, id: SequenceId) {
        self.take_back(id);
    }

    fn recover(&mut self, error: &Error) {
        self.fail_running(error);
    }

    fn give_up(&mut self, error: &Error) {
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
