//! The metrics port: `/metrics` for Prometheus, an empty answer for every other path.

use std::sync::Arc;

use bytes::Bytes;

use super::cors::EndpointPurpose;
use super::message::{ContentType, Head, Method, Response};
use super::rows::{Arrival, Reply};
use super::serve::{RouteTable, accept};
use crate::app::App;
use crate::listen::Listener;
use crate::metrics;

/// Serves metrics until the server stops.
pub async fn serve_metrics(app: Arc<App>, listener: Listener) {
    let purpose = |_: &Head| EndpointPurpose::page();
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

fn route(app: &Arc<App>, head: &Head, _body: Bytes, _arrival: Option<Arrival>) -> Reply {
    Reply::Now(match (head.method(), head.path()) {
        (Method::Get, "/metrics" | "/metrics/") => {
            Response::ok(ContentType::Metrics, metrics::render(app))
        }
        (Method::Get, _) => Response::empty(ContentType::Metrics),
        _ => Response::error(405, ContentType::Text, "Method Not Allowed"),
    })
}
