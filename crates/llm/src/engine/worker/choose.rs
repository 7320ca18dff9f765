//! Choosing the tokens of many sequences at once, with several threads where that is worth it.

use std::collections::HashMap;

use crate::error::Result;
use crate::sampling::LogitRow;
use crate::schedule::{SequenceId, StepPlan};

use super::DecoderWorker;
use crate::engine::answer::{AnswerMemory, ChosenToken, OngoingAnswer};
use crate::engine::model::LogitRows;

/// Work that is worth a thread more, which takes about 30 µs to start: to read so many logits from
/// memory takes about four times that.
const WORTH_A_THREAD: usize = 1 << 19;

/// A grammar looks at its whole vocabulary, bit by bit of a walk: as if the row were so much longer.
const GRAMMAR_WORK: usize = 8;

/// A row of logits, the answer that it is for, and what that chooses.
struct ChoiceJob<'a> {
    id: SequenceId,
    answer: &'a mut OngoingAnswer,
    row: &'a mut [f32],
    chosen: Option<Result<ChosenToken>>,
}

impl ChoiceJob<'_> {
    fn work(&self) -> usize {
        self.row.len() * if self.answer.is_constrained() { GRAMMAR_WORK } else { 1 }
    }

    fn run(&mut self, memory: &mut AnswerMemory) {
        self.chosen = Some(self.answer.choose(LogitRow::Logits(self.row), memory));
    }
}

impl DecoderWorker {
    /// Chooses the next tokens of sequences that want one row only, where they are so many that threads
    /// are worth it. Those of the others are chosen one by one, as what was chosen may end an answer.
    pub(super) fn choose_together(
        &mut self,
        plan: &StepPlan,
        logits: &mut LogitRows,
    ) -> HashMap<SequenceId, Result<ChosenToken>> {
        let most = plan.rows.len() * logits.width() * GRAMMAR_WORK;
        if self.helpers.is_empty() || most < 2 * WORTH_A_THREAD {
            return HashMap::new();
        }
        let mut rows = self.single_rows(plan, logits);
        let mut jobs = Vec::with_capacity(rows.len());
        for request in self.requests.values_mut() {
            if request.prompt_logprobs.is_some()
                || request.sampling.n > 1 && !request.life.has_token()
            {
                continue;
            }
            for open in &mut request.open {
                if let Some(row) = rows.remove(&open.sequence) {
                    let id = open.sequence;
                    let answer = &mut open.answer;
                    jobs.push(ChoiceJob { id, answer, row, chosen: None });
                }
            }
        }
        run_all(&mut jobs, &mut self.memory, &mut self.helpers);
        jobs.into_iter().filter_map(|job| Some((job.id, job.chosen?))).collect()
    }

    /// The rows of sequences that want one row only, which lies behind all their tokens.
    fn single_rows<'a>(
        &self,
        plan: &StepPlan,
        logits: &'a mut LogitRows,
    ) -> HashMap<SequenceId, &'a mut [f32]> {
        let mut all = logits.each_row();
        let mut single = HashMap::new();
        for rows in &plan.rows {
            let mut own = all.by_ref().take(rows.wanted);
            let whole = rows.from + rows.count >= self.scheduler.tokens(rows.id).len();
            let drafts = self.scheduler.drafts(rows.id).len();
            if let (1, 0, true, Some(row)) = (rows.wanted, drafts, whole, own.next()) {
                single.insert(rows.id, row);
            }
            own.for_each(drop);
        }
        single
    }
}

/// Chooses for all jobs, with as many threads as their work is worth.
fn run_all(jobs: &mut [ChoiceJob<'_>], memory: &mut AnswerMemory, helpers: &mut [AnswerMemory]) {
    let work: usize = jobs.iter().map(ChoiceJob::work).sum();
    let threads = (work / WORTH_A_THREAD).min(helpers.len() + 1).min(jobs.len());
    if threads < 2 {
        return;
    }
    let share = jobs.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let mut parts = jobs.chunks_mut(share);
        let own = parts.next();
        for (part, memory) in parts.zip(helpers) {
            scope.spawn(|| part.iter_mut().for_each(|job| job.run(memory)));
        }
        own.into_iter().flatten().for_each(|job| job.run(memory));
    });
}
