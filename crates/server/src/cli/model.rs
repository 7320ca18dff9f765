//! Model files and folders of the command line, and sessions on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_formats::{coreml, onnx};
use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{OptimiseLevel, Precision, Session, SessionOptions};
use galatea_serving::backend::llm::{is_checkpoint, one_checkpoint};
use galatea_serving::graph_model::{self, FunctionInterface, ModelFormat};
use galatea_serving::model_cache::{self, ModelCache, SessionOrigin};

use super::arguments::{CommandArguments, CommandOption};
use crate::profile::RunningProfile;
use crate::{devices, gpus, memory_limit, models, tuning};

/// The model file that a path stands for: itself, or the one in a folder, or in the newest version folder.
///
/// # Errors
/// Fails when there is none, or when a folder has several.
pub(super) fn find(path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path);
    if path.is_file() || coreml::is_model(path) {
        return Ok(path.to_owned());
    }
    if !path.is_dir() {
        return Err(format!("there is no model file or folder '{}'", path.display()));
    }
    let entries: Vec<PathBuf> = fs::read_dir(path)
        .map_err(|error| format!("'{}' cannot be read: {error}", path.display()))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let preferred = path.join("model.onnx");
    if preferred.is_file() {
        return Ok(preferred);
    }
    let is_onnx = |entry: &&PathBuf| {
        entry.is_file() && entry.extension().is_some_and(|extension| extension == "onnx")
    };
    let is_core_ml = |entry: &&PathBuf| coreml::is_model(entry);
    let onnx: Vec<&PathBuf> = entries.iter().filter(is_onnx).collect();
    let core_ml: Vec<&PathBuf> = entries.iter().filter(is_core_ml).collect();
    match (onnx.as_slice(), core_ml.as_slice()) {
        ([], []) => {}
        ([file], _) | ([], [file]) => return Ok((*file).clone()),
        ([], _) => {
            return Err(format!("'{}' has several models of Core ML; name one", path.display()));
        }
        _ => {
            return Err(format!(
                "'{}' has several ONNX files and none is called model.onnx; name the file",
                path.display()
            ));
        }
    }
    match newest_version(path).as_deref().and_then(Path::to_str) {
        Some(folder) => find(folder),
        None => Err(format!(
            "'{}' has neither an ONNX file, a model of Core ML, nor a version folder",
            path.display()
        )),
    }
}

/// The version folder of the greatest number, if a folder has any.
fn newest_version(folder: &Path) -> Option<PathBuf> {
    let version = |entry: &PathBuf| -> Option<u64> { entry.file_name()?.to_str()?.parse().ok() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let versions = entries.filter(|entry| entry.is_dir());
    versions.filter_map(|entry| Some((version(&entry)?, entry))).max().map(|(_, entry)| entry)
}

/// The checkpoint that a path stands for: a GGUF file, a folder of weights, or what the newest version folder has of
/// these. Nothing where no checkpoint is meant.
///
/// # Errors
/// Fails for a folder with more than one model in GGUF files.
pub(super) fn checkpoint(path: &str) -> Result<Option<PathBuf>, String> {
    let given = Path::new(path);
    if given.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) {
        return Ok(Some(given.to_owned()));
    }
    if !given.is_dir() || find(path).is_ok() {
        return Ok(None);
    }
    // Of a folder without weights it is said later that they are missing.
    let holds = |folder: &PathBuf| is_checkpoint(folder) || folder.join("config.json").is_file();
    let places = [Some(given.to_owned()), newest_version(given)];
    let Some(place) = places.into_iter().flatten().find(holds) else { return Ok(None) };
    match one_checkpoint(&place) {
        Ok(found) => Ok(Some(found)),
        Err(text) => Err(format!("'{}' {text}", place.display())),
    }
}

/// Refuses a folder of chunks where a command takes other models.
///
/// # Errors
/// Fails when the folder is one of chunks.
pub(super) fn refuse_chunks(path: &Path, command: &str, takes: &str) -> Result<(), String> {
    match ChunkManifest::is_in(path) {
        false => Ok(()),
        true => Err(format!(
            "'{}' holds a language model in chunks, which are computed as they were converted; {command} takes {takes}",
            path.display()
        )),
    }
}

