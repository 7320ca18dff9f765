//! The core as its models see it that call others.

use super::loaded::enqueue;
use super::models::parse_version;
use super::{Core, LoadOverrides, UnloadDependents};
use crate::backend::ModelHost;
use crate::error::ServingError;
use crate::request::{InferenceRequest, ResponseSink};

impl ModelHost for Core {
    /// Also while the server stops: what is called belongs to a request that was taken before.
    fn infer(&self, request: InferenceRequest, sink: ResponseSink) -> Result<(), ServingError> {
        let version = parse_version(&request.model_version)?;
        let name = request.model_name.clone();
        enqueue(|| self.models().find(&name, version).cloned(), request, sink)
    }

    fn is_ready(&self, model: &str, version: &str) -> Result<bool, ServingError> {
        let version = parse_version(version)?;
        Ok(self.models().find(model, version).is_ok())
    }

    fn is_decoupled(&self, model: &str, version: &str) -> Result<bool, ServingError> {
        Self::is_decoupled(self, model, version)
    }

    fn load(&self, model: &str, overrides: LoadOverrides) -> Result<(), ServingError> {
        self.load_model(model, overrides)
    }

    fn unload(&self, model: &str, dependents: UnloadDependents) -> Result<(), ServingError> {
        self.unload_model(model, dependents)
    }
}
