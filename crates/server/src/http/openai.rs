//! OpenAI's endpoints, and vLLM's beside them.
//!
//! A body is read and a prompt made of it on a thread that may wait; the engine's events become the answer or its
//! pieces. A client that leaves takes its requests back.

use std::sync::Arc;

use bytes::Bytes;
use galatea_llm::engine::GenerationRequest;
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::SamplingParameters;
use galatea_serving::backend::CheckpointHandle;
use galatea_serving::backend::llm::CheckpointTraits;
use galatea_serving::generate::{AnswerForm, GenerateRequest, GenerateStream};
use galatea_serving::trace::RequestTrace;
use galatea_serving::{ErrorCode, ModelHandle, ServedCheckpoint, ServingError, TokenMeter};
use serde_json::Value;
use tokio::sync::{mpsc::channel, oneshot};

use super::endpoints::{CallContext, EndpointReply, RequestArrival};
use super::message::{ContentType, HttpResponse};
use crate::app::ServerState;
use crate::openai::chat::PreparedChat;
use crate::openai::completion::PreparedCompletion;
use crate::openai::error::ApiError;
use crate::openai::fields::ObjectFields;
use crate::openai::request::{self, ChatRequest, CompletionRequest};
use crate::openai::run::PieceReceiver;
use crate::openai::tokenize::{self, TokenizeModel};
use crate::tasks::{boxed, on_blocking_thread};
use crate::trace;

/// Pieces that are written and wait for the connection.
const MAX_PIECES: usize = 16;

/// The answer that says what is wrong.
pub(super) fn refusal(error: &ApiError) -> HttpResponse {
    let body = error.to_json().to_string();
    let response = HttpResponse {
        status: error.status(),
        ..HttpResponse::ok(ContentType::Json, body.into_bytes())
    };
    match error.retry_after() {
        Some(seconds) => response.with_header("Retry-After", seconds.to_string()),
        None => response,
    }
}

pub(super) fn reply(result: Result<Vec<u8>, ApiError>) -> HttpResponse {
    match result {
        Ok(body) => HttpResponse::ok(ContentType::Json, body),
        Err(error) => refusal(&error),
    }
}

/// Parts of a call that its handler needs after the call is gone.
pub(super) struct OpenAiRequest {
    app: Arc<ServerState>,
    body: Bytes,
    /// Name by which clients are told apart; empty if none.
    caller: String,
    /// Counter of the client's tokens, if they are limited.
    token_meter: Option<Arc<dyn TokenMeter>>,
    /// Arrival of the request, if any request may be traced.
    arrival: Option<RequestArrival>,
    /// Client's own trace that the request belongs to.
    traceparent: Option<String>,
}

impl OpenAiRequest {
    pub(super) fn of(call: &CallContext<'_>) -> Result<Self, ApiError> {
        let encoding = call.head.header("content-encoding").unwrap_or("");
        if !["", "identity"].contains(&encoding) {
            let text = format!("content-encoding: {encoding} found, only identity is supported");
            return Err(ApiError::invalid(text));
        }
        let limit = call.app.limits().max_input_bytes;
        if call.body.len() > limit {
            return Err(ApiError::too_large(call.body.len(), limit));
        }
        let caller = call.client.share_name(call.head);
        let token_meter = call.client.token_meter();
        let arrival = call.arrival;
        let traceparent = arrival.and_then(|_| call.head.header("traceparent"));
        let traceparent = traceparent.map(str::to_owned);
        let app = Arc::clone(call.app);
        let body = call.body.clone();
        Ok(Self { app, body, caller, token_meter, arrival, traceparent })
    }

    /// Counter of the client's tokens, if they are limited.
    pub(super) fn token_meter(&self) -> Option<Arc<dyn TokenMeter>> {
        self.token_meter.clone()
    }

    /// The trace of a request to the model that its body names, where it is one to trace.
    pub(super) fn trace(&self, served: &ServedCheckpoint) -> Option<Arc<RequestTrace>> {
        let RequestArrival { start, end } = self.arrival?;
        let parent = self.traceparent.as_deref();
        let trace = self.app.tracer().sample_for_engine(served.model().name(), parent)?;
        trace::note_arrival(&trace, start..end);
        Some(trace)
    }

