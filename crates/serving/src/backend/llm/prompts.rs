//! Prompts on their way through an engine: the one place where requests of language models are handed to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea_llm::LlmError;
use galatea_llm::engine::{AnswerDelta, GenerationEvent, GenerationRequest};
use galatea_llm::model::LanguageModel;
use galatea_llm::stop::FinishReason;

use super::of_model;
use super::residency::InUse;
use crate::backend::ActiveRequest;
use crate::cancel::CancelToken;
use crate::error::ServingError;
use crate::generate::queue::EventQueue;
use crate::generate::{AnswerForm, GenerateError, PromptEvent, StreamedEvent, event_bytes};
use crate::request::{InferenceRequest, TokenMeter};
use crate::statistics::ResponseKind;

/// Takes what becomes of the prompts of a request, on the engine's thread.
pub(super) trait PromptObserver: Send + 'static {
    /// Takes an event of a prompt.
    fn take(&mut self, prompt: usize, event: GenerationEvent);

    /// Takes the reason why the engine has not taken the prompts.
    fn refuse(&mut self, error: LlmError);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parts of a request that its prompts keep on their way through the engine.
pub(super) struct RequestLink {
    cancel: CancelToken,
    meter: Option<Arc<dyn TokenMeter>>,
}

impl RequestLink {
    /// The link to a request.
    pub(super) fn of(request: &InferenceRequest) -> Self {
        Self { cancel: request.cancel.clone(), meter: request.token_meter.clone() }
    }
}

/// Hands prompts to the engine, all or none. They are taken back when their request is cancelled.
pub(super) fn submit(
    model: &LanguageModel,
    in_use: Arc<InUse>,
    prompts: Vec<GenerationRequest>,
    link: RequestLink,
    observer: impl PromptObserver,
) {
    let RequestLink { cancel, meter } = link;
    if let Some(meter) = &meter {
        meter.count(prompts.iter().map(|request| request.prompt.len()).sum());
    }
    let observer = Arc::new(Mutex::new(observer));
    let mut tickets = Vec::with_capacity(prompts.len());
    for (prompt, request) in prompts.into_iter().enumerate() {
        let observed = Arc::clone(&observer);
        let in_use = Arc::clone(&in_use);
        let meter = meter.clone();
        let sink = move |event| {
            // The model stays in memory as long as somebody may be told.
            let _ = &in_use;
            if let (Some(meter), GenerationEvent::Delta(delta)) = (&meter, &event) {
                meter.count(delta.tokens.len());
            }
            lock(&observed).take(prompt, event);
        };
        match model.engine().submit(request, Box::new(sink)) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => {
                // Nothing is told of those before it any more.
                lock(&observer).refuse(error);
                return;
            }
        }
    }
    // The token lives as long as the request, and holds the tickets no longer.
    cancel.on_cancel(move || drop(tickets));
}

/// Prompts that a front end has prepared, whose events it reads itself.
pub(crate) struct PromptsJob {
    pub(crate) model: Arc<LanguageModel>,
    pub(crate) in_use: Arc<InUse>,
    pub(crate) prompts: Vec<GenerationRequest>,
    pub(crate) form: AnswerForm,
    pub(crate) events: Arc<EventQueue<StreamedEvent>>,
}

impl PromptsJob {
    /// Begins the work for a request, and answers that some time.
    pub(super) fn start(self, request: ActiveRequest) {
        let Self { model, in_use, prompts, form, events } = self;
        events.begin();
        if prompts.is_empty() {
            events.close();
            return request.finish();
        }
        let link = RequestLink::of(&request.request);
        let observer = StreamedAnswer {
            request: Some(request),
            form,
            events,
            open: prompts.len(),
            queue: Duration::ZERO,
            from: Instant::now(),
        };
        submit(&model, in_use, prompts, link, observer);
    }
}

/// Counts what leaves with the events of a request, and hands them to its front end.
struct StreamedAnswer {
    /// The request, until it has ended.
    request: Option<ActiveRequest>,
    form: AnswerForm,
    events: Arc<EventQueue<StreamedEvent>>,
    /// Prompts whose answers have not all ended.
    open: usize,
    /// The longest wait of a prompt before it was computed.
    queue: Duration,
    /// When the last response left, or all began.
    from: Instant,
}

impl StreamedAnswer {
    /// Counts a response that the front end makes of an event.
    fn respond(&mut self) {
        if let Some(request) = &mut self.request {
            request.respond_past_sink(self.from);
            self.from = Instant::now();
        }
    }

    fn delta(&mut self, delta: &AnswerDelta) {
        // Text that is held back comes with a later token.
        let leaves = !delta.text.is_empty() || delta.finish.is_some();
        if self.form == AnswerForm::Pieces && leaves && !is_cancelled(delta) {
            self.respond();
        }
    }

    /// Counts a prompt whose answers have ended, and with the last one the request.
    fn end_prompt(&mut self, queue: Duration) {
        self.open = self.open.saturating_sub(1);
        self.queue = self.queue.max(queue);
        if self.open > 0 {
            return;
        }
        if self.request.as_ref().is_some_and(ActiveRequest::is_cancelled) {
            return self.fail(ServingError::cancelled("Request was cancelled"));
        }
        if self.form == AnswerForm::Whole {
            self.respond();
        }
        if let Some(mut request) = self.request.take() {
            request.add_queue_time(self.queue);
            request.finish();
        }
    }

    fn fail(&mut self, error: ServingError) {
        let Some(request) = self.request.take() else { return };
        let kind = match request.is_cancelled() {
            true => ResponseKind::Cancel,
            false => ResponseKind::Fail,
        };
        request.count_past_sink(kind, self.from);
        request.finish_with(Err(error));
    }
}

fn is_cancelled(delta: &AnswerDelta) -> bool {
    matches!(delta.finish, Some(FinishReason::Cancelled))
}

impl PromptObserver for StreamedAnswer {
    /// Counts first, so that a client that asks right after its answer finds it counted.
    fn take(&mut self, prompt: usize, event: GenerationEvent) {
        if self.request.is_none() {
            return;
        }
        let bytes = event_bytes(&event);
        match &event {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => self.delta(delta),
            GenerationEvent::Finished(usage) => {
                self.end_prompt(Duration::from_nanos(usage.queue_ns));
            }
            GenerationEvent::Failed(error) => {
                self.fail(of_model(error));
                return self.events.push_last(Err(GenerateError::Engine(error.clone())));
            }
        }
        self.events.push(Ok(PromptEvent { prompt, event }), bytes);
    }

    fn refuse(&mut self, error: LlmError) {
        if let Some(request) = self.request.take() {
            request.count_past_sink(ResponseKind::Fail, self.from);
            request.refuse(of_model(&error));
        }
        self.events.push_last(Err(GenerateError::Engine(error)));
    }
}

impl Drop for StreamedAnswer {
    fn drop(&mut self) {
        self.events.close();
    }
}
