//! Requests for the engine, and the pieces of their answers on the way to a client.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use galatea_llm::chat::{self, PromptError};
use galatea_llm::engine::GenerationRequest;
use galatea_llm::model::LanguageModel;
use galatea_llm::tokens::SpecialTokens;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::error::ApiError;
use super::request::CommonFields;
use super::wire::{DONE, event};

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
        PromptError::TextTooLong { context } => {
            let have = if field == "messages" { "have" } else { "has" };
            let text = "This model's maximum context length is";
            ApiError::too_long(field, format!("{text} {context} tokens. The {field} {have} more."))
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
