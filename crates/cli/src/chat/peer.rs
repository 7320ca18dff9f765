//! The model that is talked with: one in this process, or one of a running server.

use std::sync::Arc;

use galatea::{AnswerPiece, AnswerStream, ChatInput, ChatMessage, Llm, TokenUsage};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::SamplingChoices;
use super::event::{ChatEvent, ChatSpeed};
use super::remote::{ConnectionHold, RemoteChat};

/// Pieces of an answer that may wait to be printed.
const MAX_PIECES: usize = 64;

/// A model to talk with.
pub(super) enum ChatPeer {
    Here(Box<Llm>),
    Server(Arc<RemoteChat>),
}

/// An answer on its way. The request ends when this is dropped.
pub(super) struct ChatAnswer {
    pub(super) events: Receiver<ChatEvent>,
    /// Connection of the request; none where the thread that reads the answer sees that nobody listens.
    _connection: Option<ConnectionHold>,
}

impl ChatPeer {
    /// Asks for the answer to a conversation.
    ///
    /// # Errors
    /// Fails when the model or the server refuses it.
    pub(super) fn ask(
        &self,
        messages: &[ChatMessage],
        sampling: &SamplingChoices,
    ) -> Result<ChatAnswer, String> {
        let (to, events) = channel(MAX_PIECES);
        match self {
            Self::Here(model) => {
                let input =
                    ChatInput::new(messages).with_sampling(sampling.apply(model.defaults()));
                let stream = model.stream_chat(input).map_err(|error| error.to_string())?;
                tokio::task::spawn_blocking(move || tell(stream, &to));
                Ok(ChatAnswer { events, _connection: None })
            }
            Self::Server(server) => {
                let hold = ConnectionHold::default();
                let body = server.body(messages, sampling).to_string();
                let server = Arc::clone(server);
                let held = hold.clone();
                tokio::task::spawn_blocking(move || server.answer(&body, &held, &to));
                Ok(ChatAnswer { events, _connection: Some(hold) })
            }
        }
    }
}

/// Tells an answer piece by piece.
fn tell(mut stream: AnswerStream, to: &Sender<ChatEvent>) {
    for piece in stream.by_ref() {
        let event = match piece {
            Ok(AnswerPiece::Reasoning(text)) => ChatEvent::Reasoning(text),
            Ok(AnswerPiece::Content(text)) => ChatEvent::Content(text),
            // Nobody offers tools here.
            Ok(AnswerPiece::Call { .. } | AnswerPiece::Arguments { .. }) => continue,
            Err(error) => ChatEvent::Failed(error.to_string()),
        };
        if to.blocking_send(event).is_err() {
            return;
        }
    }
    if let Some(usage) = stream.usage() {
        // Nobody wants to know any more where this fails.
        drop(to.blocking_send(ChatEvent::Ended(speed(usage))));
    }
}

fn speed(usage: &TokenUsage) -> ChatSpeed {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let count = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
    ChatSpeed {
        prompt_tokens: count(usage.prompt_tokens),
        cached_tokens: count(usage.cached_tokens),
        answer_tokens: count(usage.completion_tokens),
        first: seconds(usage.first_token_ns.saturating_sub(usage.queue_ns)),
        rest: seconds(usage.total_ns.saturating_sub(usage.first_token_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_leave_the_queue_and_the_first_token_out() {
        let usage = TokenUsage {
            prompt_tokens: 5,
            completion_tokens: 11,
            queue_ns: 1_000_000_000,
            first_token_ns: 1_250_000_000,
            total_ns: 3_250_000_000,
            ..TokenUsage::default()
        };
        let found = speed(&usage);
        assert_eq!((found.first, found.rest, found.answer_tokens), (0.25, 2.0, 11));
    }
}
