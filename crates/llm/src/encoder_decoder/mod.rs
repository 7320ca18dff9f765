//! Models that read a text whole and write another one, such as T5.

mod rows;

use std::path::Path;
use std::sync::Arc;

use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::Tensor;

pub(crate) use rows::{ReadSource, RowId, WritingRows};

use crate::arch::{EncoderDecoderShape, T5_TYPES, T5Architecture};
use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::weights::{self, GgmlQuantization};

/// Most tokens of a text that is read, and of one that is written. Such models know distances only, so
/// this bounds memory: what is added to scores grows with the square.
pub(crate) const MAX_TOKENS: usize = 4096;

/// Lengths of texts that are read are multiples of this, so that a session sees few different shapes.
const LENGTH_STEP: usize = 16;

/// The sessions of an encoder and of its decoder. They may be used by several threads.
#[derive(Debug)]
pub struct EncoderDecoder {
    encoder: Session,
    decoder: Session,
    shape: EncoderDecoderShape,
}

/// Texts that are being written, each as many tokens long as the others.
#[derive(Debug)]
pub struct WritingTexts<'m> {
    model: &'m EncoderDecoder,
    rows: WritingRows,
    texts: usize,
    length: usize,
}

fn failed(error: impl std::fmt::Display) -> LlmError {
    LlmError::new(LlmErrorKind::Model, "encoder-decoder", error.to_string())
}

impl EncoderDecoder {
    /// Puts sessions of graphs together that `arch::T5Architecture` made.
    pub fn new(encoder: Session, decoder: Session, shape: EncoderDecoderShape) -> Self {
        Self { encoder, decoder, shape }
    }

    /// Whether a folder's `config.json` names a model that reads a text whole and writes another one.
    ///
    /// # Errors
    /// When there is no such file, or it is malformed.
    pub fn recognises(folder: &Path) -> Result<bool> {
        let config = JsonConfig::read(&folder.join("config.json"))?;
        Ok(config.text("model_type")?.is_some_and(|name| T5_TYPES.contains(&name)))
    }

    /// Loads a folder of `config.json` and safetensors.
    ///
    /// # Errors
    /// An architecture that is not known, weights that do not fit it, and files that are missing or
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
        let config = JsonConfig::read(&folder.join("config.json"))?;
        let model = T5Architecture::new(&config)?;
        let place = || folder.display().to_string();
        let weights = weights::of_folder(folder, &config, to)?;
        let session = |graph| {
            let session = Session::new(graph, providers, options)
                .map_err(|error| LlmError::new(LlmErrorKind::Model, place(), error.to_string()));
            weights.release();
            session
        };
        let encoder = session(model.encoder(&*weights)?)?;
        let decoder = session(model.decoder(&*weights)?)?;
        Ok(Self::new(encoder, decoder, model.shape().clone()))
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &EncoderDecoderShape {
        &self.shape
    }

