//! Prediction of the operations of a written program that a Neural Engine takes, and of their time.

use std::collections::HashMap;

use galatea_formats::coreml::mil::{
    MilArgument, MilFunction, MilOperation, MilTensorType, MilValue,
};
use galatea_tensor::OrderedMap;

use super::compatibility_check::{CompatibilityCheck, is_constant};
use super::neural_engine::NeuralEngine;
use super::planned_elsewhere::PlannedElsewhere;
use super::rules::{RulePlace, rules};

/// Prediction about a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostForecast {
    /// Operations that the engine takes; constants do not count.
    pub taken: usize,
    /// Operations that are left to others: their number by reason.
    pub left: OrderedMap<String, usize>,
    /// Milliseconds of a run on the engine, with one start: of each operation that it takes its arithmetic or
    /// its bytes, whichever takes longer.
    pub engine_ms: f64,
    /// Bytes of the weights that these operations read, as they are stored.
    pub weight_bytes: f64,
}

/// Predicts a function by the rules and the figures of an engine.
#[must_use]
pub fn forecast(function: &MilFunction, engine: &NeuralEngine) -> CostForecast {
    let rules = rules();
    let opset = function.opset.trim_start_matches("CoreML").parse().unwrap_or(0);
    let place = RulePlace { opset, generation: engine.generation };
    let measured = PlannedElsewhere::default();
    let judge = CompatibilityCheck::of(rules, place, &measured, function);
    let stored = stored(function);
    let shapes = shapes(function);
    let mut found = CostForecast::default();
    let mut seconds = 0.0;
    for operation in function.block.operations.iter().filter(|one| !is_constant(one)) {
        if let Some(reason) = judge.refusal(operation) {
            *found.left.entry(reason).or_default() += 1;
            continue;
        }
        found.taken += 1;
        let (weights, read) = read(operation, &judge, &stored);
        found.weight_bytes += weights;
        let arithmetic = arithmetic(operation, &judge, &shapes)
            / (engine.halves_per_second() * rules.cost.share_of_peak);
        seconds += arithmetic.max((weights + read) / (rules.cost.bandwidth_gb_per_s * 1e9));
    }
    if found.taken > 0 {
        found.engine_ms = seconds * 1e3 + engine.dispatch_ms;
    }
    found
}

/// Bytes of each constant by name: of compressed ones those of their parts.
fn stored(function: &MilFunction) -> HashMap<&str, f64> {
    let mut all: HashMap<&str, f64> = HashMap::new();
    for operation in function.block.operations.iter().filter(|one| is_constant(one)) {
        let of_value = |value: &MilValue| match value {
            MilValue::Tensor(element, tensor) => {
                number(tensor.elements()) * number(element.bits()) / 8.0
            }
            _ => 0.0,
        };
        let of_argument = |argument: &MilArgument| match argument {
            MilArgument::Value(value) => of_value(value),
            MilArgument::Name(name) => all.get(name.as_str()).copied().unwrap_or(0.0),
        };
        let parts = operation.inputs.values().flatten().map(of_argument).sum::<f64>();
        let own = operation.attributes.get("val").map_or(0.0, |value| of_value(value));
        for (name, _) in &operation.outputs {
            all.insert(name, parts + own);
        }
    }
    all
}

/// The lengths of compressed constants by name.
fn shapes(function: &MilFunction) -> HashMap<&str, Vec<usize>> {
    let packed = function.block.operations.iter().filter(|one| is_constant(one));
    let given = packed.flat_map(|operation| &operation.outputs);
    let shape = |found: &MilTensorType| {
        found.shape.as_ref().map(|shape| shape.iter().map(|len| len.unwrap_or(1)).collect())
    };
    given.filter_map(|(name, found)| Some((name.as_str(), shape(found.as_tensor()?)?))).collect()
}

/// Bytes of the constants that an operation reads, and of the values that it reads and gives. Moves of a
/// state cost what is written, not the whole.
fn read(
    operation: &MilOperation,
    judge: &CompatibilityCheck<'_>,
    stored: &HashMap<&str, f64>,
) -> (f64, f64) {
    let mut weights = 0.0;
    let mut read = 0.0;
    let in_place = ["read_state", "write_state", "slice_update"];
    if in_place.contains(&operation.operator.as_str()) {
        let update = operation.inputs.get("update").into_iter().flatten();
        read += update.filter_map(|argument| judge.type_of(argument)).map(bytes).sum::<f64>();
        return (weights, read);
    }
    for argument in operation.inputs.values().flatten() {
        match argument {
            MilArgument::Name(name) if stored.contains_key(name.as_str()) => {
                weights += stored.get(name.as_str()).copied().unwrap_or(0.0);
            }
            MilArgument::Value(value) => {
                if let MilValue::Tensor(element, tensor) = &**value {
                    weights += number(tensor.elements()) * number(element.bits()) / 8.0;
                }
            }
            MilArgument::Name(_) => read += judge.type_of(argument).map_or(0.0, bytes),
        }
    }
    read +=
        operation.outputs.iter().filter_map(|(_, found)| found.as_tensor()).map(bytes).sum::<f64>();
    (weights, read)
}

/// Multiplications and additions of a product; 0 of others.
fn arithmetic(
    operation: &MilOperation,
    judge: &CompatibilityCheck<'_>,
    shapes: &HashMap<&str, Vec<usize>>,
) -> f64 {
    let given = operation.outputs.first().and_then(|(_, found)| found.as_tensor());
    let of = |name: &str, at: usize| {
        let argument = operation.inputs.get(name).and_then(|all| all.get(at))?;
        let packed = match argument {
            MilArgument::Name(name) => shapes.get(name.as_str()).cloned(),
            MilArgument::Value(_) => None,
        };
        packed.or_else(|| judge.shape_of(argument))
    };
    let terms = match operation.operator.as_str() {
        // Weights are (outputs, inputs of a group, window).
        "conv" => of("weight", 0).map(|shape| shape.iter().skip(1).product::<usize>()),
        "linear" => of("weight", 0).and_then(|shape| shape.last().copied()),
        "matmul" => {
            let turned = judge.truth(operation, "transpose_x");
            let back = if turned { 2 } else { 1 };
            of("x", 0).and_then(|shape| shape.get(shape.len().checked_sub(back)?).copied())
        }
        // What the second one has along the axis that is summed, of `nchw,nwhu->nchu`.
        "einsum" => of("values", 1).and_then(|shape| shape.get(1).copied()),
        _ => None,
    };
    match (terms, given) {
        (Some(terms), Some(given)) => 2.0 * number(terms) * elements(given),
        _ => 0.0,
    }
}

fn elements(of: &MilTensorType) -> f64 {
    let lengths = of.shape.iter().flatten().map(|len| len.unwrap_or(1));
    lengths.map(number).product()
}

fn bytes(of: &MilTensorType) -> f64 {
    elements(of) * number(of.element.bits()) / 8.0
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn number(count: usize) -> f64 {
    count as f64
}
