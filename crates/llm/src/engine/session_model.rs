//! Steps that a session computes.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use galatea_graph::Dim;
use galatea_runtime::tune::TuningProblem;
use galatea_runtime::{IoInfo, ProfileRow, Run, RuntimeError, Session};
use galatea_tensor::{OwnedParts, OwnedTensor, Tensor, TensorError};

use crate::arch::{CHOICES, ModelShape};
use crate::cache::{BlockCopy, BlockSwap};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::sampling::LogitNeed;

use super::model::{LogitRows, StepBatch, StepModel};
use super::step_tuner::{StepInputs, StepKind, StepTuner};
use super::swap_store::BlockSwapStore;

/// The inputs of a step in front of its caches.
const STEP_INPUTS: [&str; 6] = ["tokens", "positions", "starts", "lengths", "blocks", "wanted"];

/// The output in front of the caches.
const LOGITS: usize = 0;

/// The most rows of a step whose logits are all asked for.
const ROWS: usize = 256;

/// Kinds of outputs of a run in place of logits: which of [`CHOICES`] these are.
const BEST: [usize; 2] = [0, 1];
const TOP: [usize; 2] = [2, 3];

/// A decoder's graph as `arch` describes it, and its caches, which each step writes where they are.
#[derive(Debug)]
pub struct SessionModel {
    session: Arc<Session>,
    shape: ModelShape,
    block_size: NonZeroUsize,
    block_count: usize,
    /// In the order of the inputs; none when a step that failed has lost them.
    caches: Vec<Tensor>,
    store: BlockSwapStore,
}

impl SessionModel {
    /// A model with caches of `block_count` blocks of `block_size` positions, all of them zero.
    ///
    /// # Errors
    /// When the session takes something else than a step, or there is no memory for the caches.
    pub fn new(
        session: Session,
        shape: ModelShape,
        block_size: NonZeroUsize,
        block_count: usize,
    ) -> Result<Self> {
        let names: Vec<&str> = session.inputs().iter().map(|input| input.name.as_str()).collect();
        let caches = names.len().saturating_sub(STEP_INPUTS.len());
        let outputs = session.outputs();
        let behind = outputs.get(caches + 1..).map(|all| all.iter().map(|info| info.name.as_str()));
        let behind: Option<Vec<&str>> = behind.map(Iterator::collect);
        let fits = behind.is_some_and(|names| names.is_empty() || names == CHOICES);
        if !names.starts_with(&STEP_INPUTS) || !fits {
            let text = format!(
                "inputs {names:?} and {} outputs found, expected {STEP_INPUTS:?} and caches, and \
                 logits and the same caches, and {CHOICES:?} behind them or nothing",
                outputs.len()
            );
            return Err(LlmError::new(LlmErrorKind::Model, "session", text));
        }
        let mut model = Self {
            session: Arc::new(session),
            shape,
            block_size,
            block_count,
            caches: Vec::new(),
            store: BlockSwapStore::default(),
        };
        model.caches = model.zeros()?;
        Ok(model)
    }

    /// Gives preempted sequences room for their blocks outside the caches, of at most so many bytes. The
    /// system is asked for them when they are needed.
    #[must_use]
    pub fn with_swap_space(mut self, bytes: usize) -> Self {
        let block = self.cache_bytes() / self.block_count.max(1);
        self.store = BlockSwapStore::new(bytes.checked_div(block).unwrap_or(0));
        self
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Tuner of the kernels of usual steps, of at most so many sequences and rows. It makes caches of its own, as small
    /// as the steps permit.
    #[must_use]
    pub fn tuner(&self, max_sequences: usize, max_rows: usize) -> StepTuner {
        let size = self.block_size.get();
        let positions = self.shape.positions.min(size.saturating_mul(self.block_count));
        let vocabulary = self.shape.vocabulary;
        let made = |kind: StepKind| -> StepInputs {
            Box::new(move |session: &Session| {
                let blocks = kind.blocks(size);
                let batch = kind.batch(vocabulary, blocks / kind.sequences.max(1));
                let caches = zero_caches(session, size, blocks)?;
                Ok(Self::rows_of(&batch)?.into_iter().chain(caches).collect())
            })
        };
        let kinds = StepKind::usual(positions, max_sequences, max_rows);
        StepTuner::new(&self.session, kinds.into_iter().map(made).collect())
    }

    /// Bytes of all caches.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.caches.iter().map(Tensor::size_bytes).sum()
    }

