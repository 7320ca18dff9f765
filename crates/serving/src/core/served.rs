//! Checkpoints that serve, for front ends that speak of texts.

use std::sync::Arc;

use galatea_llm::model::LanguageModel;
use galatea_tensor::OrderedMap;

use super::loaded::LoadedVersion;
use super::{Core, ModelHandle};
use crate::backend::CheckpointHandle;
use crate::backend::llm::{CheckpointTraits, InUse, PromptsJob, TextsJob};
use crate::cancel::CancelToken;
use crate::error::ServingError;
use crate::generate::queue::EventQueue;
use crate::generate::{
    EncodeAnswer, EncodeRequest, GenerateError, GenerateRequest, GenerateStream, MemoryUse,
};
use crate::prepared::PreparedWork;
use crate::request::{InferenceRequest, SinkAnswer};

/// Events that a client has not taken, in bytes; with more the request is taken back.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// A version whose checkpoint is in memory as long as this lives: what texts are made of tokens by, and the way on for
/// them.
#[derive(Clone, Debug)]
pub struct ServedCheckpoint {
    /// Its name, with the namespace before it where repositories are namespaces.
    pub name: String,
    /// Checkpoint that it is.
    pub checkpoint: CheckpointHandle,
    model: ModelHandle,
    in_use: Arc<InUse>,
}

impl ModelHandle {
    /// Checkpoint that the model is, as far as it is known without a look into memory; nothing for other models.
    #[must_use]
    pub fn listed_checkpoint(&self) -> Option<ListedCheckpoint> {
        ListedCheckpoint::of(&*self.in_service().ok()?)
    }

    /// Checkpoint that the model is; nothing for other models. This waits where it is not in memory.
    ///
    /// # Errors
    /// UNAVAILABLE while the machine takes no work, and where the version has left the service; UNAVAILABLE or
    /// INTERNAL where the checkpoint cannot be brought into memory.
    pub fn checkpoint(&self) -> Result<Option<ServedCheckpoint>, ServingError> {
        let core = self.core()?;
        core.check_admission()?;
        let model = self.assigned();
        let mut loaded = model.in_service()?;
        if loaded.checkpoint.as_ref().is_some_and(|resident| resident.is_changed()) {
            core.wait_for_reload(&loaded);
            loaded = model.in_service()?;
        }
        ServedCheckpoint::of(&loaded, &model)
    }

    /// Language model that the version is; nothing for other models. This waits where it is not in memory.
    ///
    /// # Errors
    /// Fails as [`checkpoint`](Self::checkpoint) does.
    pub fn language_model(&self) -> Result<Option<Arc<LanguageModel>>, ServingError> {
        Ok(self.checkpoint()?.and_then(|served| match served.checkpoint {
            CheckpointHandle::Language(model) => Some(model),
            CheckpointHandle::Encoder(_) => None,
        }))
    }
}

impl ServedCheckpoint {
    pub(super) fn of(
        loaded: &LoadedVersion,
        model: &ModelHandle,
    ) -> Result<Option<Self>, ServingError> {
        let Some(resident) = &loaded.checkpoint else { return Ok(None) };
        let (checkpoint, in_use) = resident.ask()?;
        let name = loaded.id.to_string();
        let in_use = Arc::new(in_use);
        Ok(Some(Self { name, checkpoint, model: model.clone(), in_use }))
    }

    /// Handle of the version, by which requests reach it.
    #[must_use]
    pub fn model(&self) -> &ModelHandle {
        &self.model
    }

    /// Lets the language model continue prompts, as a request of the version's queue.
    ///
    /// # Errors
    /// Fails as [`ModelHandle::infer`] does, and for an encoder. What the engine refuses comes with the stream.
    pub fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, ServingError> {
        let CheckpointHandle::Language(model) = &self.checkpoint else {
            let text = format!("model '{}' is an encoder, which writes no texts", self.name);
            return Err(ServingError::invalid_arg(text));
        };
        let GenerateRequest { id, prompts, form, priority, trace, token_meter } = request;
        let events = EventQueue::new(MAX_WAITING_BYTES);
        let open = prompts.len();
        let job = PromptsJob {
            model: Arc::clone(model),
            in_use: Arc::clone(&self.in_use),
            prompts,
            form,
            events: Arc::clone(&events),
        };
        let prepared = PreparedWork::new(open, Box::new(job));
        let request =
            InferenceRequest { id, priority, trace, prepared, token_meter, ..Default::default() };
        let cancel = self.begin(request, &events)?;
        let _model = Arc::clone(model);
        let _in_use: Arc<dyn MemoryUse> = Arc::<InUse>::clone(&self.in_use);
        Ok(GenerateStream { events, cancel, open, _model, _in_use })
    }

