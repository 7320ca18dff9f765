//! The front end for Vertex AI: a health route and a prediction route, through which other endpoints can be reached.

use std::sync::Arc;

use galatea_serving::Core;

use super::cors::{EndpointPurpose, ErrorStyle};
use super::endpoints::{Endpoint, EndpointCategory, FoundEndpoint, InferDialect};
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use super::serve::accept;
use super::tables;
use super::target::{EndpointRouter, EndpointTarget, MethodRule, RouteTarget, TargetKind};
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
}

impl EndpointRouter for VertexAi {
    fn find<'a>(&'a self, head: &'a HttpHead) -> RouteTarget<'a> {
        let path = head.path();
        if path == self.health {
            return direct("/v2/health/ready", "");
        }
        if path != self.predict {
            return nothing(EndpointPurpose::of(None, ErrorStyle::Triton), plain(400));
        }
        match head.header(REDIRECT) {
            None => direct("/v2/models/{model}/infer", &self.model),
            Some(path) => redirected(path, head.method()),
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
    accept(app, listener, Arc::new(vertex)).await;
}

/// An answer without words.
fn plain(status: u16) -> HttpResponse {
    HttpResponse { status, ..HttpResponse::empty(ContentType::Text) }
}

fn nothing<'a>(purpose: EndpointPurpose, response: HttpResponse) -> RouteTarget<'a> {
    RouteTarget { purpose, kind: TargetKind::Nothing(response) }
}

/// The endpoint with this pattern.
fn direct<'a>(pattern: &str, model: &'a str) -> RouteTarget<'a> {
    let Some(row) = tables::ROWS.iter().find(|row| row.pattern == pattern) else {
        return nothing(EndpointPurpose::of(None, ErrorStyle::Triton), plain(400));
    };
    let found = FoundEndpoint { row, model, version: "", in_repository: false };
    let purpose = EndpointPurpose::of(Some(&found), ErrorStyle::Triton);
    let target = EndpointTarget::new(found, InferDialect::VertexAi);
    RouteTarget { purpose, kind: TargetKind::Endpoint(target) }
}

/// The endpoint that the client asks for by its path without the first slash. Every request here is a POST, whatever
/// the endpoint expects.
fn redirected(path: &str, method: HttpMethod) -> RouteTarget<'_> {
    let is_metrics = path == "metrics";
    let found = tables::find_without_slash(path).filter(|_| !is_metrics);
    let purpose = match is_metrics {
        true => EndpointPurpose::metrics(),
        false => EndpointPurpose::of(found.as_ref(), ErrorStyle::Triton),
    };
    if method != HttpMethod::Post {
        return nothing(purpose, plain(405));
    }
    if is_metrics {
        return RouteTarget { purpose, kind: TargetKind::Metrics };
    }
    let Some(found) = found else { return nothing(purpose, plain(400)) };
    match passage(found.row) {
        RedirectionAccess::None => nothing(purpose, plain(400)),
        RedirectionAccess::Forbidden => {
            let text = format!("'/{path}' cannot be reached by a redirection of Vertex AI");
            nothing(purpose, HttpResponse::error(403, ContentType::Json, &text))
        }
        RedirectionAccess::Open => {
            let dialect = InferDialect::VertexAi;
            let target = EndpointTarget { found, dialect, methods: MethodRule::Any };
            RouteTarget { purpose, kind: TargetKind::Endpoint(target) }
        }
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
        EndpointCategory::Trace | EndpointCategory::Logging | EndpointCategory::Power => {
            RedirectionAccess::None
        }
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
            assert_eq!(passage(tables::find(path).unwrap().row), expected, "{path}");
        }
    }
}
