//! Engines beside each other, and workers that end in every way that there is. The worker of these tests is
//! the test's own program, which runs one test that answers requests.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use galatea_formats::coreml::write_package;
use galatea_graph::{Attributes, Dim, Fact, Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::mil;

use super::*;
use crate::{ConvertOptions, NewFunction, NewState, convert, convert_functions};

#[cfg(apple_doubles)]
#[path = "doubles_tests.rs"]
mod doubles;

/// An engine with models that do what their names say.
#[derive(Debug)]
struct Faulty;

/// The engine of this machine: the interpreter, and Core ML where there are doubles of it.
fn inner() -> &'static dyn CoreMlEngine {
    #[cfg(apple_doubles)]
    return doubles::played_core_ml();
    #[cfg(not(apple_doubles))]
    &ProgramInterpreter
}

#[derive(Debug)]
struct FaultyModel {
    path: PathBuf,
    inner: Arc<dyn EngineModel>,
}

fn says(path: &Path, what: &str) -> bool {
    path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(what))
}

impl CoreMlEngine for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn compile(&self, package: &Path, into: &Path) -> Result<(), EngineError> {
        inner().compile(package, into)
    }

    fn load(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Arc<dyn EngineModel>, EngineError> {
        let inner = inner().load(compiled, options)?;
        Ok(Arc::new(FaultyModel { path: compiled.to_owned(), inner }))
    }

    fn plan(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Vec<EnginePlannedOperator>, EngineError> {
        inner().plan(compiled, options)
    }
}

impl EngineModel for FaultyModel {
    fn interface(&self) -> &EngineInterface {
        self.inner.interface()
    }

    fn submit(
        &self,
        inputs: Vec<NamedTensor>,
        state: Option<StateNumber>,
        done: PredictionCallback,
    ) {
        let marker = self.path.with_extension("seen");
        if says(&self.path, "abort") || (says(&self.path, "once") && !marker.exists()) {
            fs::write(marker, "").unwrap();
            std::process::abort();
        }
        if says(&self.path, "hang") {
            return std::mem::forget(done);
        }
        if says(&self.path, "keep") {
            static KEPT: Mutex<Vec<Vec<NamedTensor>>> = Mutex::new(Vec::new());
            KEPT.lock().unwrap().push(inputs.clone());
        }
        if says(&self.path, "panic") {
            panic!("the model says so");
        }
        if says(&self.path, "garbage") {
            let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            UnixStream::from(socket).write_all(b"GARBAGE GARBAGE").unwrap();
            return std::mem::forget(done);
        }
        let bell = self.path.with_extension("bell");
        if bell.exists() && !marker.exists() {
            fs::write(marker, "").unwrap();
            let mut bell = UnixStream::connect(bell).unwrap();
            bell.write_all(b"!").unwrap();
            // Nothing comes before this process is ended.
            bell.read_exact(&mut [0]).unwrap();
        }
        self.inner.submit(inputs, state, done);
    }

    fn new_state(&self) -> Result<StateNumber, EngineError> {
        self.inner.new_state()
    }

    fn drop_state(&self, state: StateNumber) {
        self.inner.drop_state(state);
    }

    fn copy_state(&self, from: StateNumber, to: StateNumber) -> Result<(), EngineError> {
        self.inner.copy_state(from, to)
    }

    fn beside(&self, options: &EngineLoadOptions) -> Result<Arc<dyn EngineModel>, EngineError> {
        let inner = self.inner.beside(options)?;
        Ok(Arc::new(Self { path: self.path.clone(), inner }))
    }
}

#[test]
#[ignore = "is the worker of the tests beside it"]
fn serves_its_parent() {
    drop(serve(Arc::new(Faulty)));
}

fn command() -> WorkerCommand {
    let name = "engine::tests::serves_its_parent";
    let arguments = ["--exact", name, "--ignored", "--nocapture"];
    WorkerCommand {
        program: std::env::current_exe().unwrap(),
        arguments: arguments.map(str::to_owned).to_vec(),
    }
}

fn limits() -> WorkerLimits {
    // Nothing waits for these where all is well.
    WorkerLimits { rest: Duration::ZERO, ..WorkerLimits::default() }
}

fn worker(limits: WorkerLimits) -> WorkerEngine {
    WorkerEngine::new(command(), limits)
}

/// Gives the squares of what it takes, whose first length is open.
fn square_graph() -> Graph {
    let mut graph = Graph::new("squares");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x: ValueId = graph.value_named("x");
    let dims = vec![Dim::Symbol("n".into()), Dim::Known(3)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    let y = graph.value_named("y");
    let both = vec![Some(x), Some(x)];
    graph.add_node(ONNX_DOMAIN, "Mul", "", &Attributes::new(), both, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

fn squares(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(format!("{name}.mlpackage"));
    write_package(&path, &convert(&square_graph(), &ConvertOptions::default()).unwrap()).unwrap();
    path
}

/// A model that adds what it is given to its state and gives the sum.
fn sums(folder: &Path) -> PathBuf {
    let (bytes, _weights) = mil::case("control/state_that_sums_what_it_is_given").model();
    let path = squares(folder, "sums");
    fs::write(path.join("Data/com.apple.CoreML/model.mlmodel"), bytes).unwrap();
    path
}

fn x(rows: usize, value: f32) -> Vec<NamedTensor> {
    vec![("x".to_owned(), Tensor::from_vec(&[rows, 3], vec![value; rows * 3]).unwrap())]
}

fn load(engine: &dyn CoreMlEngine, path: &Path) -> Arc<dyn EngineModel> {
    engine.load(path, &EngineLoadOptions::default()).unwrap()
}

fn numbers(result: Result<Vec<NamedTensor>, EngineError>) -> Vec<f32> {
    result.unwrap()[0].1.to_vec::<f32>().unwrap()
}

fn kind(result: Result<Vec<NamedTensor>, EngineError>) -> EngineErrorKind {
    result.unwrap_err().kind
}

#[test]
fn a_worker_gives_what_the_engine_gives_here() {
    let folder = tempfile::tempdir().unwrap();
    let package = squares(folder.path(), "plain");
    let compiled = folder.path().join("compiled");
    let worker = worker(limits());
    worker.compile(&package, &compiled).unwrap();
    assert!(worker.compile(&package, &compiled).is_err(), "something is there already");
    let here = load(&ProgramInterpreter, &compiled);
    let there = load(&worker, &compiled);
    assert_eq!(here.interface(), there.interface());
    // Longer and shorter ones: the first has no room for its outputs yet.
    for rows in [2, 2000, 1, 3] {
        let given = x(rows, 1.5);
        let expected = numbers(predict(&*here, given.clone(), None));
        assert_eq!(numbers(predict(&*there, given, None)), expected);
    }
    let options = EngineLoadOptions::default();
    let plan = worker.plan(&compiled, &options).unwrap();
    assert_eq!(plan, inner().plan(&compiled, &options).unwrap());
    assert!(plan.iter().any(|row| row.operator == "Mul" && row.planned.is_some()));
}

#[test]
fn outputs_stay_as_they_are_and_go_in_again_where_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "plain"));
    let first = predict(&*model, x(2, 3.0), None).unwrap();
    let again = vec![("x".to_owned(), first[0].1.clone())];
    assert_eq!(numbers(predict(&*model, again, None)), [81.0; 6]);
    for _ in 0..8 {
        predict(&*model, x(2, 0.0), None).unwrap();
    }
    assert_eq!(numbers(Ok(first)), [9.0; 6]);
}

#[test]
fn what_does_not_fit_is_refused_without_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "plain"));
    let wrong = vec![("x".to_owned(), Tensor::zeros(DataType::Fp32, &[2, 4]).unwrap())];
    assert_eq!(kind(predict(&*model, wrong, None)), EngineErrorKind::Argument);
    assert_eq!(kind(predict(&*model, Vec::new(), None)), EngineErrorKind::Argument);
    assert_eq!(kind(predict(&*model, x(1, 1.0), Some(1))), EngineErrorKind::Argument);
    assert_eq!(numbers(predict(&*model, x(1, 2.0), None)), [4.0; 3]);
}

