//! A request that is being answered, and what its client is told.

use std::time::Instant;

use super::answer::OngoingAnswer;
use super::life::RequestLife;
use super::request::{AnswerDelta, EventReceiver, GenerationEvent};
use crate::error::{LlmError, Result};
use crate::grammar::GrammarConstraint;
use crate::observe::EngineOutcome;
use crate::sampling::{SamplingParameters, TokenLogprobs, TokenSampler};
use crate::schedule::{ArrivingSequence, SequenceId};
use crate::stop::FinishReason;
use crate::tokens::Tokenizer;

/// A request that was checked.
pub(super) struct SubmittedRequest {
    pub(super) request: OngoingRequest,
    pub(super) arrival: ArrivingSequence,
}

/// A request that goes on. Its answers are sequences whose numbers follow its own.
pub(super) struct OngoingRequest {
    // Counted before the client is told, where it is dropped.
    pub(super) life: RequestLife,
    pub(super) reply: EventReceiver,
    pub(super) sampling: SamplingParameters,
    /// For answers behind the first one.
    pub(super) constraint: Option<GrammarConstraint>,
    /// Answers that have not ended.
    pub(super) open: Vec<OpenAnswer>,
    /// Facts about the tokens of the prompt, where that is asked for.
    pub(super) prompt_logprobs: Option<Vec<Option<TokenLogprobs>>>,
}

/// An answer that has not ended.
pub(super) struct OpenAnswer {
    pub(super) sequence: SequenceId,
    pub(super) answer: OngoingAnswer,
    /// Its last token.
    pub(super) last: Option<u32>,
    /// The time of that.
    pub(super) last_token: Option<Instant>,
    /// How many tokens are guessed next: as many as were right last time, and one more.
    pub(super) drafts: usize,
}

impl OpenAnswer {
    pub(super) fn new(sequence: SequenceId, answer: OngoingAnswer) -> Self {
        Self { sequence, answer, last: None, last_token: None, drafts: usize::MAX }
    }
}

impl OngoingRequest {
    /// Tokens of the prompt.
    pub(super) fn prompt(&self) -> usize {
        self.life.usage().prompt_tokens
    }

    /// Opens the answers behind the first one, for which samplers have read `before`.
    ///
    /// # Errors
    /// Sampling that does not fit the vocabulary.
    pub(super) fn open_others(
        &mut self,
        tokenizer: &Tokenizer,
        vocabulary: usize,
        before: &[u32],
    ) -> Result<()> {
        let room = self.open.first().map_or(0, |open| open.answer.room());
        for index in 1..self.sampling.n {
            let eos = tokenizer.eos();
            let sampler = TokenSampler::new(&self.sampling, vocabulary, before, eos, index)?;
            let number = usize::try_from(index).unwrap_or(usize::MAX);
            let answer = OngoingAnswer::new(number, sampler, self.constraint.clone(), room);
            let sequence = self.life.number() + u64::from(index);
            self.open.push(OpenAnswer::new(sequence, answer));
        }
        Ok(())
    }

    /// Tells that the prompt is computed; `false` where nobody listens.
    pub(super) fn tell_start(&mut self) -> bool {
        self.life.shared().statistics().prompt_tokens += self.prompt() as u64;
        let cached_tokens = self.life.usage().cached_tokens;
        let prompt_logprobs = self.prompt_logprobs.take();
        self.reply.tell(GenerationEvent::Started { cached_tokens, prompt_logprobs })
    }

    /// Counts the new tokens of the answer at a place.
    pub(super) fn take_delta(&mut self, at: usize, delta: &AnswerDelta) {
        let Some(open) = self.open.get_mut(at) else { return };
        open.last = delta.tokens.last().copied().or(open.last);
        self.life.take_tokens(delta.tokens.len(), &mut open.last_token);
    }

    /// Tells that all answers have ended.
    pub(super) fn finish(mut self, outcome: EngineOutcome) {
        self.life.observe_times();
        self.life.end(outcome);
        self.reply.tell(GenerationEvent::Finished(self.life.usage()));
    }

    /// Ends all answers that are open, as the request is taken back.
    pub(super) fn cancel(mut self) {
        for open in std::mem::take(&mut self.open) {
            self.life.shared().count_finished(FinishReason::Cancelled.as_str(), 1);
            self.reply.tell(GenerationEvent::Delta(open.answer.cancel()));
        }
        self.finish(EngineOutcome::Cancelled);
    }

    /// Tells what went wrong.
    pub(super) fn fail(mut self, error: LlmError) {
        self.life.shared().count_finished(FinishReason::Failed.as_str(), 1);
        self.life.end(EngineOutcome::Failed);
        self.reply.tell(GenerationEvent::Failed(error));
    }
}
