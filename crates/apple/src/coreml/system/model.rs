//! `MLModel`.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use block2::RcBlock;
use objc2::rc::Retained;
use objc2::runtime::AnyClass;
use objc2_core_ml::MLModel;
use objc2_foundation::{NSError, NSURL};

use super::super::request::PendingSubmission;
use super::super::{
    CoreMlFault, CoreMlFaultKind, CoreMlLoadOptions, ModelInterface, MultiArray, PredictionOutput,
    PredictionState,
};
use super::configuration::configuration;
use super::state::StateBuffers;
use super::{describe, guarded, predict, refused, url};

/// A loaded model.
pub(in super::super) struct NativeModel {
    model: Retained<MLModel>,
}

// SAFETY: Core ML binds models to no thread and asks for one user at a time, which a value that is
// not `Sync` has; asynchronous predictions may overlap.
unsafe impl Send for NativeModel {}

impl NativeModel {
    pub(in super::super) fn load(
        compiled: &Path,
        options: &CoreMlLoadOptions,
    ) -> Result<Self, CoreMlFault> {
        let what = compiled.display().to_string();
        guarded(CoreMlFaultKind::Load, &what, || {
            let url = url(compiled)?;
            let options = configuration(options)?;
            // SAFETY: both are alive, and the configuration has only what this system knows.
            let loaded =
                unsafe { MLModel::modelWithContentsOfURL_configuration_error(&url, &options) };
            match loaded {
                Ok(model) => Ok(Self { model }),
                Err(error) => Err(refused(CoreMlFaultKind::Load, &what, &error)),
            }
        })
    }

    pub(in super::super) fn interface(&self) -> Result<ModelInterface, CoreMlFault> {
        guarded(CoreMlFaultKind::Load, "description of a model", || {
            Ok(describe::interface(&self.model))
        })
    }

    pub(in super::super) fn new_state(&self) -> Result<StateBuffers, CoreMlFault> {
        if AnyClass::get(c"MLState").is_none() {
            return Err(CoreMlFault::newer("the state of a model", "15"));
        }
        // SAFETY: a system with the class has the method.
        guarded(CoreMlFaultKind::Memory, "state of a model", || unsafe {
            Ok(StateBuffers::new(self.model.newState()))
        })
    }

    pub(in super::super) fn predict(
        &self,
        interface: &ModelInterface,
        inputs: &[(&str, &MultiArray)],
        backings: &[(&str, &MultiArray)],
        state: Option<&PredictionState>,
    ) -> Result<Vec<(String, PredictionOutput)>, CoreMlFault> {
        guarded(CoreMlFaultKind::Predict, "prediction", || {
            predict::run(&self.model, interface, inputs, backings, state)
        })
    }

    pub(in super::super) fn submit(&self, interface: &ModelInterface, pending: PendingSubmission) {
        predict::start(&self.model, interface, pending);
    }
}

/// Compiles a package to a folder in the system's place for temporary files. `None` where Core ML names none.
pub(in super::super) fn compile(package: &Path) -> Result<Option<PathBuf>, CoreMlFault> {
    let (sender, receiver) = mpsc::channel();
    let what = package.display().to_string();
    guarded(CoreMlFaultKind::Compile, &what.clone(), || {
        let url = url(package)?;
        let handler = RcBlock::new(move |folder: *mut NSURL, error: *mut NSError| {
            // SAFETY: the folder's name is alive while the block runs, or null.
            let folder = unsafe { folder.as_ref() };
            // SAFETY: so is the error.
            let error = unsafe { error.as_ref() };
            let result = guarded(CoreMlFaultKind::Compile, &what, || match error {
                Some(error) => Err(refused(CoreMlFaultKind::Compile, &what, error)),
                None => Ok(folder.and_then(NSURL::to_file_path)),
            });
            // Nobody waits any more only when the whole process ends.
            let _ = sender.send(result);
        });
        // SAFETY: both are alive, and Core ML keeps its own copy of the block.
        unsafe { MLModel::compileModelAtURL_completionHandler(&url, &handler) };
        Ok::<(), CoreMlFault>(())
    })?;
    // A block that is dropped without a call drops the sender.
    receiver.recv().unwrap_or(Ok(None))
}
