//! Results of a step's logits: tokens, and what requests are told.

use crate::cache::BlockCopy;
use crate::error::Result;
use crate::guarded::guarded;
use crate::observe::EngineOutcome;
use crate::sampling::{LogitRow, logprobs};
use crate::schedule::{ForkOutcome, PlannedRows, SequenceId, StepPlan};
use crate::stop::FinishReason;

use super::DecoderWorker;
use crate::engine::answer::ChosenToken;
use crate::engine::command_loop::StepWorker;
use crate::engine::model::LogitRows;
use crate::engine::request::{AnswerDelta, GenerationEvent};

impl DecoderWorker {
    /// Takes what a step gave.
    pub(super) fn take_results(&mut self, plan: &StepPlan, logits: &mut LogitRows) {
        for rows in &plan.rows {
            let drafts = self.scheduler.drafts(rows.id).len();
            self.scheduler.advance(rows.id, rows.count - drafts);
        }
        let mut choices = self.choose_together(plan, logits);
        let mut first = 0;
        for rows in &plan.rows {
            let wanted = first..first + rows.wanted;
            first = wanted.end;
            let Some(&owner) = self.owners.get(&rows.id) else { continue };
            if rows.wanted == 0 {
                continue;
            }
            self.note_prompt(owner, rows, logits, wanted.start);
            if rows.from + rows.count < self.scheduler.tokens(rows.id).len() {
                continue;
            }
            let chosen = choices.remove(&rows.id);
            if let Err(error) = self.generate(owner, rows.id, logits, wanted.end, chosen) {
                self.fail(owner, error);
            }
        }
    }

    /// Takes the log-probabilities of tokens of a prompt from the logits of rows.
    fn note_prompt(
        &mut self,
        owner: SequenceId,
        rows: &PlannedRows,
        logits: &mut LogitRows,
        first: usize,
    ) {
        let Some(request) = self.requests.get_mut(&owner) else { return };
        let prompt = request.prompt();
        let (Some(known), Some(top)) =
            (&mut request.prompt_logprobs, request.sampling.prompt_logprobs)
        else {
            return;
        };
        let tokens = self.scheduler.tokens(rows.id);
        for row in 0..rows.wanted {
            // The row of a position tells of the next one.
            let position = rows.from + rows.count - rows.wanted + row + 1;
            if position != known.len() || position >= prompt {
                continue;
            }
            let told = logits.row(first + row);
            known.push(told.and_then(|row| logprobs(row, tokens[position], top as usize)));
        }
        if known.len() >= prompt {
            self.scheduler.want_last_row(rows.id);
        }
    }

    /// Chooses the token behind all tokens of a sequence, and of those that begin with it; where drafts
    /// are right, those behind them too. The rows for that end before `end`.
    fn generate(
        &mut self,
        owner: SequenceId,
        id: SequenceId,
        logits: &mut LogitRows,
        end: usize,
        chosen: Option<Result<ChosenToken>>,
    ) -> Result<()> {
        let drafts = self.scheduler.drafts(id).to_vec();
        let first = end - 1 - drafts.len();
        let Some(row) = logits.choices(first) else { return Ok(()) };
        let Some(request) = self.requests.get_mut(&owner) else { return Ok(()) };
        if !request.life.has_token() {
            if !request.tell_start() {
                self.take_back(owner);
                return Ok(());
            }
            if request.sampling.n > 1 {
                return self.generate_all(owner, row);
            }
        }
        if drafts.is_empty() {
            let choice = match chosen {
                Some(choice) => choice?,
                None => match self.choose(owner, id, row)? {
                    Some(choice) => choice,
                    None => return Ok(()),
                },
            };
            return self.generate_one(owner, id, choice, None).map(|_| ());
        }
        let mut statistics = self.shared.statistics();
        statistics.drafts += 1;
        statistics.draft_tokens += drafts.len() as u64;
        drop(statistics);
        let mut right = 0;
        while let Some(row) = logits.choices(first + right) {
            let draft = drafts.get(right).copied();
            let Some(choice) = self.choose(owner, id, row)? else { break };
            if !self.generate_one(owner, id, choice, draft)? {
                break;
            }
            self.scheduler.advance(id, 1);
            right += 1;
        }
        self.scheduler.settle(id);
        self.learn(owner, id, drafts.len(), right);
        Ok(())
    }

