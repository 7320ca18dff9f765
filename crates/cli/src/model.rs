//! Model files and folders of the command line, and sessions on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use galatea::memory_limit::MemoryBound;
use galatea::profile::RunningProfile;
use galatea::{Model, ModelOptions, files, memory_limit, models, usual_level};
use galatea_formats::{coreml, onnx};
use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{OptimiseLevel, Precision, Session};
use galatea_serving::graph_model::ModelFormat;
use galatea_serving::model_cache::{self, ModelCache};

use super::arguments::{parsed, path as path_of, threads};
use super::engine;

/// The model file that an argument stands for.
///
/// # Errors
/// Fails when there is none, or when a folder has several.
pub(super) fn find(path: &Path) -> Result<PathBuf, String> {
    files::find_model(path)
}

/// The checkpoint that an argument stands for; nothing where no checkpoint is meant.
///
/// # Errors
/// Fails for a folder with more than one model in GGUF files.
pub(super) fn checkpoint(path: &Path) -> Result<Option<PathBuf>, String> {
    files::find_checkpoint(path)
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

/// Reads a model; if it has several functions, the one that is named.
///
/// # Errors
/// Fails when the format is not known or the file is damaged.
pub(super) fn load(path: &Path, function: Option<&str>) -> Result<onnx::OnnxModel, String> {
    if files::format(path)? == ModelFormat::Onnx {
        only_main(function)?;
        return onnx::load_model(path).map_err(|error| error.to_string());
    }
    let failed = |error: coreml::CoreMlError| error.to_string();
    let model = coreml::load(path).map_err(failed)?;
    let function = model.function(function);
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

/// Refuses another function than the only one of a model.
fn only_main(function: Option<&str>) -> Result<(), String> {
    match function.filter(|&name| name != "main") {
        None => Ok(()),
        Some(name) => Err(format!("the model has no function '{name}'; its only one is 'main'")),
    }
}

/// Option for the function of a model.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct FunctionChoice {
    #[arg(
        id = "function",
        long = "function",
        value_name = "NAME",
        help = "function of a model that has several"
    )]
    pub(super) name: Option<String>,
}

/// Option for the threads of a session.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ThreadChoice {
    #[arg(
        id = "threads",
        long = "threads",
        value_name = "N",
        value_parser = threads,
        default_value_t = 0,
        help = "threads inside an operator [all cores]"
    )]
    pub(super) count: usize,
}

/// Options for the session that runs a model.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SessionChoices {
    #[arg(long, value_name = "NAME", help = "run on this provider")]
    pub(super) provider: Option<String>,
    #[command(flatten)]
    pub(super) function: FunctionChoice,
    #[arg(
        long,
        value_name = "fp32|bf16|fp16",
        value_parser = parsed::<Precision>,
        help = "what products and convolutions compute in [fp32]"
    )]
    pub(super) precision: Option<Precision>,
    #[arg(
        long,
        value_name = "O0…O3",
        value_parser = parsed::<OptimiseLevel>,
        help = "how far the graph is rewritten [O3]"
    )]
    pub(super) level: Option<OptimiseLevel>,
}

impl SessionChoices {
    /// Returns the level up to which the graph may be rewritten.
    pub(super) fn optimise_level(&self) -> OptimiseLevel {
        self.level.unwrap_or_else(|| usual_level(self.provider.as_deref()))
    }
}

/// Options for the place of prepared models.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct CacheChoices {
    #[arg(long, value_name = "DIR", help = "keep the prepared model there")]
    model_cache_dir: Option<String>,
    #[arg(long, help = "prepare the model anew")]
    no_model_cache: bool,
}

impl CacheChoices {
    fn open(&self) -> Option<ModelCache> {
        let folder = self.model_cache_dir.as_deref().unwrap_or("");
        match self.no_model_cache {
            true => None,
            false => models::model_cache(folder, model_cache::DEFAULT_LIMIT_BYTES),
        }
    }
}

