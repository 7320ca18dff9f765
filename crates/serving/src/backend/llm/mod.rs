//! Backends for language models: `llm` (also called `galatea_llm`) and `vllm`, whose models Triton's users have.
//!
//! A model is decoupled. Inputs and outputs are those of Triton's vLLM backend ([`language`]). A checkpoint may also be
//! an encoder, whose tensors [`encoder`] has. Front ends that speak of texts bring prepared prompts in the place of
//! tensors ([`crate::generate`]). Both meet in [`prompts`], which hands them to the engine. Which checkpoints are in
//! memory is up to [`ModelMemory`].

mod arguments;
mod checkpoint;
mod encoder;
mod kernels;
mod language;
mod metal;
mod prompts;
mod reply;
mod request;
mod residency;

use std::path::Path;
use std::sync::Arc;

use galatea_llm::{LlmError as ModelError, LlmErrorKind};

use super::graph::metal::{FieldAccount, no_tuning_fields, tuning_fields, tuning_policy};
use super::{
    ActiveRequest, BackendModel, BatchPayload, CheckpointHandle, HostLink, InstancePlacement,
    KernelTuner, KernelTuningPolicy, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
pub use crate::checkpoint_files::{is_checkpoint, model_name};
use crate::config::ModelConfig;
use crate::error::{ErrorCode, ServingError};
use crate::prepared::PreparedJob;
pub use arguments::EngineArguments;
pub use checkpoint::one as one_checkpoint;
pub(crate) use encoder::TextsJob;
use kernels::CheckpointKernelTuner;
pub use metal::{CheckpointForm, metal_arguments, metal_options};
pub(crate) use prompts::PromptsJob;
pub use residency::{CheckpointTraits, InUse, ModelMemory, ResidentCheckpoint};

/// Loads the checkpoint of a folder or file for the model of that name: a language model or an encoder.
pub type LoadModel = Arc<
    dyn Fn(&str, &Path, &EngineArguments) -> Result<CheckpointHandle, ModelError> + Send + Sync,
>;

/// File of the vLLM backend that names a checkpoint and gives the arguments of its engine.
const NAMED: &str = "model.json";

/// Where a backend finds the checkpoint of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoundLlm {
    /// The files of the version or the model are the checkpoint; a `model.json` beside them gives arguments only.
    Here,
    /// `model.json` in the version folder names it.
    Named,
}

/// A backend for language models.
#[derive(Clone)]
pub struct LlmBackend {
    name: &'static str,
    found: FoundLlm,
    load: LoadModel,
    residency: Arc<ModelMemory>,
    tuning: KernelTuningPolicy,
}

impl LlmBackend {
    /// The backends, under all their names, on one way to load checkpoints and with all the memory that there is.
    #[must_use]
    pub fn all(load: &LoadModel) -> Vec<Arc<dyn ModelBackend>> {
        Self::within(load, &ModelMemory::new(None), KernelTuningPolicy::default())
    }

    /// Makes the backends of [`LlmBackend::all`], with the memory that the models share and the policy on tuning their
    /// kernels.
    #[must_use]
    pub fn within(
        load: &LoadModel,
        residency: &Arc<ModelMemory>,
        tuning: KernelTuningPolicy,
    ) -> Vec<Arc<dyn ModelBackend>> {
        [("llm", FoundLlm::Here), ("galatea_llm", FoundLlm::Here), ("vllm", FoundLlm::Named)]
            .map(|(name, found)| -> Arc<dyn ModelBackend> {
                let load = Arc::clone(load);
                let residency = Arc::clone(residency);
                Arc::new(Self { name, found, load, residency, tuning })
            })
            .into()
    }
}

impl LlmBackend {
    /// Policy on tuning a checkpoint's kernels; `None` where they are not to be measured. What acts and what does not is
    /// said in the log.
    fn kernel_policy(
        &self,
        loaded: &CheckpointHandle,
        files: &ModelFiles,
    ) -> Option<KernelTuningPolicy> {
        let metal = &files.metal;
        let mut account = FieldAccount::default();
        let tunable = match loaded {
            CheckpointHandle::Language(model) => model.tuner().is_some(),
            CheckpointHandle::Encoder(_) => true,
        };
        match tunable {
            true => tuning_fields(metal, &self.tuning, &mut account),
            false => {
                let why = "but kernels of chunks and of encoder-decoders are not measured";
                no_tuning_fields(metal, why, &mut account);
            }
        }
        account.log(&files.name);
        let enabled = metal.switch("enable_auto_tuning").map(|(_, enabled)| enabled);
        let measures = tunable && self.tuning.models.measures(enabled);
        measures.then(|| tuning_policy(&self.tuning, metal))
    }
}

