//! State of the gRPC services.

use std::sync::Arc;

use galatea_serving::request::ParameterValue;
use galatea_serving::{ServingError, TokenMeter};
use tonic::metadata::{KeyAndValueRef, MetadataMap};

use crate::access::AccessKey;
use crate::app::ServerState;

/// Returns the counter of the tokens of a key's requests, if they are limited.
pub(super) fn token_meter(key: Option<&Arc<AccessKey>>) -> Option<Arc<dyn TokenMeter>> {
    let key = key.filter(|key| key.limits_tokens())?;
    Some(Arc::clone(key) as Arc<dyn TokenMeter>)
}

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
