//! Graphs as packages.

use std::collections::HashSet;
use std::ops::Range;

use galatea_formats::coreml::mil::{self, MilArg, MilElement};
use galatea_formats::coreml::{
    CoreMlModelInfo, FeatureShapes, FeatureType, ModelFeature, NewPackage, WrittenDescription,
};
use galatea_graph::rewrite::RewriteLevel;
use galatea_graph::{Dim, Fact, Graph, Node, ValueId};
use galatea_tensor::{DataType, OrderedMap, OrderedSet};

use super::ane_layout;
use super::convert_error::{ConvertError, UnconvertedNode};
use super::convert_options::ConvertOptions;
use super::emit::{MAX_AXES, ProgramEmitter, form_of};
use super::prepared::prepared;
use super::share::SharedConstants;
use super::states::{FunctionState, NewState};
use super::weights::WeightCompression;
use super::{ranges, rows};

/// A graph that becomes a function of a package.
#[derive(Clone, Copy, Debug)]
pub struct NewFunction<'g> {
    /// Its name.
    pub name: &'g str,
    /// The graph of its computation.
    pub graph: &'g Graph,
    /// Inputs and outputs of the graph that are states of the function; these came with version 9 of the
    /// format.
    pub states: &'g [NewState],
}

/// Writes a graph as a program.
///
/// # Errors
/// Fails when the graph is wrong, when the options name a result that no node has, or when a node has no form in a
/// program; the error has all of these nodes.
pub fn convert(graph: &Graph, options: &ConvertOptions) -> Result<NewPackage, ConvertError> {
    convert_functions([NewFunction { name: MAIN, graph, states: &[] }], options)
}

/// Writes graphs as functions of one program, whose first function is the default. Constants that
/// several functions have are stored once. Several functions came with version 9 of the format.
///
/// # Errors
/// Fails like [`convert`], and for states that the graphs do not have.
pub fn convert_functions<'g>(
    functions: impl IntoIterator<Item = NewFunction<'g>>,
    options: &ConvertOptions,
) -> Result<NewPackage, ConvertError> {
    let float = if options.half { MilElement::Fp16 } else { MilElement::Fp32 };
    let mut shared = SharedConstants::default();
    let mut program = mil::MilProgram { functions: OrderedMap::new() };
    let mut described = Vec::new();
    let mut unknown: Vec<&str> = options.islands.iter().map(String::as_str).collect();
    for one in functions {
        let (mut function, description, _) = function(&one, options, float)?;
        forget_results(&mut unknown, one.graph, options)?;
        shared.share(&mut function.block);
        if program.functions.insert(one.name.to_owned(), function).is_some() {
            let text = format!("two functions are called '{}'", one.name);
            return Err(ConvertError::Graph(text));
        }
        described.push(description);
    }
    if let Some(name) = unknown.first() {
        let text = format!(
            "islands: '{name}' found, expected the first result of a node; named_islands finds nodes by their names and \
             operators"
        );
        return Err(ConvertError::Graph(text));
    }
    packaged(program, described, options)
}

/// Takes the first results of a graph's nodes out of a list, as the graph is and as it is prepared.
fn forget_results(
    names: &mut Vec<&str>,
    graph: &Graph,
    options: &ConvertOptions,
) -> Result<(), ConvertError> {
    let has = |graph: &Graph, name: &str| {
        let found = graph.find_value(name);
        found.is_some() && graph.nodes.iter().any(|node| node.output(0) == found)
    };
    names.retain(|name| !has(graph, name));
    if !names.is_empty() {
        let (prepared, _) = prepared(graph, options)?;
        names.retain(|name| !has(&prepared, name));
    }
    Ok(())
}

/// Functions as a package.
fn packaged(
    program: mil::MilProgram,
    described: Vec<WrittenDescription>,
    options: &ConvertOptions,
) -> Result<NewPackage, ConvertError> {
    let named = described.first().map(|first| first.name.clone()).unwrap_or_default();
    let alone = described.len() == 1 && named == MAIN;
    if !alone && options.specification < SEVERAL {
        let text = format!("several functions, which came with version {SEVERAL} of the format");
        return Err(ConvertError::Graph(text));
    }
    Ok(NewPackage {
        specification: options.specification,
        program,
        functions: described,
        default_function: if alone { String::new() } else { named },
        info: CoreMlModelInfo::default(),
    })
}

/// The function of a package that has one.
const MAIN: &str = "main";
/// The version of the format that came with several functions.
const SEVERAL: i32 = 9;

