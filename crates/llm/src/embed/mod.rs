//! Encoders: texts to vectors, and scores of documents for a query.
//!
//! An [`EncoderModel`] computes tokens, a [`TextEncoder`] has the tokenizer and the prompts too, and an
//! [`EncoderEngine`] puts the texts of many requests together.

mod engine;
mod pooling;
mod settings;
mod text;

use std::path::Path;
use std::sync::Arc;

use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::Tensor;

pub use engine::{EncodedTexts, EncoderEngine, ResultSink};
pub use pooling::{TextPooling, normalise};
pub use settings::EncoderSettings;
pub use text::{TextEncoder, cosine};

use crate::arch::{self, EncoderShape};
use crate::config::JsonConfig;
use crate::engine::{StepInputs, StepTuner};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::weights::{self, GgmlQuantization};

/// Most texts of one run.
const MAX_TEXTS: usize = 32;

/// Most tokens of one run, those that fill up shorter texts included, unless one text has more.
const MAX_TOKENS: usize = 8192;

/// Lengths of runs are multiples of this, so that a session sees few different shapes.
const LENGTH_STEP: usize = 8;

/// A session that computes an encoder's graph. It may be used by several threads.
#[derive(Debug)]
pub struct EncoderModel {
    session: Arc<Session>,
    shape: EncoderShape,
    settings: EncoderSettings,
}

/// A text as an encoder takes it, or two texts that are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTokens {
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// The type of each token; where there are fewer types than tokens, the others have type 0.
    pub types: Vec<u32>,
}

/// Tokens of a text with their types.
struct TypedTokens<'t> {
    tokens: &'t [u32],
    types: &'t [u32],
}

impl EncoderModel {
    /// An encoder of a session whose graph `arch` describes.
    pub fn new(session: Session, shape: EncoderShape, settings: EncoderSettings) -> Self {
        Self { session: Arc::new(session), shape, settings }
    }

    /// Loads a folder of `config.json` and safetensors, and what sentence-transformers keeps beside
    /// them.
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
        let place = || folder.display().to_string();
        let config = JsonConfig::read(&folder.join("config.json"))?;
        let Some(architecture) = arch::encoder(&config)? else {
            let known: Vec<&str> =
                arch::ENCODERS.iter().flat_map(|row| row.model_types).copied().collect();
            return Err(config.unknown("model_type", &known));
        };
        let settings = EncoderSettings::read(folder, &config)?;
        let weights = weights::of_folder(folder, &config, to)?;
        let shape = architecture.shape(&config, &*weights)?;
        let graph = architecture.graph(&config, &*weights)?;
        let session = Session::new(graph, providers, options)
            .map_err(|error| LlmError::new(LlmErrorKind::Model, place(), error.to_string()))?;
        weights.release();
        Ok(Self::new(session, shape, settings))
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &EncoderShape {
        &self.shape
    }

