//! The checkpoints that architectures take weights from.

use galatea_formats::safetensors::SafeTensors;
use galatea_tensor::Tensor;

use crate::arch::Weights;
use crate::error::{Error, Kind, Result};

impl Weights for SafeTensors {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        Self::tensor(self, name).cloned().map_err(|error| {
            Error::new(Kind::Weights, format!("tensor '{name}'"), error.to_string())
        })
    }

    fn names(&self) -> Vec<String> {
        self.tensors().keys().cloned().collect()
    }
}
