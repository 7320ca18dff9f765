//! Core ML as an engine, on doubles of its classes that the interpreter plays.

use std::sync::{Mutex, MutexGuard, PoisonError};

use galatea_doubles::c::PlayedMac;
use galatea_doubles::objc::core_ml::{
    self, PlayedConfiguration, PlayedCoreMl, PlayedDevice, PlayedFailure, PlayedFeature,
    PlayedInterface, PlayedKind, PlayedModel, PlayedOutput, PlayedShapes, PlayedStructure,
    PlayedTensor, PlayedValue,
};
use galatea_doubles::objc::runtime::{LiveInstances, live_blocks, live_objects};
use galatea_formats::coreml::{FeatureShapes, FeatureType};
use galatea_played::InterpretedCoreMl;

use super::*;

/// Number of `MLMultiArrayDataType` of 32-bit integers.
const INT32: isize = 0x2_0020;

/// A model of the interpreter's that does what its name says.
struct NamedModel {
    path: PathBuf,
    model: Arc<dyn PlayedModel>,
}

impl PlayedModel for NamedModel {
    fn interface(&self) -> PlayedInterface {
        self.model.interface()
    }

    fn begin(&self) -> Result<(), PlayedFailure> {
        let raises = says(&self.path, "begin");
        if raises { Err(PlayedFailure::exception("the model says so")) } else { Ok(()) }
    }

    fn predict(
        &self,
        inputs: Vec<PlayedOutput>,
        states: &mut [PlayedTensor],
    ) -> Result<Vec<PlayedOutput>, PlayedFailure> {
        match says(&self.path, "raise") {
            true => Err(PlayedFailure::exception("the model says so")),
            false => self.model.predict(inputs, states),
        }
    }
}

/// Core ML that the interpreter plays, with models that do what their names say.
struct NamedCoreMl;

/// Ends the process, or fails as the path says.
fn obey(path: &Path, step: &str) -> Result<(), PlayedFailure> {
    if says(path, &format!("{step}-abort")) {
        std::process::abort();
    }
    if says(path, &format!("{step}-raise")) {
        return Err(PlayedFailure::exception("the model says so"));
    }
    Ok(())
}

impl PlayedCoreMl for NamedCoreMl {
    fn compile(&self, package: &Path) -> Result<PathBuf, PlayedFailure> {
        // On a thread of its own an exception would end the process.
        obey(package, "compile")?;
        InterpretedCoreMl.compile(package)
    }

