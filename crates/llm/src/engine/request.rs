//! Requests to an engine, and its answers.

use crate::error::{LlmError, LlmErrorKind};
use crate::grammar::GrammarConstraint;
use crate::sampling::{SamplingParameters, TokenLogprobs};
use crate::stop::FinishReason;

/// A prompt, and how it is to go on.
#[derive(Clone, Debug)]
pub struct GenerationRequest {
    /// The tokens of the prompt; at least one.
    pub prompt: Vec<u32>,
    /// How tokens are chosen, how many answers there are, and when they end.
    pub sampling: SamplingParameters,
    /// Grammar that each answer has to follow.
    pub constraint: Option<GrammarConstraint>,
    /// Lower ones run first.
    pub priority: i32,
    /// Steps are shared fairly between clients.
    pub client: u64,
    /// Requests of different salts share no cache.
    pub salt: u64,
    /// Name that the front end gives it, for those who watch the engine; may be empty.
    pub id: String,
}

/// Events of a request, in this order: [`Started`](Self::Started), any number of
/// [`AnswerDelta`](Self::Delta)s, and [`Finished`](Self::Finished); or [`Failed`](Self::Failed) at any time.
/// Exactly one of the last two comes, and nothing behind it.
#[derive(Debug)]
pub enum GenerationEvent {
    /// The prompt is computed.
    Started {
        /// Tokens of the prompt that were found in the cache.
        cached_tokens: usize,
        /// For each token of the prompt what its probability was, if that was asked for; nothing is
        /// known of the first one.
        prompt_logprobs: Option<Vec<Option<TokenLogprobs>>>,
    },
    /// An answer goes on.
    Delta(AnswerDelta),
    /// All answers have ended.
    Finished(TokenUsage),
    /// The request failed.
    Failed(LlmError),
}

/// The next piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerDelta {
    /// Which answer, from 0 up to `n`.
    pub index: usize,
    /// The text that is certain by now: characters that are not whole and what may become a stop
    /// string are held back.
    pub text: String,
    /// The new tokens, an end token included, which leaves no text.
    pub tokens: Vec<u32>,
    /// Log-probability of each new token, where `logprobs` is set.
    pub logprobs: Vec<TokenLogprobs>,
    /// Why the answer ends with this piece.
    pub finish: Option<FinishReason>,
}

/// Costs of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Number of prompt tokens that were found in the cache.
    pub cached_tokens: usize,
    /// Tokens of all answers.
    pub completion_tokens: usize,
    /// From submission until the prompt began to be computed.
    pub queue_ns: u64,
    /// From submission until the first token; 0 without one.
    pub first_token_ns: u64,
    /// From submission until the end.
    pub total_ns: u64,
}

/// Takes the events of a request, on the engine's thread: it must not block.
pub type EventSink = Box<dyn FnMut(GenerationEvent) + Send>;

/// Where the events of a request go. Exactly one last event comes, whatever happens to the request.
pub(super) struct EventReceiver(Option<EventSink>);

impl EventReceiver {
    pub(super) fn new(sink: EventSink) -> Self {
        Self(Some(sink))
    }

    /// Tells what happened. `false` where nobody listens any more, as the last event is told or the
    /// listener panicked.
    pub(super) fn tell(&mut self, event: GenerationEvent) -> bool {
        let last = matches!(event, GenerationEvent::Finished(_) | GenerationEvent::Failed(_));
        let Some(mut sink) = self.0.take() else { return false };
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            sink(event);
            sink
        }));
        if let Ok(sink) = told
            && !last
        {
            self.0 = Some(sink);
        }
        self.0.is_some()
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let stopped = LlmError::new(LlmErrorKind::Unavailable, "engine", "it stops");
        self.tell(GenerationEvent::Failed(stopped));
    }
}
