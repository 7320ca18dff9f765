//! `python`: models written for Triton's Python backend, each instance in a process of its own.
//!
//! A model is a file with a class `TritonPythonModel`, whose `execute` gets requests and gives responses. It imports
//! `triton_python_backend_utils`, which is written anew in `python/backend`, is part of the program and lies in a
//! folder of this process while models are loaded ([`folder`]).
//!
//! **Processes.** An instance starts `python3 -u galatea_worker.py` with one end of a socket as its standard input, and
//! hands it another one for what it says ([`worker`]); what the process prints goes to the server's log with the
//! model's name. The process says first that it runs, is told which file to load, with what `initialize` needs, and
//! says that the model is ready or what it raised. `auto_complete_config` runs in a process that ends right after it. A
//! process that ends, or takes longer than an execution may, fails the requests that it had and no others; a thread for
//! each instance ([`supervisor`]) waits for that and starts the next one. What the process has started ends with it
//! ([`galatea_runtime::worker`]). Where the server is killed, a thread of the worker sees it, and what is left is removed by the next
//! server ([`stale_resources`]).
//!
//! **Messages** ([`wire`]) are binary, one for a batch and one for its answers. The thread of an instance writes one and
//! reads the other itself; in the worker the thread that executes reads the socket. Only models that answer freely
//! (decoupled ones and iterative sequences) have a thread here that listens, as their answers come at any time.
//!
//! **Tensors** up to [`wire::SMALL_BYTES`] lie in the message: for these two copies by the system are less work than
//! agreeing on memory. Larger ones lie in blocks of shared memory ([`blocks`]), of which each side makes those that it
//! writes: an input is copied into one and the model sees an array over it; an output is copied into another, and the
//! response reads it there. An output that lies in the inputs' block is not copied, unless the model still has views of
//! that block: nobody may write to what is read here. One page of flags says who has which block: the worker clears
//! that of an input block when Python counts no more references to its bytes, which it looks at after each execution
//! and each last response, so a model may keep requests and arrays for as long as it likes; the server clears that of
//! an output block when the last tensor over it has gone. Blocks are used again; those that are free and too small go.
//! The page also says which clients have gone, so that `is_cancelled` costs no message.
//!
//! Strings cross with their lengths before them and become Python objects only when `as_numpy` is called.
//!
//! **Environments** ([`environment`]) that models bring are folders, or archives ([`archive`]) that are unpacked once into
//! the backend's folder for all models that name them.
//!
//! **Calls** of models to the server and to other models go through a socket of their own ([`bls`], [`bls_request`]), as
//! they may come at any time.

mod archive;
mod archive_bounds;
mod blocks;
mod bls;
mod bls_callee;
mod bls_request;
mod bls_socket;
mod control;
mod environment;
mod folder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod instance;
mod load_waits;
mod metrics;
mod own_files;
mod plain;
mod pytorch;
mod request;
mod response;
mod settings;
mod stale_resources;
mod supervisor;
mod tensorflow;
mod wire;
mod worker;
mod worker_metrics;
mod worker_outbox;
mod worker_process;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_tensor::read_plain_file;

use self::bls_callee::BlsCallee;
use self::environment::PythonEnvironments;
use self::folder::BackendFolder;
use self::instance::FreeInstance;
use self::load_waits::ModelLoadWaits;
use self::plain::PlainInstance;
pub use self::pytorch::PytorchBackend;
use self::settings::WorkerSettings;
use self::stale_resources::ServerFolder;
pub use self::tensorflow::TensorflowBackend;
use self::worker::WorkerStart;

use super::{
    BackendModel, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
    PlacementKind,
};
use crate::config::inference::ModelSequenceBatching;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::{self, InstanceDefaults, ModelConfig};
use crate::error::ServingError;

/// Name of the backend of torch files in `backend:` of a configuration.
const PYTORCH: &str = "pytorch";

/// Name in `backend:` of a configuration.
const TENSORFLOW: &str = "tensorflow";

/// The function of a model that completes its configuration.
const COMPLETES: &str = "auto_complete_config";