/// Reads a model; if it has several functions, the one that `--function` names.
///
/// # Errors
/// Fails when the format is not known or the file is damaged.
pub(super) fn load(path: &Path, arguments: &CommandArguments) -> Result<onnx::OnnxModel, String> {
    if format(path)? == ModelFormat::Onnx {
        only_main(arguments)?;
        return onnx::load_model(path).map_err(|error| error.to_string());
    }
    let failed = |error: coreml::CoreMlError| error.to_string();
    let model = coreml::load(path).map_err(failed)?;
    let function = model.function(arguments.last("function"));
    let graph = function.map_err(|error| format!("{}: {error}", path.display()))?.graph.clone();
    let metadata = model.info.metadata;
    let producer = metadata.get("com.github.apple.coremltools.version").cloned();
    let info = onnx::OnnxModelInfo {
        producer_name: producer.as_ref().map_or(String::new(), |_| "coremltools".to_owned()),
        producer_version: producer.unwrap_or_default(),
        metadata,
        ..onnx::OnnxModelInfo::default()
    };
    Ok(onnx::OnnxModel { graph, info, files: Vec::new() })
}

/// The format of a model's file.
///
/// # Errors
/// Fails when the file is not a model.
fn format(path: &Path) -> Result<ModelFormat, String> {
    ModelFormat::of(path).ok_or_else(|| {
        format!(
            "'{}' is of no known format ({}); models are .onnx, .mlpackage, .mlmodel and .gguf files, and folders of \
             safetensors",
            path.display(),
            path.extension().and_then(|extension| extension.to_str()).unwrap_or("it has no extension")
        )
    })
}

/// Refuses `--function` for a model that has one function.
fn only_main(arguments: &CommandArguments) -> Result<(), String> {
    match arguments.last("function").filter(|&name| name != "main") {
        None => Ok(()),
        Some(name) => Err(format!("the model has no function '{name}'; its only one is 'main'")),
    }
}

/// The options of [`cached_session`] that say where prepared models are kept.
pub(super) const CACHE_CHOICES: [CommandOption; 2] = [
    CommandOption {
        name: "model-cache-dir",
        value: "DIR",
        sentence: "keep the prepared model there",
    },
    CommandOption { name: "no-model-cache", value: "", sentence: "prepare the model anew" },
];

/// The options that write a profile.
pub(super) const TIMELINE_CHOICES: [CommandOption; 2] = [
    CommandOption {
        name: "metal-profile",
        value: "",
        sentence: "write what the GPU and the host do when, for chrome://tracing and Perfetto",
    },
    CommandOption {
        name: "metal-profile-output",
        value: "FILE",
        sentence: "where to [profile.json]",
    },
];

/// The option of [`limit_gpus`].
pub(super) const GPU_MEMORY_CHOICE: CommandOption = CommandOption {
    name: "gpu-memory-limit",
    value: "BYTES|NGiB|N%",
    sentence: "most memory of the GPU that is taken [what it recommends]",
};

/// Limits the memory taken from a GPU to `--gpu-memory-limit`.
///
/// # Errors
/// Fails when the value is not a limit.
pub(super) fn limit_gpus(arguments: &CommandArguments) -> Result<(), String> {
    let limit = memory_limit::of_gpus(arguments.last("gpu-memory-limit").unwrap_or(""))?;
    gpus::limit_memory(limit)
}

/// A profile that ends when this is dropped, though a GPU still knows it.
#[derive(Debug)]
pub(super) struct ProfileScope(Arc<RunningProfile>);

