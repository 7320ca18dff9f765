//! `MLModel`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use block2::{Block, RcBlock};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::{NSObject, NSObjectProtocol, ProtocolObject};
use objc2::{DefinedClass, Message, define_class};
use objc2_core_ml::{
    MLFeatureProvider, MLModel, MLModelConfiguration, MLModelDescription, MLPredictionOptions,
    MLState,
};
use objc2_foundation::{NSError, NSString, NSURL};

use super::feature::{self, OutputValue, ValueContents};
use super::played::{self, PlayedFailure, PlayedModel, PlayedOutput, PlayedTensor, PlayedValue};
use super::{array, configuration, description, made, state};
use crate::objc::foundation::{error, failed};

type DoubleFeatures = ProtocolObject<dyn MLFeatureProvider>;
type PredictionHandler = Block<dyn Fn(*mut DoubleFeatures, *mut NSError)>;

/// Contents of a model.
pub(crate) struct ModelContents {
    model: Arc<dyn PlayedModel>,
}

/// Threads of Core ML's that are at work.
static AT_WORK: Mutex<usize> = Mutex::new(0);

static ENDED: Condvar = Condvar::new();

fn at_work() -> MutexGuard<'static, usize> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no thread of Core ML's is at work, so that all that they held is gone.
pub fn settle() {
    let ended = ENDED.wait_while(at_work(), |count| *count > 0);
    drop(ended.unwrap_or_else(PoisonError::into_inner));
}

/// Counts a thread until it is dropped.
struct CountedThread;

impl CountedThread {
    fn new() -> Self {
        *at_work() += 1;
        Self
    }
}

impl Drop for CountedThread {
    fn drop(&mut self) {
        *at_work() -= 1;
        ENDED.notify_all();
    }
}

/// Value that goes to a thread of Core ML's.
pub(super) struct HandedValue<T>(pub(super) T);

// SAFETY: objects are bound to no thread here, and the one that hands them over uses them no more.
unsafe impl<T> Send for HandedValue<T> {}

impl<T> HandedValue<T> {
    pub(super) fn taken(self) -> T {
        self.0
    }
}

/// Does something on a thread of Core ML's, which nobody waits for.
pub(super) fn elsewhere<T: 'static>(handed: T, work: impl FnOnce(T) + Send + 'static) {
    let handed = HandedValue(handed);
    let counted = CountedThread::new();
    let spawned = thread::Builder::new().name("core-ml".to_owned()).spawn(move || {
        let handed = handed.taken();
        autoreleasepool(|_| work(handed));
        drop(counted);
    });
    drop(spawned.unwrap_or_else(|error| panic!("no thread: {error}")));
}

/// Returns the path of a place.
pub(super) fn path_of(url: &NSURL) -> PathBuf {
    url.to_file_path().unwrap_or_default()
}

/// Inputs, options and state of a prediction.
struct GivenPrediction {
    model: Arc<dyn PlayedModel>,
    inputs: Retained<DoubleFeatures>,
    options: Retained<MLPredictionOptions>,
    state: Option<Retained<MLState>>,
}

impl GivenPrediction {
    fn run(&self) -> Result<Retained<DoubleFeatures>, PlayedFailure> {
        let interface = self.model.interface();
        let mut inputs = Vec::new();
        for input in &interface.inputs {
            let name = NSString::from_str(&input.name);
            // SAFETY: every provider has the method.
            let found = unsafe { self.inputs.featureValueForName(&name) };
            match found {
                Some(value) => {
                    let value = feature::played(&value);
                    inputs.push(PlayedOutput { name: input.name.clone(), value });
                }
                None if input.optional => {}
                None => {
                    let text = format!("Feature {} is required but not specified.", input.name);
                    return Err(PlayedFailure::error(1, &text));
                }
            }
        }
        let outputs = match &self.state {
            None => self.model.predict(inputs, &mut [])?,
            Some(held) => {
                let held = state::double(held);
                let occupied = held.occupied();
                let mut tensors = held.tensors();
                let outputs = self.model.predict(inputs, &mut tensors)?;
                held.take(&tensors);
                drop(occupied);
                outputs
            }
        };
        let outputs: Vec<OutputValue> = outputs.into_iter().map(|one| self.output(one)).collect();
        Ok(feature::outputs(&outputs))
    }

    fn output(&self, of: PlayedOutput) -> OutputValue {
        let contents = match of.value {
            PlayedValue::Tensor(tensor) => ValueContents::Array(self.array(&of.name, &tensor)),
            plain => ValueContents::Plain(plain),
        };
        OutputValue { name: of.name, value: feature::value(contents) }
    }

    /// Returns the array for an output: the caller's where it fits, else one of the model's.
    fn array(&self, name: &str, tensor: &PlayedTensor) -> Retained<objc2_core_ml::MLMultiArray> {
        let backing = feature::backing(&self.options, name).filter(|_| self.model.takes_backings());
        match backing.filter(|backing| array::double(backing).take(tensor)) {
            Some(backing) => array::returned(&backing),
            None => array::output(tensor, self.model.layout()),
        }
    }

    /// Predicts at once.
    ///
    /// # Safety
    /// The place for an error is there to be written, or null.
    unsafe fn at_once(&self, place: *mut *mut NSError) -> Option<Retained<DoubleFeatures>> {
        match self.run() {
            Ok(outputs) => Some(outputs),
            Err(failure) => {
                if let Some(contents) = failure.into_error() {
                    // SAFETY: the caller vouches for the place.
                    unsafe { failed(&contents, place) };
                }
                None
            }
        }
    }