/// Which operations of a program a node of the graph has become.
#[derive(Clone, Debug)]
pub(super) struct OperationSpan {
    /// The first of them; they end where those of the next node begin.
    pub(super) first: usize,
    /// The node's first result; empty for what is behind the last node.
    pub(super) result: String,
    /// True if it is computed in FP32 in any case.
    pub(super) wide: bool,
}

/// Converts like [`convert`], with floats of this type whatever the options say, and returns the
/// spans of the nodes.
pub(super) fn traced(
    graph: &Graph,
    options: &ConvertOptions,
    float: MilElement,
) -> Result<(NewPackage, Vec<OperationSpan>), ConvertError> {
    let one = NewFunction { name: MAIN, graph, states: &[] };
    let (function, described, spans) = function(&one, options, float)?;
    let program = mil::MilProgram { functions: OrderedMap::from([(MAIN.to_owned(), function)]) };
    Ok((packaged(program, vec![described], options)?, spans))
}

/// A function, what is said of it, and what became of each node.
type WrittenFunction = (mil::MilFunction, WrittenDescription, Vec<OperationSpan>);

/// A graph as a function with floats of a type.
fn function(
    one: &NewFunction<'_>,
    options: &ConvertOptions,
    float: MilElement,
) -> Result<WrittenFunction, ConvertError> {
    check_versions(options)?;
    let (graph, facts) = prepared(one.graph, options)?;
    if options.level == RewriteLevel::O3
        && let Ok(found) = written(one, &graph, &facts, options, float, true)
    {
        return Ok(found);
    }
    written(one, &graph, &facts, options, float, false)
}

/// Versions of the format that are written.
const VERSIONS: std::ops::RangeInclusive<i32> = 6..=9;

/// Refuses numbers that no package can have.
fn check_versions(options: &ConvertOptions) -> Result<(), ConvertError> {
    let ConvertOptions { specification, longest, .. } = options;
    if !VERSIONS.contains(specification) {
        let text = format!("version {specification} of the format found, expected 6 to 9");
        return Err(ConvertError::Graph(text));
    }
    match longest {
        0 => Err(ConvertError::Graph("the longest length is 0, expected 1 or more".to_owned())),
        _ => Ok(()),
    }
}

/// The prepared graph as a function, in the forms that the Neural Engine favours if `favoured` says so.
fn written(
    one: &NewFunction<'_>,
    graph: &Graph,
    facts: &[Option<Fact>],
    options: &ConvertOptions,
    float: MilElement,
    favoured: bool,
) -> Result<WrittenFunction, ConvertError> {
    let opset = u32::try_from(options.specification - 1).unwrap_or(0);
    let mut islands = options.islands.clone();
    if float == MilElement::Fp16 {
        islands.extend(ranges::proven(graph, facts));
    }
    let mut emit = ProgramEmitter::new(graph, facts, opset, float, options.compression)
        .with_islands(islands)
        .like_half(options.half);
    if favoured {
        emit = emit.favouring(ane_layout::plan(graph));
    }
    let wrong = |error: &dyn std::fmt::Display| ConvertError::Graph(error.to_string());
    let held: HashSet<&str> =
        one.states.iter().flat_map(|state| &state.parts).flatten().map(String::as_str).collect();
    let given = |ids: &[ValueId]| -> Vec<ValueId> {
        ids.iter().copied().filter(|&id| !held.contains(graph.value(id).name.as_str())).collect()
    };
    let fed = given(&graph.inputs);
    let results = given(&graph.outputs);
    let inputs = feed(&mut emit, graph, &fed, facts, options)?;
    let states = FunctionState::declare(&mut emit, graph, facts, one.states);
    let states = states.map_err(|error| wrong(&error.0))?;
    // Nothing on the way to an output takes its name.
    let names = results.iter().map(|&id| emit.builder().reserve(&graph.value(id).name));
    let names: Vec<String> = names.collect();
    let mut unconverted = Vec::new();
    let mut spans = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        spans.push(OperationSpan::begun(&mut emit, Some(node), graph));
        if let Err(refused) = ane_layout::emit(&mut emit, node) {
            let place = graph.place(index).to_string();
            unconverted.push(UnconvertedNode { place, reason: refused.0 });
            // What reads it need not be told too.
            if !node.outputs.iter().flatten().all(|id| stand_in(&mut emit, *id)) {
                break;
            }
        }
    }
    if !unconverted.is_empty() {
        return Err(ConvertError::Nodes(unconverted));
    }
    spans.push(OperationSpan::begun(&mut emit, None, graph));
    let mut outputs = Vec::with_capacity(results.len());
    for (&id, name) in results.iter().zip(&names) {
        outputs.push(give(&mut emit, id, name, options).map_err(|error| wrong(&error.0))?);
    }
    let states = states.finish(&mut emit).map_err(|error| wrong(&error.0))?;
    let described = WrittenDescription { name: one.name.to_owned(), inputs, outputs, states };
    Ok((emit.into_builder().finish(), described, spans))
}