    /// Memory of the weights, in bytes.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        let held = |session: &Session| {
            let memory = session.report().memory;
            memory.initializer_bytes + memory.mapped_bytes
        };
        held(&self.encoder) + held(&self.decoder)
    }

    /// Reads texts, for each of which another one will be written.
    ///
    /// # Errors
    /// No text, one without tokens, with too many or with unknown ones, and a run that fails.
    pub fn read(&self, texts: &[Vec<u32>]) -> Result<WritingTexts<'_>> {
        if texts.is_empty() {
            let text = "no text found, expected at least one";
            return Err(LlmError::new(LlmErrorKind::Parameter, "input", text));
        }
        let mut rows = WritingRows::default();
        for (id, text) in (0..).zip(texts) {
            let source = self.source(text).map_err(|error| match error.kind() {
                LlmErrorKind::Parameter => error.within(format!("input {id}")),
                _ => error,
            })?;
            rows.add(self, id, &source)?;
        }
        Ok(WritingTexts { model: self, rows, texts: texts.len(), length: 0 })
    }

    /// Reads a text.
    ///
    /// # Errors
    /// One without tokens, with too many or with unknown ones, and a run that fails.
    pub(crate) fn source(&self, text: &[u32]) -> Result<ReadSource> {
        if text.is_empty() || text.len() > MAX_TOKENS {
            let found = format!("{} tokens found, expected 1 to {MAX_TOKENS}", text.len());
            return Err(LlmError::new(LlmErrorKind::Parameter, "tokens", found));
        }
        self.check(text)?;
        let length = text.len().next_multiple_of(LENGTH_STEP);
        let mut tokens: Vec<i64> = text.iter().map(|token| i64::from(*token)).collect();
        tokens.resize(length, 0);
        let mut mask = vec![0.0_f32; text.len()];
        mask.resize(length, f32::NEG_INFINITY);
        let inputs = vec![
            Tensor::from_vec(&[1, length], tokens).map_err(failed)?,
            Tensor::vector(places(0, length)),
            Tensor::from_vec(&[1, length], mask).map_err(failed)?,
        ];
        let mut found = self.encoder.run_tensors(Run::owned(inputs)).map_err(failed)?;
        if found.len() != 1 + 2 * self.shape.layers {
            return Err(failed(format!("the encoder gave {} results", found.len())));
        }
        let cross = found.split_off(1);
        let whole = |tensor: Tensor| tensor.contiguous().map_err(failed);
        let cross = cross.into_iter().map(whole).collect::<Result<_>>()?;
        Ok(ReadSource { cross, length: text.len() })
    }

    /// The likeliest tokens, one after the other, of an answer to each text: until a token of `ends`,
    /// which is not part of it, and at most so many.
    ///
    /// # Errors
    /// Fails like [`Self::read`].
    pub fn generate(&self, texts: &[Vec<u32>], most: usize, ends: &[u32]) -> Result<Vec<Vec<u32>>> {
        let mut writing = self.read(texts)?;
        let mut answers = vec![Vec::new(); texts.len()];
        let mut ended = vec![false; texts.len()];
        let mut last = vec![self.shape.start; texts.len()];
        for _ in 0..most {
            let logits = writing.write(&last)?;
            let each = logits.iter().zip(&mut answers).zip(&mut ended).zip(&mut last);
            for (((logits, answer), ended), last) in each {
                let Some(token) = likeliest(logits) else {
                    return Err(failed("logits are no numbers"));
                };
                *last = token;
                *ended = *ended || ends.contains(&token);
                if !*ended {
                    answer.push(token);
                }
            }
            if ended.iter().all(|ended| *ended) {
                break;
            }
        }
        Ok(answers)
    }

    fn check(&self, tokens: &[u32]) -> Result<()> {
        let most = self.shape.vocabulary;
        let known = |token: &u32| usize::try_from(*token).is_ok_and(|token| token < most);
        match tokens.iter().find(|token| !known(token)) {
            Some(token) => {
                let text = format!("token {token} found, expected tokens below {most}");
                Err(LlmError::new(LlmErrorKind::Parameter, "input", text))
            }
            None => Ok(()),
        }
    }
}

impl WritingTexts<'_> {
    /// Appends a token to each text, the start first, and gives the logits of what follows.
    ///
    /// # Errors
    /// Another number of tokens than texts, unknown ones, texts that are too long, and a run that
    /// fails. After a failed run nothing more can be written.
    pub fn write(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>> {
        if tokens.len() != self.texts || self.length == MAX_TOKENS {
            let found = tokens.len();
            let texts = self.texts;
            let length = self.length;
            let text = format!("{found} tokens for {texts} texts of {length} tokens");
            return Err(LlmError::new(LlmErrorKind::Parameter, "tokens", text));
        }
        self.model.check(tokens)?;
        let tokens: Vec<(RowId, u32)> = (0..).zip(tokens.iter().copied()).collect();
        self.length += 1;
        self.rows.step(self.model, &tokens)
    }
}

/// Positions from one up to another.
fn places(from: usize, to: usize) -> Vec<i64> {
    (from..to).map(|at| i64::try_from(at).unwrap_or(i64::MAX)).collect()
}

/// The token with the greatest logit, the first of several.
fn likeliest(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    for (token, &logit) in (0_u32..).zip(logits) {
        if !logit.is_nan() && best.is_none_or(|(_, most)| logit > most) {
            best = Some((token, logit));
        }
    }
    best.map(|(token, _)| token)
}
