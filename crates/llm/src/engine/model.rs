//! Models that compute the steps of an engine.

use std::num::NonZeroUsize;

use galatea_tensor::{OwnedTensor, Tensor};

use crate::arch::ModelShape;
use crate::cache::{BlockCopy, BlockSwap};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::sampling::{LogitNeed, LogitRow, TopTokens, row};

/// A model that computes steps over blocks of keys and values. It is used by one thread.
pub trait StepModel: Send {
    /// The model's sizes.
    fn shape(&self) -> &ModelShape;

    /// Positions of a block.
    fn block_size(&self) -> NonZeroUsize;

    /// How many blocks there are.
    fn block_count(&self) -> usize;

    /// Copies whole blocks, in this order.
    ///
    /// # Errors
    /// When it fails. Then nothing that any block holds is used again.
    fn copy(&mut self, copies: &[BlockCopy]) -> Result<()>;

    /// How many blocks there is room for outside the caches.
    fn swap_blocks(&self) -> usize {
        0
    }

    /// Copies whole blocks out of the caches and back, in this order.
    ///
    /// # Errors
    /// When it fails, or there is no room outside the caches. Then nothing that any block holds is used
    /// again, nor what was kept.
    fn swap(&mut self, _swaps: &[BlockSwap]) -> Result<()> {
        let text = "there is no room outside the caches, and something is to be kept there";
        Err(LlmError::new(LlmErrorKind::Model, "swap", text))
    }

    /// Computes rows and gives the logits of those that are wanted, or what [`StepBatch::need`] says of them.
    ///
    /// # Errors
    /// When it fails. Then nothing that any block holds is used again.
    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows>;

    /// Takes the logits of a step back once they are read, so that the next one may write into their
    /// memory: where a vocabulary is large, to ask the system for it costs more than to choose tokens.
    fn take_back(&mut self, _logits: LogitRows) {}
}

/// The rows of a step, sequence by sequence, as `arch` says that graphs take them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepBatch {
    /// The token of each row.
    pub tokens: Vec<i64>,
    /// Its position.
    pub positions: Vec<i64>,
    /// The first row of each sequence, and the number of all rows.
    pub starts: Vec<i64>,
    /// Positions of each sequence, the new ones included.
    pub lengths: Vec<i64>,
    /// Blocks of each sequence, `most_blocks` each; unused ones are 0.
    pub blocks: Vec<i64>,
    /// At least the most blocks that a sequence has.
    pub most_blocks: usize,
    /// The rows whose logits are asked for.
    pub wanted: Vec<i64>,
    /// Least need of these logits.
    pub need: LogitNeed,
}

impl StepBatch {
    /// The number of sequences.
    #[must_use]
    pub fn sequences(&self) -> usize {
        self.lengths.len()
    }

    /// Forgets all rows, and keeps the memory. What follows has at most so many blocks; there is room for
    /// up to twice as many, so that sessions see few different shapes.
    pub(super) fn clear(&mut self, most_blocks: usize) {
        let Self { tokens, positions, starts, lengths, blocks, wanted, .. } = self;
        for list in [tokens, positions, starts, lengths, blocks, wanted] {
            list.clear();
        }
        self.need = LogitNeed::Logits;
        self.starts.push(0);
        self.most_blocks = most_blocks.next_power_of_two();
    }

    /// Appends rows of a sequence: `tokens` from position `from` on, of which the last `wanted` have
    /// logits that are asked for.
    pub(super) fn push(
        &mut self,
        tokens: impl Iterator<Item = u32>,
        from: usize,
        wanted: usize,
        blocks: &[usize],
    ) {
        self.tokens.extend(tokens.map(i64::from));
        let rows = self.tokens.len();
        let count = rows - self.positions.len();
        self.positions.extend((from..from + count).map(int));
        self.wanted.extend((rows - wanted.min(count)..rows).map(int));
        self.starts.push(int(rows));
        self.lengths.push(int(from + count));
        self.blocks.extend(blocks.iter().copied().map(int));
        let padded = self.lengths.len() * self.most_blocks;
        self.blocks.resize(padded, 0);
    }
}

fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Rows of logits, which sampling writes over, or the most probable tokens of each.
#[derive(Debug)]
pub struct LogitRows {
    values: LogitValues,
    width: usize,
}

#[derive(Debug)]
enum LogitValues {
    List(Vec<f32>),
    Tensor(OwnedTensor),
    /// Most probable tokens of each row, so many, the most probable first.
    Top {
        logits: Vec<f32>,
        tokens: Vec<u32>,
        each: usize,
    },
}