    /// The logits behind each token of a text, one row after the other. What the caches held is written
    /// over.
    ///
    /// # Errors
    /// A text without tokens, with more than there are positions and blocks for or with unknown ones, and
    /// a step that fails.
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let room = self.shape.positions.min(self.block_size.get() * self.block_count);
        let refused = |text: String| Err(LlmError::new(LlmErrorKind::Parameter, "tokens", text));
        if tokens.is_empty() || tokens.len() > room {
            return refused(format!("{} found, expected 1 to {room}", tokens.len()));
        }
        let vocabulary = self.shape.vocabulary;
        let known = |token: &u32| usize::try_from(*token).is_ok_and(|token| token < vocabulary);
        if let Some(token) = tokens.iter().find(|token| !known(token)) {
            return refused(format!("token {token} found, expected tokens below {vocabulary}"));
        }
        let blocks: Vec<usize> = (0..tokens.len().div_ceil(self.block_size.get())).collect();
        let mut found = Vec::with_capacity(tokens.len() * vocabulary);
        for (at, part) in tokens.chunks(ROWS).enumerate() {
            let mut batch = StepBatch::default();
            batch.clear(blocks.len());
            batch.push(part.iter().copied(), at * ROWS, part.len(), &blocks);
            let mut logits = self.step(&batch)?;
            for row in 0..part.len() {
                found.extend_from_slice(logits.row(row).unwrap_or_default());
            }
            self.take_back(logits);
        }
        Ok(found)
    }

    /// Computes a step and says what took how long. What it would write to the caches is not kept.
    ///
    /// # Errors
    /// Fails like [`StepModel::step`].
    pub fn profile(&mut self, batch: &StepBatch) -> Result<Vec<ProfileRow>> {
        if self.caches.is_empty() {
            self.caches = self.zeros()?;
        }
        let inputs = Self::rows_of(batch)?.into_iter().chain(self.caches.iter().cloned());
        let names = self.session.inputs().iter().map(|info| info.name.as_str());
        let named: Vec<(&str, Tensor)> = names.zip(inputs).collect();
        let wanted = self.wanted(self.needed(batch));
        let profiled = self.session.run(Run::named(&named).only(&wanted).profiled());
        let profiled = profiled
            .map_err(|error| LlmError::new(LlmErrorKind::Model, "step", error.to_string()))?;
        Ok(profiled.rows)
    }

    /// Choices that could be computed in several ways in such a step. What it would write to the caches is not kept.
    ///
    /// # Errors
    /// Fails like [`StepModel::step`].
    pub fn problems(&mut self, batch: &StepBatch) -> Result<Vec<TuningProblem>> {
        if self.caches.is_empty() {
            self.caches = self.zeros()?;
        }
        let inputs = Self::rows_of(batch)?.into_iter().chain(self.caches.iter().cloned());
        let names = self.session.inputs().iter().map(|info| info.name.as_str());
        let named: Vec<(&str, Tensor)> = names.zip(inputs).collect();
        let found = self.session.problems(&named);
        found.map_err(|error| LlmError::new(LlmErrorKind::Model, "step", error.to_string()))
    }

    /// Caches that hold nothing.
    fn zeros(&self) -> Result<Vec<Tensor>> {
        zero_caches(&self.session, self.block_size.get(), self.block_count)
    }

    /// Writes into every cache, of which `change` is given the number, the parts and the bytes of a block.
    /// Where it fails, all are lost, and made anew with the next step.
    fn change_caches(
        &mut self,
        place: &str,
        mut change: impl FnMut(usize, &mut dyn OwnedParts, usize) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let failed = |text: String| LlmError::new(LlmErrorKind::Model, place, text);
        let tensor = |error: TensorError| failed(error.to_string());
        if self.caches.is_empty() {
            self.caches = self.zeros()?;
        }
        let mut changed = Vec::with_capacity(self.caches.len());
        for (at, cache) in std::mem::take(&mut self.caches).into_iter().enumerate() {
            let mut cache = own(cache).map_err(tensor)?;
            let each = cache.size_bytes() / self.block_count.max(1);
            let parts = cache.parts_mut();
            let parts = parts.ok_or_else(|| failed("a cache cannot be changed".to_owned()))?;
            change(at, parts, each).map_err(failed)?;
            changed.push(cache);
        }
        self.caches = changed;
        Ok(())
    }

    /// Inputs of a step in front of the caches.
    fn rows_of(batch: &StepBatch) -> Result<Vec<Tensor>> {
        let list = |values: &Vec<i64>| Tensor::vector(values.clone());
        let shape = [batch.sequences(), batch.most_blocks];
        let blocks = Tensor::from_vec(&shape, batch.blocks.clone())
            .map_err(|error| LlmError::new(LlmErrorKind::Model, "step", error.to_string()))?;
        // Kernels are spared the case of no row at all.
        let last = i64::try_from(batch.tokens.len()).unwrap_or(i64::MAX) - 1;
        let wanted = if batch.wanted.is_empty() { vec![last] } else { batch.wanted.clone() };
        Ok(vec![
            list(&batch.tokens),
            list(&batch.positions),
            list(&batch.starts),
            list(&batch.lengths),
            blocks,
            Tensor::vector(wanted),
        ])
    }

    /// The least that a step may give for what a batch needs: where reading costs nothing, that is all.
    fn needed(&self, batch: &StepBatch) -> LogitNeed {
        let first = self.cache_count() + 1;
        let choices = first..first + CHOICES.len();
        let spares = |output: usize| self.session.reads_back(output);
        let known = self.session.outputs().len() == choices.end;
        if known && choices.clone().all(spares) { batch.need } else { LogitNeed::Logits }
    }

    /// How many caches a step takes.
    fn cache_count(&self) -> usize {
        self.session.inputs().len() - STEP_INPUTS.len()
    }

    /// The outputs that a run is to give.
    fn wanted(&self, need: LogitNeed) -> Vec<bool> {
        let first = self.cache_count() + 1;
        let mut wanted = vec![true; self.session.outputs().len()];
        wanted[LOGITS] = need == LogitNeed::Logits;
        wanted[first..].fill(false);
        let own: &[usize] = match need {
            LogitNeed::Best => &BEST,
            LogitNeed::Top => &TOP,
            LogitNeed::Logits => &[],
        };
        own.iter().for_each(|at| wanted[first + at] = true);
        wanted
    }

    /// Runs a step, and gives what it gives beside the caches, in the order of the outputs.
    fn run(&mut self, batch: &StepBatch, need: LogitNeed) -> Result<Vec<Tensor>> {
        let failed = |error: &dyn std::fmt::Display| {
            LlmError::new(LlmErrorKind::Model, "step", error.to_string())
        };
        if self.caches.is_empty() {
            self.caches = self.zeros()?;
        }
        let mut inputs = Self::rows_of(batch)?;
        inputs.append(&mut self.caches);
        let outputs = self.session.run_tensors(Run::owned(inputs).only(&self.wanted(need)));
        let mut outputs = outputs.map_err(|error| match error {
            // The caches are gone with the device, and no request is to blame: rows are computed anew.
            RuntimeError::Lost { hung: false, .. } => {
                LlmError::new(LlmErrorKind::Lost, "step", error.to_string())
            }
            error => failed(&error),
        })?;
        let first = usize::from(need == LogitNeed::Logits);
        let caches = first..first + self.cache_count();
        if outputs.len() < caches.end {
            return Err(failed(&format!("it gave {} outputs", outputs.len())));
        }
        self.caches = outputs.drain(caches).collect();
        Ok(outputs)
    }

    /// Logits as a step gives them.
    fn all_logits(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        let given = self.run(batch, LogitNeed::Logits)?.pop();
        given.map_or_else(|| Err(nothing()), LogitRows::from_tensor)
    }

    /// The most probable tokens of each row; `None` where a row has a NaN, which counts as the largest of all
    /// here, and is never chosen.
    fn top(&mut self, batch: &StepBatch, need: LogitNeed) -> Result<Option<LogitRows>> {
        let [first, second] =
            <[Tensor; 2]>::try_from(self.run(batch, need)?).map_err(|_| nothing())?;
        let (tokens, logits) =
            if need == LogitNeed::Best { (first, second) } else { (second, first) };
        let failed =
            |error: TensorError| LlmError::new(LlmErrorKind::Model, "step", error.to_string());
        let each = logits.shape().last().copied().unwrap_or_default();
        let logits = logits.to_vec::<f32>().map_err(failed)?;
        let tokens = tokens.to_vec::<i64>().map_err(failed)?;
        let tokens = tokens.into_iter().map(|token| u32::try_from(token).unwrap_or(u32::MAX));
        if logits.iter().any(|logit| logit.is_nan()) {
            return Ok(None);
        }
        LogitRows::of_top(logits, tokens.collect(), each, self.shape.vocabulary).map(Some)
    }
}

