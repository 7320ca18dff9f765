//! Measurements of a conversion to Core ML: nodes that FP16 is too narrow for, scales of activations, and the
//! difference between the package and the model.

use std::path::Path;
use std::sync::Arc;

use galatea_coreml::{
    ConvertOptions, Fp32Keep, calibrate, first_lost, islands, named_islands, node_names,
    prepared_nodes,
};
use galatea_formats::coreml;
use galatea_graph::{Dim, Graph, ValueId};
use galatea_runtime::quantize::{
    AccuracyBound, NamedInputs, OutputComparison, QuantizeContext, QuantizeMode, QuantizeOptions,
    RangeMethod, compare, quantize,
};
use galatea_runtime::{ExecutionProvider, IoInfo, OptimiseLevel, Session, SessionOptions};
use galatea_serving::samples::samples;
use galatea_tensor::OrderedMap;
use serde_json::{Map, Value, json};

use super::engine;
use super::generate::{FreeLengths, seeded_inputs};
use super::precision_choices::{PrecisionChoices, RANDOM};
use crate::table::table;

/// Number of inputs that are made.
const RANDOM_SAMPLES: u64 = 8;
/// Islands in the text of a report; the JSON has all.
const SHOWN_ISLANDS: usize = 20;
/// Provider whose results packages are compared with.
const PROVIDER: &str = "cpu";

/// Findings, as text for a reader and as JSON for a program.
#[derive(Debug, Default)]
pub(super) struct PrecisionNotes {
    /// Lines.
    pub(super) text: String,
    /// Fields of the report in JSON.
    pub(super) json: Map<String, Value>,
}

impl PrecisionNotes {
    /// Adds a line.
    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }
}

/// Inputs that are made, the same each time.
fn random(graph: &Graph, options: &ConvertOptions) -> Result<Vec<NamedInputs>, String> {
    let first = options.buckets.first();
    let number = |name: &str| {
        let chosen = options.lengths.get(name);
        chosen.or_else(|| first.and_then(|bucket| bucket.get(name))).copied()
    };
    let mut wanted = Vec::new();
    let mut shapes = OrderedMap::new();
    for value in graph.inputs.iter().map(|&id| graph.value(id)) {
        let Some(fact) = &value.declared else {
            return Err(format!("input '{}' has no type", value.name));
        };
        wanted.push(IoInfo::new(value.name.clone(), fact));
        let dims = fact.shape.iter().flatten().map(|dim: &Dim| dim.evaluate(&number));
        let known = fact.shape.as_ref().and_then(|_| dims.collect::<Option<Vec<usize>>>());
        if let Some(shape) = options.shapes.get(&value.name).cloned().or(known) {
            shapes.insert(value.name.clone(), shape);
        }
    }
    let lengths = FreeLengths { batch: 1, sequence: None };
    let one = |seed| seeded_inputs(&wanted, lengths, &shapes, seed).map(|made| made.inputs);
    (0..RANDOM_SAMPLES).map(one).collect()
}

/// The samples that an option names.
fn given(
    graph: &Graph,
    options: &ConvertOptions,
    names: &[String],
    notes: &mut PrecisionNotes,
) -> Result<Vec<NamedInputs>, String> {
    if names.iter().any(|name| name == RANDOM) {
        if names.len() > 1 {
            return Err(format!("'{RANDOM}' stands for all samples, it goes with no files"));
        }
        notes.line(&format!(
            "{RANDOM_SAMPLES} random inputs: what is measured is what noise gives, not what data does"
        ));
        notes.json.insert("random_inputs".to_owned(), json!(true));
        return random(graph, options);
    }
    samples(graph, names)
}

fn processor() -> Result<Vec<Arc<dyn ExecutionProvider>>, String> {
    engine().providers(Some(PROVIDER))
}