fn submit(
    model: &dyn EngineModel,
    given: Vec<NamedTensor>,
) -> Receiver<Result<Vec<NamedTensor>, EngineError>> {
    let (sender, receiver) = mpsc::channel();
    model.submit(given, None, Box::new(move |result| sender.send(result).unwrap()));
    receiver
}

#[test]
fn many_predictions_are_under_way_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "plain"));
    let all: Vec<_> = (0..32_u8).map(|n| submit(&*model, x(5, f32::from(n)))).collect();
    for (n, receiver) in (0..32_u8).zip(all) {
        let n = f32::from(n);
        assert_eq!(numbers(receiver.recv().unwrap()), [n * n; 15]);
    }
}

#[test]
fn inputs_that_the_engine_holds_after_the_end_are_no_room_for_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "keep"));
    for n in 0..12_u8 {
        let n = f32::from(n);
        assert_eq!(numbers(predict(&*model, x(2, n), None)), [n * n; 6]);
    }
}

/// Sends a signal, and says whether the process was there.
fn signal(number: u32, process: u32) -> bool {
    let kill = format!("kill -{number} {process}");
    Command::new("sh").args(["-c", &kill]).output().unwrap().status.success()
}

#[test]
fn a_prediction_whose_worker_is_killed_is_tried_on_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let package = squares(folder.path(), "plain");
    let bell = UnixListener::bind(package.with_extension("bell")).unwrap();
    let worker = worker(limits());
    let model = load(&worker, &package);
    let waiting = submit(&*model, x(2, 7.0));
    let (mut rung, _) = bell.accept().unwrap();
    rung.read_exact(&mut [0]).unwrap();
    let process = worker.process().unwrap();
    assert!(signal(9, process));
    assert_eq!(numbers(waiting.recv().unwrap()), [49.0; 6]);
    assert_ne!(worker.process(), Some(process));
}

