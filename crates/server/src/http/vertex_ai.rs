//! The door for Vertex AI: a health route and a prediction route, through which other endpoints can be reached.

use std::sync::Arc;

use bytes::Bytes;
use galatea_serving::Core;

use super::cors::{EndpointPurpose, ErrorStyle};
use super::message::{ContentType, Head, Method, Response};
use super::rows::{self, Arrival, Category, Dialect, Found, Reply, Row};
use super::serve::{RouteTable, accept, answer, restricted, wrong_method};
use crate::app::App;
use crate::listen::Listener;
use crate::metrics;

/// The path of predictions.
pub const PREDICT_ROUTE: &str = "AIP_PREDICT_ROUTE";
/// The path of the health.
pub const HEALTH_ROUTE: &str = "AIP_HEALTH_ROUTE";
/// The header of a prediction that is meant for another endpoint.
const REDIRECT: &str = "x-vertex-ai-triton-redirect";

/// What the environment and the flags say about the door.
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
    /// When a route is missing, and when the model is not loaded or it is not clear which one is meant.
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
    fn purpose(&self, head: &Head) -> EndpointPurpose {
        let target = head.header(REDIRECT).filter(|_| head.path() == self.predict);
        match target.map(|path| format!("/{path}")) {
            Some(path) if path == "/metrics" => EndpointPurpose::page(),
            Some(path) => EndpointPurpose::of(rows::find(&path).as_ref(), ErrorStyle::Triton),
            None if head.path() == self.health => EndpointPurpose::page(),
            None => EndpointPurpose::of(None, ErrorStyle::Triton),
        }
    }

    fn route(&self, app: &Arc<App>, head: &Head, body: Bytes, arrival: Option<Arrival>) -> Reply {
        let path = head.path();
        if path == self.health {
            return direct(app, head, body, arrival, "/v2/health/ready", "");
        }
        if path != self.predict {
            return Reply::Now(plain(400));
        }
        match head.header(REDIRECT) {
            None => direct(app, head, body, arrival, "/v2/models/{model}/infer", &self.model),
            Some(_) if head.method() != Method::Post => Reply::Now(plain(405)),
            Some(path) => redirected(app, head, body, arrival, &format!("/{path}")),
        }
    }
}

/// The paths of predictions and of the health.
///
/// # Errors
/// When one is missing.
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
pub async fn serve(app: Arc<App>, listener: Listener, vertex: VertexAi) {
    let asked = vertex.clone();
    let route = move |app: &Arc<App>, head: &Head, body: Bytes, arrival: Option<Arrival>| {
        vertex.route(app, head, body, arrival)
    };
    let purpose = move |head: &Head| asked.purpose(head);
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

/// An answer without words.
fn plain(status: u16) -> Response {
    Response { status, ..Response::empty(ContentType::Text) }
}

/// The answer of the endpoint with this pattern.
fn direct(
    app: &Arc<App>,
    head: &Head,
    body: Bytes,
    arrival: Option<Arrival>,
    pattern: &str,
    model: &str,
) -> Reply {
    let Some(row) = rows::ROWS.iter().find(|row| row.pattern == pattern) else {
        return Reply::Now(plain(400));
    };
    let found = Found { row, model, version: "", in_repository: false };
    match restricted(app, head, &found).or_else(|| wrong_method(head, &found)) {
        Some(refusal) => Reply::Now(refusal),
        None => answer(app, head, body, arrival, &found, Dialect::VertexAi),
    }
}

/// The answer of the endpoint that the client asks for. Every request here is a POST, whatever the endpoint expects.
fn redirected(
    app: &Arc<App>,
    head: &Head,
    body: Bytes,
    arrival: Option<Arrival>,
    path: &str,
) -> Reply {
    if path == "/metrics" {
        return Reply::Now(Response::ok(ContentType::Metrics, metrics::render(app)));
    }
    let Some(found) = rows::find(path) else { return Reply::Now(plain(400)) };
    match passage(found.row) {
        Passage::None => return Reply::Now(plain(400)),
        Passage::Forbidden => {
            let text = format!("'{path}' cannot be reached by a redirection of Vertex AI");
            return Reply::Now(Response::error(403, ContentType::Json, &text));
        }
        Passage::Open => {}
    }
    match restricted(app, head, &found) {
        Some(refusal) => Reply::Now(refusal),
        None => answer(app, head, body, arrival, &found, Dialect::VertexAi),
    }
}

/// Whether an endpoint can be reached by a redirection.
#[derive(Debug, PartialEq, Eq)]
enum Passage {
    /// It can.
    Open,
    /// It is known and changes the server.
    Forbidden,
    /// It is as one that is not there.
    None,
}

fn passage(row: &Row) -> Passage {
    let ends = |words: &[&str]| words.iter().any(|word| row.pattern.ends_with(word));
    match row.category {
        Category::Trace | Category::Logging => Passage::None,
        Category::Inference if !ends(&["/infer"]) => Passage::None,
        Category::ModelRepository | Category::SharedMemory
            if ends(&["/load", "/unload", "/register"]) =>
        {
            Passage::Forbidden
        }
        _ => Passage::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_read_and_do_not_change() {
        for (path, expected) in [
            ("/v2", Passage::Open),
            ("/v2/health/live", Passage::Open),
            ("/v2/models/stats", Passage::Open),
            ("/v2/models/m/versions/1/infer", Passage::Open),
            ("/v2/models/m/config", Passage::Open),
            ("/v2/models/m/generate", Passage::None),
            ("/v2/models/m/trace/setting", Passage::None),
            ("/v2/logging", Passage::None),
            ("/v2/repository/index", Passage::Open),
            ("/v2/repository/models/m/load", Passage::Forbidden),
            ("/v2/repository/models/m/unload", Passage::Forbidden),
            ("/v2/systemsharedmemory/status", Passage::Open),
            ("/v2/systemsharedmemory/region/r/register", Passage::Forbidden),
            ("/v2/systemsharedmemory/unregister", Passage::Open),
            ("/v2/cudasharedmemory/region/r/register", Passage::Forbidden),
        ] {
            assert_eq!(passage(rows::find(path).unwrap().row), expected, "{path}");
        }
    }
}
