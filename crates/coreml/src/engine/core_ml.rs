//! Core ML as an engine. Off macOS every call says that there is none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use galatea_apple::ChipIdentity;
use galatea_apple::coreml::{
    self, ArrayDataType, CompletedPrediction, ComputeUnits, CoreMlFault, CoreMlFaultKind,
    FeatureKind, LoadedModel, MultiArray, Prediction, PredictionOutput, PredictionState,
    PredictionSubmission, ShapeConstraint,
};
use galatea_formats::coreml::{FeatureShapes, FeatureType, ModelFeature};
use galatea_tensor::{ByteString, DataType, OrderedMap, Tensor};

use super::surface_pool::SurfacePool;
use super::{
    CoreMlEngine, EngineError, EngineErrorKind, EngineInterface, EngineLoadOptions, EngineModel,
    EnginePlannedOperator, NamedTensor, PredictionCallback, StateNumber, check,
};

/// Core ML in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreMl;

/// The types of elements that both sides have.
const TYPES: [(ArrayDataType, DataType); 5] = [
    (ArrayDataType::Float16, DataType::Fp16),
    (ArrayDataType::Float32, DataType::Fp32),
    (ArrayDataType::Double, DataType::Fp64),
    (ArrayDataType::Int32, DataType::Int32),
    (ArrayDataType::Int8, DataType::Int8),
];

fn element(found: ArrayDataType) -> DataType {
    TYPES.into_iter().find(|row| row.0 == found).map_or(DataType::Fp32, |row| row.1)
}

fn array_type(found: DataType) -> Result<ArrayDataType, EngineError> {
    let none = || {
        let text = format!("a tensor of {}: Core ML has no such arrays", found.wire_name());
        EngineError::argument(text)
    };
    TYPES.into_iter().find(|row| row.1 == found).map(|row| row.0).ok_or_else(none)
}

fn told(fault: CoreMlFault) -> EngineError {
    let kind = match fault.kind {
        CoreMlFaultKind::Argument => EngineErrorKind::Argument,
        CoreMlFaultKind::File => EngineErrorKind::File,
        CoreMlFaultKind::Memory => EngineErrorKind::Memory,
        CoreMlFaultKind::Compile => EngineErrorKind::Compile,
        CoreMlFaultKind::Load => EngineErrorKind::Load,
        CoreMlFaultKind::Predict => EngineErrorKind::Predict,
        CoreMlFaultKind::Plan => EngineErrorKind::Plan,
        _ => EngineErrorKind::Unavailable,
    };
    EngineError::new(kind, fault.text)
}

fn options_of(options: &EngineLoadOptions) -> coreml::CoreMlLoadOptions {
    coreml::CoreMlLoadOptions {
        units: options.units,
        function: options.function.clone(),
        fast_prediction: options.fast_prediction,
        ..coreml::CoreMlLoadOptions::default()
    }
}

/// The first number of this macOS's version.
fn major_version() -> Option<u32> {
    let version = ChipIdentity::detect().ok()?.system.version?;
    version.split('.').next()?.parse().ok()
}

