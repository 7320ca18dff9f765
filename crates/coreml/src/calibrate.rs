//! Scales of activations of 8 bits, found by running a graph on samples.

use std::collections::HashMap;

use galatea_graph::{Graph, ValueId};
use galatea_runtime::quantize::{
    AffineScale, QuantizeContext, RangeMethod, ValueRange, histograms,
};

use super::activations::{ActivationCodec, ActivationReader, is_meant, kind};
use super::convert_error::ConvertError;
use super::convert_options::{ConvertOptions, Int8Activations};
use super::prepared::prepared;

/// The set of operators that brought `quantize`, and the first specification that has it.
const SPECIFICATION: i32 = 8;

/// Refuses names that nothing has.
fn check_excluded(graph: &Graph, exclude: &[String]) -> Result<(), ConvertError> {
    for name in exclude {
        if !graph.nodes.iter().any(|node| is_meant(graph, node, name)) {
            let text = format!("there is no node, operator or weight '{name}' to exclude");
            return Err(ConvertError::Graph(text));
        }
    }
    Ok(())
}

/// Finds the scales of the activations of a graph by running it on the calibration samples, in FP32.
///
/// # Errors
/// Fails when there are no samples or a run fails, no node reads what could be quantised, or a name to
/// exclude is none of the graph's.
pub fn calibrate(
    graph: &Graph,
    options: &ConvertOptions,
    context: &QuantizeContext<'_>,
    method: RangeMethod,
    exclude: &[String],
) -> Result<Int8Activations, ConvertError> {
    let wrong = |text: String| Err(ConvertError::Graph(text));
    if options.specification < SPECIFICATION {
        return wrong(format!(
            "activations of 8 bits came with specification {SPECIFICATION} (macOS 14), {} is asked for",
            options.specification
        ));
    }
    if context.calibration.is_empty() {
        return wrong("activations of 8 bits need samples for calibration".to_owned());
    }
    let floats = ConvertOptions { activations: Int8Activations::default(), ..options.clone() };
    let (graph, facts) = prepared(graph, &floats)?;
    check_excluded(&graph, exclude)?;
    let reader = ActivationReader::new(&graph, &facts, options, exclude);
    let values = reader.values();
    if values.is_empty() {
        return wrong("no node reads activations that could be quantised: convolutions, products with constant matrices, pools and sums of images do".to_owned());
    }
    let found = histograms(&graph, &values, context);
    let found = found.map_err(|error| ConvertError::Graph(error.to_string()))?;
    let mut affines: HashMap<ValueId, AffineScale> = HashMap::new();
    for &id in &values {
        let name = &graph.value(id).name;
        let Some(histogram) = found.get(&id).filter(|histogram| histogram.total() > 0) else {
            return wrong(format!("no sample gives '{name}' a finite value"));
        };
        let signed = histogram.extremes().0 < 0.0;
        // What is chosen of a window is one of its codes: it keeps their scale.
        let kept = reader.producer(id).filter(|node| kind(node) == Some(ActivationCodec::Extreme));
        let kept = kept.and_then(|node| affines.get(&node.input(0)?).copied());
        let own = || AffineScale::of(ValueRange::of(histogram, method, signed), signed);
        affines.insert(id, kept.unwrap_or_else(own));
    }
    let named = |(id, affine): (&ValueId, &AffineScale)| (graph.value(*id).name.clone(), *affine);
    let scales = affines.iter().map(named).collect();
    Ok(Int8Activations { scales, exclude: exclude.to_vec() })
}
