//! The front end for SageMaker: a ping, invocations of one model, and models that come and go.

mod archive;
mod models;

use std::sync::Arc;

use bytes::Bytes;

pub(super) use models::{invoke, model, models};

use self::models::HostedModels;
use super::cors::{EndpointPurpose, ErrorStyle};
use super::endpoints::{
    CallContext, EndpointReply, InferDialect, RequestArrival, SAGEMAKER, find_in,
};
use super::message::{ContentType, HttpHead, HttpResponse};
use super::serve::{RouteTable, accept, answer, restricted, wrong_method};
use super::{generate, handlers, infer};
use crate::app::ServerState;
use crate::listen::FrontEndListener;

/// Variable for the condition that the ping reports: `live` or `ready`.
pub const PING_MODE: &str = "SAGEMAKER_TRITON_PING_MODE";
/// Variable for the model of invocations.
pub const DEFAULT_MODEL: &str = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";
/// Variable for the kind of invocations.
pub const INFERENCE_TYPE: &str = "SAGEMAKER_TRITON_INFERENCE_TYPE";

/// Handler of an invocation.
type InvocationKind = fn(&CallContext<'_>) -> EndpointReply;

/// The kinds of invocations.
const INVOCATIONS: [(&str, InvocationKind); 3] = [
    ("infer", infer::infer),
    ("generate", generate::generate),
    ("generate_stream", generate::generate_stream),
];

/// Settings of the endpoint from the environment, and the models that were loaded through it.
#[derive(Debug)]
pub struct SageMaker {
    ping_live: bool,
    model: String,
    invocation: InvocationKind,
    hosted: HostedModels,
}

impl Default for SageMaker {
    fn default() -> Self {
        Self {
            ping_live: false,
            // The name in the error of a server that was given none.
            model: format!("unspecified_{DEFAULT_MODEL}"),
            invocation: infer::infer,
            hosted: HostedModels::default(),
        }
    }
}

impl SageMaker {
    /// Reads the environment.
    ///
    /// # Errors
    /// Fails when it names an unknown kind of invocation or ping.
    pub fn of<'e>(environment: impl Fn(&str) -> Option<&'e str>) -> Result<Self, String> {
        let mut read = Self::default();
        match environment(PING_MODE) {
            None | Some("ready") => {}
            Some("live") => read.ping_live = true,
            Some(other) => {
                return Err(format!("{PING_MODE} must be live or ready, found '{other}'"));
            }
        }
        if let Some(model) = environment(DEFAULT_MODEL) {
            model.clone_into(&mut read.model);
        }
        if let Some(kind) = environment(INFERENCE_TYPE) {
            let found = INVOCATIONS.iter().find(|(name, _)| *name == kind);
            let (_, invocation) = found.ok_or_else(|| {
                format!(
                    "{INFERENCE_TYPE} must be infer, generate or generate_stream, found '{kind}'"
                )
            })?;
            read.invocation = *invocation;
        }
        Ok(read)
    }
}

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
    (sagemaker.invocation)(&call.of_model(&sagemaker.model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses() {
        let read = |name: &'static str, value: &'static str| {
            SageMaker::of(|asked| (asked == name).then_some(value))
        };
        let plain = SageMaker::of(|_| None).unwrap();
        assert!(!plain.ping_live);
        assert_eq!(plain.model, "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME");
        assert!(read(PING_MODE, "live").unwrap().ping_live);
        assert_eq!(read(DEFAULT_MODEL, "m").unwrap().model, "m");
        assert!(read(INFERENCE_TYPE, "generate").is_ok());
        for (name, value, text) in [
            (PING_MODE, "alive", "must be live or ready, found 'alive'"),
            (INFERENCE_TYPE, "guess", "must be infer, generate or generate_stream, found 'guess'"),
        ] {
            let error = read(name, value).unwrap_err();
            assert!(error.starts_with(name) && error.ends_with(text), "{error}");
        }
    }
}