impl OperationSpan {
    /// Returns the span that begins at this place of the program: of a node, or of the part behind
    /// the last one.
    fn begun(emit: &mut ProgramEmitter<'_>, node: Option<&Node>, graph: &Graph) -> Self {
        let result = node.and_then(|node| node.output(0)).map(|id| graph.value(id).name.clone());
        let first = emit.builder().operations().len();
        Self { first, result: result.unwrap_or_default(), wide: node.is_some_and(rows::is_wide) }
    }
}

/// Form that a node would have in a program.
pub(crate) struct ProbedNode {
    /// Why it has no form there.
    pub(crate) refused: Option<String>,
    /// Its operations, by their places in the function.
    pub(crate) operations: Range<usize>,
}

/// Returns the form that each node of a graph would have in a program, and a function with all
/// their operations. Weights are not read: they are inputs.
pub(crate) fn probe(
    graph: &Graph,
    facts: &[Option<Fact>],
    options: &ConvertOptions,
) -> (Vec<ProbedNode>, mil::MilFunction) {
    let opset = u32::try_from(options.specification - 1).unwrap_or(0);
    let float = if options.half { MilElement::Fp16 } else { MilElement::Fp32 };
    let mut emit =
        ProgramEmitter::new(graph, facts, opset, float, WeightCompression::None).probing();
    if options.half {
        emit = emit.with_islands(wide_nodes(graph, facts, options));
    }
    for &id in &graph.inputs {
        stand_in(&mut emit, id);
    }
    let each = graph.nodes.iter().map(|node| {
        let before = emit.builder().operations().len();
        let refused = rows::emit(&mut emit, node).err().map(|refused| refused.0);
        if refused.is_some() {
            for &id in node.outputs.iter().flatten() {
                stand_in(&mut emit, id);
            }
        }
        ProbedNode { refused, operations: before..emit.builder().operations().len() }
    });
    let each = each.collect();
    (each, emit.into_builder().finish())
}

/// The nodes of a graph that are FP32 in its program, by their first results. Those that a fusion takes up, as it does
/// norms that are written out, are none of them.
fn wide_nodes(
    graph: &Graph,
    facts: &[Option<Fact>],
    options: &ConvertOptions,
) -> OrderedSet<String> {
    let plain = ranges::proven(graph, facts);
    if plain.is_empty() {
        return plain;
    }
    match prepared(graph, options) {
        Ok((fused, facts)) => {
            let left = ranges::proven(&fused, &facts);
            plain.intersection(&left).cloned().collect()
        }
        Err(_) => plain,
    }
}

/// An array that a package takes or gives.
fn array(name: &str, dtype: DataType, shape: Vec<usize>, shapes: FeatureShapes) -> ModelFeature {
    ModelFeature {
        name: name.to_owned(),
        description: String::new(),
        kind: FeatureType::Array { dtype, shape, shapes, default: None },
        optional: false,
    }
}

/// The default shape of an input, and the shapes that it may have.
fn shapes(dims: &[Dim], options: &ConvertOptions) -> Option<(Vec<usize>, FeatureShapes)> {
    if let Some(fixed) = dims.iter().map(Dim::known).collect::<Option<Vec<usize>>>() {
        // Core ML has no arrays without axes.
        return Some((if fixed.is_empty() { vec![1] } else { fixed }, FeatureShapes::Fixed));
    }
    let of_bucket = |bucket: &OrderedMap<String, usize>| -> Option<Vec<usize>> {
        let number = |name: &str| bucket.get(name).copied();
        dims.iter().map(|dim| dim.evaluate(&number)).collect()
    };
    if !options.buckets.is_empty() {
        let mut all = options.buckets.iter().map(of_bucket).collect::<Option<Vec<_>>>()?;
        let default = all.first()?.clone();
        all.sort();
        all.dedup();
        return Some((default, FeatureShapes::Enumerated(all)));
    }
    let bounds = dims.iter().map(|dim| match dim.known() {
        Some(len) => (len, Some(len)),
        None => (1, Some(options.longest)),
    });
    let default = dims.iter().map(|dim| dim.known().unwrap_or(1)).collect();
    Some((default, FeatureShapes::Range(bounds.collect())))
}

