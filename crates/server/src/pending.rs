//! The answer of an inference as a future. Dropping the future cancels the inference.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use galatea_serving::{
    CancelToken, InferenceRequest, InferenceResponse, ModelHandle, ServingError,
};
use tokio::sync::oneshot;

/// An inference under way.
#[derive(Debug)]
pub struct PendingInference {
    answer: oneshot::Receiver<Result<InferenceResponse, ServingError>>,
    cancel: CancelToken,
    done: bool,
}

/// Hands a request to its model.
///
/// # Errors
/// Fails when the request is refused: it does not fit the model, or the model does not serve.
pub fn submit(
    model: &ModelHandle,
    request: InferenceRequest,
) -> Result<PendingInference, ServingError> {
    let cancel = request.cancel.clone();
    let (sender, answer) = oneshot::channel();
    let mut sender = Some(sender);
    model.infer(
        request,
        Box::new(move |answer| {
            if let Some(sender) = sender.take() {
                let missing = || ServingError::internal("the model gave no response");
                let result = answer.result.and_then(|response| response.ok_or_else(missing));
                // Nobody waits any more when the client went away.
                drop(sender.send(result));
            }
        }),
    )?;
    Ok(PendingInference { answer, cancel, done: false })
}

impl Future for PendingInference {
    type Output = Result<InferenceResponse, ServingError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context).map(|answer| {
            self.done = true;
            answer.unwrap_or_else(|_| Err(ServingError::internal("the model gave no answer")))
        })
    }
}

impl Drop for PendingInference {
    fn drop(&mut self) {
        if !self.done {
            self.cancel.cancel();
        }
    }
}
