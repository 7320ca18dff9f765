//! Observation of values inside a model, on samples.

use std::collections::HashMap;

use galatea_graph::{Graph, ValueId};
use galatea_tensor::Tensor;

use super::{QuantizeContext, ValueHistogram, runner};
use crate::error::RuntimeError;

/// Returns histograms of FP32 values of a sorted graph over the calibration samples.
///
/// # Errors
/// Fails when a run fails, or a value is not FP32.
pub fn histograms(
    graph: &Graph,
    values: &[ValueId],
    context: &QuantizeContext<'_>,
) -> Result<HashMap<ValueId, ValueHistogram>, RuntimeError> {
    runner(context).histograms(graph, values, context.calibration)
}

/// Shows the outputs of a sorted graph for each calibration sample, one after the other.
///
/// # Errors
/// Fails when a run fails, and returns the errors of `see`.
pub fn watch(
    graph: &Graph,
    context: &QuantizeContext<'_>,
    see: &mut dyn FnMut(Vec<Tensor>) -> Result<(), RuntimeError>,
) -> Result<(), RuntimeError> {
    let runner = runner(context);
    runner.outputs(graph, context.calibration, see)
}
