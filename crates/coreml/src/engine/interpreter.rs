//! The engine that every machine has: the package is read and runs on the processor.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_formats::coreml::{self, FeatureType, ModelFeature};
use galatea_graph::rewrite::{self, RewriteLevel};
use galatea_graph::{Datum, converted};
use galatea_runtime::{CompileRequest, Executable, ExecutionProvider, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, Tensor};

use super::{
    CoreMlEngine, EngineError, EngineErrorKind, EngineInterface, EngineLoadOptions, EngineModel,
    EnginePlannedOperator, NamedTensor, PredictionCallback, StateNumber, check,
};
use galatea_providers::cpu::{CpuProvider, in_single};

/// Runs packages on the processor, operation by operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramInterpreter;

/// The most files and folders of a package.
const MAX_ENTRIES: usize = 4096;

fn function(path: &Path, name: Option<&str>) -> Result<coreml::CoreMlFunction, EngineError> {
    let failed = |error: &dyn fmt::Display| {
        EngineError::new(EngineErrorKind::Load, format!("'{}': {error}", path.display()))
    };
    let model = coreml::load(path).map_err(|error| failed(&error))?;
    model.function(name).cloned().map_err(|error| failed(&error))
}

impl InterpretedModel {
    pub(super) fn load(compiled: &Path, options: &EngineLoadOptions) -> Result<Self, EngineError> {
        let function = function(compiled, options.function.as_deref())?;
        let failed = |error: &dyn fmt::Display| {
            EngineError::new(EngineErrorKind::Load, format!("'{}': {error}", compiled.display()))
        };
        let coreml::CoreMlFunction { mut graph, inputs, outputs, states, .. } = function;
        // No fusions: what an operation gives is rounded before the next one reads it.
        rewrite::optimise(&mut graph, RewriteLevel::O1).map_err(|error| failed(&error))?;
        in_single(&mut graph).map_err(|error| failed(&error))?;
        let executable = CpuProvider::new()
            .compile(CompileRequest::alone(Arc::new(graph), &SessionOptions::default()));
        let executable = executable.map_err(|error| failed(&error))?;
        let interface = EngineInterface { inputs, outputs, states };
        let compiled = compiled.to_owned();
        Ok(InterpretedModel { interface, executable, compiled, kept: Arc::default() })
    }
}

impl CoreMlEngine for ProgramInterpreter {
    fn name(&self) -> &'static str {
        "interpreter"
    }

    /// Copies the package: the interpreter needs nothing made of it.
    fn compile(&self, package: &Path, into: &Path) -> Result<(), EngineError> {
        let mut waiting: Vec<(PathBuf, PathBuf)> = vec![(package.to_owned(), into.to_owned())];
        let mut seen = 0;
        while let Some((from, to)) = waiting.pop() {
            let failed = |error: std::io::Error| EngineError::file(&from, error);
            seen += 1;
            if seen > MAX_ENTRIES {
                let text = format!("more than {MAX_ENTRIES} files and folders");
                return Err(EngineError::file(package, text));
            }
            if !fs::metadata(&from).map_err(failed)?.is_dir() {
                fs::copy(&from, &to).map_err(failed)?;
                continue;
            }
            fs::create_dir(&to).map_err(|error| EngineError::file(&to, error))?;
            for entry in fs::read_dir(&from).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                waiting.push((entry.path(), to.join(entry.file_name())));
            }
        }
        Ok(())
    }

    fn load(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Arc<dyn EngineModel>, EngineError> {
        Ok(Arc::new(InterpretedModel::load(compiled, options)?))
    }

    /// Every operation on the processor: the interpreter knows nothing else.
    fn plan(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Vec<EnginePlannedOperator>, EngineError> {
        let graph = function(compiled, options.function.as_deref())?.graph;
        let row = |node: &galatea_graph::Node| EnginePlannedOperator {
            operator: node.operator_name(),
            outputs: node
                .outputs
                .iter()
                .flatten()
                .map(|&id| graph.value(id).name.clone())
                .collect(),
            planned: Some("CPU".to_owned()),
            supported: vec!["CPU".to_owned()],
            weight: None,
        };
        Ok(graph.nodes.iter().map(row).collect())
    }
}

/// Tensors of a state by name; one prediction at a time has them.
type InterpreterState = Arc<Mutex<OrderedMap<String, Tensor>>>;

/// The states of a model's functions.
#[derive(Default)]
struct InterpreterStates {
    states: Mutex<OrderedMap<StateNumber, InterpreterState>>,
    last: AtomicU64,
}

pub(super) struct InterpretedModel {
    interface: EngineInterface,
    executable: Box<dyn Executable>,
    compiled: PathBuf,
    kept: Arc<InterpreterStates>,
}

impl fmt::Debug for InterpretedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreted").field("interface", &self.interface).finish_non_exhaustive()
    }
}

