//! Engines that run packages: Core ML on a Mac, the interpreter everywhere, and either of them in a
//! process of its own.
//!
//! An [`CoreMlEngine`] compiles a package and loads it as an [`EngineModel`], whose predictions run
//! concurrently. [`CoreMl`] calls Core ML. [`ProgramInterpreter`] reads the package and runs it on the
//! CPU. [`WorkerEngine`] is either of them in a child process: a crash of Core ML, which several
//! versions of macOS have, then ends the child and not the server. Tensors lie in shared memory;
//! only messages of a few hundred bytes go through the socket.
//!
//! A partition becomes a [`PackageRun`], whose compiled package lies in a [`CompiledCache`].
//! Compiling takes up to minutes. Until the package is loaded and its first results have proved
//! right, a `DeferredExecutable` one serves by a [`StandbyExecutable`]: the executable that the session's other
//! providers make of the partition.

pub(super) mod agree;
mod background;
mod blocks;
mod cache;
mod check;
mod child;
pub(super) mod compared_inputs;
mod connection;
mod core_ml;
pub(super) mod counts;
mod estimated_rows;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod interpreter;
pub(super) mod later_comparison;
mod loss_rate;
mod plain_file;
mod power;
mod records;
mod run;
#[cfg(test)]
#[path = "setting_effects_tests.rs"]
mod setting_effects;
mod standby;
mod surface_pool;
#[cfg(test)]
mod tests;
mod validation_cache;
mod wire;
mod worker;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, mpsc};

use galatea_apple::qos::ThreadQos;
use galatea_formats::coreml::ModelFeature;
use galatea_tensor::Tensor;

pub(super) use background::{DeferredExecutable, ExecutableMaker};
pub use cache::{CompiledCache, CompiledPackage, DEFAULT_LIMIT_BYTES, facts};
pub use check::element;
pub use child::{serve, serve_here};
pub use connection::{WorkerCommand, WorkerLimits};
pub use core_ml::CoreMl;
pub use counts::{EngineCounts, counts, prediction as count_prediction};
pub use galatea_apple::coreml::ComputeUnits;
pub use interpreter::ProgramInterpreter;
#[cfg(apple_doubles)]
pub use interpreter::StatefulInterpreter;
pub(super) use records::TextRecords;
pub use run::{ChosenEngine, EngineHost, PackageRun, chosen, set_host};
pub(super) use run::{EngineChoice, PlanRecorder, records};
pub use standby::StandbyExecutable;
pub(super) use validation_cache::ValidationEntry;
pub use worker::WorkerEngine;

/// A tensor and the feature that it is.
pub type NamedTensor = (String, Tensor);

/// Told once when a prediction has ended, on whatever thread that happens.
pub type PredictionCallback = Box<dyn FnOnce(Result<Vec<NamedTensor>, EngineError>) + Send>;

/// Number of a state of a model.
pub type StateNumber = u64;

/// Something that runs packages.
pub trait CoreMlEngine: Send + Sync + fmt::Debug {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Makes of a package what [`CoreMlEngine::load`] takes, at `into`, where nothing is yet. May take minutes.
    ///
    /// # Errors
    /// Fails when the package cannot be read or is refused, or the place cannot be written.
    fn compile(&self, package: &Path, into: &Path) -> Result<(), EngineError>;

    /// Loads what [`CoreMlEngine::compile`] made. May take minutes the first time on a machine.
    ///
    /// # Errors
    /// Fails when it cannot be read or is refused.
    fn load(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Arc<dyn EngineModel>, EngineError>;

    /// Where each operator of a function means to run.
    ///
    /// # Errors
    /// Fails when the engine has no plans, or refuses this model.
    fn plan(
        &self,
        compiled: &Path,
        options: &EngineLoadOptions,
    ) -> Result<Vec<EnginePlannedOperator>, EngineError>;
}

/// A model in memory. Any number of predictions may be under way at once.
pub trait EngineModel: Send + Sync + fmt::Debug {
    /// Returns its inputs, outputs and states.
    fn interface(&self) -> &EngineInterface;

    /// Starts a prediction and tells `done` when that has ended, also in an error. Predictions on one state
    /// follow each other; in what order those that were not waited for is left open.
    fn submit(
        &self,
        inputs: Vec<NamedTensor>,
        state: Option<StateNumber>,
        done: PredictionCallback,
    );

