//! Endpoints of encoders: OpenAI's embeddings, and the ranks and scores that vLLM, Cohere and Jina have.

use std::sync::Arc;

use galatea_llm::embed::EncoderEngine;
use galatea_serving::backend::CheckpointHandle;
use galatea_serving::generate::{EncodeAnswer, EncodeRequest};
use galatea_serving::trace::RequestTrace;

use super::endpoints::{CallContext, EndpointReply};
use super::message::HttpResponse;
use super::openai::{CheckpointSort, OpenAiRequest, not_taken, prepare_blocking, refusal, reply};
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

/// A request that the model has taken. Dropping it takes the request back.
struct RunningEncoding {
    answer: encoding::EncodingAnswer,
    results: EncodeAnswer,
    trace: Option<Arc<RequestTrace>>,
}

impl RunningEncoding {
    /// Waits for the results, and makes the response of them.
    async fn response(self) -> HttpResponse {
        let Self { answer, results, trace } = self;
        let written = async {
            let encoded = results.await?;
            // Lists of many numbers take a while to write.
            prepare_blocking(move || answer(encoded.results)).await
        };
        HttpResponse { trace, ..reply(written.await) }
    }
}

fn encoded(call: &CallContext<'_>, prepare: EncoderPreparation) -> EndpointReply {
    let request = match OpenAiRequest::of(call) {
        Ok(request) => request,
        Err(error) => return EndpointReply::Ready(refusal(&error)),
    };
    EndpointReply::Pending(Box::pin(async move {
        match prepare_blocking(move || start(&request, prepare)).await {
            Ok(running) => running.response().await,
            Err(error) => refusal(&error),
        }
    }))
}

/// Decodes a request and hands its texts to the model.
fn start(
    request: &OpenAiRequest,
    prepare: EncoderPreparation,
) -> Result<RunningEncoding, ApiError> {
    request.read(CheckpointSort::Encoder, |served, fields| {
        let CheckpointHandle::Encoder(engine) = &served.checkpoint else {
            return Err(ApiError::field("model", CheckpointSort::Encoder.other()));
        };
        let PreparedEncoding { texts, answer } = prepare(engine, &served.name, fields)?;
        let trace = request.trace(&served);
        let wanted = EncodeRequest {
            texts,
            trace: trace.clone(),
            token_meter: request.token_meter(),
            ..EncodeRequest::default()
        };
        let results = served.encode(wanted).map_err(|error| not_taken(&served, error))?;
        Ok(RunningEncoding { answer, results, trace })
    })
}
