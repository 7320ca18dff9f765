//! Worker settings of the server and of the model's parameters.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::environment::{PythonEnvironment, PythonEnvironments};
use super::stale_resources::ServerFolder;
use crate::backend::ModelFiles;
use crate::error::ServingError;

/// Names of the settings that are read, as in `--backend-config=python,NAME=VALUE`.
const TIMEOUT: &str = "stub-timeout-seconds";
const EXECUTION_TIMEOUT: &str = "execution-timeout-seconds";
const DEFAULT_BYTES: &str = "shm-default-byte-size";
const PREFIX: &str = "shm-region-prefix-name";
const INTERPRETER: &str = "python-executable";
/// Names of the parameters of a model.
const ENVIRONMENT: &str = "EXECUTION_ENV_PATH";
const OWN_INTERPRETER: &str = "PYTHON_EXECUTABLE";
const OWN_EXECUTION_TIMEOUT: &str = "EXECUTION_TIMEOUT_SECONDS";
/// Stands for the model's folder.
const MODEL_FOLDER: &str = "$$TRITON_MODEL_DIRECTORY";

/// Number of characters used of a prefix: names of shared memory have 31 at most on macOS.
const PREFIX_CHARS: usize = 8;

/// How workers of a model are started.
#[derive(Clone, Debug)]
pub(super) struct WorkerSettings {
    pub(super) interpreter: PathBuf,
    /// Environment that the model brings, if it does.
    pub(super) environment: Option<Arc<PythonEnvironment>>,
    /// From the start of a process to its first word, and from the word that it is to stop to its end.
    pub(super) timeout: Duration,
    /// An execution; none where the model may take as long as it likes.
    pub(super) execution: Option<Duration>,
    /// Least bytes of a block of shared memory.
    pub(super) least: usize,
    /// Beginning of the names of shared memory, with a slash.
    pub(super) prefix: String,
}

impl WorkerSettings {
    /// Settings of a model, whose environment is unpacked into `home` where that is an archive.
    ///
    /// # Errors
    /// INVALID_ARG with a setting that makes no sense, and as [`PythonEnvironments::of_archive`].
    pub(super) fn of(
        files: &ModelFiles,
        home: &Arc<ServerFolder>,
        environments: &PythonEnvironments,
    ) -> Result<Self, ServingError> {
        let setting = |name: &str| files.settings.get(name).map(String::as_str);
        let timeout = seconds(TIMEOUT, setting(TIMEOUT))?.unwrap_or(Duration::from_secs(30));
        let own = files.parameter(OWN_EXECUTION_TIMEOUT);
        let execution = match own {
            Some(_) => seconds(OWN_EXECUTION_TIMEOUT, own)?,
            None => seconds(EXECUTION_TIMEOUT, setting(EXECUTION_TIMEOUT))?,
        };
        let least = match setting(DEFAULT_BYTES) {
            None => 1 << 16,
            Some(text) => text.parse().map_err(|_| {
                ServingError::invalid_arg(format!(
                    "'{DEFAULT_BYTES}' must be a number, found '{text}'"
                ))
            })?,
        };
        let prefix = setting(PREFIX).unwrap_or("gpy").trim_start_matches('/');
        let allowed = |letter: &char| letter.is_ascii_alphanumeric() || "_-.".contains(*letter);
        let prefix: String = prefix.chars().filter(allowed).take(PREFIX_CHARS).collect();
        let environment = files.parameter(ENVIRONMENT);
        let environment = environment.map(|text| environment_at(files, text, home, environments));
        let environment = environment.transpose()?;
        let named = files.parameter(OWN_INTERPRETER).or_else(|| setting(INTERPRETER));
        let interpreter = match (named, &environment) {
            (_, Some(environment)) => environment.interpreter.clone(),
            (Some(named), None) => PathBuf::from(in_model(files, named)),
            (None, None) => PathBuf::from("python3"),
        };
        let prefix = format!("/{prefix}");
        Ok(Self { interpreter, environment, timeout, execution, least, prefix })
    }
}

fn in_model(files: &ModelFiles, text: &str) -> String {
    text.replace(MODEL_FOLDER, &files.model_dir.to_string_lossy())
}

/// The environment that a model names.
fn environment_at(
    files: &ModelFiles,
    text: &str,
    home: &Arc<ServerFolder>,
    environments: &PythonEnvironments,
) -> Result<Arc<PythonEnvironment>, ServingError> {
    let path = PathBuf::from(in_model(files, text));
    let made = match fs::metadata(&path) {
        Ok(found) if found.is_dir() => PythonEnvironment::of_folder(&path).map(Arc::new),
        Ok(found) if found.is_file() => environments.of_archive(home, &path),
        Ok(_) => Err(ServingError::invalid_arg(format!(
            "'{}' is neither a folder nor an archive",
            path.display()
        ))),
        Err(error) => Err(ServingError::invalid_arg(format!("'{text}' cannot be opened: {error}"))),
    };
    made.map_err(|error| {
        let ServingError { code, message, .. } = error;
        ServingError::new(code, format!("{ENVIRONMENT} of model '{}': {message}", files.name))
    })
}

fn seconds(name: &str, text: Option<&str>) -> Result<Option<Duration>, ServingError> {
    let Some(text) = text else { return Ok(None) };
    let number: Option<f64> = text.parse().ok();
    let time = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    let time = time.filter(|time| !time.is_zero()).ok_or_else(|| {
        ServingError::invalid_arg(format!(
            "'{name}' must be a number of seconds above 0, found '{text}'"
        ))
    })?;
    Ok(Some(time))
}
