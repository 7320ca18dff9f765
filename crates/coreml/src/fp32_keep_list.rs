//! Which nodes FP16 is too narrow for, by what their values are on samples.
//!
//! The program that is to be written is made with FP32 in the place of FP16 and run operation by operation.
//! A value that FP16 does not hold, as it is too large or so small that few digits are left, makes islands
//! of FP32 of the node that gives it and of those that read it. The Neural Engine does not run these, and
//! casts lie between them and the others.

use galatea_formats::coreml::interpret;
use galatea_formats::coreml::mil::{
    MilArgument, MilElement, MilFunction, MilOperation, MilType, MilValue,
};
use galatea_graph::{Datum, Graph, converted};
use galatea_runtime::quantize::{NamedInputs, QuantizeContext, watch};
use galatea_runtime::{OptimiseLevel, RuntimeError, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, OrderedSet, Tensor, f16};

use super::convert::{OperationSpan, convert, traced};
use super::convert_error::ConvertError;
use super::convert_options::ConvertOptions;
use super::engine::agree::{MAX_DIFFERENCE, agree, none_lost};
use super::prepared::prepared;
use super::provider::fitted;
use super::weights::WeightCompression;

/// A node that is computed in FP32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fp32Keep {
    /// Its first result, as [`ConvertOptions::islands`] names it.
    pub result: String,
    /// Place of the node, such as `node 3 'y' (Exp)`.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// Half of what FP16 holds: other inputs may give more than the samples do.
const LARGEST: f64 = 32_752.0;
/// Magnitudes from here on are those of masks, such as -10⁹, which become what FP16 holds without harm. Masks hide by
/// being small: what is as large and positive is a value.
const MASK: f32 = 1e8;
/// The most that rounding to FP16 may take of a value as a whole: 16 times what it takes of numbers that
/// have all of their digits.
const LOSS: f64 = 1.0 / 256.0;
/// The least epsilon of norms in FP16.
const LEAST_EPSILON: f64 = 6e-8;
/// Variances this many times as large do not change with it.
const OUTWEIGHED: f64 = 256.0;
/// The most bytes of values that are watched in one pass over the samples.
const WATCHED_BYTES: usize = 1 << 29;
/// Length assumed for one that is known in a run only.
const LIKELY_LENGTH: usize = 128;

/// How far a value reaches.
#[derive(Clone, Copy, Debug, Default)]
struct ValueReach {
    largest: f64,
    energy: f64,
    loss: f64,
    /// Elements that are no masks, and those that would be.
    held: u64,
    hidden: u64,
}

impl ValueReach {
    fn add(&mut self, values: &[f32]) {
        for &value in values.iter().filter(|value| value.is_finite()) {
            if value.abs() >= MASK {
                self.hidden += 1;
                self.largest = self.largest.max(f64::from(value));
                continue;
            }
            self.held += 1;
            let wide = f64::from(value);
            let half = f16::from_f32(value);
            self.largest = self.largest.max(wide.abs());
            if half.is_finite() {
                self.energy += wide * wide;
                self.loss += (wide - half.to_f64()).powi(2);
            }
        }
    }

    /// Why FP16 holds no variance of the value; none where it does. Norms add an epsilon to it, of which FP16 has none that
    /// is smaller than [`LEAST_EPSILON`].
    fn variance_fault(&self) -> Option<String> {
        #[allow(clippy::cast_precision_loss, reason = "a count")]
        let square = self.energy / self.held.max(1) as f64;
        (square > 0.0 && square < LEAST_EPSILON * OUTWEIGHED).then(|| {
            format!(
                "squares are {square:.1e} on average, the least epsilon of FP16 is {LEAST_EPSILON:.0e}"
            )
        })
    }

    /// Why FP16 does not hold the value; none where it does.
    fn fault(&self) -> Option<String> {
        if self.held == 0 && self.hidden > 0 {
            return Some(format!("no value is below {MASK:.0e}, FP16 ends at 65504"));
        }
        if self.largest > LARGEST {
            return Some(format!("values reach {:.3e}, FP16 ends at 65504", self.largest));
        }
        let share = if self.energy > 0.0 { (self.loss / self.energy).sqrt() } else { 0.0 };
        (share > LOSS).then(|| {
            format!(
                "values are {:.1e} at most, of which FP16 loses {:.1} %",
                self.largest,
                share * 100.0
            )
        })
    }
}