    /// A state of zeros, which stays until it is dropped.
    ///
    /// # Errors
    /// Fails when the model has no states, or there is no memory for them.
    fn new_state(&self) -> Result<StateNumber, EngineError>;

    /// Lets go of a state; one that is not there is no error.
    fn drop_state(&self, state: StateNumber);

    /// Copies what a state holds to another one of the model, after the predictions on both.
    ///
    /// # Errors
    /// Fails when one of them is not there or was lost, or there is no memory.
    fn copy_state(&self, from: StateNumber, to: StateNumber) -> Result<(), EngineError>;

    /// Loads another function of the same compiled model with the same states. Both functions take
    /// the states of either, which stay for as long as one of the functions does.
    ///
    /// # Errors
    /// Fails like [`CoreMlEngine::load`], and when its states have other names, types or shapes.
    fn beside(&self, options: &EngineLoadOptions) -> Result<Arc<dyn EngineModel>, EngineError>;
}

/// Predicts and waits for the outputs, in the order of [`EngineInterface::outputs`].
///
/// # Errors
/// Fails like the prediction.
pub fn predict(
    model: &dyn EngineModel,
    inputs: Vec<NamedTensor>,
    state: Option<StateNumber>,
) -> Result<Vec<NamedTensor>, EngineError> {
    let (sender, receiver) = mpsc::channel();
    // Nobody waits any more only when this thread is gone.
    let done: PredictionCallback = Box::new(move |result| drop(sender.send(result)));
    model.submit(inputs, state, done);
    let forgotten = || EngineError::new(EngineErrorKind::Predict, "it was forgotten");
    receiver.recv().unwrap_or_else(|_| Err(forgotten()))
}

/// Inputs, outputs and states of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineInterface {
    /// The inputs of a prediction.
    pub inputs: Vec<ModelFeature>,
    /// The outputs of a prediction.
    pub outputs: Vec<ModelFeature>,
    /// The states, which last from one prediction to the next.
    pub states: Vec<ModelFeature>,
}

/// How a model is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLoadOptions {
    /// Which function; the default one where none is named.
    pub function: Option<String>,
    /// The devices that it may run on.
    pub units: ComputeUnits,
    /// Takes longer to load so that predictions are faster.
    pub fast_prediction: bool,
    /// The class of the threads that predict.
    pub qos: ThreadQos,
}

impl Default for EngineLoadOptions {
    fn default() -> Self {
        let units = ComputeUnits::default();
        Self { function: None, units, fast_prediction: false, qos: ThreadQos::Default }
    }
}

/// An operator and where it means to run.
#[derive(Clone, Debug, PartialEq)]
pub struct EnginePlannedOperator {
    /// The operator's name in MIL.
    pub operator: String,
    /// The names of what it gives.
    pub outputs: Vec<String>,
    /// Where it means to run; `None` for what is not run, such as a constant.
    pub planned: Option<String>,
    /// Where it could run.
    pub supported: Vec<String>,
    /// Its share of the whole's cost, from 0 to 1, where that is known.
    pub weight: Option<f64>,
}

/// At what an engine failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineErrorKind {
    /// There is no such engine here.
    Unavailable,
    /// Names, types, shapes or states do not fit the model: the caller's mistake.
    Argument,
    /// A file could not be read or written.
    File,
    /// The package was not compiled.
    Compile,
    /// The model was not loaded.
    Load,
    /// The prediction failed.
    Predict,
    /// There is no plan of the model.
    Plan,
    /// There is no memory.
    Memory,
    /// The worker's process ended before it answered.
    Died,
    /// The worker's process did not answer in time and was ended.
    Hung,
    /// The worker's process ended a short while ago; the next one starts later.
    Resting,
    /// The model has ended so many workers that it is not tried again.
    Refused,
    /// The state was lost with the process that had it.
    StateLost,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    /// At what it failed.
    pub kind: EngineErrorKind,
    /// Message: the fault, its place, and the expected value.
    pub text: String,
}

impl EngineError {
    pub(crate) fn new(kind: EngineErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    fn argument(text: impl Into<String>) -> Self {
        Self::new(EngineErrorKind::Argument, text)
    }

    fn file(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(EngineErrorKind::File, format!("'{}': {error}", path.display()))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for EngineError {}
