//! Which rows the next step computes: a state machine without thread, lock or clock.
//!
//! A sequence wants all its tokens computed, and the logits behind the last one. A [`StepPlan`] gives each
//! running sequence rows of the step: one to those that lack one token only, and what is left of the
//! step's tokens to prompts, in pieces. Sequences wait until there are blocks for all their tokens.
//! Where blocks run out, the sequence of the lowest rank gives its own back and waits again. What it had
//! computed is kept outside the caches where there is room for it ([`SwapLimits`]), and is brought back
//! when it goes on; else it is computed anew, as far as it does not stay in the cache.

use std::collections::HashMap;
use std::time::Duration;

use crate::cache::{BlockCache, BlockCopy, BlockSwap, BlockTable};

mod clients;
mod prompt_rows;
mod swap;
#[cfg(test)]
mod tests;

use clients::{SequenceRank, ServedClients};
use prompt_rows::PromptRowLimit;
pub use swap::SwapLimits;
use swap::{SwapSlots, SwappedSequence};

/// The number of a sequence; the one that came first has the lowest.
pub type SequenceId = u64;

/// Rows of a sequence whose rows are all wanted: their logits take much memory.
const MAX_WANTED: usize = 64;

/// The service of a generated token, as that of one token of a prompt is 1.
const GENERATED_SERVICE: u64 = 2;

/// Limits of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLimits {
    /// The most sequences that run together.
    pub max_sequences: usize,
    /// The most rows of a step; at least as many as sequences.
    pub max_batched_tokens: usize,
    /// Whether sequences share the blocks of what they begin with.
    pub prefix_caching: bool,
    /// Store of preempted sequences.
    pub swap: SwapLimits,
}

/// A sequence that arrives.
#[derive(Clone, Debug)]
pub struct ArrivingSequence {
    /// Its number, which no other one has.
    pub id: SequenceId,
    /// Its tokens; at least one.
    pub tokens: Vec<u32>,
    /// Whose it is.
    pub client: u64,
    /// Lower ones run first.
    pub priority: i32,
    /// Sequences of different salts share no blocks.
    pub salt: u64,
    /// Whether the logits behind all its tokens are wanted, so that none may come from the cache.
    pub every_row: bool,
}

/// The rows of one sequence in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRows {
    /// The sequence.
    pub id: SequenceId,
    /// The position of the first row.
    pub from: usize,
    /// How many rows.
    pub count: usize,
    /// How many of the last rows have logits that are wanted.
    pub wanted: usize,
}

/// A sequence that begins to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmittedSequence {
    /// The sequence.
    pub id: SequenceId,
    /// Tokens that were found in the cache.
    pub cached: usize,
}

/// Rows that a step computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPlan {
    /// The rows, sequence by sequence.
    pub rows: Vec<PlannedRows>,
    /// Sequences that begin to run, or go on after they were preempted.
    pub admitted: Vec<AdmittedSequence>,
    /// Sequences that had to give their blocks back.
    pub preempted: Vec<SequenceId>,
    /// Copies to be made before the step, in this order.
    pub swaps: Vec<BlockSwap>,
}

impl StepPlan {
    /// The number of all rows.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.rows.iter().map(|rows| rows.count).sum()
    }
}

/// Outcome for a second sequence with the same past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkOutcome {
    /// It runs, once this copy is made.
    Running(Option<BlockCopy>),
    /// There is no room for it yet; it waits like one that arrives.
    Waiting,
}

/// A sequence.
#[derive(Debug)]
struct ScheduledSequence {
    tokens: Vec<u32>,
    /// Tokens that may follow, to be computed with the last one.
    drafts: Vec<u32>,
    table: BlockTable,
    /// Data that is kept of it while it waits.
    kept: SwappedSequence,
    running: bool,
    client: u64,
    priority: i32,
    salt: u64,
    every_row: bool,
}

impl ScheduledSequence {
    /// Tokens that are not computed.
    fn lacking(&self) -> usize {
        self.tokens.len() - self.table.computed().min(self.tokens.len())
    }
}

/// The sequences of an engine, and the blocks that they have.
#[derive(Debug)]
pub struct SequenceScheduler {
    limits: StepLimits,
    cache: BlockCache,
    /// Blocks that stay free when a sequence begins, so that those that run can grow for a while.
    reserve: usize,
    sequences: HashMap<SequenceId, ScheduledSequence>,
    running: Vec<SequenceId>,
    clients: ServedClients,
    swap: SwapSlots,
    /// The sequence for which blocks were missing last, and how many there were.
    refused: Option<(SequenceId, usize)>,
    prompt_rows: PromptRowLimit,
    /// Rows of prompts in the latest plan.
    planned_prompt_rows: usize,
}