    /// Lets the encoder compute texts, as a request of the version's queue.
    ///
    /// # Errors
    /// Fails as [`ModelHandle::infer`] does, and for a language model. What the engine refuses comes with the answer.
    pub fn encode(&self, request: EncodeRequest) -> Result<EncodeAnswer, ServingError> {
        let CheckpointHandle::Encoder(engine) = &self.checkpoint else {
            let text = format!("model '{}' writes texts, and encodes none", self.name);
            return Err(ServingError::invalid_arg(text));
        };
        let EncodeRequest { id, texts, priority, trace, token_meter } = request;
        let results = EventQueue::new(MAX_WAITING_BYTES);
        let items = texts.len();
        let job = TextsJob {
            engine: Arc::clone(engine),
            in_use: Arc::clone(&self.in_use),
            texts,
            results: Arc::clone(&results),
        };
        let prepared = PreparedWork::new(items, Box::new(job));
        let request =
            InferenceRequest { id, priority, trace, prepared, token_meter, ..Default::default() };
        let cancel = self.begin(request, &results)?;
        let _engine = Arc::clone(engine);
        let _in_use: Arc<dyn MemoryUse> = Arc::<InUse>::clone(&self.in_use);
        Ok(EncodeAnswer { results, cancel, _engine, _in_use })
    }

    /// Hands a request to the version, and why it does not come as far as the engine to its reader. Returns the token
    /// that takes the request back.
    fn begin<T: Send + 'static>(
        &self,
        request: InferenceRequest,
        reader: &Arc<EventQueue<Result<T, GenerateError>>>,
    ) -> Result<CancelToken, ServingError> {
        let cancel = request.cancel.clone();
        let reader = Arc::clone(reader);
        let sink = move |answer: SinkAnswer| {
            if let Err(error) = answer.result {
                reader.push_refusal(Err(GenerateError::Serving(error)));
            }
        };
        self.model.infer(request, Box::new(sink))?;
        Ok(cancel)
    }
}

/// A checkpoint as it is told of, in memory or not.
#[derive(Clone, Debug)]
pub struct ListedCheckpoint {
    /// Its name, with the namespace before it where repositories are namespaces.
    pub name: String,
    /// Checkpoint that it is.
    pub traits: CheckpointTraits,
    /// It, where it is in memory. It may leave that at any time.
    pub loaded: Option<CheckpointHandle>,
    /// Bytes that it takes there, where memory is limited.
    pub memory_bytes: Option<u64>,
}

impl ListedCheckpoint {
    pub(super) fn of(loaded: &LoadedVersion) -> Option<Self> {
        let resident = loaded.checkpoint.as_ref()?;
        Some(Self {
            name: loaded.id.to_string(),
            traits: resident.traits()?,
            loaded: resident.loaded(),
            memory_bytes: resident.is_limited().then(|| resident.memory_bytes()),
        })
    }
}

impl Core {
    /// The checkpoints that serve, of each the latest version, by name.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<ListedCheckpoint> {
        let mut found = OrderedMap::new();
        // Versions come in their order.
        for listed in self.models().all_ready().filter_map(|loaded| ListedCheckpoint::of(loaded)) {
            found.insert(listed.name.clone(), listed);
        }
        found.into_values().collect()
    }

    /// The names of the models that serve, with their namespaces before them where repositories are namespaces.
    #[must_use]
    pub fn ready_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.models().all_ready().map(|loaded| loaded.id.to_string()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The language models that serve and are in memory, of each the latest version, by name.
    #[must_use]
    pub fn language_models(&self) -> Vec<(String, Arc<LanguageModel>)> {
        let language = |listed: ListedCheckpoint| match listed.loaded {
            Some(CheckpointHandle::Language(model)) => Some((listed.name, model)),
            Some(CheckpointHandle::Encoder(_)) | None => None,
        };
        self.checkpoints().into_iter().filter_map(language).collect()
    }
}
