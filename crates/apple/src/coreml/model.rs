//! Loaded models.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::check::{self, GivenArray, StateKinship};
use super::request::PendingSubmission;
use super::system::NativeModel;
use super::{
    CoreMlFault, CoreMlLoadOptions, ModelInterface, Prediction, PredictionOutput, PredictionState,
    PredictionSubmission, SubmissionCallback,
};

/// A model in memory. One thread uses it at a time, with any number of submissions under way.
pub struct LoadedModel {
    model: NativeModel,
    interface: ModelInterface,
    kin: Arc<StateKinship>,
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel").field("interface", &self.interface).finish_non_exhaustive()
    }
}

impl LoadedModel {
    /// Loads a compiled model. The first time on a machine this takes seconds to minutes, while the
    /// system prepares the model for its devices; what it prepares is kept by the folder's path.
    ///
    /// # Errors
    /// `File` when there is no such folder, `Version` for options that this macOS does not have,
    /// `Load` when Core ML refuses the model, `Unavailable` off macOS.
    pub fn load(compiled: &Path, options: &CoreMlLoadOptions) -> Result<Self, CoreMlFault> {
        folder(compiled)?;
        let model = NativeModel::load(compiled, options)?;
        let interface = model.interface()?;
        let states = interface.states.clone();
        let kin = StateKinship { compiled: compiled.to_owned(), units: options.units, states };
        Ok(Self { model, interface, kin: Arc::new(kin) })
    }

    /// Returns the inputs, outputs and states of the model.
    #[must_use]
    pub fn describe(&self) -> &ModelInterface {
        &self.interface
    }

    /// A state of zeros for a model with states.
    ///
    /// # Errors
    /// `Version` before macOS 15, `Argument` for a model without states.
    pub fn new_state(&self) -> Result<PredictionState, CoreMlFault> {
        let buffers = self.model.new_state()?;
        if self.interface.states.is_empty() {
            return Err(CoreMlFault::argument("the model has no states"));
        }
        Ok(PredictionState::new(buffers, Arc::clone(&self.kin)))
    }

    /// Computes the outputs, in the order of [`ModelInterface::outputs`].
    ///
    /// # Errors
    /// `Argument` when arrays or states do not fit [`LoadedModel::describe`], `Predict` when Core ML
    /// fails or gives a picture or a sequence, which this binding does not take.
    pub fn predict(
        &self,
        prediction: Prediction<'_>,
    ) -> Result<Vec<(String, PredictionOutput)>, CoreMlFault> {
        let Prediction { inputs, backings, state } = prediction;
        let given: Vec<GivenArray<'_>> =
            inputs.iter().map(|(name, array)| array.given(name)).collect();
        check::inputs(&self.interface, &given)?;
        let given: Vec<GivenArray<'_>> =
            backings.iter().map(|(name, array)| array.given(name)).collect();
        check::backings(&self.interface, &given)?;
        check::state(&self.kin, state.as_ref().map(|state| state.kin()))?;
        let backings: Vec<_> = backings.iter().map(|(name, array)| (*name, &**array)).collect();
        self.model.predict(&self.interface, inputs, &backings, state.as_deref())
    }

    /// Starts to compute the outputs and tells `done` when that has ended, also in an error.
    /// Submissions that do not share a state may be under way at once.
    pub fn submit(&self, submission: PredictionSubmission, done: SubmissionCallback) {
        let checked = self.checked(&submission);
        let pending = PendingSubmission::new(submission, done);
        match checked {
            Ok(()) => self.model.submit(&self.interface, pending),
            Err(fault) => pending.finish(|_| Err(fault)),
        }
    }

    fn checked(&self, submission: &PredictionSubmission) -> Result<(), CoreMlFault> {
        let inputs: Vec<GivenArray<'_>> =
            submission.inputs.iter().map(|(name, array)| array.given(name)).collect();
        check::inputs(&self.interface, &inputs)?;
        let backings: Vec<GivenArray<'_>> =
            submission.backings.iter().map(|(name, array)| array.given(name)).collect();
        check::backings(&self.interface, &backings)?;
        check::state(&self.kin, submission.state.as_ref().map(|state| state.kin()))
    }
}

/// A compiled model is a folder.
pub(super) fn folder(compiled: &Path) -> Result<(), CoreMlFault> {
    match std::fs::metadata(compiled) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            let text = format!("{}: found a file, expected a folder", compiled.display());
            Err(CoreMlFault::file(text))
        }
        Err(error) => Err(CoreMlFault::file(format!("{}: {error}", compiled.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CoreMlFaultKind;
    use super::*;

    #[test]
    fn what_is_no_folder_is_not_loaded() {
        let options = CoreMlLoadOptions::default();
        let kind = |path: &Path| LoadedModel::load(path, &options).unwrap_err().kind;
        assert_eq!(kind(Path::new("/nowhere/a.mlmodelc")), CoreMlFaultKind::File);
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(kind(file.path()), CoreMlFaultKind::File);
    }

    #[test]
    fn models_and_what_they_take_and_give_go_from_thread_to_thread() {
        fn goes<T: Send>() {}
        goes::<LoadedModel>();
        goes::<PredictionSubmission>();
        goes::<super::super::CompletedPrediction>();
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_no_model_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let fault = LoadedModel::load(folder.path(), &CoreMlLoadOptions::default()).unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Unavailable);
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn an_empty_folder_is_no_model() {
        let folder = tempfile::tempdir().unwrap();
        let fault = LoadedModel::load(folder.path(), &CoreMlLoadOptions::default()).unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Load);
    }
}
