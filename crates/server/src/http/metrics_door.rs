//! The metrics port: `/metrics` for Prometheus, an empty answer for every other path.

use std::sync::Arc;

use bytes::Bytes;

use super::cors::EndpointPurpose;
use super::endpoints::{EndpointReply, RequestArrival};
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use super::serve::{RouteTable, accept};
use crate::app::ServerState;
use crate::listen::FrontEndListener;

/// Serves metrics until the server stops.
pub async fn serve_metrics(app: Arc<ServerState>, listener: FrontEndListener) {
    let purpose = |_: &HttpHead| EndpointPurpose::page();
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

fn route(
    app: &Arc<ServerState>,
    head: &HttpHead,
    _body: Bytes,
    _arrival: Option<RequestArrival>,
) -> EndpointReply {
    EndpointReply::Ready(match (head.method(), head.path()) {
        (HttpMethod::Get, "/metrics" | "/metrics/") => {
            HttpResponse::ok(ContentType::Metrics, app.metrics_page())
        }
        (HttpMethod::Get, _) => HttpResponse::empty(ContentType::Metrics),
        _ => HttpResponse::error(405, ContentType::Text, "Method Not Allowed"),
    })
}
