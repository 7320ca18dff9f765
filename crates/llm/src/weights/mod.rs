//! The checkpoints that architectures take weights from.

mod checkpoint;
mod floats;
mod folder;
mod quantize;
mod rounding;

use std::path::Path;
use std::sync::Arc;

use galatea_formats::safetensors::SafeTensors;
use galatea_graph::blocks::BlockWeights;
use galatea_tensor::{DataType, Tensor};

pub use checkpoint::CheckpointWeights;
pub(crate) use floats::FloatMatrix;
pub use folder::FolderWeights;
pub use quantize::{GgmlQuantization, RoundedCheckpoint};

use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};

/// A tensor as it lies in a checkpoint.
pub(crate) struct StoredWeight {
    /// The type of its numbers.
    pub(crate) kind: String,
    /// How many there are.
    pub(crate) numbers: usize,
    /// Its bytes, scales and offsets included.
    pub(crate) bytes: usize,
}

/// The weights of a folder, as they are stored or rounded.
pub(crate) fn of_folder(
    folder: &Path,
    config: &JsonConfig,
    to: Option<GgmlQuantization>,
) -> Result<Box<dyn CheckpointWeights>> {
    let stored = FolderWeights::open(folder, config)?;
    Ok(match to {
        Some(to) => Box::new(RoundedCheckpoint::new(stored, to)),
        None => Box::new(stored),
    })
}

impl CheckpointWeights for SafeTensors {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        Self::tensor(self, name).cloned().map_err(|error| {
            LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), error.to_string())
        })
    }

    fn blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        Ok(FloatMatrix::of(&CheckpointWeights::tensor(self, name)?)
            .filter(|matrix| is_half(&**matrix)))
    }

    fn release(&self) {
        self.files().iter().for_each(|file| file.memory.release());
    }

    fn names(&self) -> Vec<String> {
        self.tensors().keys().cloned().collect()
    }
}

/// Whether the numbers of a matrix are floats of 16 bits.
pub(crate) fn is_half(matrix: &dyn BlockWeights) -> bool {
    use galatea_graph::blocks::CodeMeaning::Float;
    matches!(matrix.format().meaning(), Float(DataType::Fp16 | DataType::Bf16))
}