impl LogitRows {
    /// Rows of `width` logits each, one behind the other.
    ///
    /// # Errors
    /// When the last row is not whole.
    pub fn new(values: Vec<f32>, width: usize) -> Result<Self> {
        if width == 0 || !values.len().is_multiple_of(width) {
            let found = format!("{} values found, expected rows of {width}", values.len());
            return Err(LlmError::new(LlmErrorKind::Model, "logits", found));
        }
        Ok(Self { values: LogitValues::List(values), width })
    }

    /// Takes a matrix of FP32, without a copy where nobody else has it.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_tensor(tensor: Tensor) -> Result<Self> {
        let &[_, width] = tensor.shape() else {
            let found = format!("shape {:?} found, expected two axes", tensor.shape());
            return Err(LlmError::new(LlmErrorKind::Model, "logits", found));
        };
        let failed = |error: galatea_tensor::TensorError| {
            LlmError::new(LlmErrorKind::Model, "logits", error.to_string())
        };
        match tensor.into_owned() {
            Ok(mut tensor) => {
                tensor.as_mut_slice::<f32>().map_err(failed)?;
                Ok(Self { values: LogitValues::Tensor(tensor), width })
            }
            Err(tensor) => Self::new(tensor.to_vec::<f32>().map_err(failed)?, width),
        }
    }

    /// The most probable tokens of rows of `width` logits each, `each` of a row, as [`TopTokens`] has them.
    ///
    /// # Errors
    /// When there are not as many tokens as logits, or the last row is not whole.
    pub fn of_top(logits: Vec<f32>, tokens: Vec<u32>, each: usize, width: usize) -> Result<Self> {
        if each == 0 || logits.len() != tokens.len() || !logits.len().is_multiple_of(each) {
            let logits = logits.len();
            let tokens = tokens.len();
            let found = format!("{logits} logits and {tokens} tokens found, expected {each} a row");
            return Err(LlmError::new(LlmErrorKind::Model, "logits", found));
        }
        Ok(Self { values: LogitValues::Top { logits, tokens, each }, width })
    }

    /// The memory of the values.
    ///
    /// # Errors
    /// The tensor where they lie in one.
    pub fn into_values(self) -> std::result::Result<Vec<f32>, Tensor> {
        match self.values {
            LogitValues::List(values) | LogitValues::Top { logits: values, .. } => Ok(values),
            LogitValues::Tensor(tensor) => Err(tensor.freeze()),
        }
    }

    /// Length of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&mut self) -> usize {
        if let LogitValues::Top { tokens, each, .. } = &self.values {
            return tokens.len() / *each;
        }
        let width = self.width.max(1);
        self.values().len() / width
    }

    /// Values that a token is chosen from in a row.
    pub fn choices(&mut self, row: usize) -> Option<LogitRow<'_>> {
        let values = match &mut self.values {
            LogitValues::Top { logits, tokens, each } => {
                let part = part(row, *each)?;
                return Some(LogitRow::Top(TopTokens::new(
                    logits.get(part.clone())?,
                    tokens.get(part)?,
                )));
            }
            LogitValues::List(values) => values,
            LogitValues::Tensor(tensor) => tensor.as_mut_slice().unwrap_or_default(),
        };
        values.get_mut(part(row, self.width)?).map(LogitRow::Logits)
    }

    /// The most probable token of a row.
    pub fn best(&mut self, row: usize) -> Option<u32> {
        match self.choices(row)? {
            LogitRow::Logits(row) => u32::try_from(row::argmax(row)?).ok(),
            LogitRow::Top(top) => top.best(),
        }
    }

    /// A row of logits; `None` where there are only its most probable tokens.
    pub fn row(&mut self, row: usize) -> Option<&mut [f32]> {
        let part = part(row, self.width)?;
        self.values().get_mut(part)
    }

    /// All rows of logits, the first one first; none where there are only the most probable tokens.
    pub(super) fn each_row(&mut self) -> impl Iterator<Item = &mut [f32]> {
        let width = self.width.max(1);
        self.values().chunks_exact_mut(width)
    }

    fn values(&mut self) -> &mut [f32] {
        match &mut self.values {
            LogitValues::List(values) => values,
            LogitValues::Top { .. } => &mut [],
            // The type was compared when it was taken.
            LogitValues::Tensor(tensor) => tensor.as_mut_slice().unwrap_or_default(),
        }
    }
}

/// Where a row of so many values lies.
fn part(row: usize, each: usize) -> Option<std::ops::Range<usize>> {
    let start = row.checked_mul(each)?;
    Some(start..start.checked_add(each)?)
}
