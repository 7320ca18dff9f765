//! Why a request without the right key is not answered.

use std::sync::Arc;
use std::time::Duration;

use crate::restricted::EndpointCategory;

/// Reason for which a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessRefusal {
    /// It presents no key.
    NoKey,
    /// Its key is not one of the file.
    UnknownKey,
    /// Its key does not open the group.
    ClosedGroup {
        /// Name of the key.
        name: Arc<str>,
        /// Group of the endpoint.
        group: EndpointCategory,
    },
    /// A limit of its key is reached.
    LimitReached {
        /// Name of the key.
        name: Arc<str>,
        /// The limit, such as `8 requests at the same time`.
        limit: String,
        /// Whole seconds after which the next request may be taken.
        retry_after: u64,
    },
}

impl AccessRefusal {
    /// Makes the refusal for a limit that lets the next request in after a time.
    pub(super) fn exceeded(name: Arc<str>, limit: String, wait: Duration) -> Self {
        let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self::LimitReached { name, limit, retry_after: whole.max(1) }
    }

    /// Returns the HTTP status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::NoKey | Self::UnknownKey => 401,
            Self::ClosedGroup { .. } => 403,
            Self::LimitReached { .. } => 429,
        }
    }

    /// Returns the seconds after which the request may be sent again, where that helps.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::LimitReached { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Returns the sentence for people.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::NoKey => {
                "this server needs a key: send Authorization: Bearer KEY, or x-api-key: KEY"
                    .to_owned()
            }
            Self::UnknownKey => "the key of the request is not one of this server's".to_owned(),
            Self::ClosedGroup { name, group } => {
                format!("the key '{name}' does not open the endpoint group '{group}'")
            }
            Self::LimitReached { name, limit, .. } => {
                format!("the key '{name}' has reached its limit of {limit}")
            }
        }
    }

    /// Returns the gRPC status.
    pub(crate) fn grpc_status(&self) -> tonic::Status {
        let code = match self {
            Self::NoKey | Self::UnknownKey => tonic::Code::Unauthenticated,
            Self::ClosedGroup { .. } => tonic::Code::PermissionDenied,
            Self::LimitReached { .. } => tonic::Code::ResourceExhausted,
        };
        let mut status = tonic::Status::new(code, self.message());
        if let Some(seconds) = self.retry_after() {
            status.metadata_mut().insert("retry-after", seconds.into());
        }
        status
    }
}
