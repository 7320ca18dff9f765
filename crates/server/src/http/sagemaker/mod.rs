//! The front end for SageMaker: a ping, invocations of one model, and models that come and go.

mod archive;
mod models;

pub(super) use models::{invoke, model, models};

use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use super::{generate, handlers, infer};
use crate::sagemaker::SageMakerInvocation;

/// Answers a request to no known endpoint with status 400 and no reason.
fn bad_request() -> EndpointReply {
    EndpointReply::Ready(status(400))
}

pub(super) fn status(status: u16) -> HttpResponse {
    HttpResponse { status, ..HttpResponse::empty(ContentType::Text) }
}

/// Answers whether the server is live or ready, as the environment chooses.
pub(super) fn ping(call: &CallContext<'_>) -> EndpointReply {
    if call.app.sagemaker().ping_live { handlers::live(call) } else { handlers::ready(call) }
}

/// An inference by the one model.
pub(super) fn invocations(call: &CallContext<'_>) -> EndpointReply {
    let sagemaker = call.app.sagemaker();
    let call = call.of_model(&sagemaker.model);
    match sagemaker.invocation {
        SageMakerInvocation::Infer => infer::infer(&call),
        SageMakerInvocation::Generate => generate::generate(&call),
        SageMakerInvocation::GenerateStream => generate::generate_stream(&call),
    }
}
