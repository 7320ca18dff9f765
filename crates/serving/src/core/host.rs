//! The core as its models see it that call others.

use super::models::parse_version;
use super::{Core, LoadOverrides, ModelHandle, UnloadDependents};
use crate::backend::ModelHost;
use crate::error::ServingError;

impl ModelHost for Core {
    fn model(&self, name: &str, version: &str) -> Result<Option<ModelHandle>, ServingError> {
        parse_version(version)?;
        Ok(self.resolve(name, version).ok())
    }

    fn load(&self, model: &str, overrides: LoadOverrides) -> Result<(), ServingError> {
        self.load_model(model, overrides)
    }

    fn unload(&self, model: &str, dependents: UnloadDependents) -> Result<(), ServingError> {
        self.unload_model(model, dependents)
    }
}
