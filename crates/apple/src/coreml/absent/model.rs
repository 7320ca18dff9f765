//! Models.

use std::convert::Infallible;
use std::path::Path;

use super::super::request::PendingSubmission;
use super::super::{
    CoreMlFault, CoreMlLoadOptions, ModelInterface, MultiArray, PredictionOutput, PredictionState,
};
use super::state::StateBuffers;
use super::{OneThread, none};

/// A loaded model.
pub(in super::super) struct MissingModel(Infallible, OneThread);

impl MissingModel {
    pub(in super::super) fn load(
        _compiled: &Path,
        _options: &CoreMlLoadOptions,
    ) -> Result<Self, CoreMlFault> {
        none()
    }

    pub(in super::super) fn interface(&self) -> Result<ModelInterface, CoreMlFault> {
        match self.0 {}
    }

    pub(in super::super) fn new_state(&self) -> Result<StateBuffers, CoreMlFault> {
        match self.0 {}
    }

    pub(in super::super) fn predict(
        &self,
        _interface: &ModelInterface,
        _inputs: &[(&str, &MultiArray)],
        _backings: &[(&str, &MultiArray)],
        _state: Option<&PredictionState>,
    ) -> Result<Vec<(String, PredictionOutput)>, CoreMlFault> {
        match self.0 {}
    }

    pub(in super::super) fn submit(
        &self,
        _interface: &ModelInterface,
        _pending: PendingSubmission,
    ) {
        match self.0 {}
    }
}
