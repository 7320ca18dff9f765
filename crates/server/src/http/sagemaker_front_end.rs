//! The front end for SageMaker.

use std::sync::Arc;

use super::cors::{EndpointPurpose, ErrorStyle};
use super::endpoints::{InferDialect, find_in};
use super::message::HttpHead;
use super::sagemaker::status;
use super::serve::accept;
use super::tables::SAGEMAKER;
use super::target::{EndpointTarget, RouteTarget, TargetKind};
use crate::app::ServerState;
use crate::listen::FrontEndListener;

/// Serves SageMaker until the server stops.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener) {
    accept(app, listener, Arc::new(find)).await;
}

fn find(head: &HttpHead) -> RouteTarget<'_> {
    let found = find_in(SAGEMAKER, head.path());
    RouteTarget {
        purpose: EndpointPurpose::of(found.as_ref(), ErrorStyle::Triton),
        kind: match found {
            Some(found) => {
                TargetKind::Endpoint(EndpointTarget::new(found, InferDialect::SageMaker))
            }
            None => TargetKind::Nothing(status(400)),
        },
    }
}