#[test]
fn a_model_that_ends_its_workers_is_refused_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let once = load(&worker, &squares(folder.path(), "once"));
    assert_eq!(numbers(predict(&*once, x(1, 2.0), None)), [4.0; 3]);
    let model = load(&worker, &squares(folder.path(), "abort"));
    // Each prediction is tried twice.
    assert_eq!(kind(predict(&*model, x(1, 2.0), None)), EngineErrorKind::Died);
    assert_eq!(kind(predict(&*model, x(1, 2.0), None)), EngineErrorKind::Refused);
    assert_eq!(kind(predict(&*model, x(1, 2.0), None)), EngineErrorKind::Refused);
    assert_eq!(numbers(predict(&*once, x(1, 3.0), None)), [9.0; 3]);
}

#[test]
fn between_ends_the_next_worker_waits() {
    let folder = tempfile::tempdir().unwrap();
    let rest = Duration::from_secs(3600);
    let worker = worker(WorkerLimits { rest, ..WorkerLimits::default() });
    let model = load(&worker, &squares(folder.path(), "abort"));
    let other = load(&worker, &squares(folder.path(), "plain"));
    assert_eq!(kind(predict(&*model, x(1, 2.0), None)), EngineErrorKind::Died);
    assert_eq!(kind(predict(&*other, x(1, 2.0), None)), EngineErrorKind::Resting);
}

#[test]
fn a_worker_that_hangs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let prediction = Duration::from_millis(300);
    let worker = worker(WorkerLimits { prediction, ..limits() });
    let model = load(&worker, &squares(folder.path(), "hang"));
    let process = worker.process();
    assert_eq!(kind(predict(&*model, x(1, 2.0), None)), EngineErrorKind::Hung);
    assert_ne!(worker.process(), process);
}

