//! Answers of models to the requests of a batch.

use crate::error::ServingError;
use crate::request::{OutputTensor, ParameterValue};

/// Answer of a model to one request of a batch.
#[derive(Debug)]
pub struct ModelAnswer {
    /// Outputs or an error.
    pub result: Result<Vec<OutputTensor>, ServingError>,
    /// Parameters of the response, where it has outputs.
    pub parameters: Vec<(String, ParameterValue)>,
    /// Whether an error is what the model had to say, so that the request counts as one that succeeded.
    pub deliberate: bool,
}

impl ModelAnswer {
    /// Returns the error by which the request counts as one that failed.
    pub(crate) fn failure(&self) -> Option<&ServingError> {
        self.result.as_ref().err().filter(|_| !self.deliberate)
    }
}

impl From<Result<Vec<OutputTensor>, ServingError>> for ModelAnswer {
    fn from(result: Result<Vec<OutputTensor>, ServingError>) -> Self {
        Self { result, parameters: Vec::new(), deliberate: false }
    }
}