impl SequenceScheduler {
    /// A scheduler over all blocks of a model.
    #[must_use]
    pub fn new(limits: StepLimits, cache: BlockCache) -> Self {
        Self {
            limits,
            reserve: cache.available() / 100,
            cache,
            sequences: HashMap::new(),
            running: Vec::new(),
            clients: ServedClients::default(),
            swap: SwapSlots::new(limits.swap),
            refused: None,
            prompt_rows: PromptRowLimit::default(),
            planned_prompt_rows: 0,
        }
    }

    /// Takes a sequence. Its tokens, and those that it will grow by, must fit into all blocks.
    pub fn add(&mut self, arrival: ArrivingSequence) {
        let ArrivingSequence { id, tokens, client, priority, salt, every_row } = arrival;
        let sequence = ScheduledSequence {
            tokens,
            drafts: Vec::new(),
            table: BlockTable::default(),
            kept: SwappedSequence::default(),
            running: false,
            client,
            priority,
            salt,
            every_row,
        };
        self.sequences.insert(id, sequence);
        self.clients.wait(client, (priority, id));
    }

    /// Gives a sequence's blocks back and forgets it.
    pub fn remove(&mut self, id: SequenceId) {
        let Some(sequence) = self.sequences.remove(&id) else { return };
        if sequence.running {
            self.running.retain(|other| *other != id);
            self.clients.stop_running(sequence.client);
            self.cache.close(sequence.table);
        } else {
            self.clients.stop_waiting(sequence.client, (sequence.priority, id));
            self.swap.forget(sequence.kept);
        }
    }

    /// The next step. It is empty only if there is no sequence. Sequences whose tokens are all computed
    /// must have got a token or be removed.
    pub fn plan(&mut self) -> StepPlan {
        let mut plan = StepPlan::default();
        let mut budget = self.limits.max_batched_tokens;
        self.plan_decodes(&mut plan, &mut budget);
        let decodes = plan.tokens();
        budget = budget.min(self.prompt_rows.rows());
        self.plan_prompts(&mut plan, &mut budget);
        self.plan_admissions(&mut plan, &mut budget);
        self.planned_prompt_rows = plan.tokens().saturating_sub(decodes);
        plan
    }

    /// Takes note of how long the step of the latest plan took: later ones have fewer rows of prompts if it was long.
    pub fn note_time(&mut self, time: Duration) {
        self.prompt_rows.note(self.planned_prompt_rows, time);
    }

    /// The sequences that lack one token, the highest rank first.
    fn plan_decodes(&mut self, plan: &mut StepPlan, budget: &mut usize) {
        let mut ranks: Vec<SequenceRank> = self.ranks(|sequence| sequence.lacking() == 1);
        ranks.sort_unstable();
        // Drafts leave half of the rows to prompts.
        let mut spare = budget.saturating_sub(ranks.len()) / 2;
        for (_, id) in ranks {
            let Some((positions, drafts)) = self.grow(id, spare, plan) else { continue };
            spare -= drafts;
            *budget -= (1 + drafts).min(*budget);
            let from = positions - 1;
            let count = 1 + drafts;
            plan.rows.push(PlannedRows { id, from, count, wanted: count });
        }
    }

    /// Finds blocks for the last token of a sequence and at most `most` drafts, and gives the number
    /// of positions without drafts, and that of drafts. `None` where it was preempted itself.
    fn grow(&mut self, id: SequenceId, most: usize, plan: &mut StepPlan) -> Option<(usize, usize)> {
        loop {
            let sequence = self.sequences.get_mut(&id).filter(|sequence| sequence.running)?;
            let positions = sequence.tokens.len();
            sequence.drafts.truncate(most);
            // Drafts are worth no preemption.
            if !sequence.drafts.is_empty()
                && !self.cache.extend(&mut sequence.table, positions + sequence.drafts.len())
            {
                sequence.drafts.clear();
            }
            if self.cache.extend(&mut sequence.table, positions) {
                return Some((positions, sequence.drafts.len()));
            }
            let (_, victim) = self.lowest()?;
            self.preempt(victim, plan);
        }
    }

    /// Pieces of prompts that run already, those of clients that have got least first.
    fn plan_prompts(&mut self, plan: &mut StepPlan, budget: &mut usize) {
        let mut ranks: Vec<(i32, u64, SequenceId)> = Vec::new();
        for (priority, id) in self.ranks(|sequence| sequence.lacking() > 1) {
            let client = self.sequences.get(&id).map_or(0, |sequence| sequence.client);
            ranks.push((priority, self.clients.service(client), id));
        }
        ranks.sort_unstable();
        for (_, _, id) in ranks {
            self.plan_piece(id, plan, budget);
        }
    }