    /// Memory of the weights, in bytes.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        let memory = self.session.report().memory;
        memory.initializer_bytes + memory.mapped_bytes
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
            return Err(LlmError::new(LlmErrorKind::Parameter, "input", text));
        }
        let rows: Vec<TypedTokens<'_>> =
            texts.iter().map(|tokens| TypedTokens { tokens, types: &[] }).collect();
        self.run(&rows, |row, values| self.pooled(row, values))
    }

    /// The vector of a text's rows.
    fn pooled(&self, row: &TypedTokens<'_>, values: &[f32]) -> Vec<f32> {
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
    }

    /// Meaning of a text's logit.
    fn told(&self, values: &[f32]) -> f32 {
        let logit = values.first().copied().unwrap_or(f32::NAN);
        if self.settings.sigmoid { 1.0 / (1.0 + (-logit).exp()) } else { logit }
    }

    /// Output of the graph for each text: a row for each token, or of a classifier its logits.
    ///
    /// # Errors
    /// Fails like [`Self::embed`].
    pub fn raw(&self, texts: &[TextTokens]) -> Result<Vec<Vec<f32>>> {
        let rows: Vec<TypedTokens<'_>> = texts
            .iter()
            .map(|text| TypedTokens { tokens: &text.tokens, types: &text.types })
            .collect();
        self.run(&rows, |row, values| {
            let own = self.shape.labels.unwrap_or(row.tokens.len() * self.shape.hidden);
            values.get(..own).unwrap_or(values).to_vec()
        })
    }

    /// The vector of each text, or of a classifier its one score.
    fn results(&self, texts: &[&TextTokens]) -> Result<Vec<Vec<f32>>> {
        let rows: Vec<TypedTokens<'_>> = texts
            .iter()
            .map(|text| TypedTokens { tokens: &text.tokens, types: &text.types })
            .collect();
        self.run(&rows, |row, values| match self.shape.labels {
            Some(_) => vec![self.told(values)],
            None => self.pooled(row, values),
        })
    }

    /// The score of each text of tokens with their types, as the tokenizer joins two texts.
    ///
    /// # Errors
    /// Fails like [`Self::embed`], and a model that has not exactly one label.
    pub fn score(&self, pairs: &[(Vec<u32>, Vec<u32>)]) -> Result<Vec<f32>> {
        if self.shape.labels.is_none() {
            let text = "the model makes vectors, it does not score pairs";
            return Err(LlmError::new(LlmErrorKind::Parameter, "model", text));
        }
        self.check_labels()?;
        let rows: Vec<TypedTokens<'_>> =
            pairs.iter().map(|(tokens, types)| TypedTokens { tokens, types }).collect();
        self.run(&rows, |_, values| self.told(values))
    }

    /// Refuses a classifier whose labels are no score.
    fn check_labels(&self) -> Result<()> {
        match self.shape.labels {
            None | Some(1) => Ok(()),
            Some(labels) => {
                let text = format!("the model has {labels} labels, scores need one");
                Err(LlmError::new(LlmErrorKind::Parameter, "model", text))
            }
        }
    }

    /// Runs texts of about one length together, and gives what `each` makes of their parts of the
    /// results, in the order of the texts.
    fn run<T>(
        &self,
        rows: &[TypedTokens<'_>],
        each: impl Fn(&TypedTokens<'_>, &[f32]) -> T,
    ) -> Result<Vec<T>> {
        let mut results: Vec<Option<T>> = rows.iter().map(|_| None).collect();
        self.run_batches(rows, &mut |at, values| {
            if let (Some(row), Some(result)) = (rows.get(at), results.get_mut(at)) {
                *result = Some(each(row, values));
            }
        })?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Runs texts of about one length together, and tells the place and the results of each.
    fn run_batches(
        &self,
        rows: &[TypedTokens<'_>],
        tell: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<()> {
        for (at, row) in rows.iter().enumerate() {
            self.check(row).map_err(|text| {
                LlmError::new(LlmErrorKind::Parameter, format!("input {at}"), text)
            })?;
        }
        let mut order: Vec<(usize, &TypedTokens<'_>)> = rows.iter().enumerate().collect();
        order.sort_by_key(|(_, row)| row.tokens.len());
        let mut rest = order.as_slice();
        while let Some((_, first)) = rest.first() {
            let length_of = |row: &TypedTokens<'_>| {
                row.tokens.len().next_multiple_of(LENGTH_STEP).min(self.shape.positions)
            };
            let padded = |count: usize| -> usize {
                let longest = rest.get(..count).and_then(<[_]>::last).map_or(first, |(_, row)| row);
                length_of(longest)
            };
            let mut own = length_of(first);
            let mut count = 1;
            for (_, row) in rest.iter().take(MAX_TEXTS).skip(1) {
                let own_too = own + length_of(row);
                let all = (count + 1) * padded(count + 1);
                // Texts of very different lengths are cheaper apart.
                if all > MAX_TOKENS || all > 2 * own_too {
                    break;
                }
                (own, count) = (own_too, count + 1);
            }
            let (batch, others) = rest.split_at(count);
            let length = padded(count);
            rest = others;
            let values = self.batch(batch, length)?;
            let part = values.len() / count;
            for ((at, _), values) in batch.iter().zip(values.chunks(part.max(1))) {
                tell(*at, values);
            }
        }
        Ok(())
    }

    /// Refuses a text that cannot be computed, by its number.
    fn check_text(&self, at: usize, text: &TextTokens) -> Result<()> {
        let row = TypedTokens { tokens: &text.tokens, types: &text.types };
        self.check(&row)
            .map_err(|text| LlmError::new(LlmErrorKind::Parameter, format!("input {at}"), text))
    }

    fn check(&self, row: &TypedTokens<'_>) -> std::result::Result<(), String> {
        let length = row.tokens.len();
        let most = self.context();
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
    fn batch(&self, batch: &[(usize, &TypedTokens<'_>)], length: usize) -> Result<Vec<f32>> {
        let failed = |text: String| LlmError::new(LlmErrorKind::Model, "encoder", text);
        let rows: Vec<&TypedTokens<'_>> = batch.iter().map(|(_, row)| *row).collect();
        let inputs = run_inputs(&self.shape, &rows, length)?;
        let outputs = self
            .session
            .run_tensors(Run::named(&inputs))
            .map_err(|error| failed(error.to_string()))?;
        let found = outputs.first().ok_or_else(|| failed("it gave nothing".to_owned()))?;
        if found.shape().first() != Some(&batch.len()) {
            let text = format!("shape {:?}, expected {} texts first", found.shape(), batch.len());
            return Err(failed(text));
        }
        found.to_vec::<f32>().map_err(|error| failed(error.to_string()))
    }

    /// Tuner of the kernels of usual runs: one short text, one long one, and several.
    #[must_use]
    pub fn tuner(&self) -> StepTuner {
        let most = self.context();
        let made = |(texts, length): (usize, usize)| -> StepInputs {
            let shape = self.shape.clone();
            Box::new(move |session: &Session| {
                let tokens = vec![0_u32; length];
                let row = TypedTokens { tokens: &tokens, types: &[] };
                let rows = vec![&row; texts];
                let inputs = run_inputs(&shape, &rows, length)?;
                let named = session.inputs().iter().filter_map(|info| {
                    inputs.iter().find(|(name, _)| *name == info.name).map(|(_, tensor)| tensor)
                });
                Ok(named.cloned().collect())
            })
        };
        let long = TUNED_LENGTHS[1].min(most);
        let mut runs = vec![(1, TUNED_LENGTHS[0].min(most)), (1, long), (TUNED_TEXTS, long)];
        runs.dedup();
        StepTuner::new(&self.session, runs.into_iter().map(made).collect())
    }
}

/// Tokens of a short and of a long text whose kernels are measured, and texts of a run of several.
const TUNED_LENGTHS: [usize; 2] = [16, 128];
const TUNED_TEXTS: usize = 8;

/// Inputs of a run of texts, each filled up to so many tokens.
fn run_inputs(
    shape: &EncoderShape,
    batch: &[&TypedTokens<'_>],
    length: usize,
) -> Result<Vec<(&'static str, Tensor)>> {
    let failed = |text: String| LlmError::new(LlmErrorKind::Model, "encoder", text);
    let count = batch.len() * length;
    let mut tokens = vec![0_i64; count];
    let mut positions = vec![0_i64; count];
    let mut types = vec![0_i64; count];
    let mut mask = vec![f32::NEG_INFINITY; count];
    let last_type = i64::try_from(shape.types).unwrap_or(0).max(1) - 1;
    let lines = tokens.chunks_mut(length).zip(positions.chunks_mut(length));
    let lines = lines.zip(types.chunks_mut(length)).zip(mask.chunks_mut(length));
    for (row, (((tokens, positions), types), mask)) in batch.iter().zip(lines) {
        for (at, token) in row.tokens.iter().enumerate() {
            if let Some(cell) = tokens.get_mut(at) {
                *cell = i64::from(*token);
            }
            if let Some(cell) = positions.get_mut(at) {
                *cell = i64::try_from(shape.first_position + at).unwrap_or(0);
            }
            if let (Some(cell), Some(kind)) = (types.get_mut(at), row.types.get(at)) {
                *cell = i64::from(*kind).min(last_type);
            }
        }
        mask.iter_mut().take(row.tokens.len()).for_each(|cell| *cell = 0.0);
    }
    let size = [batch.len(), length];
    let integers = |values: Vec<i64>| Tensor::from_vec(&size, values);
    let mut inputs = vec![("tokens", integers(tokens)), ("positions", integers(positions))];
    if shape.types > 0 {
        inputs.push(("types", integers(types)));
    }
    inputs.push(("mask", Tensor::from_vec(&size, mask)));
    let inputs: std::result::Result<Vec<(&'static str, Tensor)>, _> =
        inputs.into_iter().map(|(name, tensor)| tensor.map(|tensor| (name, tensor))).collect();
    inputs.map_err(|error| failed(error.to_string()))
}
