//! The metrics port: `/metrics` for Prometheus, an empty answer for every other path.

use std::sync::Arc;

use super::cors::EndpointPurpose;
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use super::serve::accept;
use super::target::{RouteTarget, TargetKind};
use crate::app::ServerState;
use crate::listen::FrontEndListener;

/// Serves metrics until the server stops.
pub async fn serve_metrics(app: Arc<ServerState>, listener: FrontEndListener) {
    accept(app, listener, Arc::new(find)).await;
}

fn find(head: &HttpHead) -> RouteTarget<'_> {
    let kind = match (head.method(), head.path()) {
        (HttpMethod::Get, "/metrics" | "/metrics/") => TargetKind::Metrics,
        (HttpMethod::Get, _) => TargetKind::Nothing(HttpResponse::empty(ContentType::Metrics)),
        _ => {
            let text = "Method Not Allowed";
            TargetKind::Nothing(HttpResponse::error(405, ContentType::Text, text))
        }
    };
    RouteTarget { purpose: EndpointPurpose::metrics(), kind }
}
