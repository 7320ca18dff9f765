//! Features of Core ML that serving uses, through the worker: surfaces and backings, ranges, states, and functions. Where there
//! is no Core ML, the worker runs the interpreter.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use galatea_coreml::engine::{
    ComputeUnits, CoreMlEngine, EngineError, EngineErrorKind, EngineLoadOptions, EngineModel,
    WorkerCommand, WorkerEngine, WorkerLimits, predict,
};
use galatea_coreml::{ConvertOptions, NewFunction, NewState, convert_functions};
use galatea_formats::coreml::{NewPackage, write_package};
use galatea_graph::{Attributes, Dim, Fact, Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::{DataType, OrderedMap, Tensor};

use super::line::{SubjectOutcome, SubjectReport};
use super::task::{SelftestEffort, SubjectTask};
use crate::core_ml_worker;

/// Unit of machines without Core ML.
pub(super) const INTERPRETER: &str = "interpreter";

/// Units of Core ML by the names of reports.
const UNITS: &[(&str, ComputeUnits)] = &[
    ("coreml-cpu", ComputeUnits::CpuOnly),
    ("coreml-cpu-gpu", ComputeUnits::CpuAndGpu),
    ("coreml-cpu-ane", ComputeUnits::CpuAndNeuralEngine),
    ("coreml-all", ComputeUnits::All),
];

/// Width of the rows of the packages: whole units of the Neural Engine.
const WIDTH: usize = 32;

/// Reason for which a feature of Core ML gives no result.
pub(super) enum FeatureFailure {
    /// This system or this machine does not have it.
    Unavailable(String),
    Failed(String),
}

impl From<String> for FeatureFailure {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<&str> for FeatureFailure {
    fn from(text: &str) -> Self {
        Self::Failed(text.to_owned())
    }
}

impl From<EngineError> for FeatureFailure {
    fn from(error: EngineError) -> Self {
        match error.kind {
            EngineErrorKind::Unavailable => Self::Unavailable(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Result of a feature of Core ML.
pub(super) type FeatureOutcome = Result<SubjectReport, FeatureFailure>;

/// Makes a line of the result: what this system does not have is skipped.
pub(super) fn told(outcome: FeatureOutcome) -> SubjectOutcome {
    match outcome {
        Ok(report) => Ok(report),
        Err(FeatureFailure::Unavailable(why)) => Ok(SubjectReport::skipped(why)),
        Err(FeatureFailure::Failed(why)) => Err(why),
    }
}

/// Makes a worker of this program.
pub(super) fn worker() -> Result<WorkerEngine, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let arguments = vec![core_ml_worker::NAME.to_owned()];
    Ok(WorkerEngine::new(WorkerCommand { program, arguments }, WorkerLimits::default()))
}

/// Units of Core ML that a unit of reports stands for.
pub(super) fn units_of(unit: &str) -> ComputeUnits {
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    found.map_or_else(ComputeUnits::default, |(_, units)| *units)
}

/// A worker, and a package that it has compiled.
struct WorkerPackage {
    engine: WorkerEngine,
    compiled: PathBuf,
    units: ComputeUnits,
    compile_ms: f64,
}

impl WorkerPackage {
    fn new(task: &SubjectTask, package: &NewPackage) -> Result<Self, FeatureFailure> {
        let written = task.folder.join("subject.mlpackage");
        write_package(&written, package).map_err(|error| error.to_string())?;
        let engine = worker()?;
        let compiled = task.folder.join("subject.mlmodelc");
        let started = Instant::now();
        engine.compile(&written, &compiled).map_err(|error| doing("compiling", error))?;
        let compile_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(Self { engine, compiled, units: units_of(&task.unit), compile_ms })
    }

    fn options(&self, function: Option<&str>) -> EngineLoadOptions {
        let function = function.map(ToOwned::to_owned);
        EngineLoadOptions { function, units: self.units, ..EngineLoadOptions::default() }
    }

    fn load(&self, function: Option<&str>) -> Result<Arc<dyn EngineModel>, FeatureFailure> {
        let loaded = self.engine.load(&self.compiled, &self.options(function));
        loaded.map_err(|error| doing("loading", error))
    }
}

/// Says what was being done.
fn doing(what: &str, error: EngineError) -> FeatureFailure {
    match error.into() {
        FeatureFailure::Unavailable(why) => FeatureFailure::Unavailable(format!("{what}: {why}")),
        FeatureFailure::Failed(why) => FeatureFailure::Failed(format!("{what}: {why}")),
    }
}

/// A graph of rows: `y = (x + x) * 1`, with a length that runs bring, or a fixed one.
fn doubling(rows: Option<usize>) -> Result<Graph, String> {
    let mut graph = Graph::new("doubling");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    let rows = rows.map_or_else(|| Dim::Symbol("rows".into()), Dim::Known);
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, vec![rows, Dim::Known(WIDTH)]));
    graph.inputs.push(x);
    let y = graph.value_named("y");
    node(&mut graph, "Add", [x, x], y)?;
    graph.outputs.push(y);
    Ok(graph)
}

fn node(
    graph: &mut Graph,
    name: &str,
    inputs: [ValueId; 2],
    output: ValueId,
) -> Result<(), String> {
    let inputs = inputs.map(Some).to_vec();
    let added =
        graph.add_node(ONNX_DOMAIN, name, "", &Attributes::new(), inputs, vec![Some(output)]);
    added.map(drop).map_err(|error| error.to_string())
}

fn converted(graph: &Graph, options: &ConvertOptions) -> Result<NewPackage, String> {
    let one = NewFunction { name: "main", graph, states: &[] };
    convert_functions([one], options).map_err(|error| error.to_string())
}

/// Rows of a value, as a prediction takes them.
fn rows(count: usize, value: f32) -> Result<Vec<(String, Tensor)>, String> {
    let tensor = Tensor::from_vec(&[count, WIDTH], vec![value; count * WIDTH]);
    Ok(vec![("x".to_owned(), tensor.map_err(|error| error.to_string())?)])
}

/// Predicts, and checks that every element of the first output is the expected one.
fn expect(
    model: &dyn EngineModel,
    given: Vec<(String, Tensor)>,
    state: Option<u64>,
    expected: f32,
) -> Result<(), String> {
    let elements = given.first().map_or(0, |(_, tensor)| tensor.elements());
    let found = predict(model, given, state).map_err(|error| format!("predicting: {error}"))?;
    let (name, y) = found.first().ok_or("a prediction without an output")?;
    let y = galatea_graph::converted(y, DataType::Fp32).and_then(|y| Ok(y.to_vec::<f32>()?));
    let y = y.map_err(|error| error.to_string())?;
    if y.len() != elements {
        return Err(format!("output '{name}' has {} elements, expected {elements}", y.len()));
    }
    match y.iter().find(|value| **value != expected) {
        Some(value) => Err(format!("output '{name}' has {value}, expected {expected}")),
        None => Ok(()),
    }
}

/// Predicts often, with surfaces as inputs and backings for outputs, also several times at once.
pub(super) fn predictions(task: &SubjectTask) -> FeatureOutcome {
    let package = converted(&doubling(Some(4))?, &ConvertOptions::default())?;
    let package = WorkerPackage::new(task, &package)?;
    let started = Instant::now();
    let model = package.load(None)?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let count: u8 = if task.effort == SelftestEffort::Full { 250 } else { 40 };
    let started = Instant::now();
    for number in 0..count {
        let value = f32::from(number);
        expect(&*model, rows(4, value)?, None, 2.0 * value)?;
    }
    let each_us = started.elapsed().as_secs_f64() * 1e6 / f64::from(count);
    std::thread::scope(|scope| {
        let model = &model;
        let threads: Vec<_> = (1..=4_u8)
            .map(|number| {
                let value = f32::from(number);
                scope.spawn(move || {
                    (0..8).try_for_each(|_| expect(&**model, rows(4, value)?, None, 2.0 * value))
                })
            })
            .collect();
        let panicked = |_| Err("a thread panicked".to_owned());
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(panicked))
    })?;
    Ok(SubjectReport::passed()
        .figure("compile_ms", package.compile_ms)
        .figure("load_ms", load_ms)
        .figure("prediction_us", each_us))
}

/// Predicts with infinities and NaN, which have to come back.
pub(super) fn not_finite(task: &SubjectTask) -> FeatureOutcome {
    let package = converted(&doubling(Some(1))?, &ConvertOptions::default())?;
    let package = WorkerPackage::new(task, &package)?;
    let model = package.load(None)?;
    let ends = [f32::INFINITY, 1.0, f32::NEG_INFINITY, f32::NAN];
    let values: Vec<f32> = ends.into_iter().cycle().take(WIDTH).collect();
    let x = Tensor::from_vec(&[1, WIDTH], values.clone()).map_err(|error| error.to_string())?;
    let found = predict(&*model, vec![("x".to_owned(), x)], None);
    let found = found.map_err(|error| format!("predicting: {error}"))?;
    let (_, y) = found.first().ok_or("a prediction without an output")?;
    let y = galatea_graph::converted(y, DataType::Fp32).and_then(|y| Ok(y.to_vec::<f32>()?));
    let y = y.map_err(|error| error.to_string())?;
    let same = |x: f32, y: f32| x + x == y || (x.is_nan() && y.is_nan());
    let wrong = values.iter().zip(&y).find(|(x, y)| !same(**x, **y));
    let wrong = wrong.map(|(x, y)| format!("{x} and {x} give {y}"));
    let short = (y.len() != WIDTH).then(|| format!("{} elements, expected {WIDTH}", y.len()));
    Ok(SubjectReport::passed().checked(wrong.or(short)))
}

/// Runs a length that each prediction brings, from a range.
pub(super) fn ranges(task: &SubjectTask) -> FeatureOutcome {
    let options = ConvertOptions { longest: 64, ..ConvertOptions::default() };
    lengths(task, &options)
}

/// Runs lengths from a list.
pub(super) fn enumerated(task: &SubjectTask) -> FeatureOutcome {
    let bucket = |rows: usize| OrderedMap::from([("rows".to_owned(), rows)]);
    let buckets = [1, 5, 16].map(bucket).to_vec();
    lengths(task, &ConvertOptions { buckets, ..ConvertOptions::default() })
}

fn lengths(task: &SubjectTask, options: &ConvertOptions) -> FeatureOutcome {
    let package = WorkerPackage::new(task, &converted(&doubling(None)?, options)?)?;
    let model = package.load(None)?;
    for count in [1, 16, 5, 16] {
        expect(&*model, rows(count, 1.5)?, None, 3.0)
            .map_err(|error| format!("{count} rows: {error}"))?;
    }
    Ok(SubjectReport::passed().figure("compile_ms", package.compile_ms))
}

/// A graph that adds to a state: `y = sum = sum + times * x`.
fn counter(times: f32) -> Result<Graph, String> {
    let mut graph = Graph::new("counter");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    for name in ["x", "sum"] {
        let id = graph.value_named(name);
        graph.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, &[1, WIDTH]));
        graph.inputs.push(id);
    }
    let factor = graph.add_constant("factor", Tensor::vector(vec![times]));
    let [x, sum] = ["x", "sum"].map(|name| graph.value_named(name));
    let [more, after, y] = ["more", "sum.after", "y"].map(|name| graph.value_named(name));
    let one = graph.add_constant("one", Tensor::vector(vec![1.0_f32]));
    node(&mut graph, "Mul", [x, factor], more)?;
    node(&mut graph, "Add", [sum, more], after)?;
    node(&mut graph, "Mul", [after, one], y)?;
    graph.outputs.extend([y, after]);
    Ok(graph)
}

