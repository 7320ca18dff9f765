//! One answer: from rows of logits to text.

use crate::error::Result;
use crate::grammar::GrammarConstraint;
use crate::sampling::{
    LogitNeed, LogitRow, SamplerScratch, SamplingParameters, TokenLogprobs, TokenSampler, logprobs,
};
use crate::stop::{FinishReason, StopStrings, finish_reason};
use crate::tokens::{SpecialText, StreamStart, TextStream, Tokenizer};

use super::request::AnswerDelta;

/// The most tokens that are taken from a grammar at once.
const MAX_FORCED: usize = 32;

/// The memory that the answers of an engine share.
#[derive(Debug)]
pub(super) struct AnswerMemory {
    scratch: SamplerScratch,
    /// A row as the model gave it.
    raw: Vec<f32>,
}

impl AnswerMemory {
    pub(super) fn new(vocabulary: usize) -> Self {
        Self { scratch: SamplerScratch::new(vocabulary), raw: Vec::with_capacity(vocabulary) }
    }
}

/// A token that was chosen, and its log-probability where that is asked for.
#[derive(Debug)]
pub(super) struct ChosenToken {
    token: u32,
    told: Option<TokenLogprobs>,
}

/// An answer that goes on.
#[derive(Debug)]
pub(super) struct OngoingAnswer {
    index: usize,
    sampler: TokenSampler,
    constraint: Option<GrammarConstraint>,
    stream: TextStream,
    stops: StopStrings,
    /// Tokens so far, and the most that the context has room for.
    count: u32,
    room: u32,
}

impl OngoingAnswer {
    pub(super) fn new(
        index: usize,
        sampler: TokenSampler,
        constraint: Option<GrammarConstraint>,
        room: u32,
    ) -> Self {
        let parameters = sampler.parameters();
        let special = match parameters.skip_special_tokens {
            true => SpecialText::Skip,
            false => SpecialText::Keep,
        };
        Self {
            index,
            stream: TextStream::new(StreamStart::AfterPrompt, special),
            stops: StopStrings::new(parameters),
            sampler,
            constraint,
            count: 0,
            room,
        }
    }

    /// The most tokens that the context has room for.
    pub(super) fn room(&self) -> u32 {
        self.room
    }

    /// The most tokens that may still come.
    pub(super) fn left(&self) -> usize {
        let most = self.parameters().max_tokens.unwrap_or(u32::MAX).min(self.room);
        most.saturating_sub(self.count) as usize
    }

    /// Drops the drafts that the grammar does not allow.
    pub(super) fn allow(&mut self, drafts: &mut Vec<u32>) {
        if let Some(constraint) = &mut self.constraint {
            // What cannot be said now is said when the token is chosen.
            drafts.truncate(constraint.allowed_prefix(drafts).unwrap_or(0));
        }
    }

    /// Whether the answer follows a grammar.
    pub(super) fn is_constrained(&self) -> bool {
        self.constraint.is_some()
    }

    /// The tokens that must come next, at most `most` of them: where the grammar leaves one text only,
    /// they are how the tokenizer writes it.
    pub(super) fn forced(&mut self, most: usize) -> Vec<u32> {
        let mut forced = self.constraint.as_mut().map_or_else(Vec::new, GrammarConstraint::forced);
        forced.truncate(most.min(MAX_FORCED));
        forced
    }

    fn parameters(&self) -> &SamplingParameters {
        self.sampler.parameters()
    }

    /// Needs of the next choices from rows of so many logits.
    pub(super) fn need(&self, vocabulary: usize) -> LogitNeed {
        if self.is_constrained() { LogitNeed::Logits } else { self.sampler.need(vocabulary) }
    }

    /// Chooses the next token from a row, which it may change.
    ///
    /// # Errors
    /// When no token is possible.
    pub(super) fn choose(
        &mut self,
        row: LogitRow<'_>,
        memory: &mut AnswerMemory,
    ) -> Result<ChosenToken> {
        let row = match row {
            LogitRow::Logits(row) => row,
            LogitRow::Top(top) => {
                let token = self.sampler.sample_top(top, &mut memory.scratch)?;
                return Ok(ChosenToken { token, told: None });
            }
        };
        let top = self.parameters().logprobs;
        let changed = self.constraint.is_some() || self.sampler.changes_logits();
        if top.is_some() && changed {
            memory.raw.clear();
            memory.raw.extend_from_slice(row);
        }
        if let Some(constraint) = &mut self.constraint {
            constraint.mask(row)?;
        }
        let token = self.sampler.sample(row, &mut memory.scratch)?;
        let raw = if changed { &memory.raw } else { &*row };
        let told = top.and_then(|top| logprobs(raw, token, top as usize));
        Ok(ChosenToken { token, told })
    }

    /// Takes a token.
    ///
    /// # Errors
    /// A token that the grammar does not allow.
    pub(super) fn take(
        &mut self,
        choice: ChosenToken,
        tokenizer: &Tokenizer,
    ) -> Result<AnswerDelta> {
        let ChosenToken { token, told } = choice;
        self.sampler.observe(token);
        self.count += 1;
        if let Some(constraint) = &mut self.constraint {
            constraint.accept(token)?;
        }
        let mut finish = finish_reason(self.parameters(), tokenizer.eos(), token, self.count);
        let mut text = String::new();
        let ended = matches!(finish, Some(FinishReason::EndOfText | FinishReason::StopToken(_)));
        if !ended || self.parameters().include_stop_str_in_output {
            finish = self.show(token, tokenizer, &mut text).or(finish);
        }
        if finish.is_none() && self.constraint.as_ref().is_some_and(GrammarConstraint::is_finished)
        {
            // Only an end token could follow.
            finish = Some(FinishReason::EndOfText);
        }
        if finish.is_none() && self.count >= self.room {
            finish = Some(FinishReason::Length);
        }
        if finish.is_some() && !matches!(finish, Some(FinishReason::StopString(_))) {
            self.flush(&mut text);
        }
        let logprobs = told.into_iter().collect();
        Ok(AnswerDelta { index: self.index, text, tokens: vec![token], logprobs, finish })
    }

    /// Appends the text that a token completes to `text`, and says whether a stop string ends it.
    fn show(
        &mut self,
        token: u32,
        tokenizer: &Tokenizer,
        text: &mut String,
    ) -> Option<FinishReason> {
        if self.count <= self.parameters().min_tokens || self.parameters().stop.is_empty() {
            self.stream.push(tokenizer, token, text);
            return None;
        }
        let mut piece = String::new();
        self.stream.push(tokenizer, token, &mut piece);
        self.stops.push(&piece, text)
    }

    /// Appends what was held back.
    fn flush(&mut self, text: &mut String) {
        self.stops.finish(text);
        self.stream.finish(text);
    }

    /// The last piece of an answer that is taken back.
    pub(super) fn cancel(mut self) -> AnswerDelta {
        let mut text = String::new();
        self.flush(&mut text);
        let tokens = Vec::new();
        let logprobs = Vec::new();
        let finish = Some(FinishReason::Cancelled);
        AnswerDelta { index: self.index, text, tokens, logprobs, finish }
    }
}
