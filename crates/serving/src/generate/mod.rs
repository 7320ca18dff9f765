//! Texts that front ends let checkpoints work on: prompts to be continued, and texts to be encoded.
//!
//! [`ServedCheckpoint::generate`](crate::ServedCheckpoint::generate) and
//! [`ServedCheckpoint::encode`](crate::ServedCheckpoint::encode) are the only ways to a checkpoint for a dialect that
//! speaks of texts. Both make a request of the version's queue. So admission, queue policies, the rate limiter, traces,
//! statistics and the end of the server hold for them as for requests with tensors.

pub(crate) mod queue;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use galatea_llm::LlmError;
use galatea_llm::embed::{EncodedTexts, EncoderEngine, TextTokens};
use galatea_llm::engine::{GenerationEvent, GenerationRequest};
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::TokenLogprobs;

use self::queue::{EventQueue, QueueRead};
use crate::cancel::CancelToken;
use crate::error::ServingError;
use crate::request::TokenMeter;
use crate::trace::RequestTrace;

/// Size that an event counts as beside its contents, in bytes.
const EVENT_BYTES: usize = 256;

/// Form in which an answer leaves the server; statistics count its responses by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerForm {
    /// The whole answer at once.
    #[default]
    Whole,
    /// Piece by piece, as events.
    Pieces,
}

/// Prompts that a language model is to continue, as one request of a client.
#[derive(Clone, Debug, Default)]
pub struct GenerateRequest {
    /// Client's id of the request; may be empty.
    pub id: String,
    /// Prompts, each with answers of its own.
    pub prompts: Vec<GenerationRequest>,
    /// Form in which the answers leave.
    pub form: AnswerForm,
    /// Priority level in the model's queue: 1 is the most urgent, 0 the model's default.
    pub priority: u64,
    /// Trace in which the stages of the request are recorded, if they are.
    pub trace: Option<Arc<RequestTrace>>,
    /// Where tokens of prompts and answers are counted, if they are.
    pub token_meter: Option<Arc<dyn TokenMeter>>,
}

/// Texts that an encoder is to compute, as one request of a client.
#[derive(Clone, Debug, Default)]
pub struct EncodeRequest {
    /// Client's id of the request; may be empty.
    pub id: String,
    /// Tokens of the texts.
    pub texts: Vec<TextTokens>,
    /// Priority level in the model's queue: 1 is the most urgent, 0 the model's default.
    pub priority: u64,
    /// Trace in which the stages of the request are recorded, if they are.
    pub trace: Option<Arc<RequestTrace>>,
    /// Where tokens of texts are counted, if they are.
    pub token_meter: Option<Arc<dyn TokenMeter>>,
}

/// Why a request that was taken has no answer.
#[derive(Clone, Debug)]
pub enum GenerateError {
    /// The engine refused it, or failed.
    Engine(LlmError),
    /// It did not come as far as the engine, or its answer not as far as the client.
    Serving(ServingError),
}

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Serving(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GenerateError {}

/// An event of one of a request's prompts.
#[derive(Debug)]
pub struct PromptEvent {
    /// Number of the prompt, from 0.
    pub prompt: usize,
    /// Event of its answers.
    pub event: GenerationEvent,
}

/// Item on the way from the engine to a front end.
pub(crate) type StreamedEvent = Result<PromptEvent, GenerateError>;

/// Returns the memory that an event holds, roughly.
pub(crate) fn event_bytes(event: &GenerationEvent) -> usize {
    let of = |token: &TokenLogprobs| size_of_val(token) + size_of_val(token.top.as_slice());
    EVENT_BYTES
        + match event {
            GenerationEvent::Started { prompt_logprobs: Some(all), .. } => {
                all.iter().flatten().map(of).sum()
            }
            GenerationEvent::Delta(delta) => {
                delta.text.len()
                    + size_of_val(delta.tokens.as_slice())
                    + delta.logprobs.iter().map(of).sum::<usize>()
            }
            _ => 0,
        }
}

/// Keeps a checkpoint's place in memory until it is dropped.
pub(crate) trait MemoryUse: fmt::Debug + Send + Sync {}

/// Events of a request's prompts as they come. Dropping it takes the request back.
#[derive(Debug)]
pub struct GenerateStream {
    pub(crate) events: Arc<EventQueue<StreamedEvent>>,
    pub(crate) cancel: CancelToken,
    /// Prompts whose answers have not all ended.
    pub(crate) open: usize,
    /// An engine lives as long as its model.
    pub(crate) _model: Arc<LanguageModel>,
    /// Place of the model in memory, kept also for a client that reads slowly.
    pub(crate) _in_use: Arc<dyn MemoryUse>,
}

impl GenerateStream {
    /// Waits for the next event; `None` when all prompts have their answers.
    ///
    /// # Errors
    /// Fails when a prompt failed, or more events wait than may.
    pub async fn next(&mut self) -> Result<Option<PromptEvent>, GenerateError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Looks for the next event like [`next`](Self::next), which it wakes the task for.
    ///
    /// # Errors
    /// Fails as [`next`](Self::next) does.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<PromptEvent>, GenerateError>> {
        if self.open == 0 {
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(match ready!(self.events.poll_next(context)) {
            QueueRead::Item(Ok(PromptEvent { event: GenerationEvent::Failed(error), .. })) => {
                Err(GenerateError::Engine(error))
            }
            QueueRead::Item(Ok(event)) => {
                self.open -= usize::from(matches!(event.event, GenerationEvent::Finished(_)));
                Ok(Some(event))
            }
            QueueRead::Item(Err(error)) => Err(error),
            QueueRead::End => Err(GenerateError::Serving(no_answer())),
            QueueRead::Full => Err(GenerateError::Serving(overflow(self.events.limit()))),
        })
    }

    /// Ends when the reader leaves too many events waiting, also while it does not read; gives the error that says so.
    pub fn overflow(&self) -> impl Future<Output = ServingError> + Send + use<> {
        let events = Arc::clone(&self.events);
        async move {
            poll_fn(|context| events.poll_full(context)).await;
            overflow(events.limit())
        }
    }
}

impl Drop for GenerateStream {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Result of an encoder's request, as a future. Dropping it takes the request back.
#[derive(Debug)]
pub struct EncodeAnswer {
    pub(crate) results: Arc<EventQueue<Result<EncodedTexts, GenerateError>>>,
    pub(crate) cancel: CancelToken,
    /// An engine lives as long as its model.
    pub(crate) _engine: Arc<EncoderEngine>,
    /// Place of the model in memory.
    pub(crate) _in_use: Arc<dyn MemoryUse>,
}

impl Future for EncodeAnswer {
    type Output = Result<EncodedTexts, GenerateError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.results.poll_next(context)) {
            QueueRead::Item(result) => result,
            QueueRead::End | QueueRead::Full => Err(GenerateError::Serving(no_answer())),
        })
    }
}

impl Drop for EncodeAnswer {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn no_answer() -> ServingError {
    ServingError::internal("the engine gave no answer")
}

fn overflow(limit: usize) -> ServingError {
    let text = format!("the client leaves more than {limit} bytes of its answer waiting");
    ServingError::unavailable(text)
}
