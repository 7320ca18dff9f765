//! Core ML as the tests have it play, one test at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_apple::coreml::{ArrayDataType, CoreMlLoadOptions, LoadedModel, MultiArray};
use galatea_doubles::objc::core_ml::{
    self, OutputLayout, PlayedConfiguration, PlayedCoreMl, PlayedDevice, PlayedFailure,
    PlayedFeature, PlayedInterface, PlayedKind, PlayedModel, PlayedOutput, PlayedShapes,
    PlayedStructure, PlayedTensor, PlayedValue,
};
use galatea_doubles::objc::runtime::{LiveInstances, live_blocks, live_objects};

/// Numbers of `MLMultiArrayDataType`.
pub(crate) const FLOAT16: isize = 0x1_0010;
pub(crate) const FLOAT32: isize = 0x1_0020;
pub(crate) const INT32: isize = 0x2_0020;

/// Computation of a model.
pub(crate) type Computation = dyn Fn(Vec<PlayedOutput>, &mut [PlayedTensor]) -> Result<Vec<PlayedOutput>, PlayedFailure>
    + Send
    + Sync;

/// Model of a test.
pub(crate) struct TestModel {
    pub(crate) interface: PlayedInterface,
    pub(crate) layout: OutputLayout,
    pub(crate) backings: bool,
    /// How predictions that nobody waits for begin.
    pub(crate) begin: Result<(), PlayedFailure>,
    pub(crate) computation: Box<Computation>,
}

impl TestModel {
    /// Makes a model with this computation, whose inputs and outputs are arrays of fixed shapes.
    pub(crate) fn new(
        interface: PlayedInterface,
        computation: impl Fn(
            Vec<PlayedOutput>,
            &mut [PlayedTensor],
        ) -> Result<Vec<PlayedOutput>, PlayedFailure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            interface,
            layout: OutputLayout::default(),
            backings: true,
            begin: Ok(()),
            computation: Box::new(computation),
        }
    }

    /// Makes a model that gives its input `x` as `y`.
    pub(crate) fn echo(data_type: isize, shape: &[usize]) -> Self {
        let interface = PlayedInterface {
            inputs: vec![array_feature("x", data_type, shape)],
            outputs: vec![array_feature("y", data_type, shape)],
            ..PlayedInterface::default()
        };
        Self::new(interface, |inputs, _| {
            let rename = |one: PlayedOutput| PlayedOutput { name: "y".to_owned(), ..one };
            Ok(inputs.into_iter().map(rename).collect())
        })
    }

    /// Makes a model that adds its input `x` to the state `s` and gives the sum as `y`.
    pub(crate) fn sum(shape: &[usize]) -> Self {
        let state = PlayedKind::State { data_type: INT32, shape: shape.to_vec() };
        let state = PlayedFeature { name: "s".to_owned(), kind: state, optional: false };
        let interface = PlayedInterface {
            states: vec![state],
            inputs: vec![array_feature("x", INT32, shape)],
            outputs: vec![array_feature("y", INT32, shape)],
            ..PlayedInterface::default()
        };
        Self::new(interface, |inputs, states| {
            let added = whole(&inputs[0].value);
            let sums: Vec<i32> =
                whole_of(&states[0]).iter().zip(&added).map(|(a, b)| a + b).collect();
            states[0].bytes = bytes_of(&sums);
            let value = PlayedValue::Tensor(states[0].clone());
            Ok(vec![PlayedOutput { name: "y".to_owned(), value }])
        })
    }
}

impl PlayedModel for TestModel {
    fn interface(&self) -> PlayedInterface {
        self.interface.clone()
    }

    fn begin(&self) -> Result<(), PlayedFailure> {
        self.begin.clone()
    }

    fn predict(
        &self,
        inputs: Vec<PlayedOutput>,
        states: &mut [PlayedTensor],
    ) -> Result<Vec<PlayedOutput>, PlayedFailure> {
        (self.computation)(inputs, states)
    }

    fn layout(&self) -> OutputLayout {
        self.layout
    }

    fn takes_backings(&self) -> bool {
        self.backings
    }
}

/// Integers of a tensor.
pub(crate) fn whole_of(tensor: &PlayedTensor) -> Vec<i32> {
    tensor.bytes.chunks_exact(4).map(|four| i32::from_ne_bytes(four.try_into().unwrap())).collect()
}

/// Integers of a value.
pub(crate) fn whole(value: &PlayedValue) -> Vec<i32> {
    match value {
        PlayedValue::Tensor(tensor) => whole_of(tensor),
        other => panic!("expected a tensor, found {other:?}"),
    }
}