/// The values of a type that operations of a function give, and the inputs of that type.
fn values(function: &MilFunction, element: MilElement) -> impl Iterator<Item = (&str, usize)> {
    let computed = |operation: &&MilOperation| {
        operation.operator != "const" && !operation.operator.starts_with("constexpr")
    };
    let outputs = function.block.operations.iter().filter(computed).flat_map(|op| &op.outputs);
    outputs.chain(&function.inputs).filter_map(move |(name, found)| {
        let MilType::Tensor(found) = found else { return None };
        let lengths = found.shape.iter().flatten().map(|len| len.unwrap_or(LIKELY_LENGTH));
        let bytes = lengths.fold(4, usize::saturating_mul);
        (found.element == element).then_some((name.as_str(), bytes))
    })
}

/// The samples as a program takes them: other names, and types that it has.
fn fed(
    graph: &Graph,
    program: &Graph,
    samples: &[NamedInputs],
) -> Result<Vec<NamedInputs>, ConvertError> {
    let wrong = |text: String| ConvertError::Graph(text);
    let each = samples.iter().map(|sample| {
        let inputs = graph.inputs.iter().zip(&program.inputs).map(|(&own, &other)| {
            let name = &graph.value(own).name;
            let given = sample.iter().find(|(given, _)| given == name);
            let (_, tensor) = given.ok_or_else(|| wrong(format!("a sample has no '{name}'")))?;
            let value = program.value(other);
            let tensor = fitted(tensor, value.declared.as_ref()).map_err(wrong)?;
            Ok((value.name.clone(), tensor))
        });
        inputs.collect::<Result<NamedInputs, ConvertError>>()
    });
    each.collect()
}

