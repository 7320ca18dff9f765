//! Server reflection: clients such as grpcurl learn the services from the server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic_reflection::server::Builder;

use super::http2::InboundBody;

/// The descriptions of all messages and services, made with the code for them.
const DESCRIPTORS: &[u8] = include_bytes!("proto/descriptors.bin");

/// Both versions of the protocol that clients ask for.
const V1: &str = "/grpc.reflection.v1.ServerReflection/";
const V1_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/";

type ReflectionAnswer = Pin<Box<dyn Future<Output = http::Response<Body>> + Send>>;
type ReflectionFuture = dyn Fn(http::Request<InboundBody>) -> ReflectionAnswer + Send + Sync;

/// Answers what clients ask about the services.
#[derive(Clone, Default)]
pub(super) struct ReflectionService {
    v1: Option<Arc<ReflectionFuture>>,
    v1_alpha: Option<Arc<ReflectionFuture>>,
}

/// The two versions have different types of the same shape.
macro_rules! answering {
    ($build:ident) => {
        match Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS).$build() {
            Ok(service) => {
                let answering: Arc<ReflectionFuture> = Arc::new(move |request| {
                    let mut service = service.clone();
                    Box::pin(async move {
                        let Ok(response) = service.call(request).await;
                        response
                    })
                });
                Some(answering)
            }
            Err(error) => {
                tracing::warn!("gRPC reflection is off: {error}");
                None
            }
        }
    };
}

impl ReflectionService {
    /// Reads the descriptions.
    pub(super) fn new() -> Self {
        Self { v1: answering!(build_v1), v1_alpha: answering!(build_v1alpha) }
    }

    /// Returns the service that answers a path of reflection; none for other paths.
    pub(super) fn of(&self, path: &str) -> Option<Arc<ReflectionFuture>> {
        if path.starts_with(V1) {
            self.v1.clone()
        } else if path.starts_with(V1_ALPHA) {
            self.v1_alpha.clone()
        } else {
            None
        }
    }
}