/// The form that a value has at the border of a package: arrays are floats or INT32.
fn border(dtype: DataType, options: &ConvertOptions) -> Option<MilElement> {
    let half = options.half && options.half_border && options.specification >= HALVES;
    match form_of(dtype, if half { MilElement::Fp16 } else { MilElement::Fp32 })? {
        MilElement::Bool => Some(MilElement::Int32),
        other => Some(other),
    }
}

/// The version of the format that came with arrays of FP16.
const HALVES: i32 = 7;

/// Makes the inputs.
fn feed(
    emit: &mut ProgramEmitter<'_>,
    graph: &Graph,
    fed: &[ValueId],
    facts: &[Option<Fact>],
    options: &ConvertOptions,
) -> Result<Vec<ModelFeature>, ConvertError> {
    let mut features = Vec::with_capacity(fed.len());
    for &id in fed {
        let name = graph.value(id).name.clone();
        let refuse = |text: String| ConvertError::Graph(format!("input '{name}': {text}"));
        let fact = facts.get(id.index()).and_then(Option::as_ref);
        let dims = fact.and_then(|fact| Some((fact, fact.shape.as_ref()?)));
        let (fact, dims) = dims.ok_or_else(|| refuse("its shape is not known".to_owned()))?;
        let Some(element) = border(fact.dtype, options) else {
            return Err(refuse(format!("a package takes no {}", fact.dtype)));
        };
        if dims.len() > MAX_AXES {
            return Err(refuse(format!("{} axes, Core ML has {MAX_AXES} at most", dims.len())));
        }
        if dims.contains(&Dim::Known(0)) {
            return Err(refuse(format!("{fact} has no elements, which Core ML does not have")));
        }
        let (default, shapes) = shapes(dims, options)
            .ok_or_else(|| refuse(format!("a bucket does not say all lengths of {fact}")))?;
        let lengths: Vec<Option<usize>> = match dims.is_empty() {
            true => vec![Some(1)],
            false => dims.iter().map(Dim::known).collect(),
        };
        let made = emit.builder().input(&name, element, &lengths);
        let mut var = made.map_err(|error| refuse(error.to_string()))?;
        features.push(array(var.name(), element.stored_as(), default, shapes));
        let inside = form_of(fact.dtype, emit.float_element()).unwrap_or(element);
        if inside != MilElement::Fp16 || !emit.is_read_wide(id) {
            var = emit.cast(&var, inside).map_err(|error| refuse(error.0))?;
        }
        if dims.is_empty() {
            var = emit.reshape(&var, &[]).map_err(|error| refuse(error.0))?;
        }
        emit.set(id, var);
    }
    Ok(features)
}

/// Makes an output, under its name.
fn give(
    emit: &mut ProgramEmitter<'_>,
    id: ValueId,
    name: &str,
    options: &ConvertOptions,
) -> super::unwritable::Result<ModelFeature> {
    let dtype = emit.dtype(id)?;
    let Some(element) = border(dtype, options) else {
        return super::unwritable::refuse(format!("output '{name}': a package gives no {dtype}"));
    };
    let mut var = emit.given(id)?;
    let known = emit.shape_of(&var).ok();
    if known.as_ref().is_some_and(Vec::is_empty) {
        var = emit.reshape(&var, &[1])?;
    }
    // A description without a shape says that it depends on the inputs.
    let outside = emit.shape_of(&var).unwrap_or_default();
    let held = emit.element_of(&var)?;
    // The last operation of an output has its name.
    let word = match element {
        MilElement::Int32 => "int32",
        MilElement::Fp16 => "fp16",
        _ => "fp32",
    };
    let builder = emit.builder();
    let arg = MilArg::from(&var);
    let last = match held == element {
        true => builder.output_as(name, "identity", vec![("x", arg)])?,
        false => {
            builder.output_as(name, "cast", vec![("x", arg), ("dtype", MilArg::Text(word))])?
        }
    };
    Ok(array(last.name(), element.stored_as(), outside, FeatureShapes::Fixed))
}

/// Something in the place of a value that no operation gives, so that the rest can be looked at; whether
/// that is possible.
fn stand_in(emit: &mut ProgramEmitter<'_>, id: ValueId) -> bool {
    let Ok(fact) = emit.fact(id) else { return false };
    let Some(dims) = &fact.shape else { return false };
    let Some(element) = form_of(fact.dtype, emit.float_element()) else { return false };
    let lengths: Vec<Option<usize>> = dims.iter().map(Dim::known).collect();
    let Ok(var) = emit.builder().input("missing", element, &lengths) else { return false };
    emit.set(id, var);
    true
}
