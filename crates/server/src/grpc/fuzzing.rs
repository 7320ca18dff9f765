//! gRPC for fuzz targets.

use std::sync::Arc;

use bytes::Bytes;

use super::grpc_services::GrpcServices;
use super::unary;
use crate::app::ServerState;

pub(crate) use super::http2::fuzzing::{frames, heads};

/// Answers a message of `ModelInfer`, whatever it is.
pub(crate) async fn infer(app: &Arc<ServerState>, message: &[u8]) {
    let services = GrpcServices::new(Arc::clone(app));
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.uri = http::Uri::from_static(unary::PATH);
    // Where the first tensor lies decides about its alignment, and is looked up before the message is read.
    unary::first_raw(message);
    let answer = unary::call(&services, parts, Bytes::copy_from_slice(message), None).await;
    let ends = answer.trailers.as_ref().unwrap_or(&answer.headers);
    assert!(ends.contains_key("grpc-status"), "an answer has no status");
}
