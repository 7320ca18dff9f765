//! The front end for Vertex AI: a health route and a prediction route, through which other endpoints can be reached.

use std::sync::Arc;

use bytes::Bytes;
use galatea_serving::Core;

use super::cors::{EndpointPurpose, ErrorStyle};
use super::endpoints::{
    self, Endpoint, EndpointCategory, EndpointReply, FoundEndpoint, InferDialect, RequestArrival,
};
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use super::serve::{RouteTable, accept, answer, restricted, wrong_method};
use crate::app::ServerState;
use crate::listen::FrontEndListener;

/// The path of predictions.
pub const PREDICT_ROUTE: &str = "AIP_PREDICT_ROUTE";
/// The path of the health.
pub const HEALTH_ROUTE: &str = "AIP_HEALTH_ROUTE";
/// The header of a prediction that is meant for another endpoint.
const REDIRECT: &str = "x-vertex-ai-triton-redirect";

/// Settings of the endpoint from the environment and the flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexAi {
    predict: String,
    health: String,
    model: String,
}

impl VertexAi {
    /// Reads the environment. `model` is the model of predictions; if empty, the server must have exactly one.
    ///
    /// # Errors
    /// Fails when a route is missing, and when the model is not loaded or it is not clear which one is meant.
    pub fn of<'e>(
        core: &Core,
        environment: impl Fn(&str) -> Option<&'e str>,
        model: &str,
    ) -> Result<Self, String> {
        let (predict, health) = routes(environment)?;
        let mut ready: Vec<String> =
            core.repository_index(true).into_iter().map(|line| line.name).collect();
        ready.dedup();
        let model = match ready.as_slice() {
            _ if !model.is_empty() => {
                if !ready.iter().any(|name| name == model) {
                    return Err(format!("Expect the default model '{model}' is loaded"));
                }
                model.to_owned()
            }
            [only] => only.clone(),
            _ => {
                return Err("Expect the model repository contains only a single model if default \
                            model is not specified"
                    .to_owned());
            }
        };
        Ok(Self { predict, health, model })
    }

    /// A redirection is for what the endpoint is for that it leads to.
    fn purpose(&self, head: &HttpHead) -> EndpointPurpose {
        let target = head.header(REDIRECT).filter(|_| head.path() == self.predict);
        match target.map(|path| format!("/{path}")) {
            Some(path) if path == "/metrics" => EndpointPurpose::page(),
            Some(path) => EndpointPurpose::of(endpoints::find(&path).as_ref(), ErrorStyle::Triton),
            None if head.path() == self.health => EndpointPurpose::page(),
            None => EndpointPurpose::of(None, ErrorStyle::Triton),
        }
    }

    fn route(
        &self,
        app: &Arc<ServerState>,
        head: &HttpHead,
        body: Bytes,
        arrival: Option<RequestArrival>,
    ) -> EndpointReply {
        let path = head.path();
        if path == self.health {
            return direct(app, head, body, arrival, "/v2/health/ready", "");
        }
        if path != self.predict {
            return EndpointReply::Ready(plain(400));
        }
        match head.header(REDIRECT) {
            None => direct(app, head, body, arrival, "/v2/models/{model}/infer", &self.model),
            Some(_) if head.method() != HttpMethod::Post => EndpointReply::Ready(plain(405)),
            Some(path) => redirected(app, head, body, arrival, &format!("/{path}")),
        }
    }
}

/// Says why there is no endpoint for Vertex AI.
pub(crate) fn refusal(why: &str) -> String {
    format!("failed to start Vertex AI service: Invalid argument - {why}")
}

/// The paths of predictions and of the health.
///
/// # Errors
/// Fails when a route is missing.
pub fn routes<'e>(
    environment: impl Fn(&str) -> Option<&'e str>,
) -> Result<(String, String), String> {
    let route = |name: &str| {
        let route = environment(name).filter(|route| !route.is_empty());
        route
            .map(str::to_owned)
            .ok_or_else(|| format!("{name} is not defined for Vertex AI endpoint"))
    };
    Ok((route(PREDICT_ROUTE)?, route(HEALTH_ROUTE)?))
}

/// Serves Vertex AI until the server stops.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener, vertex: VertexAi) {
    let asked = vertex.clone();
    let route =
        move |app: &Arc<ServerState>,
              head: &HttpHead,
              body: Bytes,
              arrival: Option<RequestArrival>| { vertex.route(app, head, body, arrival) };
    let purpose = move |head: &HttpHead| asked.purpose(head);
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

