//! Endpoints of encoders: OpenAI's embeddings, and the ranks and scores that vLLM, Cohere and Jina have.

use std::sync::Arc;

use galatea_llm::embed::{EncodedTexts, EncoderEngine, EncoderTicket};
use galatea_serving::OpenRequest;
use galatea_serving::backend::CheckpointHandle;
use galatea_serving::statistics::FailureReason;
use tokio::sync::oneshot::{self, Receiver};

use super::endpoints::{CallContext, EndpointReply};
use super::openai::{CheckpointSort, OpenAiRequest, prepare_blocking, refusal, reply};
use crate::openai::encoding::{self, PreparedEncoding};
use crate::openai::error::ApiError;
use crate::openai::fields::ObjectFields;
use crate::openai::ranking;

/// `/v1/embeddings`
pub(super) fn embeddings(call: &CallContext<'_>) -> EndpointReply {
    encoded(call, encoding::prepare)
}

/// `/v1/rerank`, `/v2/rerank` and `/rerank`
pub(super) fn rerank(call: &CallContext<'_>) -> EndpointReply {
    encoded(call, ranking::rerank)
}

/// `/v1/score` and `/score`
pub(super) fn score(call: &CallContext<'_>) -> EndpointReply {
    encoded(call, ranking::score)
}

/// Function that decodes a request and tokenises its texts.
type EncoderPreparation =
    fn(&EncoderEngine, &str, &ObjectFields<'_>) -> Result<PreparedEncoding, ApiError>;

/// A request that the engine has taken. Dropping it takes the request back.
struct RunningEncoding {
    answer: encoding::EncodingAnswer,
    results: Receiver<galatea_llm::error::Result<EncodedTexts>>,
    counted: OpenRequest,
    _ticket: EncoderTicket,
    /// An engine lives as long as its model.
    _engine: Arc<EncoderEngine>,
}

impl RunningEncoding {
    /// Waits for the results, and makes the answer of them.
    async fn answer(self) -> Result<Vec<u8>, ApiError> {
        let Self { answer, results, counted, _ticket, _engine } = self;
        let gone = |_| Err(ApiError::internal("the engine gave no answer"));
        let encoded = match results.await.map_or_else(gone, |result| result.map_err(Into::into)) {
            Ok(encoded) => encoded,
            Err(error) => {
                counted.fail(FailureReason::Backend);
                return Err(error);
            }
        };
        if !encoded.results.iter().flatten().all(|number| number.is_finite()) {
            counted.fail(FailureReason::Backend);
            return Err(ApiError::internal("the model gave numbers that are not finite"));
        }
        counted.finish(encoded.queue);
        // Lists of many numbers take a while to write.
        prepare_blocking(move || answer(encoded.results)).await
    }
}

fn encoded(call: &CallContext<'_>, prepare: EncoderPreparation) -> EndpointReply {
    let request = match OpenAiRequest::of(call) {
        Ok(request) => request,
        Err(error) => return EndpointReply::Ready(refusal(&error)),
    };
    EndpointReply::Pending(Box::pin(async move {
        match prepare_blocking(move || start(&request, prepare)).await {
            Ok(running) => reply(running.answer().await),
            Err(error) => refusal(&error),
        }
    }))
}

/// Decodes a request and hands its texts to the engine.
fn start(
    request: &OpenAiRequest,
    prepare: EncoderPreparation,
) -> Result<RunningEncoding, ApiError> {
    request.read(CheckpointSort::Encoder, |served, fields| {
        let CheckpointHandle::Encoder(engine) = &served.checkpoint else {
            return Err(ApiError::field("model", CheckpointSort::Encoder.other()));
        };
        let PreparedEncoding { texts, answer } = prepare(engine, &served.name, fields)?;
        let counted = served.begin(texts.len() as u64);
        let (to, results) = oneshot::channel();
        // Nobody waits any more when the client went away.
        let sink = Box::new(move |encoded| drop(to.send(encoded)));
        match engine.submit(texts, sink) {
            Ok(ticket) => {
                let engine = Arc::clone(engine);
                Ok(RunningEncoding { answer, results, counted, _ticket: ticket, _engine: engine })
            }
            Err(error) => {
                let error = ApiError::from(error);
                counted.fail(error.failure());
                Err(error)
            }
        }
    })
}