    /// Reads the body, finds the model that it names, which is one for such requests, and works on both.
    pub(super) fn read<T>(
        &self,
        wanted: CheckpointSort,
        work: impl FnOnce(ServedCheckpoint, &ObjectFields<'_>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let body: Value = serde_json::from_slice(&self.body)
            .map_err(|error| ApiError::invalid(format!("the body is no JSON: {error}")))?;
        let fields = ObjectFields::of_request(&body)?;
        work(self.model(request::model(&fields)?, wanted)?, &fields)
    }

    /// The model of a name, or the only one for such requests where a request names none.
    fn model(
        &self,
        name: Option<&str>,
        wanted: CheckpointSort,
    ) -> Result<ServedCheckpoint, ApiError> {
        let core = self.app.core();
        let Some(name) = name else {
            let mut all = core.checkpoints();
            all.retain(|listed| wanted.fits(listed.traits));
            return match (all.pop(), all.is_empty()) {
                (Some(only), true) => self.model(Some(&only.name), wanted),
                _ => Err(ApiError::field("model", "missing")),
            };
        };
        if !core.is_live() {
            return Err(ApiError::unavailable("the server stops"));
        }
        let model = core.resolve(name, "");
        // Nothing is brought into memory for what it cannot do.
        let listed = model.as_ref().ok().and_then(ModelHandle::listed_checkpoint);
        if listed.is_some_and(|listed| !wanted.fits(listed.traits)) {
            return Err(ApiError::field("model", format!("'{name}' {}", wanted.other())));
        }
        // Whether any model is asked at all comes before which.
        match core.check_admission().and_then(|()| model?.checkpoint()) {
            Ok(Some(served)) => Ok(served),
            Ok(None) => {
                let text = format!("'{name}' is not a language model");
                Err(ApiError::field("model", text))
            }
            Err(error) if error.code == ErrorCode::Unavailable => {
                Err(ApiError::unavailable(error.message))
            }
            Err(error) if error.code == ErrorCode::Internal => {
                Err(ApiError::internal(error.message))
            }
            Err(_) => Err(ApiError::no_model(name)),
        }
    }
}

/// The sort of checkpoints that an endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckpointSort {
    /// Models that generate text.
    Language,
    /// Encoders, which compute vectors or scores.
    Encoder,
    /// All.
    Any,
}

impl CheckpointSort {
    fn fits(self, checkpoint: CheckpointTraits) -> bool {
        match checkpoint.writes {
            true => self != Self::Encoder,
            false => self != Self::Language,
        }
    }

    /// Describes a checkpoint that does not fit, for error messages.
    pub(super) fn other(self) -> &'static str {
        match self {
            Self::Encoder => "writes texts; vectors and scores are those of encoders",
            Self::Language | Self::Any => {
                "is an encoder, which writes no texts; ask it at /v1/embeddings or /v1/rerank"
            }
        }
    }
}

/// Works on a request on a thread that may wait.
pub(super) async fn prepare_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let gone = || Err(ApiError::internal("the work on this request ended without a result"));
    on_blocking_thread(work).await.unwrap_or_else(gone)
}

/// Both sorts of requests, ready for the engine.
enum OpenAiJob {
    Chat(Box<PreparedChat>),
    Completion(Box<PreparedCompletion>),
}

impl OpenAiJob {
    fn form(&self) -> AnswerForm {
        match self {
            Self::Chat(chat) => chat.form(),
            Self::Completion(completion) => completion.form(),
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Chat(chat) => chat.id(),
            Self::Completion(completion) => completion.id(),
        }
    }

    async fn whole(&self, running: GenerateStream) -> Result<Vec<u8>, ApiError> {
        match self {
            Self::Chat(chat) => chat.whole(running).await,
            Self::Completion(completion) => completion.whole(running).await,
        }
    }

    async fn stream(&self, running: GenerateStream, to: &PieceReceiver) -> Result<(), ApiError> {
        match self {
            Self::Chat(chat) => chat.stream(running, to).await,
            Self::Completion(completion) => completion.stream(running, to).await,
        }
    }
}

/// Function that decodes a request and makes its prompts.
type OpenAiPreparation = fn(
    Arc<LanguageModel>,
    &str,
    &ObjectFields<'_>,
    &str,
) -> Result<(OpenAiJob, Vec<GenerationRequest>), ApiError>;

fn prepare_chat(
    model: Arc<LanguageModel>,
    name: &str,
    fields: &ObjectFields<'_>,
    caller: &str,
) -> Result<(OpenAiJob, Vec<GenerationRequest>), ApiError> {
    let request = ChatRequest::decode(fields, defaults(&model), caller)?;
    let (chat, job) = PreparedChat::prepare(model, name, request)?;
    Ok((OpenAiJob::Chat(Box::new(chat)), vec![job]))
}

