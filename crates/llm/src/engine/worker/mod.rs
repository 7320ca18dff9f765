//! The engine's thread: one step after the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::cache::BlockSwap;
use crate::error::{LlmError, LlmErrorKind};
use crate::guarded::guarded;
use crate::sampling::LogitNeed;
use crate::schedule::{PlannedRows, SequenceId, SequenceScheduler, StepPlan};
use crate::tokens::Tokenizer;

mod choose;
mod results;

use super::answer::AnswerMemory;
use super::command_loop::StepWorker;
use super::life::EngineShared;
use super::model::{StepBatch, StepModel};
use super::ongoing::{OngoingRequest, SubmittedRequest};
use super::speculate::{SpeculationRequest, TokenProposer};

/// Steps in a row that may lose what was computed before their requests fail.
const MAX_LOSSES: usize = 3;

/// State of the thread.
pub(super) struct DecoderWorker {
    model: Box<dyn StepModel>,
    tokenizer: Arc<Tokenizer>,
    scheduler: SequenceScheduler,
    shared: Arc<EngineShared>,
    requests: HashMap<SequenceId, OngoingRequest>,
    /// The request of each sequence.
    owners: HashMap<SequenceId, SequenceId>,
    batch: StepBatch,
    memory: AnswerMemory,
    /// The memory of threads that choose tokens beside this one.
    helpers: Vec<AnswerMemory>,
    /// A row that several answers begin with.
    row: Vec<f32>,
    /// Source of guesses, and the most of them.
    proposer: Option<(TokenProposer, usize)>,
    /// Steps that have failed since the last one that did not.
    losses: usize,
}

impl DecoderWorker {
    pub(super) fn new(
        model: Box<dyn StepModel>,
        tokenizer: Arc<Tokenizer>,
        scheduler: SequenceScheduler,
        shared: Arc<EngineShared>,
        threads: usize,
    ) -> Self {
        let vocabulary = model.shape().vocabulary;
        let memory = AnswerMemory::new(vocabulary);
        let helpers = (1..threads).map(|_| AnswerMemory::new(vocabulary)).collect();
        Self {
            model,
            tokenizer,
            scheduler,
            shared,
            requests: HashMap::new(),
            owners: HashMap::new(),
            batch: StepBatch::default(),
            memory,
            helpers,
            row: Vec::new(),
            proposer: None,
            losses: 0,
        }
    }

    /// Lets tokens be guessed.
    pub(super) fn speculate(&mut self, proposer: TokenProposer, most: usize) {
        self.proposer = Some((proposer, most));
    }

    /// Ends a request, and tells nobody yet.
    fn take_out(&mut self, id: SequenceId) -> Option<OngoingRequest> {
        let request = self.requests.remove(&id)?;
        for open in &request.open {
            self.owners.remove(&open.sequence);
            self.scheduler.remove(open.sequence);
        }
        Some(request)
    }

    fn take_back(&mut self, id: SequenceId) {
        if let Some(request) = self.take_out(id) {
            self.publish();
            request.cancel();
        }
    }

    fn fail(&mut self, id: SequenceId, error: LlmError) {
        if let Some(request) = self.take_out(id) {
            request.fail(error);
        }
    }

    fn fail_all(&mut self, error: &LlmError) {
        let ids: Vec<SequenceId> = self.requests.keys().copied().collect();
        for id in ids {
            self.fail(id, error.clone());
        }
    }

    fn step(&mut self) {
        let _recorded = self.shared.begins();
        let begin = Instant::now();
        self.propose();
        let plan = self.scheduler.plan();
        self.note(&plan);
        self.fill(&plan);
        self.batch.need = self.need(&plan);
        let computing = Instant::now();
        let model = &mut self.model;
        let batch = &self.batch;
        let vocabulary = model.shape().vocabulary;
        let swapped = match plan.swaps.as_slice() {
            [] => Ok(()),
            swaps => guarded(|| model.swap(swaps)),
        };
        let step = swapped.and_then(|()| guarded(|| model.step(batch))).and_then(|mut logits| {
            let found = (logits.rows(), logits.width());
            let wanted = batch.wanted.len();
            if found == (wanted, vocabulary) || wanted == 0 {
                return Ok(logits);
            }
            let text = format!("{found:?} rows and values found, expected {wanted}, {vocabulary}");
            Err(LlmError::new(LlmErrorKind::Model, "logits", text))
        });
        match step {
            Ok(mut logits) => {
                self.losses = 0;
                self.scheduler.note_time(computing.elapsed());
                self.take_results(&plan, &mut logits);
                self.model.take_back(logits);
            }
            Err(error) => self.fail_step(&plan, &error),
        }
        let sequences = plan.rows.iter().map(|rows| rows.id);
        self.shared.stepped(begin, plan.tokens(), sequences);
        self.publish();
    }

    /// Requests whose step failed fail; others compute anew what they had. Where it was no fault of
    /// theirs, all of them do.
    fn fail_step(&mut self, plan: &StepPlan, error: &LlmError) {
        self.scheduler.forget_computed();
        self.losses += 1;
        if error.kind() == LlmErrorKind::Lost && self.losses <= MAX_LOSSES {
            tracing::warn!(%error, "what was computed is lost and computed anew");
            return;
        }
        tracing::error!(%error, "the requests of a step fail");
        for rows in &plan.rows {
            if let Some(&request) = self.owners.get(&rows.id) {
                self.fail(request, error.clone());
            }
        }
    }

