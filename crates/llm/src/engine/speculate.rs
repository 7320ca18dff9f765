//! Tokens that may follow, guessed so that one step can confirm several.
//!
//! Each draft is a row of the step behind the sequence's last token. A token is chosen from each row as
//! if there were no drafts; while it equals the draft, the next row is the one that a step by itself
//! would have given. So answers are the same with and without drafts, greedy or not: this is the
//! rejection sampling of Leviathan et al. 2023 (arXiv 2211.17192) for a guess that is certain of itself.
//! Text that a grammar leaves no choice about is guessed always.

use std::collections::HashMap;

use crate::cache::{BlockCache, BlockTable};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::sampling::LogitNeed;
use crate::schedule::{SequenceId, SequenceScheduler};

use super::model::{StepBatch, StepModel};

/// Where guesses come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeculationMethod {
    /// Tokens that followed the last tokens where these occurred before, in the prompt or the answer.
    PromptLookup {
        /// The most tokens of a guess.
        max_tokens: usize,
        /// The most last tokens that are looked up; two of them at least must occur, or one where
        /// this is 1.
        ngram: usize,
    },
    /// Tokens that a smaller model with the same vocabulary generates ([`super::GenerationEngine::start_with_draft`]).
    Draft {
        /// The most tokens of a guess.
        max_tokens: usize,
    },
}

impl SpeculationMethod {
    /// The most tokens of a guess.
    #[must_use]
    pub fn max_tokens(&self) -> usize {
        match self {
            Self::PromptLookup { max_tokens, .. } | Self::Draft { max_tokens } => *max_tokens,
        }
    }

    /// Compares numbers with their ranges.
    pub(super) fn validate(&self) -> Result<()> {
        let check = |field: &str, value: usize| {
            if (1..=64).contains(&value) {
                return Ok(());
            }
            let text = format!("{value} found, expected 1 to 64");
            Err(LlmError::new(LlmErrorKind::Parameter, format!("speculative.{field}"), text))
        };
        if let Self::PromptLookup { ngram, .. } = self {
            check("ngram", *ngram)?;
        }
        check("max_tokens", self.max_tokens())
    }
}

/// A sequence for which tokens are guessed.
#[derive(Clone, Copy)]
pub(super) struct SpeculationRequest {
    /// The sequence.
    pub(super) id: SequenceId,
    /// The most tokens of the guess.
    pub(super) most: usize,
}

/// Source of guesses.
#[derive(Debug)]
pub(super) enum TokenProposer {
    Lookup { ngram: usize },
    Draft(Box<DraftModel>),
}

impl TokenProposer {
    /// Guesses for sequences that lack one token.
    ///
    /// # Errors
    /// When a draft model fails.
    pub(super) fn propose(
        &mut self,
        scheduler: &SequenceScheduler,
        wishes: &[SpeculationRequest],
    ) -> Result<Vec<(SequenceId, Vec<u32>)>> {
        match self {
            Self::Lookup { ngram } => {
                let guess = |wish: &SpeculationRequest| {
                    (wish.id, look_up(scheduler.tokens(wish.id), *ngram, wish.most))
                };
                Ok(wishes.iter().map(guess).collect())
            }
            Self::Draft(draft) => draft.propose(scheduler, wishes),
        }
    }
}

/// Tokens that followed the longest end of `tokens`, of at most `ngram`, that occurred before: the last time
/// that it did. A guess that reaches the end of the tokens goes on with itself.
fn look_up(tokens: &[u32], ngram: usize, most: usize) -> Vec<u32> {
    let least = ngram.min(2);
    let Some((last, before)) = tokens.split_last() else { return Vec::new() };
    let mut length = 0;
    let mut from = 0;
    for (at, _) in before.iter().enumerate().rev().filter(|(_, token)| *token == last) {
        let earlier = tokens[..=at].iter().rev();
        let same = earlier.zip(tokens.iter().rev()).take(ngram).take_while(|(a, b)| a == b).count();
        if same > length {
            (length, from) = (same, at + 1);
            if length == ngram {
                break;
            }
        }
    }
    if length < least {
        return Vec::new();
    }
    let mut guess: Vec<u32> = Vec::with_capacity(most);
    for at in from..from + most {
        let token = tokens.get(at).or_else(|| guess.get(at - tokens.len())).copied();
        guess.extend(token);
    }
    guess
}

/// A sequence in the blocks of a draft model.
#[derive(Debug, Default)]
struct DraftPast {
    table: BlockTable,
    /// The tokens whose keys and values are there, guesses included.
    written: Vec<u32>,
}

/// A smaller model that guesses, with blocks of its own.
pub(super) struct DraftModel {
    model: Box<dyn StepModel>,
    cache: BlockCache,
    pasts: HashMap<SequenceId, DraftPast>,
    /// The most rows of a step.
    most_rows: usize,
    batch: StepBatch,
}

impl std::fmt::Debug for DraftModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DraftModel").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// A guess that grows.
struct GrowingGuess {
    id: SequenceId,
    past: DraftPast,
    /// Rows of the next step.
    feed: Vec<u32>,
    /// Whether the rows end with the newest token.
    whole: bool,
    guess: Vec<u32>,
    most: usize,
}