impl CoreMlEngine for CoreMl {
    fn name(&self) -> &'static str {
        "Core ML"
    }

    fn compile(&self, package: &Path, into: &Path) -> Result<(), EngineError> {
        coreml::compile(package, into).map_err(told)
    }

    fn load(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Arc<dyn EngineModel>, EngineError> {
        Ok(Arc::new(LoadedFunction::load(compiled, options)?))
    }

    fn plan(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Vec<EnginePlannedOperator>, EngineError> {
        let found = coreml::plan(compiled, &options_of(options)).map_err(told)?;
        let ours = |row: &coreml::CoreMlPlannedOperator| match &options.function {
            Some(function) => row.function == *function,
            None => true,
        };
        let row = |row: coreml::CoreMlPlannedOperator| EnginePlannedOperator {
            operator: row.operator,
            outputs: row.outputs,
            planned: row.preferred.map(|device| device.to_string()),
            supported: row.supported.iter().map(ToString::to_string).collect(),
            weight: row.weight,
        };
        Ok(found.into_iter().filter(ours).map(row).collect())
    }
}

fn interface(found: &coreml::ModelInterface) -> Result<EngineInterface, EngineError> {
    let all =
        |list: &[coreml::InterfaceFeature]| list.iter().map(feature).collect::<Result<Vec<_>, _>>();
    let inputs = all(&found.inputs)?;
    if let Some(other) = inputs.iter().find(|one| !matches!(one.kind, FeatureType::Array { .. })) {
        let text = format!("input '{}' is no array, which is not taken", other.name);
        return Err(EngineError::new(EngineErrorKind::Load, text));
    }
    Ok(EngineInterface { inputs, outputs: all(&found.outputs)?, states: all(&found.states)? })
}

fn feature(found: &coreml::InterfaceFeature) -> Result<ModelFeature, EngineError> {
    let kind = match &found.kind {
        FeatureKind::Array(array) => FeatureType::Array {
            dtype: element(array.data_type),
            shape: array.shape.clone(),
            shapes: match &array.constraint {
                ShapeConstraint::Fixed => FeatureShapes::Fixed,
                ShapeConstraint::Enumerated(shapes) => FeatureShapes::Enumerated(shapes.clone()),
                ShapeConstraint::Range(ranges) => FeatureShapes::Range(
                    ranges.iter().map(|range| (range.low, range.high)).collect(),
                ),
            },
            default: None,
        },
        FeatureKind::Int64 => FeatureType::Int64,
        FeatureKind::Double => FeatureType::Double,
        FeatureKind::String => FeatureType::Text,
        _ => {
            let text = format!("feature '{}' is no tensor, which is not taken", found.name);
            return Err(EngineError::new(EngineErrorKind::Load, text));
        }
    };
    let name = found.name.clone();
    let optional = found.optional;
    Ok(ModelFeature { name, description: String::new(), kind, optional })
}

fn lost(state: StateNumber) -> EngineError {
    let text = format!("state {state} was lost with a prediction that was forgotten");
    EngineError::new(EngineErrorKind::StateLost, text)
}

/// A state; one prediction at a time has it.
type HeldState = Arc<Mutex<Option<PredictionState>>>;

#[derive(Debug)]
struct LoadedFunction {
    /// One thread asks it at a time; predictions go on beside each other.
    model: Mutex<LoadedModel>,
    interface: EngineInterface,
    /// Surfaces for arrays of FP16, which the Neural Engine reads without a copy; none for other units.
    surfaces: Option<Arc<SurfacePool>>,
    /// True if this macOS predicts while nobody waits.
    asynchronous: bool,
    compiled: PathBuf,
    units: ComputeUnits,
    kept: Arc<FunctionStates>,
}

/// The states of a model's functions.
#[derive(Debug, Default)]
struct FunctionStates {
    states: Mutex<OrderedMap<StateNumber, HeldState>>,
    last: AtomicU64,
}

impl FunctionStates {
    fn state(&self, state: StateNumber) -> Result<HeldState, EngineError> {
        let none = || EngineError::argument(format!("there is no state {state}"));
        locked(&self.states).get(&state).cloned().ok_or_else(none)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An array in a surface of the pool, for the type that surfaces are good for.
fn surface_of(
    surfaces: Option<&SurfacePool>,
    data_type: ArrayDataType,
    shape: &[usize],
) -> Option<MultiArray> {
    let pool = surfaces.filter(|_| data_type == ArrayDataType::Float16)?;
    pool.take(data_type, shape, || MultiArray::on_surface(data_type, shape)).ok()
}

/// An array of a tensor: in a surface, else where the tensor lies.
fn array_of(tensor: &Tensor, surfaces: Option<&SurfacePool>) -> Result<MultiArray, EngineError> {
    let data_type = array_type(tensor.dtype())?;
    let shape = tensor.shape();
    let copied = |mut array: MultiArray| {
        let all = tensor.contiguous().map_err(|error| EngineError::argument(error.to_string()))?;
        let bytes = all.as_bytes().map_err(|error| EngineError::argument(error.to_string()))?;
        array.copy_from(bytes).map_err(told)?;
        Ok(array)
    };
    if let Some(surface) = surface_of(surfaces, data_type, shape) {
        return copied(surface);
    }
    match tensor.memory() {
        Some((memory, offset)) => {
            MultiArray::from_memory(memory, offset, data_type, shape, None).map_err(told)
        }
        None => copied(MultiArray::zeroed(data_type, shape).map_err(told)?),
    }
}

/// The tensor of an array: its memory, where it has one of its own. A surface goes to the pool.
fn tensor_of(array: MultiArray, surfaces: Option<&SurfacePool>) -> Result<Tensor, EngineError> {
    let dtype = element(array.data_type());
    let shape = array.shape().to_vec();
    let made = match array.into_memory() {
        Ok(memory) => Tensor::from_allocation(dtype, &shape, memory, 0),
        Err(array) => {
            let mut bytes = vec![0; array.len_bytes()];
            array.copy_to(&mut bytes).map_err(told)?;
            if let Some(pool) = surfaces {
                pool.give_back(array);
            }
            Tensor::from_bytes(dtype, &shape, &bytes)
        }
    };
    made.map_err(|error| EngineError::new(EngineErrorKind::Predict, error.to_string()))
}

impl LoadedFunction {
    fn load(compiled: &Path, options: &EngineLoadOptions) -> Result<Self, EngineError> {
        let mut wanted = options_of(options);
        let version = major_version();
        // Older systems have no such hint, and refuse it.
        wanted.fast_prediction &= version.is_some_and(|version| version >= 15);
        let model = LoadedModel::load(compiled, &wanted).map_err(told)?;
        let interface = interface(model.describe())?;
        let reaches_engine =
            matches!(options.units, ComputeUnits::All | ComputeUnits::CpuAndNeuralEngine);
        Ok(Self {
            model: Mutex::new(model),
            interface,
            surfaces: reaches_engine.then(Arc::default),
            asynchronous: version.is_some_and(|version| version >= 14),
            compiled: compiled.to_owned(),
            units: options.units,
            kept: Arc::default(),
        })
    }

    /// Arrays for the outputs whose shapes are known beforehand.
    fn backings(&self) -> Vec<(String, MultiArray)> {
        let backing = |feature: &ModelFeature| {
            let shape = check::fixed_shape(feature)?;
            let data_type = array_type(check::element(feature)?).ok()?;
            let surface = surface_of(self.surfaces.as_deref(), data_type, shape);
            // Without a backing Core ML takes memory of its own.
            let array = surface.or_else(|| MultiArray::zeroed(data_type, shape).ok())?;
            Some((feature.name.clone(), array))
        };
        self.interface.outputs.iter().filter_map(backing).collect()
    }

    fn submission(&self, inputs: Vec<NamedTensor>) -> Result<PredictionSubmission, EngineError> {
        let given = check::inputs(&self.interface, inputs)?;
        let mut arrays = Vec::with_capacity(given.len());
        for (tensor, feature) in given.iter().zip(&self.interface.inputs) {
            if let Some(tensor) = tensor {
                arrays.push((feature.name.clone(), array_of(tensor, self.surfaces.as_deref())?));
            }
        }
        Ok(PredictionSubmission { inputs: arrays, backings: self.backings(), state: None })
    }

    /// Predicts on a state and waits, without keeping others from the model.
    fn on_state(
        &self,
        mut submission: PredictionSubmission,
        state: StateNumber,
    ) -> Result<Vec<NamedTensor>, EngineError> {
        let held = self.kept.state(state)?;
        let mut held = locked(&held);
        submission.state = Some(held.take().ok_or_else(|| lost(state))?);
        let (sender, receiver) = mpsc::channel();
        let tell: coreml::SubmissionCallback =
            Box::new(move |completed| drop(sender.send(completed)));
        locked(&self.model).submit(submission, tell);
        let forgotten = |_| EngineError::new(EngineErrorKind::Predict, "it was forgotten");
        let mut completed = receiver.recv().map_err(forgotten)?;
        *held = completed.submission.state.take();
        answer(completed, self.surfaces.as_deref())
    }

    /// Predicts and waits, where the system cannot do otherwise.
    fn at_once(
        &self,
        mut submission: PredictionSubmission,
    ) -> Result<Vec<NamedTensor>, EngineError> {
        let result = {
            let inputs = submission.inputs.iter().map(|(name, array)| (name.as_str(), array));
            let inputs: Vec<(&str, &MultiArray)> = inputs.collect();
            let backings =
                submission.backings.iter_mut().map(|(name, array)| (name.as_str(), array));
            let mut backings: Vec<(&str, &mut MultiArray)> = backings.collect();
            let prediction = Prediction { inputs: &inputs, backings: &mut backings, state: None };
            locked(&self.model).predict(prediction)
        };
        answer(CompletedPrediction { submission, result }, self.surfaces.as_deref())
    }
}

/// The outputs of a prediction that has ended. Its surfaces go to the pool, unless it has failed: then Core ML may
/// still use them.
fn answer(
    completed: CompletedPrediction,
    surfaces: Option<&SurfacePool>,
) -> Result<Vec<NamedTensor>, EngineError> {
    let outputs = completed.result.map_err(told)?;
    if let Some(pool) = surfaces {
        completed.submission.inputs.into_iter().for_each(|(_, array)| pool.give_back(array));
    }
    let mut backings: OrderedMap<String, MultiArray> =
        completed.submission.backings.into_iter().collect();
    let mut all = Vec::new();
    for (name, output) in outputs {
        let tensor = match output {
            PredictionOutput::Backed => match backings.remove(&name) {
                Some(array) => tensor_of(array, surfaces)?,
                None => continue,
            },
            PredictionOutput::Array(array) => tensor_of(array, None)?,
            PredictionOutput::String(text) => Tensor::vector(vec![ByteString::from(text.as_str())]),
            PredictionOutput::Int64(value) => Tensor::vector(vec![value]),
            PredictionOutput::Double(value) => Tensor::vector(vec![value]),
            _ => {
                let text = format!("output '{name}' is no tensor");
                return Err(EngineError::new(EngineErrorKind::Predict, text));
            }
        };
        all.push((name, tensor));
    }
    Ok(all)
}

impl EngineModel for LoadedFunction {
    fn interface(&self) -> &EngineInterface {
        &self.interface
    }

    fn submit(
        &self,
        inputs: Vec<NamedTensor>,
        state: Option<StateNumber>,
        done: PredictionCallback,
    ) {
        let checked = check::state(&self.interface, state);
        match (checked.and_then(|()| self.submission(inputs)), state) {
            (Err(error), _) => done(Err(error)),
            (Ok(submission), Some(state)) => done(self.on_state(submission, state)),
            (Ok(submission), None) if self.asynchronous => {
                let surfaces = self.surfaces.clone();
                let tell: coreml::SubmissionCallback =
                    Box::new(move |completed| done(answer(completed, surfaces.as_deref())));
                locked(&self.model).submit(submission, tell);
            }
            (Ok(submission), None) => done(self.at_once(submission)),
        }
    }

    fn new_state(&self) -> Result<StateNumber, EngineError> {
        let state = locked(&self.model).new_state().map_err(told)?;
        let number = self.kept.last.fetch_add(1, Ordering::Relaxed) + 1;
        locked(&self.kept.states).insert(number, Arc::new(Mutex::new(Some(state))));
        Ok(number)
    }

    fn drop_state(&self, state: StateNumber) {
        locked(&self.kept.states).remove(&state);
    }

    fn copy_state(&self, from: StateNumber, to: StateNumber) -> Result<(), EngineError> {
        if from == to {
            return self.kept.state(from).map(|_| ());
        }
        let source = self.kept.state(from)?;
        let target = self.kept.state(to)?;
        // Whoever copies takes the lower number first, so that two copies do not wait for each other.
        let (first, second) = if from < to { (&source, &target) } else { (&target, &source) };
        let mut first = locked(first);
        let mut second = locked(second);
        let (source, target) = match from < to {
            true => (&*first, &mut *second),
            false => (&*second, &mut *first),
        };
        let source = source.as_ref().ok_or_else(|| lost(from))?;
        target.as_mut().ok_or_else(|| lost(to))?.copy_from(source).map_err(told)
    }

    fn beside(&self, options: &EngineLoadOptions) -> Result<Arc<dyn EngineModel>, EngineError> {
        // A state is made for units.
        let options = EngineLoadOptions { units: self.units, ..options.clone() };
        let mut other = Self::load(&self.compiled, &options)?;
        check::same_states(&self.interface, &other.interface)?;
        other.kept = Arc::clone(&self.kept);
        Ok(Arc::new(other))
    }
}