/// Finds out what is computed in FP32, and the scales of activations.
pub(super) fn measure(
    graph: &Graph,
    options: &mut ConvertOptions,
    choices: &PrecisionChoices,
    notes: &mut PrecisionNotes,
) -> Result<(), String> {
    let quantised = choices.quantised()?;
    let calibration = choices.calibration.as_slice();
    let wanted = choices.islands.iter().flat_map(|text| text.split(','));
    let wanted: Vec<String> = wanted.map(str::to_owned).collect();
    if !options.half && !wanted.is_empty() {
        return Err("--islands goes with --precision fp16".to_owned());
    }
    let none = wanted.iter().any(|word| word == "none");
    if none && wanted.len() > 1 {
        return Err("--islands: 'none' goes with no others".to_owned());
    }
    let asked = wanted.iter().any(|word| word == "auto");
    let probes = options.half && (asked || wanted.is_empty() && !calibration.is_empty());
    if !calibration.is_empty() && !probes && !quantised {
        return Err("--calibration goes with --islands auto or --activations int8".to_owned());
    }
    let made = [RANDOM.to_owned()];
    let sources = if calibration.is_empty() { &made[..] } else { calibration };
    let samples = match probes || quantised {
        true => given(graph, options, sources, notes)?,
        false => Vec::new(),
    };
    let providers = processor()?;
    let session = SessionOptions::default();
    let context = QuantizeContext {
        providers: &providers,
        session: &session,
        calibration: &samples,
        evaluation: &[],
    };
    let mut all = Vec::new();
    if probes {
        all = islands(graph, options, &context).map_err(|error| error.to_string())?;
    }
    let named: Vec<String> =
        wanted.into_iter().filter(|word| word != "auto" && word != "none").collect();
    all.extend(named_islands(graph, options, &named).map_err(|error| error.to_string())?);
    if probes || !named.is_empty() {
        note_islands(graph, options, &all, notes)?;
    }
    options.islands = all.into_iter().map(|island| island.result).collect();
    if quantised {
        let method = choices.range.range_method(RangeMethod::MinMax)?;
        let mut exclude = choices.exclude.clone();
        if let Some(target) = choices.accuracy {
            let wanted = search_options(method, exclude, target);
            exclude = searched(graph, options, &context, wanted, notes)?;
        }
        let found = calibrate(graph, options, &context, method, &exclude);
        options.activations = found.map_err(|error| error.to_string())?;
        let count = options.activations.scales.len();
        notes.line(&format!("{count} activations of 8 bits, from {} samples", samples.len()));
        notes.json.insert("activations".to_owned(), json!(count));
    }
    Ok(())
}

/// Options of a search for layers that read floats, until results agree with FP32 as far as `target`.
fn search_options(method: RangeMethod, exclude: Vec<String>, target: f64) -> QuantizeOptions {
    QuantizeOptions {
        method,
        // As the scales of a package.
        symmetric: true,
        bound: target,
        agreement: AccuracyBound::Cosine,
        exclude,
        ..QuantizeOptions::new(QuantizeMode::Static)
    }
}