/// Options for a profile of the GPU and the host.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TimelineChoices {
    #[arg(
        long,
        help = "write what the GPU and the host do when, for chrome://tracing and Perfetto"
    )]
    metal_profile: bool,
    #[arg(long, value_name = "FILE", value_parser = path_of, help = "where to [profile.json]")]
    metal_profile_output: Option<PathBuf>,
}

/// The options for memory and submissions of GPUs.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct GpuMemoryChoice {
    #[arg(
        long,
        value_name = "BYTES|NGiB|N%",
        value_parser = GpuMemoryLimit::parse,
        help = "most memory of the GPU that is taken [what it recommends]"
    )]
    gpu_memory_limit: Option<GpuMemoryLimit>,
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=600_000),
        help = "most predicted milliseconds of GPU work that is submitted at once [150 where it shares the host's memory]"
    )]
    gpu_submission_ms: Option<u64>,
}

/// A limit for memory of a GPU, if there is one.
#[derive(Debug, Clone, Copy)]
struct GpuMemoryLimit(Option<MemoryBound>);

impl GpuMemoryLimit {
    fn parse(text: &str) -> Result<Self, String> {
        let found = memory_limit::of_gpus(text);
        found.map(Self).map_err(|error| error.trim_start_matches("--gpu-memory-limit ").to_owned())
    }
}

impl GpuMemoryChoice {
    /// Limits the memory taken from a GPU, and the time of a submission.
    ///
    /// # Errors
    /// Fails when this build has no GPUs to limit.
    pub(super) fn apply(&self) -> Result<(), String> {
        let bound = self.gpu_submission_ms.map(Duration::from_millis);
        engine().gpus().bound_submissions(bound)?;
        engine().gpus().limit_memory(self.gpu_memory_limit.and_then(|limit| limit.0))
    }
}

/// A profile that ends when this is dropped, though a GPU still knows it.
#[derive(Debug)]
pub(super) struct ProfileScope(Arc<RunningProfile>);

impl Drop for ProfileScope {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl TimelineChoices {
    /// Starts the profile that is asked for; it ends when it is dropped.
    ///
    /// # Errors
    /// Fails when the file cannot be written, or there is no GPU.
    pub(super) fn start(&self) -> Result<Option<ProfileScope>, String> {
        match (self.metal_profile, &self.metal_profile_output) {
            (true, path) => {
                let path = path.as_deref().unwrap_or(Path::new("profile.json"));
                RunningProfile::start(engine().profiler(), path)
                    .map(|profile| Some(ProfileScope(profile)))
            }
            (false, Some(_)) => Err("--metal-profile-output goes with --metal-profile".to_owned()),
            (false, None) => Ok(None),
        }
    }
}

/// Prepares a model on so many threads (0 for all cores), from the cache of prepared models unless options forbid it.
///
/// # Errors
/// Fails when an option names something that does not exist, or the model cannot be prepared.
pub(super) fn cached_model(
    path: &Path,
    choices: &SessionChoices,
    threads: usize,
    cache: &CacheChoices,
) -> Result<Model, String> {
    prepare(path, choices, threads, cache.open())
}

/// Makes a session like [`cached_model`], without a cache.
///
/// # Errors
/// Fails as [`cached_model`] does.
pub(super) fn session(
    path: &Path,
    choices: &SessionChoices,
    threads: usize,
) -> Result<Session, String> {
    prepare(path, choices, threads, None).map(Model::into_session)
}

fn prepare(
    path: &Path,
    choices: &SessionChoices,
    threads: usize,
    cache: Option<ModelCache>,
) -> Result<Model, String> {
    let options = ModelOptions {
        device: choices.provider.clone(),
        threads,
        level: Some(choices.optimise_level()),
        precision: choices.precision.unwrap_or_default(),
        function: choices.function.name.clone(),
        cache,
    };
    engine().model_with(path, &options).map_err(|error| error.to_string())
}

/// The providers that really run the model, such as `cpu` or `cpu+reference`.
pub(super) fn used_providers(session: &Session) -> String {
    let mut names = session.partition_providers();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    names.join("+")
}
