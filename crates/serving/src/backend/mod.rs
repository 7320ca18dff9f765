//! The contract between the core and what executes models.
//!
//! A [`ModelBackend`] loads a version folder as a [`BackendModel`]; a model makes [`ModelInstance`]s, each with a thread of its
//! own, which execute [`BatchPayload`]s.

pub mod builtin;
pub mod graph;
mod host;
mod kernel_tuner;
pub mod llm;
pub mod python;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use galatea_llm::embed::EncoderEngine;
use galatea_llm::model::LanguageModel;
use galatea_tensor::OrderedMap;

pub use self::host::{CalledModel, HostLink, LoadOverrides, ModelHost, UnloadDependents};
pub use self::kernel_tuner::{AutoTuning, KernelTuner, KernelTuningPolicy};
use self::llm::ResidentCheckpoint;
use crate::config::inference::ModelInstanceGroup;
use crate::config::{MetalConfig, ModelConfig};
pub use crate::config::{ModelIo, ModelTensor, StateBinding};
use crate::error::ServingError;
pub use crate::payload::{ActiveRequest, BatchPayload, ExecutionContext, ModelAnswer};

/// Arguments of a backend that loads one version of a model.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    /// Model.
    pub name: String,
    /// Version.
    pub version: i64,
    /// Folder of the model.
    pub model_dir: PathBuf,
    /// Folder of the version.
    pub version_dir: PathBuf,
    /// Configuration as it stands on disk, with the file name filled in; inputs and outputs may be missing.
    pub config: Arc<ModelConfig>,
    /// The server's settings for this backend.
    pub settings: OrderedMap<String, String>,
    /// Requests to the devices of the machine.
    pub metal: Arc<MetalConfig>,
    /// Whether the configuration may be completed from the model.
    pub auto_complete: bool,
    /// The server, for models that call others.
    pub host: HostLink,
}

impl ModelFiles {
    /// The configuration's parameter of this name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.config.parameters.get(name).map(|parameter| parameter.string_value.as_str())
    }
}

/// The device that an instance is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementKind {
    /// The processor.
    Cpu,
    /// The GPU of this number.
    Gpu(u32),
    /// The model decides.
    Model,
}

/// Where an instance runs and what it is called.
#[derive(Clone, Debug)]
pub struct InstancePlacement {
    /// Name of the instance.
    pub name: String,
    /// Device.
    pub kind: PlacementKind,
    /// Configuration of the model, completed and checked.
    pub config: Arc<ModelConfig>,
}

/// Loads models of one kind.
pub trait ModelBackend: Send + Sync + Debug {
    /// Name in `backend:` of a configuration.
    fn name(&self) -> &str;

    /// Name in `platform:` of a configuration; empty if the backend has none.
    fn platform(&self) -> &str {
        ""
    }

    /// File in the version folder that holds the model, where the configuration names none.
    fn default_model_filename(&self) -> &str;

    /// Instances that a group has whose configuration gives no number.
    fn default_instance_count(&self, _kind: PlacementKind) -> i32 {
        1
    }

    /// Whether the files of a model, of which none is called as
    /// [`default_model_filename`](Self::default_model_filename) says, are for this backend all the same.
    fn recognises(&self, _model_dir: &Path, _version_dir: Option<&Path>) -> bool {
        false
    }

    /// Whether its models run on units that a [`MetalConfig`] says something to.
    fn takes_metal_config(&self) -> bool {
        false
    }

    /// Whether the core puts requests of its models together, as `batch_size` of a [`MetalConfig`] then says; others
    /// take that field themselves.
    fn has_batches(&self) -> bool {
        true
    }

    /// Whether loading a model runs a program of the model, which may write to the model's folder itself.
    fn runs_programs(&self) -> bool {
        false
    }

    /// Loads a version.
    ///
    /// # Errors
    /// When the files cannot be read, or the configuration asks for what the backend cannot do.
    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError>;
}

/// A checkpoint that is loaded: what front ends ask that speak of texts and tokens.
#[derive(Clone, Debug)]
pub enum CheckpointHandle {
    /// It continues texts.
    Language(Arc<LanguageModel>),
    /// It makes vectors or scores of texts.
    Encoder(Arc<EncoderEngine>),
}

/// Tells how many multiplications and additions the products and convolutions of a model have taken so far.
pub type OperationCounter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Finds out which units the runs of a model had best go to.
#[derive(Clone)]
pub struct BackgroundTuner(Arc<dyn Fn(Duration) -> bool + Send + Sync>);