/// A package with two functions that have the same state.
fn counters() -> Result<NewPackage, String> {
    let graphs = [counter(1.0)?, counter(2.0)?];
    let states = [NewState {
        name: "sum".to_owned(),
        parts: vec![["sum".to_owned(), "sum.after".to_owned()]],
    }];
    let function = |name, graph| NewFunction { name, graph, states: &states };
    let functions = [function("once", &graphs[0]), function("twice", &graphs[1])];
    convert_functions(functions, &ConvertOptions::default()).map_err(|error| error.to_string())
}

/// Keeps sums in two states, and copies one to the other.
pub(super) fn states(task: &SubjectTask) -> FeatureOutcome {
    let package = WorkerPackage::new(task, &counters()?)?;
    let model = package.load(Some("once"))?;
    let one = model.new_state()?;
    let other = model.new_state()?;
    let mut sum = 0.0;
    for _ in 0..20 {
        sum += 1.0;
        expect(&*model, rows(1, 1.0)?, Some(one), sum)?;
    }
    expect(&*model, rows(1, 1.0)?, Some(other), 1.0)?;
    model.copy_state(one, other).map_err(|error| doing("copying a state", error))?;
    expect(&*model, rows(1, 1.0)?, Some(other), 21.0)?;
    model.drop_state(one);
    model.drop_state(other);
    Ok(SubjectReport::passed().figure("compile_ms", package.compile_ms))
}

