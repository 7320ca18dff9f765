//! Model files and folders of the command line, and sessions on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea::profile::RunningProfile;
use galatea::{Model, ModelOptions, files, memory_limit, models, usual_level};
use galatea_formats::{coreml, onnx};
use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{OptimiseLevel, Precision, Session};
use galatea_serving::graph_model::ModelFormat;
use galatea_serving::model_cache::{self, ModelCache};

use super::arguments::{CommandArguments, CommandOption};
use super::engine;

/// The model file that an argument stands for.
///
/// # Errors
/// Fails when there is none, or when a folder has several.
pub(super) fn find(path: &str) -> Result<PathBuf, String> {
    files::find_model(Path::new(path))
}

/// The checkpoint that an argument stands for; nothing where no checkpoint is meant.
///
/// # Errors
/// Fails for a folder with more than one model in GGUF files.
pub(super) fn checkpoint(path: &str) -> Result<Option<PathBuf>, String> {
    files::find_checkpoint(Path::new(path))
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
    if files::format(path)? == ModelFormat::Onnx {
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
    engine().gpus().limit_memory(limit)
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
            RunningProfile::start(engine().profiler(), path)
                .map(|profile| Some(ProfileScope(profile)))
        }
        (false, Some(_)) => Err("--metal-profile-output goes with --metal-profile".to_owned()),
        (false, None) => Ok(None),
    }
}

/// A model on so many threads (0 for all cores) as the options `--provider` and `--function` ask for, from the cache
/// of prepared models unless the options forbid it.
///
/// # Errors
/// Fails when an option names something that does not exist, or the model cannot be prepared.
pub(super) fn cached_model(
    path: &Path,
    arguments: &CommandArguments,
    threads: usize,
) -> Result<Model, String> {
    let folder = arguments.last("model-cache-dir").unwrap_or("");
    let cache = match arguments.has("no-model-cache") {
        true => None,
        false => models::model_cache(folder, model_cache::DEFAULT_LIMIT_BYTES),
    };
    prepare(path, arguments, threads, cache)
}

/// Makes a session like [`cached_model`], on `--threads` threads and without a cache.
///
/// # Errors
/// Fails as [`cached_model`] does.
pub(super) fn session(path: &Path, arguments: &CommandArguments) -> Result<Session, String> {
    let threads = arguments.number("threads", 0)?;
    prepare(path, arguments, threads, None).map(Model::into_session)
}

fn prepare(
    path: &Path,
    arguments: &CommandArguments,
    threads: usize,
    cache: Option<ModelCache>,
) -> Result<Model, String> {
    let options = ModelOptions {
        device: arguments.last("provider").map(str::to_owned),
        threads,
        level: Some(level(arguments)?),
        precision: precision(arguments)?,
        function: arguments.last("function").map(str::to_owned),
        cache,
    };
    engine().model_with(path, &options).map_err(|error| error.to_string())
}

/// Checks the options that [`session`] takes, apart from the model.
///
/// # Errors
/// Fails when an option names something that does not exist.
pub(super) fn check(arguments: &CommandArguments) -> Result<(), String> {
    level(arguments)?;
    precision(arguments)?;
    arguments.number("threads", 0_usize)?;
    engine().providers(arguments.last("provider")).map(drop)
}

/// Returns the level up to which `--level` allows the graph to be rewritten.
///
/// # Errors
/// Fails when there is no such level.
pub(super) fn level(arguments: &CommandArguments) -> Result<OptimiseLevel, String> {
    match arguments.last("level") {
        None => Ok(usual_level(arguments.last("provider"))),
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