impl BackgroundTuner {
    /// Function that tunes for at most so long, and says whether there was something to find out.
    pub fn new(find_out: impl Fn(Duration) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(find_out))
    }

    /// Finds out more, for so long at most, at a time when nobody waits; whether there was something to find out.
    #[must_use]
    pub fn tune_placements(&self, limit: Duration) -> bool {
        (self.0)(limit)
    }
}

impl Debug for BackgroundTuner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tending")
    }
}

/// A loaded version of a model.
pub trait BackendModel: Send + Sync {
    /// Inputs and outputs that the model has by itself, to complete and to check the configuration; `None` for models
    /// that take what the configuration says.
    fn io(&self) -> Option<&ModelIo>;

    /// The configuration as the model itself completes it; `None` where it has nothing to say.
    fn completed_config(&self) -> Option<&ModelConfig> {
        None
    }

    /// The labels of outputs that classify, by output, where the model brings them.
    fn labels(&self) -> OrderedMap<String, Vec<String>> {
        OrderedMap::new()
    }

    /// Whether a request has any number of answers, so that the model is decoupled where its configuration says
    /// nothing of it.
    fn answers_freely(&self) -> bool {
        false
    }

    /// Whether it looks itself for required inputs that a request lacks.
    fn sees_missing_inputs(&self) -> bool {
        false
    }

    /// Whether its executions may call models and wait for them, so that it may be called by itself.
    fn calls_others(&self) -> bool {
        false
    }

    /// Whether its instances are made at the same time, because each takes long and little of the processor.
    fn makes_instances_together(&self) -> bool {
        false
    }

    /// The checkpoint that this is, for front ends that speak of prompts and tokens.
    fn checkpoint(&self) -> Option<Arc<ResidentCheckpoint>> {
        None
    }

    /// Counter of its arithmetic; `None` where nothing counts.
    fn operations(&self) -> Option<OperationCounter> {
        None
    }

    /// Tuner that finds the best devices of its runs; `None` where there is no choice. Asked for when all
    /// instances are made.
    fn background_tuner(&self) -> Option<BackgroundTuner> {
        None
    }

    /// Tuner of its kernels, for runs as this completed configuration has them; `None` where they are not to be
    /// measured. Asked for when all instances are made.
    fn kernel_tuner(&self, _config: &ModelConfig) -> Option<Arc<dyn KernelTuner>> {
        None
    }

    /// Whether it can make the instances of these groups, where nothing else of the configuration has changed.
    fn seats_groups(&self, _groups: &[ModelInstanceGroup]) -> bool {
        true
    }

    /// Makes an instance.
    ///
    /// # Errors
    /// When the device or the configuration does not permit it.
    fn instance(
        &self,
        placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError>;
}

/// The way to an instance from other threads than its own, which may wait for something that does not come: the end of
/// what it belongs to.
pub trait ShutdownSignal: Send + Sync {
    /// No more requests come than those that were taken.
    fn drain(&self);

    /// Nobody waits for any answer.
    fn close(&self);
}

/// An executor of a model, on its own thread.
pub trait ModelInstance: Send {
    /// Executes a batch and answers every request of it. Requests that it leaves unanswered, also by panicking, are
    /// answered INTERNAL.
    fn execute(&mut self, payload: BatchPayload);

    /// Whether it can take batches before the one that it executes has ended, to begin them without a pause.
    fn pipelines_batches(&self) -> bool {
        false
    }

    /// Executes like [`execute`](Self::execute) a batch and those behind it: `next` gives the one whose turn is after all
    /// that were taken, if it waits already. Batches are executed one at a time and in their order; the instance says
    /// [when each starts](Payload::mark_started).
    fn execute_in_turn(
        &mut self,
        first: BatchPayload,
        next: &mut dyn FnMut() -> Option<BatchPayload>,
    ) {
        let mut batch = Some(first);
        while let Some(mut payload) = batch.take() {
            payload.mark_started();
            self.execute(payload);
            batch = next();
        }
    }

    /// Whether the time of an execution depends on the sizes of its inputs alone: then short ones may run on the
    /// thread that brings a request. Not so where values decide, or where the instance waits for anything.
    fn time_depends_on_sizes_only(&self) -> bool {
        false
    }

    /// Signal for the model's unload, also while this instance executes; `None` where an execution waits
    /// for nothing that may not come.
    fn leaving(&self) -> Option<Arc<dyn ShutdownSignal>> {
        None
    }
}