/// Runs two functions of a package on one state.
pub(super) fn functions(task: &SubjectTask) -> FeatureOutcome {
    let package = WorkerPackage::new(task, &counters()?)?;
    let once = package.load(Some("once"))?;
    let twice = once.beside(&package.options(Some("twice")))?;
    let state = once.new_state()?;
    expect(&*once, rows(1, 1.0)?, Some(state), 1.0)?;
    expect(&*twice, rows(1, 1.0)?, Some(state), 3.0)?;
    expect(&*once, rows(1, 1.0)?, Some(state), 4.0)?;
    Ok(SubjectReport::passed().figure("compile_ms", package.compile_ms))
}

/// Compiles and loads a second time with a new worker, as a restarted server does.
pub(super) fn restart(task: &SubjectTask) -> FeatureOutcome {
    let package = converted(&doubling(Some(2))?, &ConvertOptions::default())?;
    let package = WorkerPackage::new(task, &package)?;
    expect(&*package.load(None)?, rows(2, 1.0)?, None, 2.0)?;
    let second = worker()?;
    let started = Instant::now();
    let model = second.load(&package.compiled, &package.options(None));
    let model = model.map_err(|error| doing("loading again", error))?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    expect(&*model, rows(2, 2.0)?, None, 4.0)?;
    Ok(SubjectReport::passed().figure("second_load_ms", load_ms))
}
