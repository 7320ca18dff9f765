//! States of models.

use std::fmt;
use std::sync::Arc;

use super::CoreMlFault;
use super::check::{self, StateKinship};
use super::system::StateBuffers;

/// State that lasts from one prediction to the next. Its arrays start with zeros.
///
/// Functions of one compiled model that have the same states accept each other's. Apple's documentation does
/// not mention this. Programs for language models on Macs read prompts with one function and write answers with
/// another one on the same state. Source: ANEMLL, its `chat.py`.
pub struct PredictionState {
    buffers: StateBuffers,
    kin: Arc<StateKinship>,
}

impl fmt::Debug for PredictionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("kin", &self.kin).finish_non_exhaustive()
    }
}

impl PredictionState {
    pub(super) fn new(buffers: StateBuffers, kin: Arc<StateKinship>) -> Self {
        Self { buffers, kin }
    }

    /// Returns the identity of the models that accept it.
    pub(super) fn kin(&self) -> &StateKinship {
        &self.kin
    }

    /// Core ML's own.
    #[cfg(any(target_os = "macos", apple_doubles))]
    pub(super) fn buffers(&self) -> &StateBuffers {
        &self.buffers
    }

    /// Copies what another state of the same model holds, while neither is in use.
    ///
    /// # Errors
    /// `Argument` when the other one is that of another model, `Memory` when Core ML gives no access.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), CoreMlFault> {
        check::state(&self.kin, Some(&other.kin))?;
        for feature in &self.kin.states {
            self.buffers.copy_from(&other.buffers, &feature.name)?;
        }
        Ok(())
    }
}