    fn load(
        &self,
        compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<Arc<dyn PlayedModel>, PlayedFailure> {
        obey(compiled, "load")?;
        let model = InterpretedCoreMl.load(compiled, configuration)?;
        Ok(Arc::new(NamedModel { path: compiled.to_owned(), model }))
    }

    fn plan(
        &self,
        compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<PlayedStructure, PlayedFailure> {
        obey(compiled, "plan")?;
        InterpretedCoreMl.plan(compiled, configuration)
    }

    fn devices(&self) -> Option<Vec<PlayedDevice>> {
        InterpretedCoreMl.devices()
    }
}

/// Core ML, played by the interpreter.
pub(super) fn played_core_ml() -> &'static CoreMl {
    core_ml::install(Arc::new(NamedCoreMl));
    &CoreMl
}

static ALONE: Mutex<()> = Mutex::new(());

/// A test that has Core ML in this process to itself; at its end no more objects are alive than before.
struct LoneTest {
    before: Vec<LiveInstances>,
    blocks: isize,
    _guard: MutexGuard<'static, ()>,
}

impl LoneTest {
    fn new() -> Self {
        let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        played_core_ml();
        Self { before: live_objects(), blocks: live_blocks(), _guard: guard }
    }
}

impl Drop for LoneTest {
    fn drop(&mut self) {
        core_ml::settle();
        if !std::thread::panicking() {
            assert_eq!(live_objects(), self.before);
            assert_eq!(live_blocks(), self.blocks);
        }
    }
}

#[test]
fn core_ml_gives_what_the_interpreter_gives() {
    let _alone = LoneTest::new();
    let folder = tempfile::tempdir().unwrap();
    let package = squares(folder.path(), "plain");
    let compiled = folder.path().join("compiled.mlpackage");
    CoreMl.compile(&package, &compiled).unwrap();
    let expected = load(&ProgramInterpreter, &compiled);
    for units in [ComputeUnits::All, ComputeUnits::CpuOnly] {
        let options = EngineLoadOptions { units, ..EngineLoadOptions::default() };
        let model = CoreMl.load(&compiled, &options).unwrap();
        assert_eq!(model.interface(), expected.interface());
        for rows in [2, 300, 1] {
            assert_eq!(numbers(predict(&*model, x(rows, 1.5), None)), vec![2.25; rows * 3]);
        }
        let all: Vec<_> = (0..8_u8).map(|n| submit(&*model, x(5, f32::from(n)))).collect();
        for (n, receiver) in (0..8_u8).zip(all) {
            let n = f32::from(n);
            assert_eq!(numbers(receiver.recv().unwrap()), [n * n; 15]);
        }
    }
}

#[test]
fn three_threads_predict_on_one_state_of_half_floats_in_surfaces() {
    let _alone = LoneTest::new();
    let folder = tempfile::tempdir().unwrap();
    let model = load(&CoreMl, &sums(folder.path()));
    let feature = &model.interface().inputs[0];
    let shape = check::fixed_shape(feature).unwrap();
    let ones = Tensor::from_vec(shape, vec![1_f32; shape.iter().product()]).unwrap();
    let ones = galatea_graph::converted(&ones, check::element(feature).unwrap()).unwrap();
    let given = || vec![(feature.name.clone(), ones.clone())];
    let state = model.new_state().unwrap();
    let sum = || {
        let found = predict(&*model, given(), Some(state)).unwrap().remove(0).1;
        galatea_graph::converted(&found, DataType::Fp32).unwrap().to_vec::<f32>().unwrap()[0]
    };
    let mut sums: Vec<f32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(sum)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    sums.sort_by(f32::total_cmp);
    assert_eq!(sums, [1.0, 2.0, 3.0]);
    assert_eq!(sum(), 4.0);
    let other = model.new_state().unwrap();
    model.copy_state(state, other).unwrap();
    model.drop_state(state);
    assert_eq!(kind(predict(&*model, given(), Some(state))), EngineErrorKind::Argument);
    let found = predict(&*model, given(), Some(other)).unwrap().remove(0).1;
    let found = galatea_graph::converted(&found, DataType::Fp32).unwrap();
    assert_eq!(found.to_vec::<f32>().unwrap()[0], 5.0);
}

#[test]
fn functions_of_a_package_share_states_in_core_ml() {
    let _alone = LoneTest::new();
    let folder = tempfile::tempdir().unwrap();
    let path = counters(folder.path(), "counters");
    let once = CoreMl.load(&path, &function("once")).unwrap();
    let twice = once.beside(&function("twice")).unwrap();
    let add = |model: &dyn EngineModel, state| numbers(predict(model, x(1, 1.0), Some(state)));
    let state = once.new_state().unwrap();
    assert_eq!(add(&*once, state), [1.0; 3]);
    assert_eq!(add(&*twice, state), [6.0; 3]);
    once.copy_state(state, state).unwrap();
    let other = twice.new_state().unwrap();
    twice.copy_state(state, other).unwrap();
    once.copy_state(other, state).unwrap();
    assert_eq!(add(&*once, other), [4.0; 3]);
    let error = once.beside(&function("other")).unwrap_err();
    assert!(error.text.contains("sum") && error.text.contains("total"), "{error}");
    let planned = CoreMl.plan(&path, &function("twice")).unwrap();
    let on = |device: &str| {
        let prefers = |row: &EnginePlannedOperator| {
            row.planned.as_deref().is_some_and(|planned| planned.starts_with(device))
        };
        planned.iter().any(prefers)
    };
    assert!(on("Neural Engine") && !on("CPU"), "{planned:?}");
}

#[test]
fn an_older_macos_predicts_while_the_caller_waits() {
    let _alone = LoneTest::new();
    let folder = tempfile::tempdir().unwrap();
    let package = squares(folder.path(), "plain");
    let mac = PlayedMac::parse("m1-16gb,macos=13.5").unwrap();
    let fast = EngineLoadOptions { fast_prediction: true, ..EngineLoadOptions::default() };
    let model = mac.play(|| CoreMl.load(&package, &fast)).unwrap();
    assert_eq!(numbers(predict(&*model, x(2, 3.0), None)), [9.0; 6]);
}

#[test]
fn exceptions_of_core_ml_are_errors_and_the_model_goes_on() {
    let _alone = LoneTest::new();
    let folder = tempfile::tempdir().unwrap();
    let refused = squares(folder.path(), "load-raise");
    let error = CoreMl.load(&refused, &EngineLoadOptions::default()).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Load);
    assert!(error.text.contains("NSInvalidArgumentException"), "{error}");
    let model = load(&CoreMl, &squares(folder.path(), "begin"));
    for _ in 0..2 {
        let error = predict(&*model, x(1, 1.0), None).unwrap_err();
        assert_eq!(error.kind, EngineErrorKind::Predict);
        assert!(error.text.contains("the model says so"), "{error}");
    }
    let mac = PlayedMac::parse("m1-16gb,macos=13.5").unwrap();
    let model = mac.play(|| load(&CoreMl, &squares(folder.path(), "raise")));
    assert_eq!(kind(predict(&*model, x(1, 1.0), None)), EngineErrorKind::Predict);
}

