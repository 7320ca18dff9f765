//! The checkpoints that architectures take weights from.

mod floats;
mod folder;
mod quantize;
mod rounding;

use std::path::Path;
use std::sync::Arc;

use galatea_formats::safetensors::SafeTensors;
use galatea_graph::blocks::BlockWeights;
use galatea_tensor::{DataType, Tensor};

pub(crate) use floats::FloatMatrix;
pub use folder::FolderWeights;
pub use quantize::{Quantization, Quantized};

use crate::arch::Weights;
use crate::config::Config;
use crate::error::{Error, Kind, Result};

/// A tensor as it lies in a checkpoint.
pub(crate) struct Stored {
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
    config: &Config,
    to: Option<Quantization>,
) -> Result<Box<dyn Weights>> {
    let stored = FolderWeights::open(folder, config)?;
    Ok(match to {
        Some(to) => Box::new(Quantized::new(stored, to)),
        None => Box::new(stored),
    })
}

impl Weights for SafeTensors {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        Self::tensor(self, name).cloned().map_err(|error| {
            Error::new(Kind::Weights, format!("tensor '{name}'"), error.to_string())
        })
    }

    fn blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        Ok(FloatMatrix::of(&Weights::tensor(self, name)?).filter(|matrix| is_half(&**matrix)))
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
    use galatea_graph::blocks::Meaning::Float;
    matches!(matrix.format().meaning(), Float(DataType::Fp16 | DataType::Bf16))
}
