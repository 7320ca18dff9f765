//! `pytorch`: files of TorchScript and of `torch.export`, run by the user's own torch in workers of the Python backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bls_callee::BlsCallee;
use super::own_files::TORCH_MODEL;
use super::settings::WorkerSettings;
use super::{PYTORCH, PythonModel, PythonShared, WorkerRecipe};
use crate::backend::{BackendModel, ModelBackend, ModelFiles};
use crate::config::ModelConfig;
use crate::config::inference::model_config::SchedulingChoice;
use crate::error::ServingError;

/// TorchScript, and what stands for it where there is none.
const SCRIPT: &str = "model.pt";
const EXPORTED: &str = "model.pt2";

/// Loads files of torch.
#[derive(Debug, Default)]
pub struct PytorchBackend {
    shared: PythonShared,
}

impl ModelBackend for PytorchBackend {
    fn runs_programs(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        PYTORCH
    }

    fn platform(&self) -> &'static str {
        "pytorch_libtorch"
    }

    fn default_model_filename(&self) -> &'static str {
        SCRIPT
    }

    fn recognises(&self, _model_dir: &Path, version_dir: Option<&Path>) -> bool {
        version_dir.is_some_and(|folder| folder.join(EXPORTED).is_file())
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        refuse_foreign_requests(&files.config, PYTORCH)?;
        let data = model_file(files)?;
        let home = self.shared.home()?;
        let settings = WorkerSettings::of(files, &home, &self.shared.environments)?;
        let callee = BlsCallee::new(&files.name, &files.host, &self.shared.loads);
        let path = home.path().join(TORCH_MODEL);
        let made =
            WorkerRecipe { files: files.clone(), settings, path, home, callee, data: Some(data) };
        Ok(Box::new(PythonModel { made: Arc::new(made), completed: None, io: None }))
    }
}

/// Refuses configurations whose requests a call of the file cannot answer: one answer for each, and no states.
///
/// # Errors
/// UNSUPPORTED with what is configured.
pub(super) fn refuse_foreign_requests(
    config: &ModelConfig,
    backend: &str,
) -> Result<(), ServingError> {
    let policy = config.model_transaction_policy.as_ref();
    let mut found = policy.filter(|policy| policy.decoupled).map(|_| "decoupled");
    if let Some(SchedulingChoice::SequenceBatching(batching)) = &config.scheduling_choice {
        if batching.iterative_sequence {
            found = Some("an iterative sequence");
        } else if !batching.state.is_empty() {
            found = Some("one with states that the server keeps");
        }
    }
    let Some(found) = found else { return Ok(()) };
    Err(ServingError::unsupported(format!(
        "model '{}' is configured as {found}, which backend '{backend}' does not have: the file answers each request \
         once and keeps its own states",
        config.name
    )))
}

/// The file that holds the model.
fn model_file(files: &ModelFiles) -> Result<PathBuf, ServingError> {
    let filename = match files.config.default_model_filename.as_str() {
        "" => SCRIPT,
        given => given,
    };
    let path = files.version_dir.join(filename);
    if path.is_file() {
        return Ok(path);
    }
    let shown = path.display();
    let model = &files.name;
    // The name may be the one that was filled in.
    if filename != SCRIPT {
        return Err(ServingError::unavailable(format!(
            "unable to find '{shown}' for model '{model}'"
        )));
    }
    let exported = files.version_dir.join(EXPORTED);
    if exported.is_file() {
        return Ok(exported);
    }
    Err(ServingError::unavailable(format!(
        "unable to find '{shown}' or '{EXPORTED}' beside it for model '{model}'"
    )))
}