#[test]
fn a_worker_whose_core_ml_ends_it_is_replaced_at_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(limits());
    let plain = load(&worker, &squares(folder.path(), "plain"));
    let options = EngineLoadOptions::default();
    let package = |name: &str| squares(folder.path(), name);
    let into = folder.path().join("compiled");
    // Where an exception is raised on a thread of Core ML's, nobody can catch it.
    for name in ["compile-abort", "compile-raise"] {
        let error = worker.compile(&package(name), &into).unwrap_err();
        assert_eq!(error.kind, EngineErrorKind::Died, "{name}: {error}");
        assert_eq!(numbers(predict(&*plain, x(1, 3.0), None)), [9.0; 3]);
    }
    for name in ["plan-abort", "plan-raise"] {
        let error = worker.plan(&package(name), &options).unwrap_err();
        assert_eq!(error.kind, EngineErrorKind::Died, "{name}: {error}");
    }
    let error = worker.load(&package("load-abort"), &options).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Died, "{error}");
    assert_eq!(numbers(predict(&*plain, x(1, 3.0), None)), [9.0; 3]);
    let process = worker.process();
    let error = worker.load(&package("load-raise"), &options).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Load, "{error}");
    assert_eq!(worker.process(), process, "the exception was caught");
    let raises = load(&worker, &package("raise"));
    assert_eq!(kind(predict(&*raises, x(1, 2.0), None)), EngineErrorKind::Died);
    assert_eq!(numbers(predict(&*plain, x(1, 3.0), None)), [9.0; 3]);
}

/// Model of values that are given.
struct PlayedValues(PlayedInterface, Vec<PlayedOutput>);

impl PlayedModel for PlayedValues {
    fn interface(&self) -> PlayedInterface {
        self.0.clone()
    }

    fn predict(
        &self,
        _inputs: Vec<PlayedOutput>,
        _states: &mut [PlayedTensor],
    ) -> Result<Vec<PlayedOutput>, PlayedFailure> {
        Ok(self.1.clone())
    }
}

/// Core ML with one model.
struct OneModel(Arc<PlayedValues>);