/// The tensor of a feature that was left out.
fn left_out(feature: &ModelFeature) -> Result<Tensor, EngineError> {
    let FeatureType::Array { dtype, shape, default: Some(value), .. } = &feature.kind else {
        let name = &feature.name;
        return Err(EngineError::argument(format!(
            "input '{name}' is left out and has no default"
        )));
    };
    let filled = || {
        let elements = galatea_tensor::checked_elements(shape).map_err(|e| e.to_string())?;
        let filled = Tensor::from_vec(shape, vec![*value; elements]).map_err(|e| e.to_string())?;
        converted(&filled, *dtype).map_err(|error| error.to_string())
    };
    filled().map_err(EngineError::argument)
}

/// A state outlives the prediction, whose inputs may be memory that others write to afterwards.
fn own(state: Tensor, lent: &[Tensor]) -> Result<Tensor, EngineError> {
    if !lent.iter().any(|input| input.shares_memory_with(&state)) {
        return Ok(state);
    }
    let copied = || {
        let all = state.contiguous()?;
        Tensor::from_bytes(state.dtype(), state.shape(), all.unaligned_bytes()?)
    };
    let memory = |error| EngineError::new(EngineErrorKind::Memory, format!("a state: {error}"));
    copied().map_err(|error: galatea_tensor::TensorError| memory(error))
}

impl InterpretedModel {
    fn states(&self) -> MutexGuard<'_, OrderedMap<StateNumber, InterpreterState>> {
        self.kept.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, number: StateNumber) -> Result<InterpreterState, EngineError> {
        let none = || EngineError::argument(format!("there is no state {number}"));
        self.states().get(&number).cloned().ok_or_else(none)
    }

    fn run(
        &self,
        given: Vec<NamedTensor>,
        state: Option<StateNumber>,
    ) -> Result<Vec<NamedTensor>, EngineError> {
        let failed = |error: &dyn fmt::Display| {
            EngineError::new(EngineErrorKind::Predict, error.to_string())
        };
        check::state(&self.interface, state)?;
        let given = check::inputs(&self.interface, given)?;
        let mut fed = Vec::with_capacity(given.len() + self.interface.states.len());
        for (tensor, feature) in given.into_iter().zip(&self.interface.inputs) {
            fed.push(tensor.map_or_else(|| left_out(feature), Ok)?);
        }
        let held = match state {
            None => None,
            Some(number) => Some(self.state(number)?),
        };
        let mut held =
            held.as_ref().map(|held| held.lock().unwrap_or_else(PoisonError::into_inner));
        let mut lent = Vec::new();
        if let Some(held) = &mut held {
            lent.clone_from(&fed);
            for feature in &self.interface.states {
                // With one owner it is written in place. A run that fails loses it.
                let lost = || {
                    let text = format!("state '{}' was lost with a run that failed", feature.name);
                    EngineError::new(EngineErrorKind::StateLost, text)
                };
                fed.push(held.remove(&feature.name).ok_or_else(lost)?);
            }
        }
        let fed: Vec<Datum> = fed.into_iter().map(Datum::Tensor).collect();
        let given = self.executable.submit(fed.into()).outputs().map_err(|error| failed(&error))?;
        let given: Result<Vec<Tensor>, _> = given.into_iter().map(Datum::into_tensor).collect();
        let mut given = given.map_err(|error| failed(&error))?;
        if let Some(held) = &mut held {
            let left = given.split_off(self.interface.outputs.len().min(given.len()));
            for (feature, tensor) in self.interface.states.iter().zip(left) {
                held.insert(feature.name.clone(), own(tensor, &lent)?);
            }
        }
        let names = self.interface.outputs.iter().map(|feature| feature.name.clone());
        Ok(names.zip(given).collect())
    }
}