    /// Predicts on a thread of Core ML's.
    fn later(self, handler: &PredictionHandler) {
        if let Err(failure) = self.model.begin() {
            // What is no exception is for the handler.
            let contents = failure.into_error();
            return answer(&handler.copy(), None, contents.as_ref());
        }
        let handed = AwaitedPrediction { given: self, handler: handler.copy() };
        elsewhere(handed, AwaitedPrediction::run);
    }
}

/// Prediction and who is told of its end.
struct AwaitedPrediction {
    given: GivenPrediction,
    handler: RcBlock<dyn Fn(*mut DoubleFeatures, *mut NSError)>,
}

impl AwaitedPrediction {
    fn run(self) {
        match self.given.run() {
            Ok(outputs) => answer(&self.handler, Some(&outputs), None),
            Err(PlayedFailure::Forgotten) => {}
            Err(failure) => answer(&self.handler, None, failure.into_error().as_ref()),
        }
    }
}

fn answer(
    handler: &RcBlock<dyn Fn(*mut DoubleFeatures, *mut NSError)>,
    outputs: Option<&Retained<DoubleFeatures>>,
    contents: Option<&played::ErrorContents>,
) {
    let error = contents.map(error);
    let outputs = outputs.map_or(std::ptr::null_mut(), |one| Retained::as_ptr(one).cast_mut());
    let error = error.as_ref().map_or(std::ptr::null_mut(), |one| Retained::as_ptr(one).cast_mut());
    handler.call((outputs, error));
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModel"]
    #[ivars = ModelContents]
    pub(crate) struct ModelDouble;

    unsafe impl NSObjectProtocol for ModelDouble {}

    impl ModelDouble {
        #[unsafe(method_id(modelWithContentsOfURL:configuration:error:))]
        fn load(
            url: &NSURL,
            options: &MLModelConfiguration,
            place: *mut *mut NSError,
        ) -> Option<Retained<MLModel>> {
            match loaded(&path_of(url), options) {
                Ok(model) => Some(made!(ModelDouble, ModelContents { model }, MLModel)),
                Err(failure) => {
                    if let Some(contents) = failure.into_error() {
                        // SAFETY: the caller has a place for an error.
                        unsafe { failed(&contents, place) };
                    }
                    None
                }
            }
        }

        #[unsafe(method(compileModelAtURL:completionHandler:))]
        fn compile(url: &NSURL, handler: &Block<dyn Fn(*mut NSURL, *mut NSError)>) {
            let package = path_of(url);
            elsewhere(handler.copy(), move |handler| {
                let null = std::ptr::null_mut();
                match played::player().and_then(|player| player.compile(&package)) {
                    Ok(folder) => {
                        let folder = NSURL::from_directory_path(&folder);
                        let folder = folder.as_ref().map_or(std::ptr::null_mut(), |folder| {
                            Retained::as_ptr(folder).cast_mut()
                        });
                        handler.call((folder, null));
                    }
                    Err(PlayedFailure::Forgotten) => {}
                    Err(failure) => {
                        let error = failure.into_error().as_ref().map(error);
                        let error = error.as_ref().map_or(null, |one| Retained::as_ptr(one).cast_mut());
                        handler.call((std::ptr::null_mut(), error));
                    }
                }
            });
        }

        #[unsafe(method_id(modelDescription))]
        fn description(&self) -> Retained<MLModelDescription> {
            description::description(self.ivars().model.interface())
        }

        // The name begins with `new`: the caller owns the state.
        #[unsafe(method_id(newState))]
        fn new_state(&self) -> Retained<MLState> {
            state::state(&self.ivars().model.interface())
        }

        #[unsafe(method_id(predictionFromFeatures:options:error:))]
        fn predict(
            &self,
            inputs: &DoubleFeatures,
            options: &MLPredictionOptions,
            place: *mut *mut NSError,
        ) -> Option<Retained<DoubleFeatures>> {
            // SAFETY: the caller has a place for an error.
            unsafe { self.given(inputs, options, None).at_once(place) }
        }

        #[unsafe(method_id(predictionFromFeatures:usingState:options:error:))]
        fn predict_on(
            &self,
            inputs: &DoubleFeatures,
            state: &MLState,
            options: &MLPredictionOptions,
            place: *mut *mut NSError,
        ) -> Option<Retained<DoubleFeatures>> {
            // SAFETY: the caller has a place for an error.
            unsafe { self.given(inputs, options, Some(state)).at_once(place) }
        }

        #[unsafe(method(predictionFromFeatures:options:completionHandler:))]
        fn predict_later(
            &self,
            inputs: &DoubleFeatures,
            options: &MLPredictionOptions,
            handler: &PredictionHandler,
        ) {
            self.given(inputs, options, None).later(handler);
        }

        #[unsafe(method(predictionFromFeatures:usingState:options:completionHandler:))]
        fn predict_on_later(
            &self,
            inputs: &DoubleFeatures,
            state: &MLState,
            options: &MLPredictionOptions,
            handler: &PredictionHandler,
        ) {
            self.given(inputs, options, Some(state)).later(handler);
        }
    }
);

impl ModelDouble {
    fn given(
        &self,
        inputs: &DoubleFeatures,
        options: &MLPredictionOptions,
        state: Option<&MLState>,
    ) -> GivenPrediction {
        GivenPrediction {
            model: Arc::clone(&self.ivars().model),
            inputs: inputs.retain(),
            options: options.retain(),
            state: state.map(Message::retain),
        }
    }
}

fn loaded(
    compiled: &Path,
    options: &MLModelConfiguration,
) -> Result<Arc<dyn PlayedModel>, PlayedFailure> {
    played::player()?.load(compiled, &configuration::contents(options))
}
