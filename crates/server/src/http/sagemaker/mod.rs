//! The front end for SageMaker: a ping, invocations of one model, and models that come and go.

mod archive;
mod models;

use std::sync::Arc;

use bytes::Bytes;

pub(super) use models::{invoke, model, models};

use super::cors::{EndpointPurpose, ErrorStyle};
use super::endpoints::{
    CallContext, EndpointReply, InferDialect, RequestArrival, SAGEMAKER, find_in,
};
use super::message::{ContentType, HttpHead, HttpResponse};
use super::serve::{RouteTable, accept, answer, restricted, wrong_method};
use super::{generate, handlers, infer};
use crate::app::ServerState;
use crate::listen::FrontEndListener;
use crate::sagemaker::SageMakerInvocation;

/// Serves SageMaker until the server stops.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener) {
    let purpose = |head: &HttpHead| {
        EndpointPurpose::of(find_in(SAGEMAKER, head.path()).as_ref(), ErrorStyle::Triton)
    };
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

fn route(
    app: &Arc<ServerState>,
    head: &HttpHead,
    body: Bytes,
    arrival: Option<RequestArrival>,
) -> EndpointReply {
    let Some(found) = find_in(SAGEMAKER, head.path()) else { return bad_request() };
    match restricted(app, head, &found).or_else(|| wrong_method(head, &found)) {
        Some(refusal) => EndpointReply::Ready(refusal),
        None => answer(app, head, body, arrival, &found, InferDialect::SageMaker),
    }
}

/// Answers a request to no known endpoint with status 400 and no reason.
fn bad_request() -> EndpointReply {
    EndpointReply::Ready(status(400))
}

fn status(status: u16) -> HttpResponse {
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