#[test]
fn a_worker_that_says_what_is_no_answer_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "garbage"));
    let error = predict(&*model, x(1, 2.0), None).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Died);
    assert!(error.text.contains("no answer"), "{error}");
}

#[test]
fn a_thread_that_ends_answers_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "panic"));
    let process = worker.process();
    // More often than there are threads.
    for _ in 0..6 {
        assert_eq!(kind(predict(&*model, x(1, 2.0), None)), EngineErrorKind::Predict);
    }
    assert_eq!(worker.process(), process);
}

#[test]
fn a_program_that_is_not_there_or_is_no_worker_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let package = squares(folder.path(), "plain");
    let refused = |program: &str| {
        let command = WorkerCommand { program: program.into(), arguments: Vec::new() };
        let worker = WorkerEngine::new(command, limits());
        worker.load(&package, &EngineLoadOptions::default()).unwrap_err()
    };
    let missing = refused("/nowhere/galatea");
    assert!(missing.text.contains("/nowhere/galatea"), "{missing}");
    assert_eq!(missing.kind, EngineErrorKind::Died);
    let other = refused("true");
    assert!(other.text.contains("ended before its first word"), "{other}");
}

#[test]
fn states_go_on_and_are_lost_with_their_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = sums(folder.path());
    let worker = worker(limits());
    let here = load(&ProgramInterpreter, &path);
    let there = load(&worker, &path);
    let feature = &here.interface().inputs[0];
    let shape = check::fixed_shape(feature).unwrap().to_vec();
    let dtype = check::element(feature).unwrap();
    let ones = Tensor::from_vec(&shape, vec![1_f32; shape.iter().product()]).unwrap();
    let ones = galatea_graph::converted(&ones, dtype).unwrap();
    let given = || vec![(feature.name.clone(), ones.clone())];
    let sum = |model: &dyn EngineModel, state| {
        let found = predict(model, given(), Some(state)).unwrap().remove(0).1;
        galatea_graph::converted(&found, DataType::Fp32).unwrap().to_vec::<f32>().unwrap()[0]
    };
    for model in [&here, &there] {
        let a = model.new_state().unwrap();
        let b = model.new_state().unwrap();
        assert_eq!([sum(&**model, a), sum(&**model, a), sum(&**model, b)], [1.0, 2.0, 1.0]);
        model.drop_state(b);
        assert_eq!(kind(predict(&**model, given(), Some(b))), EngineErrorKind::Argument);
        assert_eq!(kind(predict(&**model, given(), None)), EngineErrorKind::Argument);
    }
    let state = there.new_state().unwrap();
    let abort = load(&worker, &squares(folder.path(), "abort"));
    assert_eq!(kind(predict(&*abort, x(1, 2.0), None)), EngineErrorKind::Died);
    assert_eq!(kind(predict(&*there, given(), Some(state))), EngineErrorKind::StateLost);
    let state = there.new_state().unwrap();
    assert_eq!(sum(&*there, state), 1.0);
}

#[test]
fn a_worker_ends_when_nobody_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let model = load(&worker, &squares(folder.path(), "plain"));
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let (sender, ended) = mpsc::channel();
    let serving = std::thread::spawn(move || sender.send(child::answer(Arc::new(Faulty), theirs)));
    ours.write_all(&[0xff; 32]).unwrap();
    assert!(ended.recv().unwrap().is_err(), "garbage ends it");
    serving.join().unwrap().unwrap();
    let process = worker.process().unwrap();
    drop((model, worker));
    // The listener has asked how it ended before the number is free: signals then find nobody.
    while signal(0, process) {
        std::thread::yield_now();
    }
}