/// Runs a function on the samples and shows each of its values of a type, by their names, in as many passes as it takes
/// to hold them.
pub(super) fn watch_values(
    graph: &Graph,
    function: &MilFunction,
    context: &QuantizeContext<'_>,
    element: MilElement,
    see: &mut dyn FnMut(&str, &Tensor) -> Result<(), RuntimeError>,
) -> Result<(), ConvertError> {
    let failed = |error: &dyn std::fmt::Display| ConvertError::Graph(error.to_string());
    let mut groups: Vec<(usize, Vec<String>)> = Vec::new();
    for (name, bytes) in values(function, element) {
        match groups.last_mut() {
            Some((held, group)) if *held + bytes <= WATCHED_BYTES => {
                *held += bytes;
                group.push(name.to_owned());
            }
            _ => groups.push((bytes, vec![name.to_owned()])),
        }
    }
    for (_, names) in groups {
        let mut watched = function.clone();
        watched.block.outputs.clone_from(&names);
        let program = interpret("main", &watched).map_err(|error| failed(&error))?;
        let samples = fed(graph, &program, context.calibration)?;
        let context = QuantizeContext { calibration: &samples, ..*context };
        let mut see_all = |outputs: Vec<Tensor>| -> Result<(), RuntimeError> {
            names.iter().zip(&outputs).try_for_each(|(name, tensor)| see(name, tensor))
        };
        watch(&program, &context, &mut see_all).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// How far each value of a function reaches on the samples.
fn reaches(
    graph: &Graph,
    function: &MilFunction,
    context: &QuantizeContext<'_>,
) -> Result<OrderedMap<String, ValueReach>, ConvertError> {
    let mut all: OrderedMap<String, ValueReach> = OrderedMap::new();
    let mut see = |name: &str, tensor: &Tensor| -> Result<(), RuntimeError> {
        if tensor.dtype() == DataType::Fp32 {
            all.entry(name.to_owned()).or_default().add(&tensor.to_vec::<f32>()?);
        }
        Ok(())
    };
    watch_values(graph, function, context, MilElement::Fp32, &mut see)?;
    Ok(all)
}

/// The node that an operation belongs to.
pub(super) fn span_of(spans: &[OperationSpan], operation: usize) -> Option<usize> {
    let after = spans.partition_point(|span| span.first <= operation);
    let at = after.checked_sub(1)?;
    spans.get(at).filter(|span| !span.result.is_empty()).map(|_| at)
}

/// The number that an input of an operation is, where it is a constant.
fn number(function: &MilFunction, operation: &MilOperation, input: &str) -> Option<f64> {
    let value = match operation.inputs.get(input)?.first()? {
        MilArgument::Value(value) => value,
        MilArgument::Name(name) => {
            let named = |one: &&MilOperation| one.outputs.iter().any(|(output, _)| output == name);
            function.block.operations.iter().find(named)?.attributes.get("val")?
        }
    };
    let MilValue::Tensor(_, tensor) = &**value else { return None };
    converted(tensor, DataType::Fp64).ok()?.to_vec().ok()?.first().copied()
}

/// Norms whose epsilon is less than the least of FP16, of values whose variance that would outweigh: the places of their
/// operations, and why.
fn outweighed(
    function: &MilFunction,
    reaches: &OrderedMap<String, ValueReach>,
) -> Vec<(usize, String)> {
    let norms = function.block.operations.iter().enumerate();
    let norms =
        norms.filter(|(_, one)| ["layer_norm", "instance_norm"].contains(&one.operator.as_str()));
    let fault = |(index, norm): (usize, &MilOperation)| {
        let epsilon = number(function, norm, "epsilon")?;
        let MilArgument::Name(x) = norm.inputs.get("x")?.first()? else { return None };
        let reason = reaches.get(x).filter(|_| epsilon < LEAST_EPSILON)?.variance_fault()?;
        Some((index, format!("'{x}': {reason}")))
    };
    norms.filter_map(fault).collect()
}

/// Finds the nodes that are to be computed in FP32, from runs on the calibration samples.
///
/// # Errors
/// Fails when the graph has no package, there are no samples, or a run fails.
pub fn islands(
    graph: &Graph,
    options: &ConvertOptions,
    context: &QuantizeContext<'_>,
) -> Result<Vec<Fp32Keep>, ConvertError> {
    if context.calibration.is_empty() {
        let text = "ranges of values need samples, or random ones".to_owned();
        return Err(ConvertError::Graph(text));
    }
    let plain = ConvertOptions {
        half: true,
        compression: WeightCompression::None,
        islands: OrderedSet::new(),
        activations: super::Int8Activations::default(),
        ..options.clone()
    };
    let (package, spans) = traced(graph, &plain, MilElement::Fp32)?;
    let Some(function) = package.program.functions.get("main") else {
        return Err(ConvertError::Graph("the program has no function 'main'".to_owned()));
    };
    let reaches = reaches(graph, function, context)?;
    let faults: OrderedMap<&str, String> =
        reaches.iter().filter_map(|(name, reach)| Some((name.as_str(), reach.fault()?))).collect();
    let mut reasons: OrderedMap<usize, String> = OrderedMap::new();
    let mut within: OrderedMap<&str, OrderedSet<Option<usize>>> = OrderedMap::new();
    let operations = &function.block.operations;
    for (index, operation) in operations.iter().enumerate() {
        let at = span_of(&spans, index);
        let read = operation.inputs.values().flatten().filter_map(|argument| match argument {
            MilArgument::Name(name) => Some(name.as_str()),
            MilArgument::Value(_) => None,
        });
        let written = operation.outputs.iter().map(|(name, _)| name.as_str());
        for name in read.chain(written).filter(|name| faults.contains_key(name)) {
            within.entry(name).or_default().insert(at);
        }
    }
    for (name, nodes) in &within {
        // What stays inside of a node that is FP32 anyway.
        let inside = nodes.len() == 1;
        for &at in nodes.iter().flatten() {
            let wide = spans.get(at).is_some_and(|span| span.wide);
            if let (Some(reason), false) = (faults.get(name), inside && wide) {
                reasons.entry(at).or_insert_with(|| format!("'{name}': {reason}"));
            }
        }
    }
    for (index, reason) in outweighed(function, &reaches) {
        if let Some(at) = span_of(&spans, index) {
            reasons.entry(at).or_insert(reason);
        }
    }
    let (nodes, _) = prepared(graph, &plain)?;
    let place = |result: &str| {
        let found = nodes.find_value(result);
        let node = nodes.nodes.iter().position(|node| found.is_some() && node.output(0) == found);
        node.map_or_else(|| result.to_owned(), |index| nodes.place(index).to_string())
    };
    let island = |(at, reason): (usize, String)| {
        let result = spans.get(at)?.result.clone();
        Some(Fp32Keep { place: place(&result), result, reason })
    };
    let found: Vec<Fp32Keep> = reasons.into_iter().filter_map(island).collect();
    let held = ConvertOptions {
        islands: found.iter().map(|island| island.result.clone()).collect(),
        ..plain.clone()
    };
    let Some(text) = wrong_with(graph, function, &held, context)? else { return Ok(found) };
    // No value says where: small differences of large ones are lost, for example.
    let each = spans.iter().enumerate().filter(|(_, span)| !span.result.is_empty() && !span.wide);
    let each = each.map(|(at, _)| (at, format!("with fewer nodes in FP32, {text}")));
    Ok(each.filter_map(island).collect())
}

/// Says how the results of a program of FP16 with its islands differ from those of the program in FP32 by more than FP16
/// explains; none where they do not.
fn wrong_with(
    graph: &Graph,
    exact: &MilFunction,
    held: &ConvertOptions,
    context: &QuantizeContext<'_>,
) -> Result<Option<String>, ConvertError> {
    let failed = |error: &dyn std::fmt::Display| ConvertError::Graph(error.to_string());
    let package = convert(graph, held)?;
    let Some(half) = package.program.functions.get("main") else { return Ok(None) };
    // No fusions: what an operation gives is rounded before the next one reads it.
    let plain = SessionOptions { optimise: OptimiseLevel::O1, ..context.session.clone() };
    let results = |function: &MilFunction| -> Result<Vec<Vec<Datum>>, ConvertError> {
        let program = interpret("main", function).map_err(|error| failed(&error))?;
        let samples = fed(graph, &program, context.calibration)?;
        let context = QuantizeContext { calibration: &samples, session: &plain, ..*context };
        let mut all = Vec::new();
        let mut see = |outputs: Vec<Tensor>| -> Result<(), RuntimeError> {
            let floats = outputs.into_iter().filter(|tensor| tensor.dtype().is_float());
            all.push(floats.map(Datum::Tensor).collect());
            Ok(())
        };
        watch(&program, &context, &mut see).map_err(|error| failed(&error))?;
        Ok(all)
    };
    let expected = results(exact)?;
    let found = results(half)?;
    let mut both = found.iter().zip(&expected);
    Ok(both.find_map(|(found, expected)| {
        none_lost(found, expected).and_then(|()| agree(found, expected, MAX_DIFFERENCE)).err()
    }))
}

/// The nodes that somebody names, by their names, results or operators, as [`ConvertOptions::islands`] has
/// them.
///
/// # Errors
/// Fails when there is no such node.
pub fn named_islands(
    graph: &Graph,
    options: &ConvertOptions,
    names: &[String],
) -> Result<Vec<Fp32Keep>, ConvertError> {
    let (graph, _) = prepared(graph, options)?;
    let mut all = Vec::new();
    for name in names {
        let before = all.len();
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some(id) = node.output(0) else { continue };
            let result = graph.value(id).name.clone();
            if *name == node.name || *name == result || *name == node.op_type {
                let place = graph.place(index).to_string();
                all.push(Fp32Keep { result, place, reason: "as asked for".to_owned() });
            }
        }
        if all.len() == before {
            let text = format!("there is no node '{name}' to compute in FP32");
            return Err(ConvertError::Graph(text));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(values: &[f32]) -> Option<String> {
        let mut reach = ValueReach::default();
        reach.add(values);
        reach.fault()
    }

    #[test]
    fn values_are_held_or_not() {
        assert_eq!(fault(&[1.0, -3.5, 0.0, 1e-9]), None);
        assert_eq!(fault(&[0.0, 0.0]), None);
        // Masks become what FP16 holds.
        assert_eq!(fault(&[1.0, f32::MIN, -1e9, f32::NEG_INFINITY]), None);
        assert!(fault(&[1.7e9, 1.8e9]).unwrap().contains("no value is below 1e8"));
        assert!(fault(&[1.0, 4.8e8]).unwrap().contains("reach 4.800e8"));
        assert!(fault(&[1.0, 7e4]).unwrap().contains("reach 7.000e4"));
        assert!(fault(&[2e-7, -1e-7]).unwrap().contains("FP16 loses"));
        assert!(fault(&[3e-9]).unwrap().contains("100.0 %"));
        // Less than all digits, but most.
        assert_eq!(fault(&[3e-5]), None);
    }
}
