//! Why a request does not run, and how its client is told.

use crate::error::ServingError;
use crate::request::{CorrelationId, InferenceRequest, request_prefix};

/// Why a request was not taken into the queue. As in recorded Triton, such requests are in no statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    /// The queue holds as many requests as its policy allows.
    QueueFull,
    /// A model over sequences takes one item at a time.
    Batched,
    /// A model over sequences must be told which one.
    NoSequence,
    /// The first request of a sequence must say that it is the first.
    NotStarted,
    /// The model is on its way out.
    Stopping,
}

/// Why requests that waited are not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueExpiry {
    /// Each waited longer than it may.
    Request,
    /// Their sequence waited for a slot longer than it may.
    Sequence,
}

impl QueueRefusal {
    /// Text for the client.
    #[must_use]
    pub fn error(self, model: &str, request: &InferenceRequest) -> ServingError {
        match self {
            Self::QueueFull => ServingError::unavailable(format!(
                "{}Exceeds maximum queue size",
                request_prefix(&request.id)
            )),
            Self::Batched => ServingError::invalid_arg(format!(
                "inference request to model '{model}' must specify batch-size 1 due to requirements of sequence batcher"
            )),
            Self::NoSequence => ServingError::invalid_arg(format!(
                "inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
            )),
            Self::NotStarted => ServingError::invalid_arg(format!(
                "inference request for sequence {} to model '{model}' must specify the START flag on the first request \
                 of the sequence",
                request.correlation
            )),
            Self::Stopping => stopping(),
        }
    }
}

impl QueueExpiry {
    /// Text for the client.
    #[must_use]
    pub fn error(self) -> ServingError {
        ServingError::unavailable(match self {
            Self::Request => "Request timeout expired",
            Self::Sequence => "timeout of the corresponding sequence has been expired",
        })
    }
}

/// Text for clients of a model that is on its way out.
pub(crate) fn stopping() -> ServingError {
    ServingError::unavailable(
        "Server is stopping, scheduler for model has stopped accepting new inference requests",
    )
}

impl std::fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::Uint(number) => write!(f, "{number}"),
            Self::String(text) => f.write_str(text),
        }
    }
}