#[cfg(not(any(target_os = "macos", apple_doubles)))]
#[test]
fn off_macos_core_ml_says_that_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let package = squares(folder.path(), "plain");
    let error = CoreMl.load(&package, &EngineLoadOptions::default()).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Unavailable);
    let error = CoreMl.compile(&package, &folder.path().join("compiled")).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Unavailable);
}

/// The worker that partitions of this process go to, for one test at a time: counts are the process's.
pub(super) struct TestHost {
    /// Folder of compiled packages.
    pub(super) cache: PathBuf,
    _alone: std::sync::MutexGuard<'static, ()>,
}

/// Names the worker, as programs do at their start.
pub(super) fn host() -> TestHost {
    static ALONE: Mutex<()> = Mutex::new(());
    static CACHE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let made = || tempfile::tempdir().unwrap().keep().join("cache");
    let cache = CACHE.get_or_init(made).clone();
    let compiled = CompiledCache::new(cache.clone(), DEFAULT_LIMIT_BYTES);
    set_host(EngineHost { worker: command(), cache: compiled, warning: None });
    TestHost { cache, _alone: alone }
}

#[test]
fn a_partition_goes_to_the_worker_when_it_is_compiled() {
    use crate::CoreMlProvider;
    use galatea_runtime::{
        ExecutionProvider, PlacedOperator, ProviderWish, Run, Session, SessionOptions,
    };
    let host = host();
    let sealed = || {
        let entries = fs::read_dir(&host.cache).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().join("seal").exists()).count()
    };
    let sealed_before = sealed();
    let provider = CoreMlProvider::new();
    let set = |all: &[(&str, &str)]| {
        let owned = all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = owned.collect();
        provider.variant(&ProviderWish { settings: Some(&settings), forced: false })
    };
    let told = [("worker", "on"), ("power_mode", "low_power"), ("compile", "background")];
    let told = set(&told).unwrap().unwrap();
    assert!(set(&[("power_mode", "turbo")]).unwrap_err().contains("turbo"));
    assert!(set(&[("worker", "perhaps")]).unwrap_err().contains("perhaps"));
    let later = set(&[("compile", "later")]).unwrap_err();
    assert_eq!(later, "compile 'later' found, expected wait or background");
    let graph = square_graph();
    let first = told.forced().unwrap();
    let session = Session::new(graph, &[first], &SessionOptions::default()).unwrap();
    let before = counts();
    // The processor serves until the worker has it; a run more then compares both.
    while counts().predictions < before.predictions + 2 {
        let given = x(2, 1.5).remove(0).1;
        assert_eq!(
            session.run_tensors(Run::named(&[("x", given)])).unwrap()[0].to_vec::<f32>().unwrap(),
            [2.25; 6]
        );
    }
    let placed = session.explain().placed;
    // The doubles are a Mac with a Neural Engine.
    let device = if cfg!(apple_doubles) { "Neural Engine of 16 cores" } else { "CPU" };
    let placed_there = |row: &PlacedOperator| row.operator == "Mul" && row.planned == device;
    assert!(placed[0].iter().any(placed_there), "{placed:?}");
    assert_eq!(sealed(), sealed_before + 1);
    // Who waits has the worker's result at once.
    let waiting = set(&[("worker", "on")]).unwrap().unwrap().forced().unwrap();
    let before = counts();
    let session = Session::new(square_graph(), &[waiting], &SessionOptions::default()).unwrap();
    assert!(!session.explain().placed[0].is_empty());
    let given = x(2, 1.5).remove(0).1;
    assert_eq!(
        session.run_tensors(Run::named(&[("x", given)])).unwrap()[0].to_vec::<f32>().unwrap(),
        [2.25; 6]
    );
    assert_eq!(counts().predictions, before.predictions + 1);
}

