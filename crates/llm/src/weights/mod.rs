//! The checkpoints that architectures take weights from.

mod floats;
mod folder;
mod quantize;
mod rounding;

use std::sync::Arc;

use galatea_formats::safetensors::SafeTensors;
use galatea_graph::blocks::BlockWeights;
use galatea_tensor::{DataType, Tensor};

pub(crate) use floats::FloatMatrix;
pub use folder::FolderWeights;
pub use quantize::{Quantization, Quantized};

use crate::arch::Weights;
use crate::error::{Error, Kind, Result};

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