/// The nodes that read floats so that results agree with FP32 as far as the options' bound: those that are excluded
/// anyway, and the layers that change the whole most when their weights and what they read have 8 bits.
fn searched(
    graph: &Graph,
    options: &ConvertOptions,
    context: &QuantizeContext<'_>,
    wanted: QuantizeOptions,
    notes: &mut PrecisionNotes,
) -> Result<Vec<String>, String> {
    let context = QuantizeContext { evaluation: context.calibration, ..*context };
    let found = quantize(graph, &context, &wanted, &mut |_| {});
    let report = found.map_err(|error| format!("--accuracy: {error}"))?.report;
    let reached = report.agreement.unwrap_or(0.0);
    if !report.holds() {
        return Err(format!(
            "--accuracy: no choice of layers agrees with FP32 as far as {}: {reached:.4} is the most",
            wanted.bound
        ));
    }
    let known = node_names(graph, options).map_err(|error| error.to_string())?;
    // What cannot have 8 bits at all has no effect that was measured.
    let left = report.layers.iter().filter(|layer| layer.reason.is_some());
    let left: Vec<_> = left.filter(|layer| layer.effect.is_some()).collect();
    let count = left.len();
    let all = report.layers.len();
    notes.line(&format!("{count} of {all} layers read floats, for a cosine of {reached:.6}:"));
    // A layer that is fused with others still reads its weights.
    let name = |layer: &str| {
        let weights = || weights_of(graph, layer).filter(|name| known.contains(name));
        if known.contains(layer) { Some(layer.to_owned()) } else { weights() }
    };
    for layer in &left {
        let effect = layer.effect.unwrap_or(0.0);
        let found = name(&layer.name).is_some();
        let gone = if found { "" } else { ", which a fusion has taken up: 8 bits" };
        notes.line(&format!("  {} ({}): {effect:.2e}{gone}", layer.name, layer.op));
    }
    let each = left.iter().map(|layer| json!({"node": layer.name, "effect": layer.effect}));
    notes.json.insert("floats".to_owned(), each.collect());
    notes.json.insert("accuracy".to_owned(), json!(reached));
    let mut exclude = wanted.exclude;
    exclude.extend(left.into_iter().filter_map(|layer| name(&layer.name)));
    Ok(exclude)
}

/// The name of the weights of a layer, by its name or that of its result.
fn weights_of(graph: &Graph, layer: &str) -> Option<String> {
    let named = |id: ValueId| graph.value(id).name == layer;
    let mut nodes = graph.nodes.iter();
    let node = nodes.find(|node| node.name == layer || node.output(0).is_some_and(named))?;
    let weights = node.input(1).filter(|&id| graph.constant(id).is_some())?;
    Some(graph.value(weights).name.clone())
}

fn note_islands(
    graph: &Graph,
    options: &ConvertOptions,
    all: &[Fp32Keep],
    notes: &mut PrecisionNotes,
) -> Result<(), String> {
    let nodes = prepared_nodes(graph, options).map_err(|error| error.to_string())?;
    notes.line(&match all.len() {
        0 => format!("FP16 holds what all {nodes} nodes give and read"),
        count => format!(
            "{count} of {nodes} nodes are FP32, which the Neural Engine leaves to the processor or the GPU:"
        ),
    });
    for island in all.iter().take(SHOWN_ISLANDS) {
        notes.line(&format!("  {}: {}", island.place, island.reason));
    }
    if all.len() > SHOWN_ISLANDS {
        notes.line(&format!("  and {} more", all.len() - SHOWN_ISLANDS));
    }
    let each = all.iter().map(
        |island| json!({"node": island.place, "result": island.result, "reason": island.reason}),
    );
    notes.json.insert("islands".to_owned(), each.collect());
    Ok(())
}

/// Runs a package as its own interpreter does, each result rounded, and compares it with the model in FP32. Gives why the
/// package is none to be used: elements that are no finite numbers where those of the model in FP32 are.
pub(super) fn check(
    graph: &Graph,
    target: &Path,
    options: &ConvertOptions,
    choices: &PrecisionChoices,
    notes: &mut PrecisionNotes,
) -> Result<Option<String>, String> {
    let samples = given(graph, options, &choices.check, notes)?;
    if samples.is_empty() {
        return Err("--check: there are no samples".to_owned());
    }
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", target.display());
    let package = coreml::load(target).map_err(|error| failed(&error))?;
    let program = package.function(None).map_err(|error| failed(&error))?.graph.clone();
    let providers = processor()?;
    let exact = Session::new(graph.clone(), &providers, &SessionOptions::default());
    let exact = exact.map_err(|error| error.to_string())?;
    // No fusions: what an operation gives is rounded before the next one reads it.
    let plain = SessionOptions { optimise: OptimiseLevel::O1, ..SessionOptions::default() };
    let program = Session::new(program, &providers, &plain).map_err(|error| failed(&error))?;
    let found = compare(&exact, &program, &samples).map_err(|error| failed(&error))?;
    notes.line(&format!("compared with the model in FP32 on {} samples:", samples.len()));
    notes.text.push_str(&as_table(&found));
    notes.json.insert("check".to_owned(), found.iter().map(as_json).collect());
    let Some(lost) = lost(&found) else { return Ok(None) };
    let session = SessionOptions::default();
    let context = QuantizeContext {
        providers: &providers,
        session: &session,
        calibration: &samples,
        evaluation: &[],
    };
    // What was found stands without the node, too.
    let node = first_lost(graph, options, &context).unwrap_or_else(|error| {
        tracing::debug!("no node is known to lose numbers: {error}");
        None
    });
    let Some(node) = node else { return Ok(Some(format!("{lost}{ADVICE}"))) };
    let place = &node.place;
    notes.json.insert("lost_at".to_owned(), json!({"node": place, "result": node.result}));
    Ok(Some(format!("{lost}; {place} is the first that loses them{ADVICE}")))
}