impl DraftModel {
    pub(super) fn new(model: Box<dyn StepModel>, most_rows: usize) -> Self {
        let cache = BlockCache::new(model.block_count(), model.block_size());
        Self { model, cache, pasts: HashMap::new(), most_rows, batch: StepBatch::default() }
    }

    fn propose(
        &mut self,
        scheduler: &SequenceScheduler,
        wishes: &[SpeculationRequest],
    ) -> Result<Vec<(SequenceId, Vec<u32>)>> {
        let mut budget = self.most_rows;
        let mut guesses = Vec::with_capacity(wishes.len());
        let mut pasts = std::mem::take(&mut self.pasts);
        for &wish in wishes {
            let past = pasts.remove(&wish.id);
            guesses.extend(self.begin(scheduler, wish, past, &mut budget));
        }
        // Those that rest find what is confirmed in the cache.
        for past in pasts.into_values() {
            self.cache.close(past.table);
        }
        let steps = wishes.iter().map(|wish| wish.most).max().unwrap_or(0);
        for _ in 0..steps {
            if let Err(error) = self.step(&mut guesses) {
                self.cache = BlockCache::new(self.model.block_count(), self.model.block_size());
                return Err(error);
            }
        }
        let mut found = Vec::with_capacity(guesses.len());
        for GrowingGuess { id, past, guess, .. } in guesses {
            self.pasts.insert(id, past);
            found.push((id, guess));
        }
        Ok(found)
    }

    /// Blocks that a sequence needs before it can be guessed. `None` where there is no room for it.
    fn begin(
        &mut self,
        scheduler: &SequenceScheduler,
        wish: SpeculationRequest,
        past: Option<DraftPast>,
        budget: &mut usize,
    ) -> Option<GrowingGuess> {
        let SpeculationRequest { id, most } = wish;
        let tokens = scheduler.tokens(id);
        let shape = self.model.shape();
        let room = shape.positions.saturating_sub(tokens.len()).min(most);
        let vocabulary = shape.vocabulary;
        let mut past = past.unwrap_or_else(|| {
            let table = self.cache.open(tokens, scheduler.salt(id));
            DraftPast { written: tokens[..table.computed()].to_vec(), table }
        });
        // Confirmed are the tokens that the sequence has as well; the last one is computed again
        // where nothing else is left to do.
        let same = past.written.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let confirmed = same.min(tokens.len() - 1);
        past.written.truncate(confirmed);
        self.cache.computed(&mut past.table, &tokens[..confirmed]);
        let count = (tokens.len() - confirmed).min(*budget);
        let whole = confirmed + count == tokens.len();
        let feed = tokens[confirmed..confirmed + count].to_vec();
        let known = feed.iter().all(|token| (*token as usize) < vocabulary);
        let positions = confirmed + count + if whole { room } else { 0 };
        if count == 0 || room == 0 || !known || !self.cache.extend(&mut past.table, positions) {
            self.cache.close(past.table);
            return None;
        }
        *budget -= count;
        Some(GrowingGuess { id, past, feed, whole, guess: Vec::new(), most: room })
    }

    /// One step for all guesses that grow.
    fn step(&mut self, guesses: &mut [GrowingGuess]) -> Result<()> {
        let growing = |guess: &&mut GrowingGuess| !guess.feed.is_empty();
        let mut guesses: Vec<&mut GrowingGuess> = guesses.iter_mut().filter(growing).collect();
        if guesses.is_empty() {
            return Ok(());
        }
        let blocks = |guess: &&mut GrowingGuess| guess.past.table.blocks().len();
        self.batch.clear(guesses.iter().map(blocks).max().unwrap_or(0));
        for guess in &guesses {
            let from = guess.past.written.len();
            let blocks = guess.past.table.blocks();
            let wanted = usize::from(guess.whole);
            self.batch.push(guess.feed.iter().copied(), from, wanted, blocks);
        }
        self.batch.need = LogitNeed::Best;
        let mut logits = self.model.step(&self.batch)?;
        let mut at = 0;
        for guess in &mut guesses {
            guess.past.written.append(&mut guess.feed);
            if !guess.whole {
                continue;
            }
            let best = logits.best(at);
            at += 1;
            let Some(token) = best else { continue };
            guess.guess.push(token);
            if guess.guess.len() < guess.most {
                guess.feed.push(token);
            }
        }
        self.model.take_back(logits);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_end_that_occurred_before_is_what_counts() {
        let tokens = [1, 2, 3, 4, 9, 2, 3, 5, 7, 1, 2, 3];
        assert_eq!(look_up(&tokens, 3, 3), [4, 9, 2]);
        // Of equal ends the last one.
        assert_eq!(look_up(&tokens, 2, 3), [5, 7, 1]);
        assert_eq!(look_up(&tokens, 1, 1), [5]);
        assert!(look_up(&[1, 2, 3, 4, 3], 3, 4).is_empty());
        assert_eq!(look_up(&[1, 2, 3, 4, 3], 1, 4), [4, 3, 4, 3]);
        assert_eq!(look_up(&[6, 6, 6], 2, 4), [6; 4]);
        assert!(look_up(&[6], 2, 4).is_empty());
    }
}
