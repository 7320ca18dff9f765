//! `tensorflow`: SavedModels, frozen graphs and files of LiteRT, run by the user's own TensorFlow in workers of the
//! Python backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use super::bls_callee::BlsCallee;
use super::own_files::TENSORFLOW_MODEL;
use super::pytorch::refuse_foreign_requests;
use super::settings::WorkerSettings;
use super::{PythonModel, PythonShared, TENSORFLOW, WorkerRecipe};
use crate::backend::{BackendModel, ModelBackend, ModelFiles, ModelIo, ModelTensor};
use crate::config;
use crate::config::inference;
use crate::error::ServingError;

/// The file that a SavedModel's folder holds.
const SAVED: &str = "saved_model.pb";
/// Endings of what the backend runs.
const ENDINGS: [&str; 4] = ["savedmodel", "graphdef", "tflite", "pb"];

/// Form of the files that a `platform:` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TensorflowForm {
    /// Folders of `tf.saved_model.save`.
    SavedModel,
    /// Frozen graphs.
    GraphDef,
}

/// Loads files of TensorFlow, of one platform where the configuration names one.
#[derive(Debug)]
pub struct TensorflowBackend {
    form: TensorflowForm,
    shared: Arc<PythonShared>,
}

impl TensorflowBackend {
    /// Returns the backends of both platforms, of which the first is meant where none is named.
    #[must_use]
    pub fn of_platforms() -> [Self; 2] {
        let shared = Arc::new(PythonShared::default());
        [TensorflowForm::SavedModel, TensorflowForm::GraphDef]
            .map(|form| Self { form, shared: Arc::clone(&shared) })
    }
}

impl ModelBackend for TensorflowBackend {
    fn runs_programs(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        TENSORFLOW
    }

    fn platform(&self) -> &'static str {
        match self.form {
            TensorflowForm::SavedModel => "tensorflow_savedmodel",
            TensorflowForm::GraphDef => "tensorflow_graphdef",
        }
    }

    fn default_model_filename(&self) -> &'static str {
        match self.form {
            TensorflowForm::SavedModel => "model.savedmodel",
            TensorflowForm::GraphDef => "model.graphdef",
        }
    }

    fn recognises(&self, _model_dir: &Path, version_dir: Option<&Path>) -> bool {
        self.form == TensorflowForm::SavedModel
            && version_dir.is_some_and(|folder| !candidates(folder).is_empty())
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        refuse_foreign_requests(&files.config, TENSORFLOW)?;
        let data = self.model_path(files)?;
        let home = self.shared.home()?;
        let settings = WorkerSettings::of(files, &home, &self.shared.environments)?;
        let callee = BlsCallee::new(&files.name, &files.host, &self.shared.loads);
        let path = home.path().join(TENSORFLOW_MODEL);
        let made =
            WorkerRecipe { files: files.clone(), settings, path, home, callee, data: Some(data) };
        let io = Some(described(&made)?);
        Ok(Box::new(PythonModel { made: Arc::new(made), completed: None, io }))
    }
}

impl TensorflowBackend {
    /// The file or folder that holds the model: the one that the configuration names, else the only one there.
    fn model_path(&self, files: &ModelFiles) -> Result<PathBuf, ServingError> {
        let usual = self.default_model_filename();
        let named = match files.config.default_model_filename.as_str() {
            "" => usual,
            given => given,
        };
        let path = files.version_dir.join(named);
        if path.exists() {
            return Ok(path);
        }
        let found = candidates(&files.version_dir);
        match found.as_slice() {
            // The name may be the one that was filled in.
            [only] if named == usual => Ok(only.clone()),
            others => {
                let names = others.iter().map(|path| format!("'{}'", path.display()));
                let names = names.collect::<Vec<_>>().join(", ");
                let there = if names.is_empty() { "nothing of TensorFlow" } else { &names };
                Err(ServingError::unavailable(format!(
                    "unable to find '{}' for model '{}': there is {there}",
                    path.display(),
                    files.name
                )))
            }
        }
    }
}

/// Finds what TensorFlow can run of a version: the folder itself, as TensorFlow Serving has it, or what lies in it.
fn candidates(folder: &Path) -> Vec<PathBuf> {
    if folder.join(SAVED).is_file() {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|p| runs(p)).collect();
    found.sort();
    found
}

fn runs(path: &Path) -> bool {
    if path.is_dir() {
        return path.join(SAVED).is_file();
    }
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Asks a worker, which ends right after it, what the file takes and gives.
fn described(made: &WorkerRecipe) -> Result<ModelIo, ServingError> {
    let config = config::to_json(&made.files.config).to_string();
    let said = made.start().complete(&config)?.unwrap_or_default();
    let tensors = |what: &str| -> Option<Vec<ModelTensor>> {
        said.get(what)?.as_array()?.iter().map(tensor).collect()
    };
    match (tensors("inputs"), tensors("outputs")) {
        (Some(inputs), Some(outputs)) => Ok(ModelIo { inputs, outputs, ..ModelIo::default() }),
        _ => Err(ServingError::internal(format!(
            "the worker of model '{}' describes its file as {said}, expected inputs and outputs with names, types and \
             lengths",
            made.files.name
        ))),
    }
}

/// A tensor as the worker describes it; `dims` are null where the rank is not known.
fn tensor(said: &Json) -> Option<ModelTensor> {
    let number = inference::DataType::from_str_name(said.get("data_type")?.as_str()?)? as i32;
    let dims = said.get("dims")?.as_array();
    let ranked = dims.is_some();
    let dims = dims.into_iter().flatten().map(Json::as_i64).collect::<Option<Vec<i64>>>()?;
    Some(ModelTensor {
        name: said.get("name")?.as_str()?.to_owned(),
        datatype: config::datatype(number)?,
        // A value without axes has one element: configurations and requests know no scalars.
        dims: if ranked && dims.is_empty() { vec![1] } else { dims },
        ranked,
        optional: false,
    })
}
