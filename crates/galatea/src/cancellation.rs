//! Cancellation of answers from other threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use galatea_llm::engine::RequestTicket;

/// Takes an answer back, from any thread. Clones cancel the same answer.
///
/// ```
/// use galatea::{ChatInput, ChatMessage, Engine};
///
/// let llm = Engine::new().llm("../../examples/models/chat")?;
/// let mut stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hello!")]))?;
/// let cancellation = stream.cancellation();
/// std::thread::spawn(move || cancellation.cancel()).join().unwrap();
/// assert!(stream.all(|piece| piece.is_ok()));
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AnswerCancellation(Arc<CancellableRequest>);

#[derive(Debug)]
struct CancellableRequest {
    /// Nothing once the request is cancelled.
    ticket: Mutex<Option<RequestTicket>>,
    cancelled: AtomicBool,
}

impl AnswerCancellation {
    pub(crate) fn new(ticket: RequestTicket) -> Self {
        let ticket = Mutex::new(Some(ticket));
        Self(Arc::new(CancellableRequest { ticket, cancelled: AtomicBool::new(false) }))
    }

    /// Cancels the answer. Who reads it gets what is there already, and then the end.
    ///
    /// ```
    /// use galatea::{ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hello!")]))?;
    /// stream.cancellation().cancel();
    /// assert!(stream.cancellation().is_cancelled());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        drop(self.0.ticket.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Returns whether the answer was cancelled.
    ///
    /// ```
    /// use galatea::{ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hello!")]))?;
    /// assert!(!stream.cancellation().is_cancelled());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }
}

/// Cancels the answer when its stream is dropped, whoever else holds the cancellation.
#[derive(Debug)]
pub(crate) struct StreamTicket(pub(crate) AnswerCancellation);

impl Drop for StreamTicket {
    fn drop(&mut self) {
        drop(self.0.0.ticket.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