/// Options that may hold what FP16 does not.
const ADVICE: &str = "; --islands auto or --precision fp32 may hold them";

/// Which outputs have elements that are no finite numbers where FP32 has some; none where there are none.
fn lost(found: &[OutputComparison]) -> Option<String> {
    let broken = found.iter().filter(|one| one.broken > 0);
    let each = broken.map(|one| {
        let name = &one.name;
        let broken = one.broken;
        let all = one.elements;
        format!("output '{name}' has {broken} of {all} elements that are no finite numbers")
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("{}, where FP32 has some", each.join(", ")))
}

fn as_table(found: &[OutputComparison]) -> String {
    let head =
        ["Output", "Largest difference", "Relative", "Cosine", "Top-1", "Rows", "Not finite"];
    let rows = found.iter().map(|one| {
        let (largest, relative) = one.apart();
        vec![
            one.name.clone(),
            format!("{largest:.3e}"),
            format!("{relative:.3e}"),
            format!("{:.6}", one.likeness.cosine),
            format!("{:.4}", one.likeness.top1),
            one.likeness.rows.to_string(),
            one.broken.to_string(),
        ]
    });
    table(&head, rows)
}

/// Differences are null where they are infinite.
fn as_json(one: &OutputComparison) -> Value {
    let (largest, relative) = one.apart();
    json!({
        "output": one.name,
        "largest_difference": largest,
        "relative": relative,
        "cosine": one.likeness.cosine,
        "sqnr_db": one.likeness.sqnr_db,
        "top1": one.likeness.top1,
        "rows": one.likeness.rows,
        "not_finite": one.broken,
    })
}

#[cfg(test)]
mod tests {
    use galatea_runtime::quantize::OutputLikeness;

    use super::*;

    fn comparison(broken: u64) -> OutputComparison {
        let likeness =
            OutputLikeness { cosine: 0.0, sqnr_db: -200.0, divergence: 0.0, top1: 0.0, rows: 1 };
        let largest = 0.0;
        let relative = 0.0;
        let elements = 8;
        OutputComparison { name: "y".to_owned(), likeness, largest, relative, broken, elements }
    }

    #[test]
    fn what_has_no_numbers_is_named_and_never_differs_by_nothing() {
        let found = [comparison(0), comparison(3)];
        let text = lost(&found).unwrap();
        assert!(text.starts_with("output 'y' has 3 of 8 elements that are no finite"), "{text}");
        assert_eq!(lost(&found[..1]), None);
        assert!(
            as_table(&found[1..]).contains("inf") && !as_table(&found[1..]).contains("0.000e0")
        );
        assert!(as_table(&found[..1]).contains("0.000e0"));
        assert_eq!(as_json(&found[1])["largest_difference"], Value::Null);
        assert_eq!(as_json(&found[0])["largest_difference"], json!(0.0));
    }
}