    /// Rows of a sequence that has blocks for all its tokens.
    fn plan_piece(&mut self, id: SequenceId, plan: &mut StepPlan, budget: &mut usize) {
        let Some(sequence) = self.sequences.get(&id) else { return };
        let most = if sequence.every_row { MAX_WANTED } else { usize::MAX };
        let count = sequence.lacking().min(*budget).min(most);
        if count == 0 {
            return;
        }
        let wanted = match sequence.every_row {
            true => count,
            false => usize::from(count == sequence.lacking()),
        };
        *budget -= count;
        plan.rows.push(PlannedRows { id, from: sequence.table.computed(), count, wanted });
    }

    /// Sequences that begin to run.
    fn plan_admissions(&mut self, plan: &mut StepPlan, budget: &mut usize) {
        while *budget > 0 {
            let Some((priority, id)) = self.clients.next() else { return };
            let room = self.running.len() < self.limits.max_sequences;
            match if room { self.admit(id, plan) } else { None } {
                Some(cached) => {
                    plan.admitted.push(AdmittedSequence { id, cached });
                    self.plan_piece(id, plan, budget);
                }
                // Those of a lower priority make room.
                None => match self.lowest() {
                    Some((lower, victim)) if lower > priority => {
                        *budget += self.preempt(victim, plan);
                    }
                    _ => return,
                },
            }
        }
    }

    /// Gives a waiting sequence blocks for all its tokens, and says how many tokens are computed
    /// already. `None` where there are not enough blocks.
    fn admit(&mut self, id: SequenceId, plan: &mut StepPlan) -> Option<usize> {
        let available = self.cache.available();
        let alone = self.running.is_empty();
        if !alone && self.refused.is_some_and(|(refused, had)| refused == id && available <= had) {
            return None;
        }
        let sequence = self.sequences.get_mut(&id)?;
        let shared = !sequence.every_row && self.limits.prefix_caching;
        let known: &[u32] = if shared { &sequence.tokens } else { &[] };
        let mut table = self.cache.open(known, sequence.salt);
        let lacking = self.cache.lacking(&table, sequence.tokens.len());
        let reserve = if alone { 0 } else { self.reserve };
        let enough = lacking + reserve <= self.cache.available();
        if !enough || !self.cache.extend(&mut table, sequence.tokens.len()) {
            self.cache.close(table);
            self.refused = Some((id, available));
            return None;
        }
        let kept = std::mem::take(&mut sequence.kept);
        let found = table.computed();
        let size = self.cache.block_size();
        if kept.positions > found {
            self.cache.computed(&mut table, &sequence.tokens[..kept.positions]);
        }
        let lacking = found / size..kept.positions.div_ceil(size);
        self.swap.bring_back(kept, table.blocks(), lacking, &mut plan.swaps);
        let cached = table.computed();
        sequence.table = table;
        sequence.running = true;
        self.running.push(id);
        self.clients.run(sequence.client);
        self.clients.stop_waiting(sequence.client, (sequence.priority, id));
        Some(cached)
    }

    /// Takes a running sequence's blocks, and its rows of the plan, whose number it gives.
    fn preempt(&mut self, id: SequenceId, plan: &mut StepPlan) -> usize {
        if let Some(sequence) = self.sequences.get_mut(&id).filter(|sequence| sequence.running) {
            let positions = sequence.table.computed();
            let blocks = &sequence.table.blocks()[..positions.div_ceil(self.cache.block_size())];
            sequence.kept = self.swap.keep(blocks, positions, &mut plan.swaps);
        }
        self.suspend(id);
        plan.preempted.push(id);
        plan.admitted.retain(|admitted| admitted.id != id);
        let before = plan.tokens();
        plan.rows.retain(|rows| rows.id != id);
        before - plan.tokens()
    }

    fn suspend(&mut self, id: SequenceId) {
        let Some(sequence) = self.sequences.get_mut(&id).filter(|sequence| sequence.running) else {
            return;
        };
        sequence.running = false;
        sequence.drafts.clear();
        self.cache.close(std::mem::take(&mut sequence.table));
        self.running.retain(|other| *other != id);
        self.clients.wait(sequence.client, (sequence.priority, id));
        self.clients.stop_running(sequence.client);
    }

    /// All sequences wait, and nothing that was computed is used again: the caches are lost.
    pub fn forget_computed(&mut self) {
        for id in std::mem::take(&mut self.running) {
            self.suspend(id);
        }
        self.cache.clear();
        for sequence in self.sequences.values_mut() {
            self.swap.forget(std::mem::take(&mut sequence.kept));
        }
        self.refused = None;
    }

    /// Notes that so many rows of a sequence are computed, from its first one that was not.
    pub fn advance(&mut self, id: SequenceId, rows: usize) {
        let Some(sequence) = self.sequences.get_mut(&id).filter(|sequence| sequence.running) else {
            return;
        };
        let prompt = sequence.lacking() > 1;
        let end = (sequence.table.computed() + rows).min(sequence.tokens.len());
        self.cache.computed(&mut sequence.table, &sequence.tokens[..end]);
        if prompt {
            self.clients.charge(sequence.client, rows as u64);
        }
    }