/// The class of a model's file.
const MODEL_CLASS: &str = "TritonPythonModel";

/// Locks a mutex. Nobody panics in the middle of a change.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State that all Python models share.
#[derive(Debug, Default)]
struct PythonShared {
    folder: BackendFolder,
    environments: PythonEnvironments,
    loads: Arc<ModelLoadWaits>,
}

impl PythonShared {
    fn home(&self) -> Result<Arc<ServerFolder>, ServingError> {
        self.folder.get().map_err(|error| {
            ServingError::internal(format!(
                "the files of the Python backend cannot be written: {error}"
            ))
        })
    }
}

/// Loads models written in Python.
#[derive(Debug, Default)]
pub struct PythonBackend {
    shared: PythonShared,
}

impl ModelBackend for PythonBackend {
    fn runs_programs(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "python"
    }

    fn default_model_filename(&self) -> &'static str {
        "model.py"
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let filename = match files.config.default_model_filename.as_str() {
            "" => self.default_model_filename(),
            given => given,
        };
        let path = files.version_dir.join(filename);
        let text = read_plain_file(&path).map_err(|error| {
            let path = path.display();
            let model = &files.name;
            ServingError::unavailable(format!(
                "unable to read '{path}' of model '{model}': {error}"
            ))
        })?;
        let home = self.shared.home()?;
        let settings = WorkerSettings::of(files, &home, &self.shared.environments)?;
        let callee = BlsCallee::new(&files.name, &files.host, &self.shared.loads);
        let made = WorkerRecipe { files: files.clone(), settings, path, home, callee, data: None };
        // Others are spared the process.
        let completes = may_complete(&String::from_utf8_lossy(&text));
        let completed = match files.auto_complete && completes {
            true => completed(&made)?,
            false => None,
        };
        if completed.is_none() && files.config.input.is_empty() && files.config.output.is_empty() {
            let model = &files.name;
            tracing::warn!(
                "model '{model}' has neither inputs nor outputs, so it refuses every request: name them in config.pbtxt, or \
                 in a function auto_complete_config of {filename}"
            );
        }
        Ok(Box::new(PythonModel { made: Arc::new(made), completed, io: None }))
    }
}

/// Whether the class of a model's file may complete configurations: the file names the function, or something in it but
/// a plain definition makes the class, such as an import, a base class or a decorator.
fn may_complete(text: &str) -> bool {
    if text.contains(COMPLETES) {
        return true;
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut plain = 0;
    let mut before = "";
    for line in lines.by_ref() {
        let of_class = line.strip_prefix("class ").map(str::trim_start);
        let rest = of_class.and_then(|rest| rest.strip_prefix(MODEL_CLASS)).map(str::trim_start);
        let bases = rest.and_then(|rest| rest.split(':').next()).map(str::trim_end);
        match bases {
            Some("" | "()" | "(object)") if !before.starts_with('@') => plain += 1,
            _ if line.contains(MODEL_CLASS) => return true,
            _ => {}
        }
        before = line;
    }
    plain != 1
}

/// Recipe of a model's workers.
#[derive(Debug)]
struct WorkerRecipe {
    files: ModelFiles,
    settings: WorkerSettings,
    path: PathBuf,
    home: Arc<ServerFolder>,
    callee: Arc<BlsCallee>,
    /// The file that the model runs, where it is part of the program.
    data: Option<PathBuf>,
}

impl WorkerRecipe {
    fn start(&self) -> WorkerStart<'_> {
        WorkerStart {
            model: &self.files.name,
            settings: &self.settings,
            home: &self.home,
            path: &self.path,
            callee: &self.callee,
            data: self.data.as_deref(),
        }
    }
}

