//! What values inside of a model are, on samples.

use std::collections::HashMap;

use galatea_graph::{Graph, ValueId};
use galatea_tensor::Tensor;

use super::{Histogram, QuantizeContext, runner};
use crate::error::RuntimeError;

/// How values of FP32 of a sorted graph are spread over the calibration samples.
///
/// # Errors
/// When a run fails, or a value is not FP32.
pub fn histograms(
    graph: &Graph,
    values: &[ValueId],
    context: &QuantizeContext<'_>,
) -> Result<HashMap<ValueId, Histogram>, RuntimeError> {
    runner(context).histograms(graph, values, context.calibration)
}

/// Shows the outputs of a sorted graph for each calibration sample, one after the other.
///
/// # Errors
/// When a run fails; and what `see` says.
pub fn watch(
    graph: &Graph,
    context: &QuantizeContext<'_>,
    see: &mut dyn FnMut(Vec<Tensor>) -> Result<(), RuntimeError>,
) -> Result<(), RuntimeError> {
    let runner = runner(context);
    runner.outputs(graph, context.calibration, see)
}