impl PlayedCoreMl for OneModel {
    fn compile(&self, _package: &Path) -> Result<PathBuf, PlayedFailure> {
        Err(PlayedFailure::Nothing)
    }

    fn load(
        &self,
        _compiled: &Path,
        _configuration: &PlayedConfiguration,
    ) -> Result<Arc<dyn PlayedModel>, PlayedFailure> {
        Ok(self.0.clone())
    }

    fn plan(
        &self,
        _compiled: &Path,
        _configuration: &PlayedConfiguration,
    ) -> Result<PlayedStructure, PlayedFailure> {
        Err(PlayedFailure::Nothing)
    }
}

fn plain_feature(name: &str, kind: PlayedKind) -> PlayedFeature {
    PlayedFeature { name: name.to_owned(), kind, optional: false }
}

/// Loads a model with these inputs whose output has this type and value.
fn with(
    inputs: Vec<PlayedFeature>,
    kind: isize,
    value: PlayedValue,
) -> Result<Arc<dyn EngineModel>, EngineError> {
    let outputs = vec![plain_feature("y", PlayedKind::Plain(kind))];
    let interface = PlayedInterface { inputs, outputs, ..PlayedInterface::default() };
    let values = vec![PlayedOutput { name: "y".to_owned(), value }];
    core_ml::install(Arc::new(OneModel(Arc::new(PlayedValues(interface, values)))));
    let folder = tempfile::tempdir().unwrap();
    CoreMl.load(folder.path(), &EngineLoadOptions::default())
}

#[test]
fn plain_values_are_tensors_and_pictures_are_refused() {
    let _alone = LoneTest::new();
    let value = |kind, value| predict(&*with(Vec::new(), kind, value)?, Vec::new(), None);
    let text = value(3, PlayedValue::Text("cat".to_owned())).unwrap();
    assert_eq!(text[0].1.dtype(), DataType::Bytes);
    let whole = value(1, PlayedValue::Whole(7)).unwrap();
    assert_eq!(whole[0].1.to_vec::<i64>().unwrap(), [7]);
    let real = value(2, PlayedValue::Real(0.5)).unwrap();
    assert_eq!(real[0].1.to_vec::<f64>().unwrap(), [0.5]);
    assert_eq!(kind(value(1, PlayedValue::Undefined)), EngineErrorKind::Predict);
    assert_eq!(kind(value(6, PlayedValue::Dictionary(Vec::new()))), EngineErrorKind::Load);
    let image = PlayedKind::Image { width: 4, height: 4, format: 32 };
    let inputs = vec![plain_feature("x", image)];
    let error = with(inputs, 1, PlayedValue::Whole(0)).unwrap_err();
    assert_eq!(error.kind, EngineErrorKind::Load);
    let inputs = vec![plain_feature("x", PlayedKind::Plain(1))];
    let error = with(inputs, 1, PlayedValue::Whole(0)).unwrap_err();
    assert!(error.text.contains("is no array"), "{error}");
}

#[test]
fn listed_shapes_reach_the_interface() {
    let _alone = LoneTest::new();
    let listed = vec![vec![1, 3], vec![2, 3]];
    let shapes = PlayedShapes::Enumerated(listed.clone());
    let array = PlayedKind::Array { data_type: INT32, shape: vec![1, 3], shapes };
    let x = plain_feature("x", array);
    let model = with(vec![x], 1, PlayedValue::Whole(0)).unwrap();
    let FeatureType::Array { shapes, dtype, .. } = &model.interface().inputs[0].kind else {
        panic!("expected an array")
    };
    assert_eq!((shapes, *dtype), (&FeatureShapes::Enumerated(listed), DataType::Int32));
    let given =
        |rows: usize| vec![("x".to_owned(), Tensor::zeros(DataType::Int32, &[rows, 3]).unwrap())];
    assert!(predict(&*model, given(2), None).is_ok());
    assert_eq!(kind(predict(&*model, given(4), None)), EngineErrorKind::Argument);
}
