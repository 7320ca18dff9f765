//! State of the gRPC services.

use std::sync::Arc;

use galatea_serving::ServingError;
use galatea_serving::request::ParameterValue;
use tonic::metadata::{KeyAndValueRef, MetadataMap};

use crate::app::ServerState;

/// The services of the gRPC port.
#[derive(Debug, Clone)]
pub struct GrpcServices {
    pub(super) app: Arc<ServerState>,
}

impl GrpcServices {
    /// Services of a server.
    #[must_use]
    pub fn new(app: Arc<ServerState>) -> Self {
        Self { app }
    }

    /// Adds the metadata that the flags forward to the parameters of an inference.
    ///
    /// # Errors
    /// Fails when a key is the name of a reserved parameter.
    pub(super) fn forward_metadata(
        &self,
        metadata: &MetadataMap,
        parameters: &mut Vec<(String, ParameterValue)>,
    ) -> Result<(), ServingError> {
        let pairs = metadata.iter().filter_map(|pair| match pair {
            KeyAndValueRef::Ascii(key, value) => Some((key.as_str(), value.to_str().ok()?)),
            KeyAndValueRef::Binary(..) => None,
        });
        self.app.grpc_rules().forward.add(pairs, parameters)
    }
}
