//! The thread of an engine whose model reads a text whole and writes another one.
//!
//! Every turn reads the next text that has room, and appends a token to all texts that are being written;
//! these begin and end at any turn. There are no blocks: each answer has a row of the model's tensors.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::answer::AnswerMemory;
use super::command_loop::StepWorker;
use super::life::EngineShared;
use super::ongoing::{OngoingRequest, SubmittedRequest};
use super::request::{GenerationEvent, GenerationRequest};
use super::{EngineOptions, EngineStatistics, GenerationEngine, RequestEngine};
use crate::encoder_decoder::{EncoderDecoder, MAX_TOKENS, RowId, WritingRows};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::guarded::guarded;
use crate::observe::EngineOutcome;
use crate::sampling::LogitRow;
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
        if options.speculative.is_some() {
            let text = "a model that reads a text whole has its tokens guessed by nobody";
            return Err(refused("speculative", text));
        }
        let context = options.context.unwrap_or(MAX_TOKENS);
        if !(2..=MAX_TOKENS).contains(&context) {
            let text = format!("{context} tokens found, expected 2 to {MAX_TOKENS}");
            return Err(refused("context", text));
        }
        let max_rows = options.max_sequences;
        let statistics = EngineStatistics::new(max_rows, 0);
        let shared = EngineShared::new("engine", options.max_waiting, statistics);
        let vocabulary = model.shape().vocabulary;
        let worker = Seq2SeqWorker {
            memory: AnswerMemory::new(vocabulary),
            model,
            tokenizer: Arc::clone(&tokenizer),
            shared: Arc::clone(&shared),
            max_rows,
            rows: WritingRows::default(),
            waiting: VecDeque::new(),
            running: Vec::new(),
        };
        let requests = RequestEngine::start(shared, worker)?;
        Ok(Self { requests, tokenizer, vocabulary, context, reads: Some(max_rows) })
    }
}

fn refused(field: &str, text: impl Into<String>) -> LlmError {
    LlmError::new(LlmErrorKind::Parameter, field, text.into())
}

/// Refuses what a model that reads prompts whole cannot give, or more answers than there are rows.
pub(super) fn check(request: &GenerationRequest, max_rows: usize) -> Result<()> {
    if request.sampling.prompt_logprobs.is_some() {
        let text = "this model reads prompts whole, and their tokens have no probabilities";
        return Err(refused("prompt_logprobs", text));
    }
    if usize::try_from(request.sampling.n).is_ok_and(|n| n > max_rows) {
        let text = format!("{} found, expected at most {max_rows}", request.sampling.n);
        return Err(refused("n", text));
    }
    Ok(())
}

/// A request. Its answers are rows whose numbers are those of its sequences.
struct Seq2SeqRequest {
    request: OngoingRequest,
    prompt: Vec<u32>,
    priority: i32,
}

impl Seq2SeqRequest {
    /// The most tokens of its answers, those that it has included.
    fn most(&self) -> usize {
        let left = self.request.open.iter().map(|open| open.answer.left()).max().unwrap_or(0);
        self.request.life.usage().completion_tokens + left
    }

    fn answers(&self) -> usize {
        usize::try_from(self.request.sampling.n).unwrap_or(usize::MAX)
    }

    fn is(&self, number: SequenceId) -> bool {
        self.request.life.number() == number
    }
}

/// State of the thread.
struct Seq2SeqWorker {
    model: EncoderDecoder,
    tokenizer: Arc<Tokenizer>,
    shared: Arc<EngineShared>,
    memory: AnswerMemory,
    /// The most rows.
    max_rows: usize,
    rows: WritingRows,
    waiting: VecDeque<Seq2SeqRequest>,
    running: Vec<Seq2SeqRequest>,
}

impl Seq2SeqWorker {
    /// Whether there is room for a request beside those that run.
    fn has_room(&self, request: &Seq2SeqRequest) -> bool {
        let rows = self.rows.len() + request.answers();
        let all = || self.running.iter().chain([request]);
        let source = all().map(|request| request.prompt.len()).max().unwrap_or(0);
        let past = all().map(Seq2SeqRequest::most).max().unwrap_or(0);
        let bytes = WritingRows::bytes(&self.model, rows, source, past);
        self.running.is_empty() || rows <= self.max_rows && bytes <= MAX_BYTES
    }

    /// Reads the text of the next request, where it has room.
    fn admit(&mut self) {
        if !self.waiting.front().is_some_and(|next| self.has_room(next)) {
            return;
        }
        let Some(mut next) = self.waiting.pop_front() else { return };
        next.request.life.admit(0);
        let recorded = self.shared.begins();
        let begin = Instant::now();
        let begun = self.begin(&mut next);
        drop(recorded);
        self.shared.stepped(begin, next.prompt.len(), [next.request.life.number()]);
        if let Err(error) = begun {
            self.fail(next, &error);
        } else if next.request.tell_start() {
            self.running.push(next);
        } else {
            self.take_back(next);
        }
    }

