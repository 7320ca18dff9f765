//! How well a checkpoint foresees a text.

use std::path::Path;
use std::sync::Arc;

use super::load::{CheckpointOptions, FoundCheckpoint};
use crate::engine::{SessionModel, StepBatch, StepModel};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::sampling::LogitNeed;
use crate::tokens::{SpecialTokens, Tokenizer};

/// A checkpoint that is asked how probable it finds the tokens of a text, in pieces of one length.
#[derive(Debug)]
pub struct PerplexityModel {
    model: SessionModel,
    tokenizer: Arc<Tokenizer>,
    chunk: usize,
    weight_bytes: usize,
}

/// Perplexity of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerplexityScore {
    /// The exponential of the mean negative logarithm of the tokens' probabilities.
    pub perplexity: f64,
    /// Tokens that were scored.
    pub tokens: usize,
    /// Pieces that the text was cut into.
    pub chunks: usize,
}

impl PerplexityModel {
    /// Loads a checkpoint for pieces of `chunk` tokens, or as many as it takes.
    ///
    /// # Errors
    /// Fails like [`super::LanguageModel::load`], and pieces of fewer than 4 tokens.
    pub fn load(path: &Path, options: &CheckpointOptions, chunk: usize) -> Result<Self> {
        let checkpoint = FoundCheckpoint::open(path, options)?;
        let chunk = chunk.min(checkpoint.shape()?.positions);
        if chunk < 4 {
            let text = format!("{chunk} found, expected at least 4 tokens");
            return Err(LlmError::new(LlmErrorKind::Parameter, "chunk", text));
        }
        let mut options = options.clone();
        options.engine.context = Some(chunk);
        options.blocks = Some(chunk.div_ceil(options.block_size.max(1)));
        let model = checkpoint.step_model(path, &options)?;
        let memory = model.session().report().memory;
        let weight_bytes = memory.initializer_bytes + memory.mapped_bytes;
        Ok(Self { model, tokenizer: checkpoint.tokenizer, chunk, weight_bytes })
    }

    /// Tokens of a piece.
    #[must_use]
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Memory of the weights, in bytes.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }

    /// Scores a text as llama.cpp's `perplexity` does: whole pieces, each on its own and with the tokenizer's
    /// first token in front where it has one, and of each piece the tokens of the second half.
    ///
    /// # Errors
    /// A text shorter than a piece, and steps that fail.
    pub fn score(&mut self, text: &str) -> Result<PerplexityScore> {
        let tokens = self.tokenizer.encode(text, SpecialTokens::Add)?;
        let plain = self.tokenizer.encode("", SpecialTokens::Add)?;
        let first = self.tokenizer.bos().filter(|bos| plain.first() == Some(bos));
        if tokens.len() < self.chunk {
            let text = format!(
                "{} tokens found, expected at least {} for one piece",
                tokens.len(),
                self.chunk
            );
            return Err(LlmError::new(LlmErrorKind::Parameter, "text", text));
        }
        let mut sum = 0.0_f64;
        let mut count = 0;
        let mut chunks = 0;
        for piece in tokens.chunks_exact(self.chunk) {
            let mut piece = piece.to_vec();
            if let (Some(bos), Some(start)) = (first, piece.first_mut()) {
                *start = bos;
            }
            let (own, scored) = self.piece(&piece)?;
            (sum, count, chunks) = (sum + own, count + scored, chunks + 1);
        }
        #[allow(clippy::cast_precision_loss, reason = "a number of tokens")]
        let perplexity = (sum / (count as f64).max(1.0)).exp();
        Ok(PerplexityScore { perplexity, tokens: count, chunks })
    }

    /// The negative logarithms of the probabilities of a piece's second half, summed, and how many they are.
    fn piece(&mut self, tokens: &[u32]) -> Result<(f64, usize)> {
        let count = tokens.len();
        let range = |from: usize, to: usize| (from..to).map(int).collect::<Vec<i64>>();
        let blocks = self.model.block_count();
        let from = count / 2;
        let batch = StepBatch {
            tokens: tokens.iter().copied().map(i64::from).collect(),
            positions: range(0, count),
            starts: vec![0, int(count)],
            lengths: vec![int(count)],
            blocks: range(0, blocks),
            most_blocks: blocks,
            wanted: range(from, count - 1),
            need: LogitNeed::Logits,
        };
        let mut logits = self.model.step(&batch)?;
        let mut sum = 0.0;
        for (at, &next) in tokens.iter().skip(from + 1).enumerate() {
            let row = logits.row(at).map(|row| &*row).unwrap_or_default();
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let all: f64 = row.iter().map(|&logit| f64::from(logit - most).exp()).sum();
            let own =
                usize::try_from(next).ok().and_then(|next| row.get(next)).ok_or_else(|| {
                    let text = format!("token {next} found, expected one of {}", row.len());
                    LlmError::new(LlmErrorKind::Model, "logits", text)
                })?;
            sum += all.ln() - f64::from(own - most);
        }
        Ok((sum, count - 1 - from))
    }
}

fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
