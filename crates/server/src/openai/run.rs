//! Requests on the engine: what they are made of, and their events as they come.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use galatea_llm::chat::{self, PromptError};
use galatea_llm::engine::{GenerationEvent, GenerationRequest, RequestTicket};
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::TokenLogprobs;
use galatea_llm::tokens::SpecialTokens;
use galatea_serving::OpenRequest;
use galatea_serving::statistics::FailureReason;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, unbounded_channel};
use tokio::sync::{Notify, oneshot};

use super::error::ApiError;
use super::request::CommonFields;
use super::wire::{DONE, event};

/// Events that a client has not taken, in bytes; with more the request is taken back.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Size that an event counts as beside its contents, in bytes.
const EVENT_BYTES: usize = 256;

/// Makes the request for the engine from the prompt that a field gives.
///
/// # Errors
/// Fails when the prompt and the answer are longer than the context, and for a grammar that cannot be
/// followed.
pub(crate) fn generation(
    model: &LanguageModel,
    common: &CommonFields,
    prompt: Vec<u32>,
    field: &str,
) -> Result<GenerationRequest, ApiError> {
    chat::generation(model, &common.settings, prompt).map_err(|error| refusal(error, field))
}

/// Says why there is no request for the engine.
pub(crate) fn refusal(error: PromptError, field: &str) -> ApiError {
    match error {
        PromptError::Model(error) => error.into(),
        PromptError::TooLong { prompt, answer, context } => {
            let answer = answer.map_or_else(
                || "and an answer needs at least one".to_owned(),
                |most| format!("and {most} are asked for"),
            );
            ApiError::too_long(
                field,
                format!(
                    "This model's maximum context length is {context} tokens. The {field} \
                     {} {prompt} tokens, {answer}.",
                    if field == "messages" { "have" } else { "has" }
                ),
            )
        }
        error @ (PromptError::Empty | PromptError::NoTemplate) => {
            ApiError::field(field, error.to_string())
        }
    }
}

/// Converts a flag to the choice of whether the tokens around a text are added.
pub(crate) fn surround(add: bool) -> SpecialTokens {
    if add { SpecialTokens::Add } else { SpecialTokens::Omit }
}

/// Receiver of the pieces of an answer.
#[derive(Debug)]
pub(crate) struct PieceReceiver {
    to: Sender<Bytes>,
    /// Tells that the answer begins, or why it does not.
    begin: Mutex<Option<oneshot::Sender<ApiError>>>,
}

impl PieceReceiver {
    /// A client that has no piece yet. `begin` is dropped when there is one.
    pub(crate) fn new(to: Sender<Bytes>, begin: oneshot::Sender<ApiError>) -> Self {
        Self { to, begin: Mutex::new(Some(begin)) }
    }

    fn begin(&self) -> Option<oneshot::Sender<ApiError>> {
        self.begin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives a piece when there is room for it; `false` where the client has left.
    pub(crate) async fn send(&self, piece: Vec<u8>) -> bool {
        drop(self.begin());
        self.to.send(piece.into()).await.is_ok()
    }

    /// Tells what went wrong: in the place of the answer, or in the stream where that has begun.
    pub(crate) async fn fail(&self, error: ApiError) {
        match self.begin() {
            // The client may have left meanwhile.
            Some(begin) => drop(begin.send(error)),
            None => {
                self.send(event(&error.to_json())).await;
                self.send(DONE.to_vec()).await;
            }
        }
    }

    /// Ends when the client has left.
    pub(crate) async fn left(&self) {
        self.to.closed().await;
    }
}

/// Form in which an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// The whole answer at once.
    Whole,
    /// Piece by piece, as events.
    Pieces,
}

/// The events that nobody has looked at, as far as they may grow.
#[derive(Debug)]
struct EventBacklog {
    bytes: AtomicUsize,
    limit: usize,
    full: AtomicBool,
    overflow: Notify,
}

impl EventBacklog {
    /// Counts an event and returns whether there was room for it. Once full, it stays full.
    fn admits(&self, event: &GenerationEvent) -> bool {
        let waiting = self.bytes.fetch_add(size(event), Ordering::AcqRel);
        if waiting > self.limit && !self.full.swap(true, Ordering::AcqRel) {
            self.overflow.notify_one();
        }
        !self.full.load(Ordering::Acquire)
    }
}