    /// Notes who begins.
    fn note(&mut self, plan: &StepPlan) {
        let mut statistics = self.shared.statistics();
        statistics.steps += 1;
        statistics.step_tokens.observe(plan.tokens() as f64);
        statistics.preemptions += plan.preempted.len() as u64;
        let out = plan.swaps.iter().filter(|swap| matches!(swap, BlockSwap::Out { .. })).count();
        statistics.swapped_out += out as u64;
        statistics.swapped_in += (plan.swaps.len() - out) as u64;
        drop(statistics);
        for admitted in &plan.admitted {
            let owner = self.owners.get(&admitted.id);
            let request = owner.and_then(|owner| self.requests.get_mut(owner));
            let Some(request) = request.filter(|request| !request.life.is_admitted()) else {
                continue;
            };
            request.life.admit(admitted.cached);
            let mut statistics = self.shared.statistics();
            statistics.prefix_queries += request.prompt() as u64;
            statistics.prefix_hits += admitted.cached as u64;
        }
    }

    /// The rows of a plan as the model takes them.
    fn fill(&mut self, plan: &StepPlan) {
        let blocks = |rows: &PlannedRows| self.scheduler.blocks(rows.id).len();
        self.batch.clear(plan.rows.iter().map(blocks).max().unwrap_or(0));
        for rows in &plan.rows {
            let tokens = self.scheduler.tokens(rows.id).iter();
            let tokens = tokens.chain(self.scheduler.drafts(rows.id)).copied();
            let new = tokens.skip(rows.from).take(rows.count);
            self.batch.push(new, rows.from, rows.wanted, self.scheduler.blocks(rows.id));
        }
    }

    /// Greatest need of the choices after a plan from its logits.
    fn need(&self, plan: &StepPlan) -> LogitNeed {
        let vocabulary = self.model.shape().vocabulary;
        let need = |rows: &PlannedRows| {
            let request = self.owners.get(&rows.id).and_then(|owner| self.requests.get(owner))?;
            if request.prompt_logprobs.is_some() {
                return Some(LogitNeed::Logits);
            }
            let open = request.open.iter().find(|open| open.sequence == rows.id)?;
            Some(open.answer.need(vocabulary))
        };
        let wanted = plan.rows.iter().filter(|rows| rows.wanted > 0);
        wanted.filter_map(need).max().unwrap_or(LogitNeed::Best)
    }

    /// Guesses tokens for the sequences that go on: those that a grammar leaves no choice about, and
    /// what the proposer says for the others.
    fn propose(&mut self) {
        let most = self.proposer.as_ref().map_or(0, |(_, most)| *most);
        let mut wishes: Vec<SpeculationRequest> = Vec::new();
        let begun = |request: &&mut OngoingRequest| request.life.has_token();
        for request in self.requests.values_mut().filter(begun) {
            if most == 0 && request.open.iter().all(|open| !open.answer.is_constrained()) {
                continue;
            }
            for open in &mut request.open {
                // The last token needs no guess.
                let left = open.answer.left().saturating_sub(1);
                if left == 0 || !self.scheduler.may_propose(open.sequence) {
                    continue;
                }
                let forced = open.answer.forced(left);
                if !forced.is_empty() {
                    self.scheduler.propose(open.sequence, &forced);
                } else if most > 0 {
                    let most = left.min(most).min(open.drafts);
                    wishes.push(SpeculationRequest { id: open.sequence, most });
                }
            }
        }
        if !wishes.is_empty() {
            // Where there is not enough room for all guesses, those that came first have it.
            wishes.sort_unstable_by_key(|wish| wish.id);
            self.propose_guesses(&wishes);
        }
    }

    /// Asks the proposer for guesses.
    fn propose_guesses(&mut self, wishes: &[SpeculationRequest]) {
        let Some((proposer, _)) = &mut self.proposer else { return };
        let scheduler = &self.scheduler;
        let guesses = match guarded(|| proposer.propose(scheduler, wishes)) {
            Ok(guesses) => guesses,
            Err(error) => {
                tracing::error!(%error, "tokens are not guessed any more");
                self.proposer = None;
                return;
            }
        };
        let vocabulary = self.model.shape().vocabulary;
        for (id, mut guess) in guesses {
            // A draft model may have more tokens.
            let known = guess.iter().take_while(|token| (**token as usize) < vocabulary);
            guess.truncate(known.count());
            let owner = self.owners.get(&id).and_then(|owner| self.requests.get_mut(owner));
            let open = owner.and_then(|request| request.open.iter_mut().find(|o| o.sequence == id));
            if let Some(open) = open.filter(|_| !guess.is_empty()) {
                open.answer.allow(&mut guess);
                self.scheduler.propose(id, &guess);
            }
        }
    }
}

impl StepWorker for DecoderWorker {
    type Request = SubmittedRequest;

    fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    fn work(&mut self) {
        self.step();
    }

    fn accept(&mut self, submission: SubmittedRequest) {
        let SubmittedRequest { request, arrival } = submission;
        let id = arrival.id;
        self.shared.statistics().note_sampling(&request.sampling);
        self.owners.insert(id, id);
        self.requests.insert(id, request);
        self.scheduler.add(arrival);
    }

    fn cancel(&mut self, id: SequenceId) {
        self.take_back(id);
    }

    fn recover(&mut self, error: &LlmError) {
        self.scheduler.forget_computed();
        self.fail_all(error);
    }

    fn give_up(&mut self, error: &LlmError) {
        self.fail_all(error);
    }

    fn publish(&self) {
        let cache = self.scheduler.cache().statistics();
        let mut statistics = self.shared.statistics();
        statistics.running = self.scheduler.running();
        statistics.waiting = self.scheduler.waiting();
        statistics.swapped = self.scheduler.swapped();
        statistics.swapped_blocks = self.scheduler.swapped_blocks();
        statistics.active_blocks = cache.active;
        statistics.cached_blocks = cache.cached;
    }
}