/// Bytes of integers.
pub(crate) fn bytes_of(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// A feature of arrays of one shape.
pub(crate) fn array_feature(name: &str, data_type: isize, shape: &[usize]) -> PlayedFeature {
    let kind = PlayedKind::Array { data_type, shape: shape.to_vec(), shapes: PlayedShapes::Fixed };
    PlayedFeature { name: name.to_owned(), kind, optional: false }
}

/// Core ML of a test.
#[derive(Default)]
pub(crate) struct TestCoreMl {
    pub(crate) compile: Option<Result<PathBuf, PlayedFailure>>,
    pub(crate) load: Option<Result<Arc<TestModel>, PlayedFailure>>,
    pub(crate) plan: Option<Result<PlayedStructure, PlayedFailure>>,
    pub(crate) devices: Option<Vec<PlayedDevice>>,
    /// Configurations with which models were loaded and planned.
    pub(crate) seen: Mutex<Vec<PlayedConfiguration>>,
}

fn missing<T>() -> Result<T, PlayedFailure> {
    Err(PlayedFailure::error(7, "the test has nothing for it"))
}

impl TestCoreMl {
    fn see(&self, configuration: &PlayedConfiguration) {
        self.seen.lock().unwrap().push(configuration.clone());
    }
}

impl PlayedCoreMl for TestCoreMl {
    fn compile(&self, _package: &Path) -> Result<PathBuf, PlayedFailure> {
        self.compile.clone().unwrap_or_else(missing)
    }

    fn load(
        &self,
        _compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<Arc<dyn PlayedModel>, PlayedFailure> {
        self.see(configuration);
        match self.load.clone().unwrap_or_else(missing) {
            Ok(model) => Ok(model),
            Err(failure) => Err(failure),
        }
    }

    fn plan(
        &self,
        _compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<PlayedStructure, PlayedFailure> {
        self.see(configuration);
        self.plan.clone().unwrap_or_else(missing)
    }

    fn devices(&self) -> Option<Vec<PlayedDevice>> {
        self.devices.clone()
    }
}

/// One test has Core ML to itself; at its end no more objects may be alive than before.
pub(crate) struct LoneTest {
    pub(crate) player: Arc<TestCoreMl>,
    pub(crate) folder: tempfile::TempDir,
    before: Vec<LiveInstances>,
    _guard: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl LoneTest {
    /// Lets Core ML play this.
    pub(crate) fn of(player: TestCoreMl) -> Self {
        let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let player = Arc::new(player);
        let silent =
            TestCoreMl { load: Some(Err(PlayedFailure::Nothing)), ..TestCoreMl::default() };
        core_ml::install(Arc::new(silent));
        // The bindings keep the error of a call that gives nothing.
        drop(LoadedModel::load(folder.path(), &CoreMlLoadOptions::default()));
        let playing: Arc<dyn PlayedCoreMl> = player.clone();
        core_ml::install(playing);
        Self { player, folder, before: live_objects(), _guard: guard }
    }

    /// Lets Core ML load this model.
    pub(crate) fn with(model: TestModel) -> Self {
        Self::of(TestCoreMl { load: Some(Ok(Arc::new(model))), ..TestCoreMl::default() })
    }

    /// Lets Core ML fail to load.
    pub(crate) fn failing(failure: PlayedFailure) -> Self {
        Self::of(TestCoreMl { load: Some(Err(failure)), ..TestCoreMl::default() })
    }

    /// Loads the model without options.
    pub(crate) fn load(&self) -> LoadedModel {
        LoadedModel::load(self.folder.path(), &CoreMlLoadOptions::default()).unwrap()
    }
}

impl Drop for LoneTest {
    fn drop(&mut self) {
        core_ml::settle();
        if !std::thread::panicking() {
            assert_eq!(live_objects(), self.before);
            assert_eq!(live_blocks(), 0);
        }
    }
}

/// An array of integers.
pub(crate) fn integers(shape: &[usize], numbers: &[i32]) -> MultiArray {
    let mut array = MultiArray::zeroed(ArrayDataType::Int32, shape).unwrap();
    array.copy_from(&bytes_of(numbers)).unwrap();
    array
}

/// Integers of an array.
pub(crate) fn numbers(array: &MultiArray) -> Vec<i32> {
    let mut bytes = vec![0; array.len_bytes()];
    array.copy_to(&mut bytes).unwrap();
    bytes.chunks_exact(4).map(|four| i32::from_ne_bytes(four.try_into().unwrap())).collect()
}