impl StepModel for SessionModel {
    fn shape(&self) -> &ModelShape {
        &self.shape
    }

    fn block_size(&self) -> NonZeroUsize {
        self.block_size
    }

    fn block_count(&self) -> usize {
        self.block_count
    }

    fn copy(&mut self, copies: &[BlockCopy]) -> Result<()> {
        let blocks = self.block_count;
        let beyond = |copy: &&BlockCopy| copy.from >= blocks || copy.to >= blocks;
        let beyond = copies.iter().find(beyond);
        self.change_caches("copy", |_, parts, each| {
            if let Some(BlockCopy { from, to }) = beyond {
                return Err(format!("block {from} to {to}, there are {blocks}"));
            }
            let places = |copy: &BlockCopy| (copy.from * each, copy.to * each);
            let places: Vec<(usize, usize)> = copies.iter().map(places).collect();
            parts.copy_parts(&places, each).map_err(|error| error.to_string())
        })
    }

    fn swap_blocks(&self) -> usize {
        self.store.slots()
    }

    fn swap(&mut self, swaps: &[BlockSwap]) -> Result<()> {
        let mut store = std::mem::take(&mut self.store);
        let blocks = self.block_count;
        let swapped = self.change_caches("swap", |cache, parts, each| {
            store.swap(swaps, cache, parts, blocks, each)
        });
        self.store = store;
        swapped
    }

    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        match self.needed(batch) {
            LogitNeed::Logits => self.all_logits(batch),
            // A step that is computed again writes to the caches what is there.
            need => match self.top(batch, need)? {
                Some(top) => Ok(top),
                None => self.all_logits(batch),
            },
        }
    }

    fn take_back(&mut self, logits: LogitRows) {
        if let Err(tensor) = logits.into_values() {
            self.session.return_buffer(LOGITS, tensor);
        }
    }
}

