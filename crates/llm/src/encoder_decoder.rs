//! Models that read a text whole and write another one, such as T5.

use galatea_runtime::{ExecutionProvider, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

use std::path::Path;
use std::sync::Arc;

use galatea_formats::safetensors;

use crate::arch::{EncoderDecoderShape, T5};
use crate::config::Config;
use crate::error::{Error, Kind, Result};

/// Most tokens of a text that is read, and of one that is written. Such models know distances only, so
/// this bounds memory: what is added to scores grows with the square.
const MOST_TOKENS: usize = 4096;

/// The sessions of an encoder and of its decoder. They may be used by several threads.
#[derive(Debug)]
pub struct EncoderDecoder {
    encoder: Session,
    decoder: Session,
    shape: EncoderDecoderShape,
}

/// Texts that are being written, each as many tokens long as the others.
#[derive(Debug)]
pub struct Writing<'m> {
    model: &'m EncoderDecoder,
    mask: Tensor,
    /// Keys and values of the texts that were read.
    cross: Vec<Tensor>,
    /// Keys and values of what was written.
    caches: Vec<Tensor>,
    texts: usize,
    length: usize,
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(Kind::Model, "encoder-decoder", error.to_string())
}

impl EncoderDecoder {
    /// Puts sessions of graphs together that `arch::T5` made.
    pub fn new(encoder: Session, decoder: Session, shape: EncoderDecoderShape) -> Self {
        Self { encoder, decoder, shape }
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
        let model = T5::new(&Config::read(&folder.join("config.json"))?)?;
        let place = || folder.display().to_string();
        let weights = safetensors::open(folder)
            .map_err(|error| Error::new(Kind::Weights, place(), error.to_string()))?;
        let session = |graph| {
            Session::new(graph, providers, options)
                .map_err(|error| Error::new(Kind::Model, place(), error.to_string()))
        };
        let encoder = session(model.encoder(&weights)?)?;
        let decoder = session(model.decoder(&weights)?)?;
        Ok(Self::new(encoder, decoder, model.shape().clone()))
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &EncoderDecoderShape {
        &self.shape
    }

    /// Reads texts, for each of which another one will be written.
    ///
    /// # Errors
    /// No text, one without tokens, with too many or with unknown ones, and a run that fails.
    pub fn read(&self, texts: &[Vec<u32>]) -> Result<Writing<'_>> {
        let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
        for (at, text) in texts.iter().enumerate() {
            if text.is_empty() || text.len() > MOST_TOKENS {
                let found = format!("{} tokens found, expected 1 to {MOST_TOKENS}", text.len());
                return Err(Error::new(Kind::Parameter, format!("input {at}"), found));
            }
            self.check(text)?;
        }
        if texts.is_empty() {
            let text = "no text found, expected at least one";
            return Err(Error::new(Kind::Parameter, "input", text));
        }
        let mut tokens = Vec::with_capacity(texts.len() * longest);
        let mut mask = Vec::with_capacity(texts.len() * longest);
        for text in texts {
            let rest = longest - text.len();
            tokens.extend(text.iter().map(|token| i64::from(*token)));
            tokens.extend(std::iter::repeat_n(0, rest));
            mask.extend(std::iter::repeat_n(0.0_f32, text.len()));
            mask.extend(std::iter::repeat_n(f32::NEG_INFINITY, rest));
        }
        let shape = [texts.len(), longest];
        let mask = Tensor::from_vec(&shape, mask).map_err(failed)?;
        let inputs = vec![
            Tensor::from_vec(&shape, tokens).map_err(failed)?,
            Tensor::vector(places(0, longest)),
            mask.clone(),
        ];
        let mut found = self.encoder.run_owned(inputs).map_err(failed)?;
        if found.len() != 1 + 2 * self.shape.layers {
            return Err(failed(format!("the encoder gave {} results", found.len())));
        }
        let cross = found.split_off(1);
        let EncoderDecoderShape { layers, heads, head_size, .. } = self.shape;
        let none = [texts.len(), 0, heads, head_size];
        let empty = || Tensor::zeros(DataType::Fp32, &none).map_err(failed);
        let caches = (0..2 * layers).map(|_| empty()).collect::<Result<_>>()?;
        Ok(Writing { model: self, mask, cross, caches, texts: texts.len(), length: 0 })
    }

    /// The likeliest tokens, one after the other, of an answer to each text: until a token of `ends`,
    /// which is not part of it, and at most so many.
    ///
    /// # Errors
    /// As for [`Self::read`].
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
                Err(Error::new(Kind::Parameter, "input", text))
            }
            None => Ok(()),
        }
    }
}

impl Writing<'_> {
    /// Appends a token to each text, the start first, and gives the logits of what follows.
    ///
    /// # Errors
    /// Another number of tokens than texts, unknown ones, texts that are too long, and a run that
    /// fails. After a failed run nothing more can be written.
    pub fn write(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>> {
        if tokens.len() != self.texts || self.length == MOST_TOKENS {
            let (found, texts, length) = (tokens.len(), self.texts, self.length);
            let text = format!("{found} tokens for {texts} texts of {length} tokens");
            return Err(Error::new(Kind::Parameter, "tokens", text));
        }
        self.model.check(tokens)?;
        let layers = self.model.shape.layers;
        if self.caches.len() != 2 * layers {
            return Err(failed("a step before has failed"));
        }
        let all = self.length + 1;
        let own = tokens.iter().map(|token| i64::from(*token)).collect();
        let mut inputs = vec![
            Tensor::from_vec(&[self.texts, 1], own).map_err(failed)?,
            Tensor::vector(places(self.length, all)),
            Tensor::vector(places(0, all)),
            self.mask.clone(),
        ];
        let mut caches = std::mem::take(&mut self.caches).into_iter();
        for pair in self.cross.chunks(2) {
            inputs.extend(pair.iter().cloned());
            inputs.extend(caches.by_ref().take(2));
        }
        let mut found = self.model.decoder.run_owned(inputs).map_err(failed)?;
        if found.len() != 1 + 2 * layers {
            return Err(failed(format!("the decoder gave {} results", found.len())));
        }
        self.caches = found.split_off(1);
        self.length = all;
        let logits = found.first().map(Tensor::to_vec::<f32>).transpose().map_err(failed)?;
        let width = self.model.shape.vocabulary.max(1);
        Ok(logits.unwrap_or_default().chunks(width).map(<[f32]>::to_vec).collect())
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