/// The configuration as the model completes it, which sees it with the defaults that fields have. As in Triton, what
/// else it changes stays as it was.
fn completed(made: &WorkerRecipe) -> Result<Option<ModelConfig>, ServingError> {
    let mut config = (*made.files.config).clone();
    let mut given = config.clone();
    config::normalise(&mut given);
    let defaults = InstanceDefaults { gpus: 0, cpu_count: 1, gpu_count: 1 };
    config::normalise_instances(&mut given, defaults);
    let given = config::to_json(&given).to_string();
    let Some(json) = made.start().complete(&given)? else { return Ok(None) };
    let completed = config::from_json(&json)?;
    if completed.name != config.name {
        return Err(ServingError::invalid_arg(format!(
            "{COMPLETES} of model '{}' gives the name '{}'",
            config.name, completed.name
        )));
    }
    config.max_batch_size = completed.max_batch_size;
    config.input = completed.input;
    config.output = completed.output;
    config.model_transaction_policy = completed.model_transaction_policy;
    config.scheduling_choice = config.scheduling_choice.or(completed.scheduling_choice);
    Ok(Some(config))
}

struct PythonModel {
    made: Arc<WorkerRecipe>,
    completed: Option<ModelConfig>,
    /// Interface of the file that the model runs, where the file has one.
    io: Option<ModelIo>,
}

impl BackendModel for PythonModel {
    fn io(&self) -> Option<&ModelIo> {
        self.io.as_ref()
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn sees_missing_inputs(&self) -> bool {
        true
    }

    fn makes_instances_together(&self) -> bool {
        true
    }

    fn completed_config(&self) -> Option<&ModelConfig> {
        self.completed.as_ref()
    }

    fn instance(
        &self,
        placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        let made = &self.made;
        let name = placement.name.as_str();
        let config = &placement.config;
        let (kind, device) = match placement.kind {
            PlacementKind::Cpu => ("CPU", 0),
            PlacementKind::Gpu(number) => ("GPU", number),
            PlacementKind::Model => ("MODEL", 0),
        };
        let mut args = serde_json::json!({
            "model_config": config::to_json(config).to_string(),
            "model_instance_kind": kind,
            "model_instance_name": name,
            "model_instance_device_id": device.to_string(),
            "model_repository": made.files.model_dir,
            "model_version": made.files.version.to_string(),
            "model_name": made.files.name,
        });
        if let (Some(data), Some(args)) = (&made.data, args.as_object_mut()) {
            args.insert("model_file".to_owned(), serde_json::json!(data));
        }
        let freely = answers_freely(config);
        let states = has_states(config);
        if states && (freely || made.data.is_some()) {
            return Err(ServingError::unsupported(format!(
                "model '{}': the server keeps states for models in Python whose requests have one answer each; decoupled \
                 and iterative ones, and files of a framework, keep theirs themselves",
                config.name
            )));
        }
        if freely {
            return Ok(Box::new(FreeInstance::new(made, name, args)?));
        }
        Ok(Box::new(PlainInstance::new(made, name, args, states)?))
    }
}

/// Whether requests are answered apart from their batch.
fn answers_freely(config: &ModelConfig) -> bool {
    let decoupled = config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled);
    decoupled || batching(config).is_some_and(|batching| batching.iterative_sequence)
}

/// Whether the server keeps states of sequences.
fn has_states(config: &ModelConfig) -> bool {
    batching(config).is_some_and(|batching| !batching.state.is_empty())
}

fn batching(config: &ModelConfig) -> Option<&ModelSequenceBatching> {
    match &config.scheduling_choice {
        Some(SchedulingChoice::SequenceBatching(batching)) => Some(batching),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_spared_where_a_plain_class_has_no_such_function() {
        for text in [
            "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n",
            "import x\n# auto-completion of TritonPythonModel\nclass  TritonPythonModel (object) : # m\n  pass",
            "class TritonPythonModel():\n    pass",
        ] {
            assert!(!may_complete(text), "{text}");
        }
        for text in [
            "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config): ...",
            "from shared import TritonPythonModel",
            "from shared import *",
            "from shared import Base\nclass TritonPythonModel(Base):\n    pass",
            "TritonPythonModel = make()",
            "@completing\nclass TritonPythonModel:\n    pass",
            "class TritonPythonModel:\n    pass\nsetattr(TritonPythonModel, name(), f)",
            "",
        ] {
            assert!(may_complete(text), "{text}");
        }
    }
}
