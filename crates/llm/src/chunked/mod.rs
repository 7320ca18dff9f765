//! Decoders in chunks: functions of fixed lengths over one sequence, as the Neural Engine takes them.
//!
//! A folder of chunks has a [`ChunkManifest`], packages with some layers each and one with what is behind
//! them, and tables of what is looked up by token or position. [`ChunkModel`] computes the steps of an
//! engine with them: a block of the engine's cache is the state of a sequence, so its number names the
//! sequence, and the rows of a step are computed sequence by sequence.

mod engine;
mod load;
mod manifest;
mod sessions;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;

use galatea_graph::converted;
use galatea_tensor::{DataType, Tensor};

pub use engine::ChunkEngine;
pub use load::{ChunkLoadOptions, function_name, weight_bytes, write_manifest, write_tables};
pub use manifest::{ChunkManifest, MANIFEST, TABLES, TableEntry};
pub use sessions::{ChunkFunction, SessionChunks};

use crate::arch::{LookUpKey, ModelShape, RowTable};
use crate::cache::BlockCopy;
use crate::engine::{LogitRows, StepBatch, StepModel};
use crate::error::{LlmError, LlmErrorKind, Result};

/// Number that hides a position from a row: enough for its share to be 0, and little enough for sums in FP16.
const HIDDEN: f32 = -1e4;

/// A function of more rows than are left is run where at least this part of its rows is needed: each
/// run reads all weights, so that few rows of many cost less than one by one.
const MIN_SHARE: usize = 8;

/// Runner of the functions of chunks. The states of a sequence are zeros before the first run.
pub trait ChunkFunctions: Send {
    /// Runs the function with so many rows of a chunk, which takes what it needs of the inputs by name;
    /// its results, in their order. The chunk behind the last one with layers is what makes logits of
    /// one row.
    ///
    /// # Errors
    /// When it fails. Then nothing that the states hold is used again.
    fn run(&mut self, place: ChunkPlace, inputs: &HashMap<String, Tensor>) -> Result<Vec<Tensor>>;

    /// Copies the states of a sequence to another.
    ///
    /// # Errors
    /// When it fails. Then nothing that the states hold is used again.
    fn copy(&mut self, from: usize, to: usize) -> Result<()>;
}

/// Which function is run on which states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPlace {
    /// The chunk.
    pub chunk: usize,
    /// Rows of the function.
    pub rows: usize,
    /// The sequence, below the number of those that there are states for.
    pub sequence: usize,
}

/// The sizes of a model in chunks.
#[derive(Clone, Debug)]
pub struct ChunkSizes {
    /// The model's, of which the positions are those of a sequence, and heads as long as in states.
    pub shape: ModelShape,
    /// Positions of a state, of which masks hide those that no sequence has.
    pub state_positions: usize,
    /// Chunks with layers.
    pub chunks: usize,
    /// Rows of the functions that each of these has; 1 is among them.
    pub rows: Vec<usize>,
    /// How many positions rows see in some layers; 0 is all.
    pub windows: Vec<usize>,
    /// For how many sequences there are states.
    pub sequences: usize,
}

/// Steps computed by functions of chunks.
pub struct ChunkModel {
    sizes: ChunkSizes,
    context: NonZeroUsize,
    tables: Vec<RowTable>,
    functions: Box<dyn ChunkFunctions>,
    weight_bytes: usize,
}

impl std::fmt::Debug for ChunkModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkModel").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

fn failed(text: impl Into<String>) -> LlmError {
    LlmError::new(LlmErrorKind::Model, "step", text)
}

fn tensor(error: impl std::fmt::Display) -> LlmError {
    failed(error.to_string())
}

impl ChunkModel {
    /// A model of chunks.
    ///
    /// # Errors
    /// When there is no function of one row, or the states have no positions.
    pub fn new(
        mut sizes: ChunkSizes,
        tables: Vec<RowTable>,
        functions: Box<dyn ChunkFunctions>,
    ) -> Result<Self> {
        sizes.rows.sort_unstable();
        sizes.rows.dedup();
        let context = NonZeroUsize::new(sizes.shape.positions);
        let rows = &sizes.rows;
        match (context, rows.first(), rows.last()) {
            (Some(context), Some(1), Some(&most))
                if most <= context.get() && context.get() <= sizes.state_positions =>
            {
                Ok(Self { sizes, context, tables, functions, weight_bytes: 0 })
            }
            _ => {
                let context = sizes.shape.positions;
                Err(failed(format!("functions of {rows:?} rows of {context} positions")))
            }
        }
    }

    /// The rows of the function that computes the next of `left` rows from a position on: as few as hold
    /// all, unless too little of them were needed, and never beyond the last position.
    fn function(&self, position: usize, left: usize) -> usize {
        let fits = |rows: &&usize| position + **rows <= self.context.get();
        let fitting = self.sizes.rows.iter().filter(fits);
        let whole = fitting.clone().copied().find(|&rows| rows >= left);
        match whole {
            Some(rows) if left * MIN_SHARE >= rows => rows,
            _ => fitting.copied().rfind(|&rows| rows <= left).unwrap_or(1),
        }
    }