    /// Reads a request's text and begins its answers.
    fn begin(&mut self, next: &mut Seq2SeqRequest) -> Result<()> {
        let source = guarded(|| self.model.source(&next.prompt))?;
        next.request.open_others(&self.tokenizer, self.model.shape().vocabulary, &[])?;
        for open in &next.request.open {
            if let Err(error) = self.rows.add(&self.model, open.sequence, &source) {
                self.fail_running(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends a token to every answer.
    fn step(&mut self) {
        let _recorded = self.shared.begins();
        let begin = Instant::now();
        let start = self.model.shape().start;
        let open = self.running.iter().flat_map(|running| &running.request.open);
        let tokens: Vec<(RowId, u32)> =
            open.map(|open| (open.sequence, open.last.unwrap_or(start))).collect();
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
        self.shared.stepped(begin, tokens.len(), tokens.iter().map(|(row, _)| *row));
        for mut running in std::mem::take(&mut self.running) {
            let count = running.request.open.len();
            let rows: Vec<Vec<f32>> = logits.by_ref().take(count).collect();
            match self.go_on(&mut running.request, rows) {
                Ok(true) => self.end(running, EngineOutcome::Finished),
                Ok(false) => self.running.push(running),
                Err(error) => self.fail(running, &error),
            }
        }
    }

    /// Chooses the next token of each answer of a request; whether all have ended.
    fn go_on(&mut self, request: &mut OngoingRequest, rows: Vec<Vec<f32>>) -> Result<bool> {
        let mut ended = Vec::new();
        for (at, mut row) in rows.into_iter().enumerate() {
            let Some(open) = request.open.get_mut(at) else { break };
            let choice = open.answer.choose(LogitRow::Logits(&mut row), &mut self.memory)?;
            let delta = open.answer.take(choice, &self.tokenizer)?;
            let finish = delta.finish.as_ref().map(FinishReason::as_str);
            if let Some(reason) = finish {
                self.shared.count_finished(reason, 1);
                ended.push(open.sequence);
            }
            request.take_delta(at, &delta);
            if !request.reply.tell(GenerationEvent::Delta(delta)) {
                // Nobody listens: what is left of the request ends with it.
                let left = request.open.len() - ended.len();
                self.shared.count_finished(FinishReason::Cancelled.as_str(), left as u64);
                return Ok(true);
            }
        }
        for row in &ended {
            self.drop_row(*row);
        }
        request.open.retain(|open| !ended.contains(&open.sequence));
        Ok(request.open.is_empty())
    }

    fn drop_row(&mut self, row: RowId) {
        let rows = &mut self.rows;
        let model = &self.model;
        if let Err(error) = rows.remove(model, row) {
            self.fail_running(&error);
        }
    }

    fn drop_rows(&mut self, request: &OngoingRequest) {
        for open in &request.open {
            self.drop_row(open.sequence);
        }
    }

    /// Tells that all answers of a request have ended.
    fn end(&mut self, ended: Seq2SeqRequest, outcome: EngineOutcome) {
        self.drop_rows(&ended.request);
        self.publish();
        ended.request.finish(outcome);
    }

    fn take_back(&mut self, taken: Seq2SeqRequest) {
        self.drop_rows(&taken.request);
        self.publish();
        taken.request.cancel();
    }

    fn fail(&mut self, failed: Seq2SeqRequest, error: &LlmError) {
        for open in &failed.request.open {
            // Whatever goes wrong with the rows concerns those that run, which are told elsewhere.
            let _ = self.rows.remove(&self.model, open.sequence);
        }
        failed.request.fail(error.clone());
    }

    /// All that run fail, and nothing is kept.
    fn fail_running(&mut self, error: &LlmError) {
        self.rows = WritingRows::default();
        if !self.running.is_empty() {
            tracing::error!(%error, "the requests of a step fail");
        }
        for running in std::mem::take(&mut self.running) {
            self.fail(running, error);
        }
    }
}

impl StepWorker for Seq2SeqWorker {
    type Request = SubmittedRequest;

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
        let SubmittedRequest { request, arrival } = submission;
        self.shared.statistics().note_sampling(&request.sampling);
        let next = Seq2SeqRequest { request, prompt: arrival.tokens, priority: arrival.priority };
        // Lower ones run first, and of the same those that came first.
        let at = self.waiting.partition_point(|other| other.priority <= next.priority);
        self.waiting.insert(at, next);
    }

    fn cancel(&mut self, number: SequenceId) {
        let waiting = self.waiting.iter().position(|one| one.is(number));
        let running = self.running.iter().position(|one| one.is(number));
        let taken = match (waiting, running) {
            (Some(at), _) => self.waiting.remove(at),
            (None, Some(at)) => Some(self.running.remove(at)),
            (None, None) => None,
        };
        if let Some(taken) = taken {
            self.take_back(taken);
        }
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