/// An answer without words.
fn plain(status: u16) -> HttpResponse {
    HttpResponse { status, ..HttpResponse::empty(ContentType::Text) }
}

/// The answer of the endpoint with this pattern.
fn direct(
    app: &Arc<ServerState>,
    head: &HttpHead,
    body: Bytes,
    arrival: Option<RequestArrival>,
    pattern: &str,
    model: &str,
) -> EndpointReply {
    let Some(row) = endpoints::ROWS.iter().find(|row| row.pattern == pattern) else {
        return EndpointReply::Ready(plain(400));
    };
    let found = FoundEndpoint { row, model, version: "", in_repository: false };
    match restricted(app, head, &found).or_else(|| wrong_method(head, &found)) {
        Some(refusal) => EndpointReply::Ready(refusal),
        None => answer(app, head, body, arrival, &found, InferDialect::VertexAi),
    }
}

/// The answer of the endpoint that the client asks for. Every request here is a POST, whatever the endpoint expects.
fn redirected(
    app: &Arc<ServerState>,
    head: &HttpHead,
    body: Bytes,
    arrival: Option<RequestArrival>,
    path: &str,
) -> EndpointReply {
    if path == "/metrics" {
        return EndpointReply::Ready(HttpResponse::ok(ContentType::Metrics, app.metrics_page()));
    }
    let Some(found) = endpoints::find(path) else { return EndpointReply::Ready(plain(400)) };
    match passage(found.row) {
        RedirectionAccess::None => return EndpointReply::Ready(plain(400)),
        RedirectionAccess::Forbidden => {
            let text = format!("'{path}' cannot be reached by a redirection of Vertex AI");
            return EndpointReply::Ready(HttpResponse::error(403, ContentType::Json, &text));
        }
        RedirectionAccess::Open => {}
    }
    match restricted(app, head, &found) {
        Some(refusal) => EndpointReply::Ready(refusal),
        None => answer(app, head, body, arrival, &found, InferDialect::VertexAi),
    }
}

/// Permission to reach an endpoint by a redirection.
#[derive(Debug, PartialEq, Eq)]
enum RedirectionAccess {
    /// The endpoint can be reached.
    Open,
    /// The endpoint is known and changes the server.
    Forbidden,
    /// The endpoint is treated as absent.
    None,
}

fn passage(row: &Endpoint) -> RedirectionAccess {
    let ends = |words: &[&str]| words.iter().any(|word| row.pattern.ends_with(word));
    match row.category {
        EndpointCategory::Trace | EndpointCategory::Logging => RedirectionAccess::None,
        EndpointCategory::Inference if !ends(&["/infer"]) => RedirectionAccess::None,
        EndpointCategory::ModelRepository | EndpointCategory::SharedMemory
            if ends(&["/load", "/unload", "/register"]) =>
        {
            RedirectionAccess::Forbidden
        }
        _ => RedirectionAccess::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_read_and_do_not_change() {
        for (path, expected) in [
            ("/v2", RedirectionAccess::Open),
            ("/v2/health/live", RedirectionAccess::Open),
            ("/v2/models/stats", RedirectionAccess::Open),
            ("/v2/models/m/versions/1/infer", RedirectionAccess::Open),
            ("/v2/models/m/config", RedirectionAccess::Open),
            ("/v2/models/m/generate", RedirectionAccess::None),
            ("/v2/models/m/trace/setting", RedirectionAccess::None),
            ("/v2/logging", RedirectionAccess::None),
            ("/v2/repository/index", RedirectionAccess::Open),
            ("/v2/repository/models/m/load", RedirectionAccess::Forbidden),
            ("/v2/repository/models/m/unload", RedirectionAccess::Forbidden),
            ("/v2/systemsharedmemory/status", RedirectionAccess::Open),
            ("/v2/systemsharedmemory/region/r/register", RedirectionAccess::Forbidden),
            ("/v2/systemsharedmemory/unregister", RedirectionAccess::Open),
            ("/v2/cudasharedmemory/region/r/register", RedirectionAccess::Forbidden),
        ] {
            assert_eq!(passage(endpoints::find(path).unwrap().row), expected, "{path}");
        }
    }
}