/// Model of the interpreter's whose states the caller has, as the doubles of Core ML have them.
#[cfg(apple_doubles)]
#[derive(Debug)]
pub struct StatefulInterpreter(InterpretedModel);

#[cfg(apple_doubles)]
impl StatefulInterpreter {
    /// Loads what the interpreter compiled.
    ///
    /// # Errors
    /// Fails when the package cannot be read, or cannot be run.
    pub fn load(compiled: &Path, options: &EngineLoadOptions) -> Result<Self, EngineError> {
        InterpretedModel::load(compiled, options).map(Self)
    }

    /// Returns inputs, outputs and states.
    #[must_use]
    pub fn interface(&self) -> &EngineInterface {
        &self.0.interface
    }

    /// Predicts on tensors of the states, which change; on none where the model has none.
    ///
    /// # Errors
    /// Fails when the inputs do not fit, or the program fails.
    pub fn run(
        &self,
        given: Vec<NamedTensor>,
        states: &mut OrderedMap<String, Tensor>,
    ) -> Result<Vec<NamedTensor>, EngineError> {
        if states.is_empty() {
            return self.0.run(given, None);
        }
        let number = self.0.new_state()?;
        let held = self.0.state(number)?;
        *held.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(states);
        let result = self.0.run(given, Some(number));
        *states = std::mem::take(&mut held.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.drop_state(number);
        result
    }
}

impl EngineModel for InterpretedModel {
    fn interface(&self) -> &EngineInterface {
        &self.interface
    }

    fn submit(
        &self,
        inputs: Vec<NamedTensor>,
        state: Option<StateNumber>,
        done: PredictionCallback,
    ) {
        done(self.run(inputs, state));
    }

    fn new_state(&self) -> Result<StateNumber, EngineError> {
        if self.interface.states.is_empty() {
            return Err(EngineError::argument("the model has no states"));
        }
        let zeros = |feature: &ModelFeature| {
            let dtype = check::element(feature).unwrap_or(DataType::Fp16);
            let shape = check::fixed_shape(feature).unwrap_or_default();
            let failed = |error| EngineError::new(EngineErrorKind::Memory, format!("{error}"));
            Ok((feature.name.clone(), Tensor::zeros(dtype, shape).map_err(failed)?))
        };
        let zeros: Result<OrderedMap<_, _>, EngineError> =
            self.interface.states.iter().map(zeros).collect();
        let number = self.kept.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.states().insert(number, Arc::new(Mutex::new(zeros?)));
        Ok(number)
    }

    fn drop_state(&self, state: StateNumber) {
        self.states().remove(&state);
    }

    fn copy_state(&self, from: StateNumber, to: StateNumber) -> Result<(), EngineError> {
        let from = self.state(from)?;
        let to = self.state(to)?;
        if !Arc::ptr_eq(&from, &to) {
            // A run that changes one of them in place takes a copy of its own first.
            let held = from.lock().unwrap_or_else(PoisonError::into_inner).clone();
            *to.lock().unwrap_or_else(PoisonError::into_inner) = held;
        }
        Ok(())
    }

    fn beside(&self, options: &EngineLoadOptions) -> Result<Arc<dyn EngineModel>, EngineError> {
        let mut other = Self::load(&self.compiled, options)?;
        check::same_states(&self.interface, &other.interface)?;
        other.kept = Arc::clone(&self.kept);
        Ok(Arc::new(other))
    }
}
