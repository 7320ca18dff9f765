//! Backends for language models: `llm` (also called `galatea_llm`) and `vllm`, whose models Triton's users have.
//!
//! A model is decoupled. Inputs and outputs are those of Triton's vLLM backend ([`request`] and [`reply`] read and
//! write them). A checkpoint may also be an encoder, whose tensors [`encoder`] has. The front ends that speak OpenAI's
//! protocol do not come this way: they take the [`Checkpoint`] itself from [`crate::Core::checkpoint`].

mod arguments;
mod checkpoint;
mod encoder;
mod reply;
mod request;

use std::path::Path;
use std::sync::Arc;

use galatea_llm::model::LanguageModel;
use galatea_llm::{Error as ModelError, Kind};
use galatea_tensor::DataType;

use super::{
    ActiveRequest, Backend, Checkpoint, Model, ModelFiles, ModelInstance, ModelIo, ModelTensor,
    Payload, Placement,
};
use crate::error::{Code, Error};
pub use arguments::EngineArguments;
pub use checkpoint::{is_checkpoint, model_name, one as one_checkpoint};
use encoder::EncoderModel;
use reply::Reply;

/// Loads the checkpoint of a folder or file: a language model or an encoder.
pub type LoadModel =
    Arc<dyn Fn(&Path, &EngineArguments) -> Result<Checkpoint, ModelError> + Send + Sync>;

/// Where a backend finds the checkpoint of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The files of the version or the model are the checkpoint.
    Here,
    /// `model.json` in the version folder names it.
    Named,
}

/// A backend for language models.
#[derive(Clone)]
pub struct LlmBackend {
    name: &'static str,
    found: Found,
    load: LoadModel,
}

impl LlmBackend {
    /// The backends, under all their names, on one way to load checkpoints.
    #[must_use]
    pub fn all(load: &LoadModel) -> Vec<Arc<dyn Backend>> {
        [("llm", Found::Here), ("galatea_llm", Found::Here), ("vllm", Found::Named)]
            .map(|(name, found)| -> Arc<dyn Backend> {
                Arc::new(Self { name, found, load: Arc::clone(load) })
            })
            .into()
    }
}

impl std::fmt::Debug for LlmBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmBackend").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Backend for LlmBackend {
    fn name(&self) -> &str {
        self.name
    }

    fn default_model_filename(&self) -> &'static str {
        match self.found {
            Found::Here => "config.json",
            Found::Named => "model.json",
        }
    }

    fn recognises(&self, model_dir: &Path, version_dir: Option<&Path>) -> bool {
        let here = version_dir.is_some_and(is_checkpoint) || is_checkpoint(model_dir);
        self.found == Found::Here && here
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn Model>, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::internal(format!("failed to load model '{}': {error}", files.name))
        };
        let mut arguments = EngineArguments::default();
        let path = match self.found {
            Found::Here => checkpoint::find(files)?,
            Found::Named => {
                let path = files.version_dir.join(&files.config.default_model_filename);
                let model;
                (model, arguments) = arguments::read(&path, &files.name)?;
                checkpoint::named(files, &model)?
            }
        };
        arguments.take_parameters(files)?;
        match (self.load)(&path, &arguments).map_err(|error| failed(&error))? {
            Checkpoint::Language(model) => Ok(Box::new(LlmModel { model, io: io() })),
            Checkpoint::Encoder(engine) => Ok(Box::new(EncoderModel::new(engine))),
        }
    }
}

/// Inputs and outputs of Triton's vLLM backend.
fn io() -> ModelIo {
    let tensor = |&(name, datatype, dim): &(&str, DataType, i64), optional| ModelTensor {
        name: name.to_owned(),
        datatype,
        dims: vec![dim],
        ranked: true,
        optional,
    };
    ModelIo {
        inputs: request::INPUTS
            .iter()
            .map(|input| tensor(&(input.0, input.1, 1), input.0 != request::TEXT))
            .collect(),
        outputs: reply::OUTPUTS.iter().map(|output| tensor(output, false)).collect(),
    }
}

struct LlmModel {
    model: Arc<LanguageModel>,
    io: ModelIo,
}

impl Model for LlmModel {
    fn io(&self) -> Option<&ModelIo> {
        Some(&self.io)
    }

    fn answers_freely(&self) -> bool {
        true
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        Some(Checkpoint::Language(Arc::clone(&self.model)))
    }

    fn instance(&self, _placement: &Placement) -> Result<Box<dyn ModelInstance>, Error> {
        Ok(Box::new(LlmInstance { model: Arc::clone(&self.model) }))
    }
}

struct LlmInstance {
    model: Arc<LanguageModel>,
}

impl ModelInstance for LlmInstance {
    fn execute(&mut self, payload: Payload) {
        for request in payload.detach() {
            self.start(request);
        }
    }
}

impl LlmInstance {
    /// Hands a request to the engine, whose thread answers it.
    fn start(&self, request: ActiveRequest) {
        let prepared = request::read(&request).and_then(|asked| asked.prepare(&self.model));
        let (asked, generation) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return request.finish_with(Err(error)),
        };
        let cancel = request.request.cancel.clone();
        let tokens = generation.prompt.len();
        let mut reply = Reply::new(request, asked, tokens, Arc::clone(self.model.tokenizer()));
        let (engine, waiting) = (self.model.engine(), reply.handle());
        match engine.submit(generation, Box::new(move |event| reply.take(event))) {
            // The token lives as long as the request, and holds the ticket no longer.
            Ok(ticket) => cancel.on_cancel(move || drop(ticket)),
            Err(error) => waiting.refuse(of_model(&error)),
        }
    }
}

/// An error of the model as the core has it.
fn of_model(error: &ModelError) -> Error {
    let code = match error.kind() {
        Kind::Parameter | Kind::Grammar | Kind::Tokenizer | Kind::Template => Code::InvalidArg,
        Kind::Overloaded | Kind::Unavailable => Code::Unavailable,
        _ => Code::Internal,
    };
    Error::new(code, error.to_string())
}