/// Caches of a session, of so many blocks that hold nothing.
fn zero_caches(session: &Session, block_size: usize, block_count: usize) -> Result<Vec<Tensor>> {
    let known = HashMap::from([("cache_blocks", block_count), ("block_size", block_size)]);
    let length = |info: &IoInfo, dim: &Dim| {
        let named = || known.get(dim.to_string().as_str()).copied();
        dim.known().or_else(named).ok_or_else(|| {
            let text = format!("axis '{dim}' found, expected cache_blocks or block_size");
            LlmError::new(LlmErrorKind::Model, &info.name, text)
        })
    };
    let zeros = |(at, info): (usize, &IoInfo)| {
        let dims: Vec<usize> =
            info.dims.iter().map(|dim| length(info, dim)).collect::<Result<_>>()?;
        if dims.first() != Some(&block_count) {
            let text = format!("shape {dims:?} found, expected the blocks first");
            return Err(LlmError::new(LlmErrorKind::Model, &info.name, text));
        }
        let failed = |error: &dyn std::fmt::Display| {
            LlmError::new(LlmErrorKind::Model, &info.name, error.to_string())
        };
        // One by one: what two share is not written where it is.
        match session.allocate_input(at, &dims).map_err(|error| failed(&error))? {
            Some(placed) => Ok(placed),
            None => Tensor::zeros(info.dtype, &dims).map_err(|error| failed(&error)),
        }
    };
    session.inputs().iter().enumerate().skip(STEP_INPUTS.len()).map(zeros).collect()
}

fn nothing() -> LlmError {
    LlmError::new(LlmErrorKind::Model, "step", "it gave something else than it was asked for")
}

/// A cache that nobody else has, to be written.
fn own(mut cache: Tensor) -> std::result::Result<Tensor, TensorError> {
    if cache.parts_mut().is_some() {
        return Ok(cache);
    }
    let mut own = OwnedTensor::zeroed(cache.dtype(), cache.shape())?;
    let view = cache.as_view()?;
    own.as_view_mut().and_then(|mut own| own.copy_from(&view))?;
    Ok(own.freeze())
}