impl std::fmt::Debug for LlmBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmBackend").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ModelBackend for LlmBackend {
    fn name(&self) -> &str {
        self.name
    }

    fn default_model_filename(&self) -> &'static str {
        match self.found {
            FoundLlm::Here => "config.json",
            FoundLlm::Named => NAMED,
        }
    }

    fn takes_metal_config(&self) -> bool {
        true
    }

    fn has_batches(&self) -> bool {
        false
    }

    fn recognises(&self, model_dir: &Path, version_dir: Option<&Path>) -> bool {
        let here = version_dir.is_some_and(is_checkpoint) || is_checkpoint(model_dir);
        self.found == FoundLlm::Here && here
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let name = files.name.clone();
        let failed = move |error: &dyn std::fmt::Display| {
            ServingError::internal(format!("failed to load model '{name}': {error}"))
        };
        let mut arguments;
        let path = match self.found {
            FoundLlm::Here => {
                arguments = arguments::beside(&files.version_dir.join(NAMED), &files.name)?;
                checkpoint::find(files)?
            }
            FoundLlm::Named => {
                let path = files.version_dir.join(&files.config.default_model_filename);
                let model;
                (model, arguments) = arguments::read(&path, &files.name)?;
                checkpoint::named(files, &model)?
            }
        };
        arguments.take_parameters(files)?;
        arguments.find_template(files);
        arguments.metal.clone_from(&*files.metal);
        let bytes = checkpoint::file_bytes(&path);
        let load = Arc::clone(&self.load);
        let model = files.name.clone();
        let load =
            Box::new(move || load(&model, &path, &arguments).map_err(|error| failed(&error)));
        let (resident, loaded) =
            ResidentCheckpoint::load(&self.residency, &files.name, bytes, load)?;
        let tuning = self.kernel_policy(&loaded, files);
        let io = match loaded {
            CheckpointHandle::Language(_) => language::io(),
            CheckpointHandle::Encoder(engine) => encoder::io(&engine),
        };
        let host = files.host.clone();
        Ok(Box::new(CheckpointModel { resident, io, tuning, host }))
    }
}

/// A checkpoint as a model of the core.
struct CheckpointModel {
    resident: Arc<ResidentCheckpoint>,
    io: ModelIo,
    /// Policy on tuning its kernels, where they are to be measured.
    tuning: Option<KernelTuningPolicy>,
    host: HostLink,
}

impl BackendModel for CheckpointModel {
    fn io(&self) -> Option<&ModelIo> {
        Some(&self.io)
    }

    fn answers_freely(&self) -> bool {
        self.resident.traits().is_some_and(|traits| traits.writes)
    }

    fn checkpoint(&self) -> Option<Arc<ResidentCheckpoint>> {
        Some(Arc::clone(&self.resident))
    }

    fn kernel_tuner(&self, _config: &ModelConfig) -> Option<Arc<dyn KernelTuner>> {
        let policy = self.tuning?;
        Some(Arc::new(CheckpointKernelTuner::new(&self.resident, policy)))
    }

    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        let resident = Arc::clone(&self.resident);
        Ok(Box::new(CheckpointInstance { resident, host: self.host.clone() }))
    }
}

/// Hands requests to an engine. Where the checkpoint is not in memory the thread waits for that, and what comes
/// meanwhile waits for the thread.
struct CheckpointInstance {
    resident: Arc<ResidentCheckpoint>,
    /// The server, which loads the checkpoint again when its files change.
    host: HostLink,
}

impl ModelInstance for CheckpointInstance {
    fn execute(&mut self, payload: BatchPayload) {
        // Work that a front end has prepared belongs to this checkpoint; its steps fail.
        let prepared = |one: &ActiveRequest| one.request.prepared.items().is_some();
        if self.resident.is_changed() && !payload.requests().iter().any(prepared) {
            return self.host.hand_on(payload);
        }
        for request in payload.detach() {
            // Whoever has prepared the work holds the checkpoint.
            if let Some(job) = request.request.prepared.take() {
                start_prepared(job, request);
                continue;
            }
            match self.resident.ask() {
                Ok((CheckpointHandle::Language(model), in_use)) => {
                    language::start(&model, Arc::new(in_use), request);
                }
                Ok((CheckpointHandle::Encoder(engine), in_use)) => {
                    encoder::start(&engine, Arc::new(in_use), request);
                }
                Err(error) => request.finish_with(Err(error)),
            }
        }
    }
}

/// Begins work that a front end has prepared.
fn start_prepared(job: PreparedJob, request: ActiveRequest) {
    let job = match job.downcast::<PromptsJob>() {
        Ok(prompts) => return prompts.start(request),
        Err(job) => job,
    };
    match job.downcast::<TextsJob>() {
        Ok(texts) => texts.start(request),
        Err(_) => {
            let text = "prepared work of a kind that checkpoints do not know";
            request.finish_with(Err(ServingError::internal(text)));
        }
    }
}

/// An error of the model as the core has it.
fn of_model(error: &ModelError) -> ServingError {
    let code = match error.kind() {
        LlmErrorKind::Parameter
        | LlmErrorKind::Grammar
        | LlmErrorKind::Tokenizer
        | LlmErrorKind::Template => ErrorCode::InvalidArg,
        LlmErrorKind::Overloaded | LlmErrorKind::Unavailable => ErrorCode::Unavailable,
        _ => ErrorCode::Internal,
    };
    ServingError::new(code, error.to_string())
}
