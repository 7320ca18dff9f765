//! The tensors that an architecture asks of a checkpoint.

use std::sync::Arc;

use galatea_graph::blocks::BlockWeights;
use galatea_tensor::Tensor;

use super::{FloatMatrix, is_half};
use crate::error::Result;

/// The tensors of a checkpoint by their names.
pub trait CheckpointWeights {
    /// The tensor of this name.
    ///
    /// # Errors
    /// When there is none.
    fn tensor(&self, name: &str) -> Result<Tensor>;

    /// The matrix of this name where its numbers are of few bits, or floats smaller than FP32.
    ///
    /// # Errors
    /// When there is no tensor of this name, or it is damaged.
    fn blocks(&self, _name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        Ok(None)
    }

    /// The same of a matrix that lies turned: its rows are the columns of the tensor.
    ///
    /// # Errors
    /// Fails like [`CheckpointWeights::blocks`].
    fn turned_blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        let matrix = FloatMatrix::turned(&self.tensor(name)?);
        Ok(matrix.filter(|matrix| is_half(&**matrix)))
    }

    /// A matrix whose rows are asked for by their numbers, which then stay where they are.
    ///
    /// # Errors
    /// Fails like [`CheckpointWeights::blocks`].
    fn table(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        match self.blocks(name)? {
            Some(blocks) => Ok(Some(blocks)),
            None => Ok(FloatMatrix::of(&self.tensor(name)?)),
        }
    }

    /// Says that weights were taken as they are needed: memory that can be read from files again may be
    /// given back.
    fn release(&self) {}

    /// All names.
    fn names(&self) -> Vec<String>;
}

impl<W: CheckpointWeights + ?Sized> CheckpointWeights for Box<W> {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        (**self).tensor(name)
    }

    fn blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        (**self).blocks(name)
    }

    fn turned_blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        (**self).turned_blocks(name)
    }

    fn table(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        (**self).table(name)
    }

    fn release(&self) {
        (**self).release();
    }

    fn names(&self) -> Vec<String> {
        (**self).names()
    }
}