    /// Begins all answers of a request with the first token of each.
    fn generate_all(&mut self, owner: SequenceId, row: LogitRow<'_>) -> Result<()> {
        let Some(request) = self.requests.get_mut(&owner) else { return Ok(()) };
        let prompt = self.scheduler.tokens(owner).to_vec();
        let vocabulary = self.model.shape().vocabulary;
        request.open_others(&self.tokenizer, vocabulary, &prompt)?;
        let mut copies: Vec<BlockCopy> = Vec::new();
        let mut ready = vec![owner];
        for id in request.open.iter().skip(1).map(|open| open.sequence) {
            self.owners.insert(id, owner);
            if let ForkOutcome::Running(copy) = self.scheduler.fork(owner, id) {
                copies.extend(copy);
                ready.push(id);
            }
        }
        if !copies.is_empty() {
            let model = &mut self.model;
            if let Err(error) = guarded(|| model.copy(&copies)) {
                self.scheduler.forget_computed();
                return Err(error);
            }
        }
        let mut first = std::mem::take(&mut self.row);
        for id in ready {
            let own = match &row {
                LogitRow::Top(top) => LogitRow::Top(*top),
                LogitRow::Logits(row) => {
                    first.clear();
                    first.extend_from_slice(row);
                    LogitRow::Logits(&mut first)
                }
            };
            if let Some(choice) = self.choose(owner, id, own)? {
                self.generate_one(owner, id, choice, None)?;
            }
        }
        self.row = first;
        Ok(())
    }

    /// Chooses the next token of a sequence; `None` where it has ended.
    fn choose(
        &mut self,
        owner: SequenceId,
        id: SequenceId,
        row: LogitRow<'_>,
    ) -> Result<Option<ChosenToken>> {
        let Some(request) = self.requests.get_mut(&owner) else { return Ok(None) };
        let open = request.open.iter_mut().find(|open| open.sequence == id);
        open.map(|open| open.answer.choose(row, &mut self.memory)).transpose()
    }

    /// Takes the next token of a sequence. Gives whether it is the draft, and the answer goes on.
    fn generate_one(
        &mut self,
        owner: SequenceId,
        id: SequenceId,
        choice: ChosenToken,
        draft: Option<u32>,
    ) -> Result<bool> {
        let Some(request) = self.requests.get_mut(&owner) else { return Ok(false) };
        let Some(at) = request.open.iter().position(|open| open.sequence == id) else {
            return Ok(false);
        };
        let delta = request.open[at].answer.take(choice, &self.tokenizer)?;
        let AnswerDelta { tokens, finish, .. } = &delta;
        for token in tokens {
            self.scheduler.push(id, *token);
        }
        request.take_delta(at, &delta);
        let finish = finish.as_ref().map(FinishReason::as_str);
        let right = draft.is_some() && tokens.last().copied() == draft;
        // Before anybody is told, who might look.
        self.shared.statistics().accepted_tokens += u64::from(right);
        self.tell(owner, id, delta, finish);
        Ok(right && self.owners.contains_key(&id))
    }

    /// Notes how many drafts were right.
    fn learn(&mut self, owner: SequenceId, id: SequenceId, drafts: usize, right: usize) {
        let request = self.requests.get_mut(&owner);
        let open = request.and_then(|request| request.open.iter_mut().find(|o| o.sequence == id));
        if let Some(open) = open {
            open.drafts = if right == drafts { drafts.saturating_mul(2) } else { right + 1 };
        }
    }

    /// Tells how an answer goes on, and ends it where it does.
    fn tell(
        &mut self,
        owner: SequenceId,
        id: SequenceId,
        delta: AnswerDelta,
        finish: Option<&'static str>,
    ) {
        let Some(request) = self.requests.get_mut(&owner) else { return };
        if !request.reply.tell(GenerationEvent::Delta(delta)) {
            self.take_back(owner);
            return;
        }
        let Some(reason) = finish else { return };
        request.open.retain(|open| open.sequence != id);
        let ended = request.open.is_empty();
        self.owners.remove(&id);
        self.scheduler.remove(id);
        self.shared.count_finished(reason, 1);
        if ended && let Some(request) = self.take_out(owner) {
            self.publish();
            request.finish(EngineOutcome::Finished);
        }
    }
}
