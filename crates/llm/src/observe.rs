//! Observer of every step of an engine and of the end of every request.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use galatea_runtime::RecordedInterval;

/// A step that was computed, or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRecord {
    /// It began: guesses are made and rows are chosen.
    pub begin: Instant,
    /// Tokens are chosen and told.
    pub end: Instant,
    /// Tokens that it computed.
    pub tokens: usize,
    /// The sequences that they belong to. Those of a request's answers follow its number.
    pub sequences: Vec<u64>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineOutcome {
    /// It was answered.
    Finished,
    /// It was taken back.
    Cancelled,
    /// It failed.
    Failed,
}

impl EngineOutcome {
    /// One word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// A request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its number in this engine.
    pub number: u64,
    /// Name that the front end gives it; may be empty.
    pub id: String,
    /// It came.
    pub submitted: Instant,
    /// Its prompt, or its first text, began to be computed.
    pub admitted: Option<Instant>,
    /// It had its first token.
    pub first_token: Option<Instant>,
    /// It ended.
    pub end: Instant,
    /// Tokens of its prompt or texts.
    pub prompt_tokens: usize,
    /// Number of them that were found in the cache.
    pub cached_tokens: usize,
    /// Tokens of its answers.
    pub completion_tokens: usize,
    /// How it ended.
    pub outcome: EngineOutcome,
}

/// Takes what an engine did. It is called on the engine's thread, and must not block.
pub trait EngineObserver: Send + Sync {
    /// Whether anybody wants to know at present.
    fn wants(&self) -> bool {
        true
    }

    /// A step begins. What is returned is dropped when it ends.
    fn begins(&self) -> Option<RecordedInterval> {
        None
    }

    /// A step is over.
    fn stepped(&self, step: StepRecord);

    /// A request has ended.
    fn ended(&self, request: RequestRecord);
}

/// The observer of an engine, where there is one that wants to know.
#[derive(Default)]
pub(crate) struct ObserverHandle(OnceLock<Arc<dyn EngineObserver>>);

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.0.get().is_some()).finish()
    }
}

impl ObserverHandle {
    /// Sets the observer; the first one stays.
    pub(crate) fn set(&self, observer: Arc<dyn EngineObserver>) {
        drop(self.0.set(observer));
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn EngineObserver>> {
        self.0.get().filter(|observer| observer.wants())
    }

    /// A step begins, which is recorded where somebody does so.
    pub(crate) fn begins(&self) -> Option<RecordedInterval> {
        self.0.get()?.begins()
    }

    /// A step that began then is over.
    pub(crate) fn stepped(
        &self,
        begin: Instant,
        tokens: usize,
        sequences: impl IntoIterator<Item = u64>,
    ) {
        if let Some(observer) = self.get() {
            let end = Instant::now();
            let sequences = sequences.into_iter().collect();
            observer.stepped(StepRecord { begin, end, tokens, sequences });
        }
    }
}
