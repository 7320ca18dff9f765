//! The core as its models see it that call others.

use super::loaded::enqueue;
use super::models::parse_version;
use super::{Core, Dependents, LoadOverrides};
use crate::backend::Host;
use crate::error::Error;
use crate::request::{InferenceRequest, ResponseSink};

impl Host for Core {
    /// Also while the server stops: what is called belongs to a request that was taken before.
    fn infer(&self, request: InferenceRequest, sink: ResponseSink) -> Result<(), Error> {
        let version = parse_version(&request.model_version)?;
        let name = request.model_name.clone();
        enqueue(|| self.models().find(&name, version).cloned(), request, sink)
    }

    fn is_ready(&self, model: &str, version: &str) -> Result<bool, Error> {
        let version = parse_version(version)?;
        Ok(self.models().find(model, version).is_ok())
    }

    fn is_decoupled(&self, model: &str, version: &str) -> Result<bool, Error> {
        Self::is_decoupled(self, model, version)
    }

    fn load(&self, model: &str, overrides: LoadOverrides) -> Result<(), Error> {
        self.load_model(model, overrides)
    }

    fn unload(&self, model: &str, dependents: Dependents) -> Result<(), Error> {
        self.unload_model(model, dependents)
    }
}