/// A package with functions that add what they are given so many times to a state and give the sum.
fn counters(folder: &Path, name: &str) -> PathBuf {
    let graph = |times: f32| {
        let mut graph = Graph::new("counter");
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
        for name in ["x", "sum"] {
            let id = graph.value_named(name);
            graph.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, &[1, 3]));
            graph.inputs.push(id);
        }
        let factor = graph.value_named("factor");
        graph.value_mut(factor).initializer = Some(Tensor::vector(vec![times]));
        let [x, sum] = [graph.inputs[0], graph.inputs[1]];
        let [more, after, y] = ["more", "sum.after", "y"].map(|name| graph.value_named(name));
        let mut add = |op, inputs: [ValueId; 2], output| {
            let inputs = inputs.map(Some).to_vec();
            let outputs = vec![Some(output)];
            graph.add_node(ONNX_DOMAIN, op, "", &Attributes::new(), inputs, outputs).unwrap();
        };
        add("Mul", [x, factor], more);
        add("Add", [sum, more], after);
        add("Mul", [after, factor], y);
        graph.outputs.extend([y, after]);
        graph
    };
    let state = |name: &str| NewState {
        name: name.to_owned(),
        parts: vec![["sum".to_owned(), "sum.after".to_owned()]],
    };
    let graphs = [graph(1.0), graph(2.0)];
    let states = [[state("sum")], [state("total")]];
    let rows = [("once", 0, 0), ("twice", 1, 0), ("other", 0, 1)];
    let functions = rows.map(|(name, graph, state)| NewFunction {
        name,
        graph: &graphs[graph],
        states: &states[state],
    });
    let path = folder.join(format!("{name}.mlpackage"));
    let package = convert_functions(functions, &ConvertOptions::default()).unwrap();
    write_package(&path, &package).unwrap();
    path
}

fn function(name: &str) -> EngineLoadOptions {
    EngineLoadOptions { function: Some(name.to_owned()), ..EngineLoadOptions::default() }
}

#[test]
fn functions_of_a_package_share_states_which_can_be_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = counters(folder.path(), "counters");
    let worker = worker(limits());
    let engines: [&dyn CoreMlEngine; 2] = [&ProgramInterpreter, &worker];
    for engine in engines {
        let once = engine.load(&path, &function("once")).unwrap();
        let twice = once.beside(&function("twice")).unwrap();
        let add = |model: &dyn EngineModel, state| numbers(predict(model, x(1, 1.0), Some(state)));
        let a = once.new_state().unwrap();
        let b = twice.new_state().unwrap();
        assert_eq!(add(&*once, a), [1.0; 3]);
        // Three, given twice.
        assert_eq!(add(&*twice, a), [6.0; 3]);
        assert_eq!(add(&*twice, b), [4.0; 3]);
        once.copy_state(a, b).unwrap();
        assert_eq!([add(&*once, b), add(&*once, b)], [[4.0; 3], [5.0; 3]]);
        assert_eq!(add(&*once, a), [4.0; 3]);
        twice.copy_state(a, a).unwrap();
        let error = once.beside(&function("other")).unwrap_err();
        assert!(error.text.contains("sum") && error.text.contains("total"), "{error}");
        twice.drop_state(a);
        assert_eq!(once.copy_state(a, b).unwrap_err().kind, EngineErrorKind::Argument);
        drop(once);
        assert_eq!(add(&*twice, b), [14.0; 3]);
    }
}

#[test]
fn functions_are_loaded_anew_beside_each_other_when_their_worker_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let once = worker.load(&counters(folder.path(), "counters"), &function("once")).unwrap();
    let twice = once.beside(&function("twice")).unwrap();
    let state = once.new_state().unwrap();
    let process = worker.process().unwrap();
    assert!(signal(9, process));
    while worker.process() == Some(process) {
        std::thread::yield_now();
    }
    assert_eq!(kind(predict(&*twice, x(1, 1.0), Some(state))), EngineErrorKind::StateLost);
    let state = twice.new_state().unwrap();
    assert_eq!(numbers(predict(&*twice, x(1, 1.0), Some(state))), [4.0; 3]);
    assert_eq!(numbers(predict(&*once, x(1, 1.0), Some(state))), [3.0; 3]);
}