/// Memory that an event holds, roughly.
fn size(event: &GenerationEvent) -> usize {
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

/// Requests that the engine has taken. Dropping them takes them back.
#[derive(Debug)]
pub(crate) struct RunningGeneration {
    events: UnboundedReceiver<(usize, GenerationEvent)>,
    backlog: Arc<EventBacklog>,
    open: usize,
    /// The longest wait of a request before it ran.
    queue: Duration,
    /// Statistics entry that counts all of them as one, if any.
    counted: Option<OpenRequest>,
    form: AnswerForm,
    _tickets: Vec<RequestTicket>,
    /// An engine lives as long as its model.
    _model: Arc<LanguageModel>,
}

impl RunningGeneration {
    /// Hands requests to the engine, all or none.
    ///
    /// # Errors
    /// Returns the reason why the engine refuses a request.
    pub(crate) fn start(
        model: &Arc<LanguageModel>,
        requests: Vec<GenerationRequest>,
    ) -> Result<Self, ApiError> {
        Self::bounded(model, requests, MAX_WAITING_BYTES)
    }

    fn bounded(
        model: &Arc<LanguageModel>,
        requests: Vec<GenerationRequest>,
        limit: usize,
    ) -> Result<Self, ApiError> {
        let (to, events) = unbounded_channel();
        let bytes = AtomicUsize::new(0);
        let full = AtomicBool::new(false);
        let backlog = Arc::new(EventBacklog { bytes, limit, full, overflow: Notify::new() });
        let open = requests.len();
        let mut tickets = Vec::new();
        for (i, request) in requests.into_iter().enumerate() {
            let to = to.clone();
            let counting = Arc::clone(&backlog);
            let sink = move |event| {
                if counting.admits(&event) {
                    // Nobody waits any more when the client went away.
                    drop(to.send((i, event)));
                }
            };
            tickets.push(model.engine().submit(request, Box::new(sink))?);
        }
        let _model = Arc::clone(model);
        let queue = Duration::ZERO;
        let counted = None;
        let form = AnswerForm::Whole;
        Ok(Self { events, backlog, open, queue, counted, form, _tickets: tickets, _model })
    }

    /// Lets the requests count as one of the model's, whose answer leaves in this form.
    pub(crate) fn count(mut self, request: OpenRequest, form: AnswerForm) -> Self {
        self.counted = Some(request);
        self.form = form;
        self
    }

    /// Counts what leaves with an event.
    fn count_response(&mut self, event: &GenerationEvent) {
        let leaves = match (self.form, event) {
            // Text that is held back comes with a later token.
            (AnswerForm::Pieces, GenerationEvent::Delta(step)) => {
                !step.text.is_empty() || step.finish.is_some()
            }
            (AnswerForm::Whole, GenerationEvent::Finished(_)) => self.open == 1,
            _ => false,
        };
        if let Some(request) = self.counted.as_mut().filter(|_| leaves) {
            request.respond();
        }
    }

    /// The next event with the number of its request; `None` when all have ended.
    ///
    /// # Errors
    /// Fails when a request failed.
    pub(crate) async fn next(&mut self) -> Result<Option<(usize, GenerationEvent)>, ApiError> {
        if self.open == 0 {
            return Ok(None);
        }
        let Some((i, event)) = self.events.recv().await else {
            return Err(ApiError::internal("the engine gave no answer"));
        };
        self.backlog.bytes.fetch_sub(size(&event), Ordering::AcqRel);
        self.count_response(&event);
        match event {
            GenerationEvent::Failed(error) => {
                if let Some(request) = self.counted.take() {
                    request.fail(FailureReason::Backend);
                }
                return Err(error.into());
            }
            GenerationEvent::Finished(usage) => {
                self.open -= 1;
                self.queue = self.queue.max(Duration::from_nanos(usage.queue_ns));
                if let Some(request) = self.counted.take_if(|_| self.open == 0) {
                    request.finish(self.queue);
                }
            }
            _ => {}
        }
        Ok(Some((i, event)))
    }

    /// Ends when the client leaves too much waiting; gives the error that says so.
    pub(crate) fn overflow(&self) -> impl Future<Output = ApiError> + use<> {
        let backlog = Arc::clone(&self.backlog);
        async move {
            backlog.overflow.notified().await;
            let limit = backlog.limit;
            let text = format!("the client leaves more than {limit} bytes of its answer waiting");
            ApiError::unavailable(text)
        }
    }
}