impl Drop for ProfileScope {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The profile that `--metal-profile` asks for, which ends when it is dropped.
///
/// # Errors
/// Fails when the file cannot be written, or there is no GPU.
pub(super) fn timeline(arguments: &CommandArguments) -> Result<Option<ProfileScope>, String> {
    let path = arguments.last("metal-profile-output");
    match (arguments.has("metal-profile"), path) {
        (true, path) => {
            let path = Path::new(path.unwrap_or("profile.json"));
            RunningProfile::start(path).map(|profile| Some(ProfileScope(profile)))
        }
        (false, Some(_)) => Err("--metal-profile-output goes with --metal-profile".to_owned()),
        (false, None) => Ok(None),
    }
}

/// A model that is ready to run.
#[derive(Debug)]
pub(super) struct ReadyModel {
    /// The session.
    pub(super) session: Session,
    /// Origin of the session.
    pub(super) source: SessionOrigin,
    /// Inputs and states of a Core ML model.
    pub(super) interface: Option<FunctionInterface>,
}

/// A session on so many threads (0 for all cores) as the options `--provider` and `--function` ask for,
/// from the cache of prepared models unless the options forbid it.
///
/// # Errors
/// Fails when an option names something that does not exist, or the model cannot be prepared.
pub(super) fn cached_session(
    path: &Path,
    arguments: &CommandArguments,
    threads: usize,
) -> Result<ReadyModel, String> {
    let folder = arguments.last("model-cache-dir").unwrap_or("");
    let cache = match arguments.has("no-model-cache") {
        true => None,
        false => models::model_cache(folder, model_cache::DEFAULT_LIMIT_BYTES),
    };
    prepare(path, arguments, threads, cache.as_ref())
}

/// Makes a session like [`cached_session`], on `--threads` threads and without a cache.
///
/// # Errors
/// Fails as [`cached_session`] does.
pub(super) fn session(path: &Path, arguments: &CommandArguments) -> Result<Session, String> {
    let threads = arguments.number("threads", 0)?;
    prepare(path, arguments, threads, None).map(|ready| ready.session)
}

fn prepare(
    path: &Path,
    arguments: &CommandArguments,
    threads: usize,
    cache: Option<&ModelCache>,
) -> Result<ReadyModel, String> {
    let format = format(path)?;
    let providers = devices::of_graphs(arguments.last("provider"))?;
    let options = SessionOptions {
        routing: devices::routing(arguments.last("provider"), &providers),
        threads,
        optimise: level(arguments)?,
        precision: precision(arguments)?,
        choices: tuning::choices(),
        ..SessionOptions::default()
    };
    if format == ModelFormat::CoreMl {
        let model = graph_model::read_core_ml(path, arguments.last("function"))?;
        let session = Session::new(model.graph, &providers, &options);
        let session = session.map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(ReadyModel {
            session,
            source: SessionOrigin::Model,
            interface: Some(model.interface),
        });
    }
    only_main(arguments)?;
    let (session, source) = model_cache::session(cache, path, &providers, &options)?;
    Ok(ReadyModel { session, source, interface: None })
}

/// Checks the options that [`session`] takes, apart from the model.
///
/// # Errors
/// Fails when an option names something that does not exist.
pub(super) fn check(arguments: &CommandArguments) -> Result<(), String> {
    level(arguments)?;
    precision(arguments)?;
    arguments.number("threads", 0_usize)?;
    devices::named(arguments.last("provider")).map(drop)
}

/// Returns the level up to which `--level` allows the graph to be rewritten.
///
/// # Errors
/// Fails when there is no such level.
pub(super) fn level(arguments: &CommandArguments) -> Result<OptimiseLevel, String> {
    match arguments.last("level") {
        // Programs have no operations for what larger fusions make.
        None if devices::is_core_ml(arguments.last("provider")) => Ok(OptimiseLevel::O1),
        None => Ok(OptimiseLevel::default()),
        Some(text) => text.parse().map_err(|error| format!("--level: {error}")),
    }
}

/// Returns the precision that `--precision` allows for matrix multiplications and convolutions.
///
/// # Errors
/// Fails when there is no such precision.
pub(super) fn precision(arguments: &CommandArguments) -> Result<Precision, String> {
    match arguments.last("precision") {
        None => Ok(Precision::default()),
        Some(text) => text.parse().map_err(|error| format!("--precision: {error}")),
    }
}

/// The providers that really run the model, such as `cpu` or `cpu+reference`.
pub(super) fn used_providers(session: &Session) -> String {
    let mut names = session.partition_providers();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    names.join("+")
}
