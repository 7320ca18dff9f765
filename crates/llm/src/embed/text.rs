//! Texts to an encoder's tokens, and its results to scores.

use std::path::Path;
use std::sync::Arc;

use galatea_runtime::{ExecutionProvider, SessionOptions};

use super::{EncoderModel, TextTokens, pooling};
use crate::arch;
use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::tokens::{SpecialTokens, Tokenizer};
use crate::weights::GgmlQuantization;

/// An encoder with its tokenizer: what front ends need for embeddings and for ranks.
#[derive(Debug)]
pub struct TextEncoder {
    tokenizer: Arc<Tokenizer>,
    encoder: EncoderModel,
}

impl TextEncoder {
    /// Puts the parts together.
    pub fn new(tokenizer: Arc<Tokenizer>, encoder: EncoderModel) -> Self {
        Self { tokenizer, encoder }
    }

    /// Whether a folder's `config.json` names an encoder.
    ///
    /// # Errors
    /// When there is no such file, or it is malformed.
    pub fn recognises(folder: &Path) -> Result<bool> {
        Ok(arch::encoder(&JsonConfig::read(&folder.join("config.json"))?)?.is_some())
    }

    /// Loads a folder of `config.json`, safetensors and `tokenizer.json`, and what
    /// sentence-transformers keeps beside them.
    ///
    /// # Errors
    /// An architecture that is no encoder, weights that do not fit it, and files that are missing or
    /// malformed.
    pub fn load(
        folder: &Path,
        providers: &[Arc<dyn ExecutionProvider>],
        options: &SessionOptions,
    ) -> Result<Self> {
        Self::load_as(folder, providers, options, None)
    }

    /// Loads a folder, with its matrices rounded if that is asked for.
    ///
    /// # Errors
    /// Fails like [`Self::load`].
    pub fn load_as(
        folder: &Path,
        providers: &[Arc<dyn ExecutionProvider>],
        options: &SessionOptions,
        to: Option<GgmlQuantization>,
    ) -> Result<Self> {
        if !Self::recognises(folder)? {
            // Its error says which there are.
            EncoderModel::load(folder, providers, options)?;
        }
        let tokenizer = Arc::new(Tokenizer::from_folder(folder)?);
        Ok(Self::new(tokenizer, EncoderModel::load_as(folder, providers, options, to)?))
    }

    /// The same encoder for texts of at most so many tokens.
    ///
    /// # Errors
    /// None at all, or more than the model takes.
    pub fn with_context(mut self, most: usize) -> Result<Self> {
        let own = self.encoder.context();
        if most == 0 || most > own {
            let text = format!("{most} tokens found, expected 1 to {own}");
            return Err(LlmError::new(LlmErrorKind::Parameter, "context", text));
        }
        self.encoder.settings.most_tokens = Some(most);
        Ok(self)
    }

    /// Text to tokens and back.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Model that computes tokens.
    #[must_use]
    pub fn encoder(&self) -> &EncoderModel {
        &self.encoder
    }

    /// The tokens of a text with the prompt of this name, or the default one, in front.
    ///
    /// # Errors
    /// An unknown name, and what the tokenizer cannot express.
    pub fn tokens(&self, text: &str, prompt: Option<&str>) -> Result<Vec<u32>> {
        self.text(text, prompt, SpecialTokens::Add, None).map(|text| text.tokens)
    }

    /// The tokens of a text, the prompt of this name or the default one in front. Of more than `most`
    /// tokens those at the end of the text are left out.
    ///
    /// # Errors
    /// Fails like [`Self::tokens`], and no room for any token of the text.
    pub fn text(
        &self,
        text: &str,
        prompt: Option<&str>,
        surround: SpecialTokens,
        most: Option<usize>,
    ) -> Result<TextTokens> {
        let prompt = self.encoder.settings().prompt(prompt)?;
        let text = match most {
            Some(most) => self.tokenizer.beginning(text, needed(most))?,
            None => text,
        };
        let text = format!("{prompt}{text}");
        let tokens = self.tokenizer.encode(&text, surround)?;
        let Some(most) = most.filter(|most| *most < tokens.len()) else {
            return Ok(TextTokens { tokens, types: Vec::new() });
        };
        let own = self.tokenizer.encode(&text, SpecialTokens::Omit)?;
        let tokens = without_end(tokens, &own, most)
            .ok_or_else(|| no_room(most, "the tokens around a text"))?;
        Ok(TextTokens { tokens, types: Vec::new() })
    }

