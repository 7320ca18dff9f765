//! The core as its models see it that call others.

use std::sync::Arc;

use super::models::parse_version;
use super::{Core, LoadOverrides, ModelHandle, UnloadDependents};
use crate::backend::{CalledModel, ModelHost};
use crate::error::ServingError;
use crate::payload::{ExecutionContext, HandedRequest};
use crate::request::{InferenceRequest, ResponseSink};

impl CalledModel for ModelHandle {
    fn is_decoupled(&self) -> bool {
        Self::is_decoupled(self)
    }

    fn infer(&self, request: InferenceRequest, sink: ResponseSink) -> Result<(), ServingError> {
        self.infer_for_model(request, sink)
    }
}

impl ModelHost for Core {
    fn model(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<Box<dyn CalledModel>>, ServingError> {
        parse_version(version)?;
        Ok(self.resolve(name, version).ok().map(|model| Box::new(model) as Box<dyn CalledModel>))
    }

    fn load(&self, model: &str, overrides: LoadOverrides) -> Result<(), ServingError> {
        self.load_model(model, overrides)
    }

    fn load_again(&self, version: &Arc<ExecutionContext>, requests: Vec<HandedRequest>) {
        self.load_changed(version, requests);
    }

    fn unload(&self, model: &str, dependents: UnloadDependents) -> Result<(), ServingError> {
        self.unload_for_model(model, dependents)
    }
}
