//! Inputs that are made up for runs that belong to no request.

use std::collections::HashSet;

use galatea_graph::{Datum, converted};
use galatea_tensor::{DataType, Tensor};

use super::TuningInput;
use super::compiled_graph::CompiledGraph;
use crate::error::RuntimeError;

impl CompiledGraph {
    /// Makes inputs of zeros, and masks that show everything.
    ///
    /// # Errors
    /// Fails when there is no memory for them.
    pub(super) fn made_inputs(&self, inputs: &[TuningInput]) -> Result<Vec<Datum>, RuntimeError> {
        let padded = self.padded.iter().flatten();
        let masks: HashSet<usize> =
            padded.flat_map(|padded| padded.masks().iter().copied()).collect();
        let made = inputs.iter().enumerate().map(|(at, TuningInput { dtype, shape })| {
            let made = match masks.contains(&at) {
                true => ones(*dtype, shape),
                false => Tensor::zeros(*dtype, shape).map_err(|error| error.to_string()),
            };
            made.map(Datum::Tensor)
        });
        made.collect::<Result<Vec<Datum>, String>>().map_err(RuntimeError::Input)
    }
}

/// A mask that hides nothing.
fn ones(dtype: DataType, shape: &[usize]) -> Result<Tensor, String> {
    let one = converted(&Tensor::scalar(1.0_f32), dtype).map_err(|error| error.to_string())?;
    let ones = one.broadcast_to(shape).and_then(|ones| ones.contiguous());
    ones.map_err(|error| error.to_string())
}