fn prepare_completion(
    model: Arc<LanguageModel>,
    name: &str,
    fields: &ObjectFields<'_>,
    caller: &str,
) -> Result<(OpenAiJob, Vec<GenerationRequest>), ApiError> {
    let request = CompletionRequest::decode(fields, defaults(&model), caller)?;
    let (completion, jobs) = PreparedCompletion::prepare(model, name, request)?;
    Ok((OpenAiJob::Completion(Box::new(completion)), jobs))
}

fn defaults(model: &LanguageModel) -> &SamplingParameters {
    model.defaults()
}

/// `/v1/chat/completions`
pub(super) fn chat(call: &CallContext<'_>) -> EndpointReply {
    generation(call, prepare_chat)
}

/// `/v1/completions`
pub(super) fn completions(call: &CallContext<'_>) -> EndpointReply {
    generation(call, prepare_completion)
}

fn generation(call: &CallContext<'_>, prepare: OpenAiPreparation) -> EndpointReply {
    let request = match OpenAiRequest::of(call) {
        Ok(request) => request,
        Err(error) => return EndpointReply::Ready(refusal(&error)),
    };
    EndpointReply::Pending(Box::pin(async move {
        let started = prepare_blocking(move || {
            request.read(CheckpointSort::Language, |served, fields| {
                let CheckpointHandle::Language(model) = &served.checkpoint else {
                    return Err(ApiError::field("model", CheckpointSort::Language.other()));
                };
                let caller = &request.caller;
                let (job, prompts) = prepare(Arc::clone(model), &served.name, fields, caller)?;
                let trace = request.trace(&served);
                let wanted = GenerateRequest {
                    id: job.id().to_owned(),
                    prompts,
                    form: job.form(),
                    trace: trace.clone(),
                    token_meter: request.token_meter(),
                    ..GenerateRequest::default()
                };
                let running = served.generate(wanted).map_err(|error| not_taken(&served, error))?;
                Ok((job, running, trace))
            })
        });
        match started.await {
            Ok((job, running, trace)) => HttpResponse { trace, ..answered(job, running).await },
            Err(error) => refusal(&error),
        }
    }))
}

/// Says why the queue of a model has not taken a request.
pub(super) fn not_taken(served: &ServedCheckpoint, error: ServingError) -> ApiError {
    match error.code {
        ErrorCode::NotFound => ApiError::no_model(&served.name),
        _ => error.into(),
    }
}

/// The answer in the form that the request asks for.
async fn answered(job: OpenAiJob, running: GenerateStream) -> HttpResponse {
    match job.form() {
        AnswerForm::Pieces => streamed(job, running).await,
        AnswerForm::Whole => reply(job.whole(running).await),
    }
}

/// The answer in pieces; what fails before the first one still has its status.
async fn streamed(job: OpenAiJob, running: GenerateStream) -> HttpResponse {
    let (to, pieces) = channel(MAX_PIECES);
    let (begin, failed) = oneshot::channel();
    tokio::spawn(boxed(forward(job, running, PieceReceiver::new(to, begin))));
    match failed.await {
        Ok(error) => refusal(&error),
        Err(_) => HttpResponse::streamed(ContentType::EventStream, pieces),
    }
}

/// Writes pieces as fast as the client takes them. Whatever ends first, what is left of the requests is dropped with
/// it, and so taken back.
async fn forward(job: OpenAiJob, running: GenerateStream, to: PieceReceiver) {
    let overflow = running.overflow();
    let result = tokio::select! {
        result = job.stream(running, &to) => result,
        () = to.left() => return,
        error = overflow => Err(error.into()),
    };
    if let Err(error) = result {
        to.fail(error).await;
    }
}

/// `/tokenize`
pub(super) fn tokenize(call: &CallContext<'_>) -> EndpointReply {
    text(call, tokenize::tokenize)
}

/// `/detokenize`
pub(super) fn detokenize(call: &CallContext<'_>) -> EndpointReply {
    text(call, tokenize::detokenize)
}

fn text(
    call: &CallContext<'_>,
    work: fn(&TokenizeModel, &ObjectFields<'_>) -> Result<Value, ApiError>,
) -> EndpointReply {
    let request = match OpenAiRequest::of(call) {
        Ok(request) => request,
        Err(error) => return EndpointReply::Ready(refusal(&error)),
    };
    EndpointReply::Pending(Box::pin(async move {
        let done = prepare_blocking(move || {
            request.read(CheckpointSort::Any, |served, fields| {
                work(&TokenizeModel::from(&served.checkpoint), fields)
            })
        });
        reply(done.await.map(|answer| answer.to_string().into_bytes()))
    }))
}