    /// Appends a generated token.
    pub fn push(&mut self, id: SequenceId, token: u32) {
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.tokens.push(token);
            self.clients.charge(sequence.client, GENERATED_SERVICE);
        }
    }

    /// Proposes tokens that may follow a sequence that lacks one token only. The next plan computes as
    /// many of them as it has room for; those that [`Self::push`] confirms count as computed by
    /// [`Self::advance`].
    pub fn propose(&mut self, id: SequenceId, drafts: &[u32]) {
        if let Some(sequence) = self.sequences.get_mut(&id).filter(|sequence| sequence.running) {
            sequence.drafts.clear();
            sequence.drafts.extend_from_slice(drafts);
        }
    }

    /// Forgets the drafts of a sequence, and gives the blocks back that only they needed.
    pub fn settle(&mut self, id: SequenceId) {
        if let Some(sequence) = self.sequences.get_mut(&id).filter(|sequence| sequence.running) {
            sequence.drafts.clear();
            let computed = sequence.table.computed();
            self.cache.truncate(&mut sequence.table, computed);
        }
    }

    /// From now on only the logits behind the last token of a sequence are wanted.
    pub fn want_last_row(&mut self, id: SequenceId) {
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.every_row = false;
        }
    }

    /// A second sequence with the tokens of a first one, which are all computed. Both lack a token
    /// ([`Self::push`]) before the next plan, the second one where it runs.
    pub fn fork(&mut self, id: SequenceId, second: SequenceId) -> ForkOutcome {
        let Some(first) = self.sequences.get(&id) else { return ForkOutcome::Waiting };
        let arrival = ArrivingSequence {
            id: second,
            tokens: first.tokens.clone(),
            client: first.client,
            priority: first.priority,
            salt: first.salt,
            every_row: false,
        };
        let room = first.running && self.running.len() < self.limits.max_sequences;
        let forked = if room { self.cache.fork(&first.table) } else { None };
        self.add(arrival);
        let (Some((table, copy)), Some(sequence)) = (forked, self.sequences.get_mut(&second))
        else {
            return ForkOutcome::Waiting;
        };
        sequence.table = table;
        sequence.running = true;
        self.running.push(second);
        self.clients.run(sequence.client);
        self.clients.stop_waiting(sequence.client, (sequence.priority, second));
        ForkOutcome::Running(copy)
    }

    /// The tokens of a sequence.
    #[must_use]
    pub fn tokens(&self, id: SequenceId) -> &[u32] {
        self.sequences.get(&id).map_or(&[], |sequence| &sequence.tokens)
    }

    /// Tokens of a sequence that may follow.
    #[must_use]
    pub fn drafts(&self, id: SequenceId) -> &[u32] {
        self.sequences.get(&id).map_or(&[], |sequence| &sequence.drafts)
    }

    /// Key under which a sequence shares blocks.
    #[must_use]
    pub fn salt(&self, id: SequenceId) -> u64 {
        self.sequences.get(&id).map_or(0, |sequence| sequence.salt)
    }

    /// Whether a sequence runs and lacks one token only, so that drafts may be proposed.
    #[must_use]
    pub fn may_propose(&self, id: SequenceId) -> bool {
        self.sequences.get(&id).is_some_and(|sequence| sequence.running && sequence.lacking() == 1)
    }

    /// The blocks of a sequence.
    #[must_use]
    pub fn blocks(&self, id: SequenceId) -> &[usize] {
        self.sequences.get(&id).map_or(&[], |sequence| sequence.table.blocks())
    }

    /// The blocks of all sequences.
    #[must_use]
    pub fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// How many sequences run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many sequences wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.clients.waiting()
    }

    /// How many of the waiting sequences have what they had computed kept for them.
    #[must_use]
    pub fn swapped(&self) -> usize {
        self.sequences.values().filter(|sequence| sequence.kept.positions > 0).count()
    }

    /// How many blocks are kept outside the caches.
    #[must_use]
    pub fn swapped_blocks(&self) -> usize {
        self.swap.used()
    }

    /// The ranks of the running sequences that `which` names.
    fn ranks(&self, which: impl Fn(&ScheduledSequence) -> bool) -> Vec<SequenceRank> {
        let rank = |&id: &SequenceId| {
            let sequence = self.sequences.get(&id)?;
            which(sequence).then_some((sequence.priority, id))
        };
        self.running.iter().filter_map(rank).collect()
    }

    /// The running sequence that goes first when blocks run out.
    fn lowest(&self) -> Option<SequenceRank> {
        let rank = |&id: &SequenceId| Some((self.sequences.get(&id)?.priority, id));
        self.running.iter().filter_map(rank).max()
    }
}
