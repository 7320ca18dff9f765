//! Encoders: texts to vectors, and scores of documents for a query.

mod pooling;
mod settings;

use std::path::Path;
use std::sync::Arc;

use galatea_formats::safetensors;
use galatea_runtime::{ExecutionProvider, Session, SessionOptions};
use galatea_tensor::Tensor;

pub use pooling::Pooling;
pub use settings::EncoderSettings;

use crate::arch::{self, EncoderShape};
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::tokens::{Surround, Tokenizer};

/// Most texts of one run.
const MOST_TEXTS: usize = 32;

/// Most tokens of one run, those that fill up shorter texts included, unless one text has more.
const MOST_TOKENS: usize = 8192;

/// Lengths of runs are multiples of this, so that a session sees few different shapes.
const LENGTH_STEP: usize = 8;

/// A session that computes an encoder's graph. It may be used by several threads.
#[derive(Debug)]
pub struct Encoder {
    session: Session,
    shape: EncoderShape,
    settings: EncoderSettings,
}

/// A text as tokens, of which those from `second` on belong to a second text.
struct Row<'t> {
    tokens: &'t [u32],
    types: &'t [u32],
}

impl Encoder {
    /// An encoder of a session whose graph `arch` describes.
    pub fn new(session: Session, shape: EncoderShape, settings: EncoderSettings) -> Self {
        Self { session, shape, settings }
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &EncoderShape {
        &self.shape
    }

    /// How vectors are made and scores told.
    #[must_use]
    pub fn settings(&self) -> &EncoderSettings {
        &self.settings
    }

    /// Most tokens of a text.
    #[must_use]
    pub fn context(&self) -> usize {
        let most = self.settings.most_tokens.unwrap_or(usize::MAX);
        self.shape.positions.min(most)
    }

    /// Length of a vector; `None` of a classifier, which makes no vectors.
    #[must_use]
    pub fn dimensions(&self) -> Option<usize> {
        let all = self.shape.hidden * self.settings.pooling.len();
        self.shape.labels.is_none().then_some(all)
    }

    /// The vector of each text of tokens.
    ///
    /// # Errors
    /// A text without tokens, with too many or with unknown ones; a model that makes no vectors; a run
    /// that fails.
    pub fn embed(&self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>> {
        if self.shape.labels.is_some() {
            let text = "this model scores texts, it makes no vectors";
            return Err(Error::new(Kind::Parameter, "input", text));
        }
        let rows: Vec<Row<'_>> = texts.iter().map(|tokens| Row { tokens, types: &[] }).collect();
        self.run(&rows, |row, values| {
            let width = self.shape.hidden;
            let own = values.get(..row.tokens.len() * width).unwrap_or(values);
            let mut vector = Vec::new();
            for way in &self.settings.pooling {
                way.pool(own, width, &mut vector);
            }
            if self.settings.normalise {
                pooling::normalise(&mut vector);
            }
            vector
        })
    }

    /// The score of each text of tokens with their types, as the tokenizer joins two texts.
    ///
    /// # Errors
    /// As for [`Self::embed`], and a model that has not exactly one label.
    pub fn score(&self, pairs: &[(Vec<u32>, Vec<u32>)]) -> Result<Vec<f32>> {
        if self.shape.labels != Some(1) {
            let text = match self.shape.labels {
                Some(labels) => format!("the model has {labels} labels, scores need one"),
                None => "the model makes vectors, it does not score pairs".to_owned(),
            };
            return Err(Error::new(Kind::Parameter, "model", text));
        }
        let rows: Vec<Row<'_>> =
            pairs.iter().map(|(tokens, types)| Row { tokens, types }).collect();
        self.run(&rows, |_, values| {
            let logit = values.first().copied().unwrap_or(f32::NAN);
            if self.settings.sigmoid { 1.0 / (1.0 + (-logit).exp()) } else { logit }
        })
    }

    /// Runs texts of about one length together, and gives what `each` makes of their parts of the
    /// results, in the order of the texts.
    fn run<T>(&self, rows: &[Row<'_>], each: impl Fn(&Row<'_>, &[f32]) -> T) -> Result<Vec<T>> {
        for (at, row) in rows.iter().enumerate() {
            self.check(row)
                .map_err(|text| Error::new(Kind::Parameter, format!("input {at}"), text))?;
        }
        let mut order: Vec<(usize, &Row<'_>)> = rows.iter().enumerate().collect();
        order.sort_by_key(|(_, row)| row.tokens.len());
        let mut results = Vec::with_capacity(rows.len());
        let mut rest = order.as_slice();
        while let Some((_, first)) = rest.first() {
            let padded = |count: usize| -> usize {
                let longest = rest.get(..count).and_then(<[_]>::last).map_or(first, |(_, row)| row);
                let length = longest.tokens.len().next_multiple_of(LENGTH_STEP);
                length.min(self.shape.positions)
            };
            let fits = |&count: &usize| count * padded(count) <= MOST_TOKENS;
            let count = (2..=rest.len().min(MOST_TEXTS)).take_while(fits).last().unwrap_or(1);
            let (batch, others) = rest.split_at(count);
            let length = padded(count);
            rest = others;
            let values = self.batch(batch, length)?;
            let part = values.len() / count;
            for ((at, row), values) in batch.iter().zip(values.chunks(part.max(1))) {
                results.push((*at, each(row, values)));
            }
        }
        results.sort_by_key(|(at, _)| *at);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    fn check(&self, row: &Row<'_>) -> std::result::Result<(), String> {
        let (length, most) = (row.tokens.len(), self.context());
        if length == 0 || length > most {
            return Err(format!("{length} tokens found, expected from 1 to {most}"));
        }
        let known =
            |token: &u32| usize::try_from(*token).is_ok_and(|at| at < self.shape.vocabulary);
        match row.tokens.iter().find(|token| !known(token)) {
            Some(token) => {
                Err(format!("token {token} found, expected tokens below {}", self.shape.vocabulary))
            }
            None => Ok(()),
        }
    }

    /// The result of one run.
    fn batch(&self, batch: &[(usize, &Row<'_>)], length: usize) -> Result<Vec<f32>> {
        let failed = |text: String| Error::new(Kind::Model, "encoder", text);
        let count = batch.len() * length;
        let (mut tokens, mut positions) = (vec![0_i64; count], vec![0_i64; count]);
        let (mut types, mut mask) = (vec![0_i64; count], vec![f32::NEG_INFINITY; count]);
        let last_type = i64::try_from(self.shape.types).unwrap_or(0).max(1) - 1;
        let lines = tokens.chunks_mut(length).zip(positions.chunks_mut(length));
        let lines = lines.zip(types.chunks_mut(length)).zip(mask.chunks_mut(length));
        for ((_, row), (((tokens, positions), types), mask)) in batch.iter().zip(lines) {
            for (at, token) in row.tokens.iter().enumerate() {
                if let Some(cell) = tokens.get_mut(at) {
                    *cell = i64::from(*token);
                }
                if let Some(cell) = positions.get_mut(at) {
                    *cell = i64::try_from(self.shape.first_position + at).unwrap_or(0);
                }
                if let (Some(cell), Some(kind)) = (types.get_mut(at), row.types.get(at)) {
                    *cell = i64::from(*kind).min(last_type);
                }
            }
            mask.iter_mut().take(row.tokens.len()).for_each(|cell| *cell = 0.0);
        }
        let shape = [batch.len(), length];
        let integers = |values: Vec<i64>| Tensor::from_vec(&shape, values);
        let mut inputs = vec![("tokens", integers(tokens)), ("positions", integers(positions))];
        if self.shape.types > 0 {
            inputs.push(("types", integers(types)));
        }
        inputs.push(("mask", Tensor::from_vec(&shape, mask)));
        let inputs: std::result::Result<Vec<(&str, Tensor)>, _> =
            inputs.into_iter().map(|(name, tensor)| tensor.map(|tensor| (name, tensor))).collect();
        let inputs = inputs.map_err(|error| failed(error.to_string()))?;
        let outputs = self.session.run(&inputs).map_err(|error| failed(error.to_string()))?;
        let found = outputs.first().ok_or_else(|| failed("it gave nothing".to_owned()))?;
        if found.shape().first() != Some(&batch.len()) {
            let text = format!("shape {:?}, expected {} texts first", found.shape(), batch.len());
            return Err(failed(text));
        }
        found.to_vec::<f32>().map_err(|error| failed(error.to_string()))
    }
}

/// An encoder with its tokenizer: what front ends need for embeddings and for ranks.
#[derive(Debug)]
pub struct TextEncoder {
    tokenizer: Arc<Tokenizer>,
    encoder: Encoder,
}

impl TextEncoder {
    /// Puts the parts together.
    pub fn new(tokenizer: Arc<Tokenizer>, encoder: Encoder) -> Self {
        Self { tokenizer, encoder }
    }

    /// Whether a folder's `config.json` names an encoder.
    ///
    /// # Errors
    /// When there is no such file, or it is malformed.
    pub fn recognises(folder: &Path) -> Result<bool> {
        Ok(arch::encoder(&Config::read(&folder.join("config.json"))?)?.is_some())
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
        let place = || folder.display().to_string();
        let config = Config::read(&folder.join("config.json"))?;
        let Some(architecture) = arch::encoder(&config)? else {
            let known: Vec<&str> =
                arch::ENCODERS.iter().flat_map(|row| row.model_types).copied().collect();
            return Err(config.unknown("model_type", &known));
        };
        let settings = EncoderSettings::read(folder, &config)?;
        let tokenizer = Arc::new(Tokenizer::from_folder(folder)?);
        let weights = safetensors::open(folder)
            .map_err(|error| Error::new(Kind::Weights, place(), error.to_string()))?;
        let shape = architecture.shape(&config, &weights)?;
        let graph = architecture.graph(&config, &weights)?;
        let session = Session::new(graph, providers, options)
            .map_err(|error| Error::new(Kind::Model, place(), error.to_string()))?;
        Ok(Self::new(tokenizer, Encoder::new(session, shape, settings)))
    }

    /// Text to tokens and back.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// What computes tokens.
    #[must_use]
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The tokens of a text with the prompt of this name, or the default one, in front.
    ///
    /// # Errors
    /// An unknown name, and what the tokenizer cannot express.
    pub fn tokens(&self, text: &str, prompt: Option<&str>) -> Result<Vec<u32>> {
        let prompt = self.encoder.settings.prompt(prompt)?;
        if prompt.is_empty() {
            return self.tokenizer.encode(text, Surround::Add);
        }
        self.tokenizer.encode(&format!("{prompt}{text}"), Surround::Add)
    }

    /// How well each document answers the query, and the number of all tokens: the scores of a
    /// cross-encoder, or of a model of vectors the cosine of the angle between them.
    ///
    /// # Errors
    /// A text with too many tokens, by the document's number, and as for [`Encoder::embed`].
    pub fn rank(&self, query: &str, documents: &[&str]) -> Result<(Vec<f32>, usize)> {
        if self.encoder.shape.labels.is_some() {
            let pairs: Result<Vec<(Vec<u32>, Vec<u32>)>> = documents
                .iter()
                .map(|document| self.tokenizer.encode_pair(query, document))
                .collect();
            let pairs = pairs?;
            let count = pairs.iter().map(|(tokens, _)| tokens.len()).sum();
            return Ok((self.encoder.score(&pairs)?, count));
        }
        let named = |name: &str| {
            let known = self.encoder.settings.prompts.iter().any(|(own, _)| own == name);
            known.then(|| name.to_owned())
        };
        let mut texts = Vec::with_capacity(documents.len() + 1);
        let passage = named("document").or_else(|| named("passage"));
        for document in documents {
            texts.push(self.tokens(document, passage.as_deref())?);
        }
        texts.push(self.tokens(query, named("query").as_deref())?);
        let count = texts.iter().map(Vec::len).sum();
        let mut vectors = self.encoder.embed(&texts)?;
        vectors.iter_mut().for_each(|vector| pooling::normalise(vector));
        let query = vectors.pop().unwrap_or_default();
        let cosine = |vector: &Vec<f32>| vector.iter().zip(&query).map(|(a, b)| a * b).sum();
        Ok((vectors.iter().map(cosine).collect(), count))
    }
}
