//! The front end that has OpenAI's endpoints alone.

use std::sync::Arc;

use super::cors::{EndpointPurpose, ErrorStyle};
use super::endpoints::InferDialect;
use super::message::HttpHead;
use super::openai::refusal;
use super::serve::accept;
use super::tables::find_openai;
use super::target::{EndpointTarget, RouteTarget, TargetKind};
use crate::app::ServerState;
use crate::listen::FrontEndListener;
use crate::openai::error::ApiError;

/// Serves OpenAI's endpoints alone until the server stops.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener) {
    accept(app, listener, Arc::new(find)).await;
}

fn find(head: &HttpHead) -> RouteTarget<'_> {
    let found = find_openai(head.path());
    RouteTarget {
        purpose: EndpointPurpose::of(found.as_ref(), ErrorStyle::OpenAi),
        kind: match found {
            Some(found) => TargetKind::Endpoint(EndpointTarget::new(found, InferDialect::Kserve)),
            None => {
                let text = format!("{} is no endpoint of this front end", head.path());
                TargetKind::Nothing(refusal(&ApiError::not_found(text)))
            }
        },
    }
}
