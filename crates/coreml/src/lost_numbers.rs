//! The node of a graph that loses numbers in FP16 first.

use galatea_formats::coreml::mil::{MilArgument, MilElement, MilFunction};
use galatea_graph::{Graph, converted};
use galatea_runtime::RuntimeError;
use galatea_runtime::quantize::{QuantizeContext, watch};
use galatea_tensor::{DataType, OrderedMap, OrderedSet, Tensor};

use super::convert::{OperationSpan, traced};
use super::convert_error::ConvertError;
use super::convert_options::ConvertOptions;
use super::fp32_keep_list::{Fp32Keep, span_of, watch_values};
use super::prepared::prepared;

/// The most nodes that are run in FP32 to see whether they have numbers there.
const MAX_CANDIDATES: usize = 64;

/// Finds the first node whose result has elements that are no finite numbers on the samples, where FP32 has some; none where
/// no single node does.
///
/// # Errors
/// Fails when the graph has no package or a run fails.
pub fn first_lost(
    graph: &Graph,
    options: &ConvertOptions,
    context: &QuantizeContext<'_>,
) -> Result<Option<Fp32Keep>, ConvertError> {
    let float = if options.half { MilElement::Fp16 } else { MilElement::Fp32 };
    let (package, spans) = traced(graph, options, float)?;
    let Some(function) = package.program.functions.get("main") else { return Ok(None) };
    let mut broken: OrderedMap<String, u64> = OrderedMap::new();
    for element in [MilElement::Fp16, MilElement::Fp32] {
        let mut see = |name: &str, tensor: &Tensor| -> Result<(), RuntimeError> {
            *broken.entry(name.to_owned()).or_default() += not_finite(tensor);
            Ok(())
        };
        watch_values(graph, function, context, element, &mut see)?;
    }
    let (prepared, _) = prepared(graph, options)?;
    let found = candidates(function, &spans, &broken);
    for (result, count) in found.into_iter().take(MAX_CANDIDATES) {
        let Some(id) = prepared.find_value(&result) else { continue };
        let mut alone = prepared.clone();
        alone.outputs = vec![id];
        let mut in_fp32 = 0;
        let mut see = |outputs: Vec<Tensor>| -> Result<(), RuntimeError> {
            in_fp32 += outputs.iter().map(not_finite).sum::<u64>();
            Ok(())
        };
        watch(&alone, context, &mut see).map_err(|error| ConvertError::Graph(error.to_string()))?;
        if in_fp32 < count {
            let node = prepared.nodes.iter().position(|node| node.outputs.contains(&Some(id)));
            let place = node.map_or_else(|| result.clone(), |at| prepared.place(at).to_string());
            let reason = format!("{count} elements of '{result}' are no finite numbers in FP16");
            return Ok(Some(Fp32Keep { result, place, reason }));
        }
    }
    Ok(None)
}

/// The nodes one of whose operations gives what is no finite number and reads only such: their first results, and how many
/// elements that are.
fn candidates(
    function: &MilFunction,
    spans: &[OperationSpan],
    broken: &OrderedMap<String, u64>,
) -> Vec<(String, u64)> {
    let of = |name: &str| broken.get(name).copied().unwrap_or(0);
    let mut seen = OrderedSet::new();
    let mut all = Vec::new();
    for (index, operation) in function.block.operations.iter().enumerate() {
        let lost = operation.outputs.iter().map(|(name, _)| of(name)).sum::<u64>();
        let reads_lost = operation
            .inputs
            .values()
            .flatten()
            .any(|argument| matches!(argument, MilArgument::Name(name) if of(name) > 0));
        if lost == 0 || reads_lost {
            continue;
        }
        let span = span_of(spans, index).and_then(|at| spans.get(at));
        if let Some(span) = span
            && seen.insert(span.result.clone())
        {
            all.push((span.result.clone(), lost));
        }
    }
    all
}

/// Number of elements that are no finite numbers.
fn not_finite(tensor: &Tensor) -> u64 {
    let wide = tensor.dtype().is_float().then(|| converted(tensor, DataType::Fp32).ok()).flatten();
    let all = wide.and_then(|wide| wide.to_vec::<f32>().ok()).unwrap_or_default();
    all.into_iter().map(|value| u64::from(!value.is_finite())).sum()
}