    /// The rows of a step of one sequence, of which the first has this position.
    fn piece(
        &mut self,
        tokens: &[i64],
        position: usize,
        sequence: usize,
        wanted: &mut dyn FnMut(usize, &Tensor, &mut dyn ChunkFunctions) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while let Some(left) = tokens.get(done..).filter(|left| !left.is_empty()) {
            let rows = self.function(position + done, left.len());
            let count = rows.min(left.len());
            let mut inputs = self.inputs(&left[..count], position + done, rows)?;
            let mut hidden = None;
            for chunk in 0..self.sizes.chunks {
                let place = ChunkPlace { chunk, rows, sequence };
                let given = self.functions.run(place, &inputs)?.into_iter().next();
                let given = given.ok_or_else(|| failed(format!("chunk {chunk} gave nothing")))?;
                inputs.insert("hidden".to_owned(), given.clone());
                hidden = Some(given);
            }
            let hidden = hidden.ok_or_else(|| failed("there are no chunks"))?;
            for row in 0..count {
                let one = hidden.slice_axis(0, row, 1, 1).map_err(tensor)?;
                wanted(done + row, &one, &mut *self.functions)?;
            }
            done += count;
        }
        Ok(())
    }

    /// Arguments of a function of so many rows. Rows without a token are those of token 0, whose keys are
    /// written over before anybody sees them.
    fn inputs(
        &self,
        tokens: &[i64],
        position: usize,
        rows: usize,
    ) -> Result<HashMap<String, Tensor>> {
        let mut inputs = HashMap::new();
        let start = i64::try_from(position).map_err(tensor)?;
        inputs.insert("start".to_owned(), Tensor::vector(vec![start]));
        for &window in &self.sizes.windows {
            let name = if window == 0 { "mask".to_owned() } else { format!("mask_{window}") };
            inputs.insert(name, mask(position, rows, self.sizes.state_positions, window)?);
        }
        for table in &self.tables {
            let mut all = Vec::with_capacity(rows * table.row.iter().product::<usize>());
            for at in 0..rows {
                let row = match table.by {
                    LookUpKey::Token => tokens.get(at).copied().unwrap_or(0),
                    LookUpKey::Position => start + i64::try_from(at).map_err(tensor)?,
                };
                let row = usize::try_from(row).map_err(tensor)?;
                let row = table.rows.slice_axis(0, row, 1, 1).map_err(tensor)?;
                let row = converted(&row, DataType::Fp32).map_err(tensor)?;
                all.extend(row.to_vec::<f32>().map_err(tensor)?);
            }
            let dims: Vec<usize> = [rows].into_iter().chain(table.row.iter().copied()).collect();
            let rows = Tensor::from_vec(&dims, all).map_err(tensor)?;
            inputs.insert(table.input.clone(), rows);
        }
        Ok(inputs)
    }

    /// The rows, the first position and the state of each sequence of a step.
    fn pieces(&self, batch: &StepBatch) -> Result<Vec<(Range<usize>, usize, usize)>> {
        let length = |value: Option<&i64>| value.and_then(|&value| usize::try_from(value).ok());
        let piece = |at: usize| {
            let first = length(batch.starts.get(at))?;
            let rows = first..length(batch.starts.get(at + 1))?;
            let block = length(batch.blocks.get(at * batch.most_blocks))?;
            let position = length(batch.positions.get(first))?;
            let fits = rows.len() <= self.context.get().checked_sub(position)?
                && rows.end <= batch.tokens.len()
                && block < self.sizes.sequences;
            fits.then_some((rows, position, block))
        };
        let all = (0..batch.sequences()).map(|at| {
            let text = format!("sequence {at} has other rows than its state has positions for");
            piece(at).ok_or_else(|| failed(text))
        });
        all.collect()
    }
}

/// 0 where a row sees a position of a state.
fn mask(position: usize, rows: usize, positions: usize, window: usize) -> Result<Tensor> {
    let mut all = vec![HIDDEN; rows * positions];
    for (row, seen) in all.chunks_exact_mut(positions.max(1)).enumerate() {
        let end = (position + row + 1).min(positions);
        let first = if window == 0 { 0 } else { end.saturating_sub(window) };
        seen[first..end].fill(0.0);
    }
    Tensor::from_vec(&[1, 1, rows, positions], all).map_err(tensor)
}

impl StepModel for ChunkModel {
    fn shape(&self) -> &ModelShape {
        &self.sizes.shape
    }

    fn block_size(&self) -> NonZeroUsize {
        self.context
    }

    fn block_count(&self) -> usize {
        self.sizes.sequences
    }

    fn copy(&mut self, copies: &[BlockCopy]) -> Result<()> {
        copies.iter().try_for_each(|copy| self.functions.copy(copy.from, copy.to))
    }

    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        let width = self.sizes.shape.vocabulary;
        let head = self.sizes.chunks;
        let row = |row: &i64| usize::try_from(*row).ok();
        let places: HashMap<usize, usize> =
            batch.wanted.iter().enumerate().filter_map(|(at, one)| Some((row(one)?, at))).collect();
        if places.len() != batch.wanted.len() {
            return Err(failed("a row is wanted twice"));
        }
        let mut logits = vec![0.0; batch.wanted.len() * width];
        for (rows, position, sequence) in self.pieces(batch)? {
            let first = rows.start;
            let mut wanted = |at: usize, hidden: &Tensor, functions: &mut dyn ChunkFunctions| {
                let Some(&place) = places.get(&(first + at)) else { return Ok(()) };
                let inputs = HashMap::from([("hidden".to_owned(), hidden.clone())]);
                let parts =
                    functions.run(ChunkPlace { chunk: head, rows: 1, sequence }, &inputs)?;
                let mut found = Vec::with_capacity(width);
                for part in parts {
                    let part = converted(&part, DataType::Fp32).map_err(tensor)?;
                    found.extend(part.to_vec::<f32>().map_err(tensor)?);
                }
                if found.len() != width {
                    return Err(failed(format!("{} logits found, expected {width}", found.len())));
                }
                logits[place * width..][..width].copy_from_slice(&found);
                Ok(())
            };
            let tokens = batch.tokens.get(rows).unwrap_or_default();
            self.piece(tokens, position, sequence, &mut wanted)?;
        }
        LogitRows::new(logits, width)
    }
}