    /// The tokens of a pair of texts, as a cross-encoder reads it. Of more than `most` tokens those at
    /// the end of the second text are left out.
    ///
    /// # Errors
    /// Fails on text that the tokenizer cannot express, and on no room for any token of the second text.
    pub fn pair(&self, first: &str, second: &str, most: Option<usize>) -> Result<TextTokens> {
        let second = match most {
            Some(most) => self.tokenizer.beginning(second, needed(most))?,
            None => second,
        };
        let (tokens, mut types) = self.tokenizer.encode_pair(first, second)?;
        let Some(most) = most.filter(|most| *most < tokens.len()) else {
            return Ok(TextTokens { tokens, types });
        };
        let own = self.tokenizer.encode(second, SpecialTokens::Omit)?;
        let left_out = tokens.len() - most;
        let tokens = without_end(tokens, &own, most)
            .ok_or_else(|| no_room(most, "the first text and the tokens around both"))?;
        // The second text has one type, which the tokens behind it have too.
        types.truncate(types.len().saturating_sub(left_out));
        Ok(TextTokens { tokens, types })
    }

    /// Tokens that the encoder computes so that [`Self::scores`] can tell how well each document answers the
    /// query. Of texts, or pairs of them, with more than `most` tokens those at the end are left out.
    ///
    /// # Errors
    /// Fails like [`Self::text`] and [`Self::pair`].
    pub fn ranked(
        &self,
        query: &str,
        documents: &[&str],
        most: Option<usize>,
    ) -> Result<Vec<TextTokens>> {
        if self.encoder.shape().labels.is_some() {
            let pair = |document: &&str| self.pair(query, document, most);
            return documents.iter().map(pair).collect();
        }
        let named = |name: &'static str| {
            let mut prompts = self.encoder.settings().prompts.iter();
            prompts.any(|(own, _)| own == name).then_some(name)
        };
        let passage = named("document").or_else(|| named("passage"));
        let mut texts = Vec::with_capacity(documents.len() + 1);
        for document in documents {
            texts.push(self.text(document, passage, SpecialTokens::Add, most)?);
        }
        texts.push(self.text(query, named("query"), SpecialTokens::Add, most)?);
        Ok(texts)
    }

    /// The score of each document, from what the encoder gave for [`Self::ranked`]: those of a
    /// cross-encoder, or of a model of vectors the cosine of the angle between document and query.
    #[must_use]
    pub fn scores(&self, mut results: Vec<Vec<f32>>) -> Vec<f32> {
        if self.encoder.shape().labels.is_some() {
            return results.into_iter().map(|scores| only(&scores)).collect();
        }
        let query = results.pop().unwrap_or_default();
        results.iter().map(|vector| cosine(vector, &query)).collect()
    }

    /// How well each document answers the query, and the number of all tokens.
    ///
    /// # Errors
    /// A text with too many tokens, by the document's number, and as for [`EncoderModel::embed`].
    pub fn rank(&self, query: &str, documents: &[&str]) -> Result<(Vec<f32>, usize)> {
        self.encoder.check_labels()?;
        let texts = self.ranked(query, documents, None)?;
        let count = texts.iter().map(|text| text.tokens.len()).sum();
        let results = self.encoder.results(&texts.iter().collect::<Vec<_>>())?;
        Ok((self.scores(results), count))
    }
}

/// The one number of a list.
fn only(numbers: &[f32]) -> f32 {
    numbers.first().copied().unwrap_or(f32::NAN)
}

/// The cosine of the angle between two vectors.
#[must_use]
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let [mut a, mut b] = [a.to_vec(), b.to_vec()];
    [&mut a, &mut b].into_iter().for_each(|vector| pooling::normalise(vector));
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

/// Tokens around those of a text, of which so many at the end are left out that `most` remain; nothing
/// where not even one is left of the text.
fn without_end(mut tokens: Vec<u32>, text: &[u32], most: usize) -> Option<Vec<u32>> {
    let left_out = tokens.len().checked_sub(most)?;
    if left_out >= text.len() {
        return None;
    }
    let place = tokens.windows(text.len()).rposition(|window| window == text)?;
    let end = place + text.len();
    tokens.drain(end - left_out..end);
    Some(tokens)
}

/// Tokens at the beginning of a text that are looked at where only so many are taken: what is cut off behind them does
/// not change those in front.
fn needed(most: usize) -> usize {
    most.saturating_mul(2).saturating_add(64)
}

fn no_room(most: usize, what: &str) -> LlmError {
    let text = format!("{most} tokens found, but {what} need as many");
    LlmError::new(LlmErrorKind::Parameter, "truncate_prompt_tokens", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_text_is_left_out() {
        let all = vec![2, 7, 3, 7, 8, 9, 3];
        assert_eq!(without_end(all.clone(), &[7, 8, 9], 5), Some(vec![2, 7, 3, 7, 3]));
        assert_eq!(without_end(all.clone(), &[7, 8, 9], 4), None);
        assert_eq!(without_end(all, &[5, 5], 6), None);
    }
}
