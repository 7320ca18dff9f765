//! Steps of a language model on a device, and by chunks that Core ML runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use galatea::chunks::{ChunkOptions, ChunkRunner, write_chunks};
use galatea::{EngineArguments, GenerationSettings};
use galatea_coreml::engine::{
    CompiledCache, CoreMlEngine, DEFAULT_LIMIT_BYTES, EngineLoadOptions, counts,
};
use galatea_llm::chunked::{ChunkEngine, ChunkManifest, ChunkModel};
use galatea_llm::engine::{StepBatch, StepModel};
use galatea_llm::model::CheckpointOptions;
use galatea_llm::sampling::LogitNeed;
use galatea_llm::{LlmError, LlmErrorKind};

use super::core_ml::{FeatureFailure, FeatureOutcome, units_of, worker};
use super::line::{SubjectOutcome, SubjectReport};
use super::task::SubjectTask;
use crate::engine;

/// Tokens that are generated.
const TOKENS: u32 = 24;

/// Finds the sample model in the folder of the program's sources, or in one above the working folder.
fn sample() -> Option<PathBuf> {
    let from_program = std::env::current_exe().ok();
    let folders = std::env::current_dir().into_iter().chain(from_program);
    let folders: Vec<PathBuf> = folders
        .flat_map(|folder| folder.ancestors().map(Path::to_owned).collect::<Vec<_>>())
        .chain(Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(Path::to_owned))
        .collect();
    let mut models = folders.iter().map(|folder| folder.join("examples/models/chat"));
    models.find(|folder| folder.is_dir())
}

/// Text that a device generates, and the time that took.
struct GeneratedText {
    text: String,
    load_ms: f64,
    seconds: f64,
}

/// Generates the most probable tokens behind a prompt.
fn generated(model: &Path, device: &str) -> Result<GeneratedText, String> {
    let device = Some(device.to_owned());
    let arguments =
        EngineArguments { max_model_len: Some(128), device, ..EngineArguments::default() };
    let started = Instant::now();
    let llm = engine().llm_with(model, &arguments).map_err(|error| error.to_string())?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let mut settings = GenerationSettings::default();
    settings.sampling.temperature = 0.0;
    settings.sampling.max_tokens = Some(TOKENS);
    let started = Instant::now();
    let stream = llm.complete("Once upon a time", &settings).map_err(|error| error.to_string())?;
    let answer = stream.message().map_err(|error| error.to_string())?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(GeneratedText { text: answer.content, load_ms, seconds })
}

/// Generates on the task's device, and compares with the reference's text.
pub(super) fn steps(task: &SubjectTask) -> SubjectOutcome {
    let Some(model) = sample() else {
        return Ok(SubjectReport::skipped("the folder examples/models is not here"));
    };
    let found = generated(&model, &task.unit)?;
    let expected = generated(&model, "reference")?;
    let wrong = (found.text != expected.text)
        .then(|| format!("'{}' was generated, expected '{}'", found.text, expected.text));
    let wrong = wrong.or_else(|| found.text.is_empty().then(|| "nothing was generated".to_owned()));
    Ok(SubjectReport::passed()
        .figure("load_ms", found.load_ms)
        .figure("at_most_tokens_per_s", f64::from(TOKENS) / found.seconds)
        .checked(wrong))
}

/// Tokens of the prompt of chunks, in two steps of several rows, and of the steps of one row behind it.
const PROMPT: usize = 12;
const STEPS: usize = 6;

/// Positions of the states of chunks, and rows of the functions that compute prompts.
const CONTEXT: usize = 64;
const ROWS: usize = 8;

/// Largest accepted difference of logits, relative to the largest one: sums of FP16 in another order.
const DISTANCE: f32 = 3e-2;

/// A sequence of steps whose tokens are given: the logits of each.
fn logits(model: &mut ChunkModel, vocabulary: usize) -> Result<Vec<f32>, String> {
    let number = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    let token = |at: usize| number((at * 37 + 11) % vocabulary.max(1));
    let mut all = Vec::new();
    let steps = std::iter::once(0..PROMPT).chain((PROMPT..PROMPT + STEPS).map(|at| at..at + 1));
    for positions in steps {
        let rows = positions.len();
        let batch = StepBatch {
            tokens: positions.clone().map(token).collect(),
            positions: positions.clone().map(number).collect(),
            starts: vec![0, number(rows)],
            lengths: vec![number(positions.end)],
            blocks: vec![0],
            most_blocks: 1,
            wanted: vec![number(rows) - 1],
            need: LogitNeed::Logits,
        };
        let mut found = model.step(&batch).map_err(|error| error.to_string())?;
        all.extend_from_slice(found.row(0).ok_or("a step without logits")?);
    }
    Ok(all)
}

/// Runs steps of a language model by functions of packages in a worker, and compares their logits with those of
/// sessions on the CPU.
pub(super) fn chunks(task: &SubjectTask) -> FeatureOutcome {
    let Some(model) = sample() else {
        let why = "the folder examples/models is not here";
        return Err(FeatureFailure::Unavailable(why.to_owned()));
    };
    let folder = task.folder.join("chunks");
    let options = ChunkOptions {
        context: Some(CONTEXT),
        prefill: Some(vec![ROWS]),
        ..ChunkOptions::default()
    };
    let started = Instant::now();
    let manifest = write_chunks(&model.join("1"), &folder, &options)?;
    let convert_ms = started.elapsed().as_secs_f64() * 1e3;
    let worker: Arc<dyn CoreMlEngine> = Arc::new(worker()?);
    let cache = CompiledCache::new(task.folder.join("compiled"), DEFAULT_LIMIT_BYTES);
    let load = EngineLoadOptions { units: units_of(&task.unit), ..EngineLoadOptions::default() };
    let runner = Arc::new(ChunkRunner::new(worker, cache, load));
    let started = Instant::now();
    // A model takes sessions where this fails, and says nothing.
    runner.load(&folder, &manifest).map_err(|error| refused(&error))?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let expected = stepped(&folder, &manifest, None)?;
    let before = counts().predictions;
    let started = Instant::now();
    let found = stepped(&folder, &manifest, Some(runner))?;
    let seconds = started.elapsed().as_secs_f64();
    let largest = expected.iter().fold(0.0_f32, |most, one| most.max(one.abs()));
    let farthest = expected.iter().zip(&found).fold(0.0_f32, |most, (a, b)| {
        let off = (a - b).abs();
        if off.is_nan() { f32::INFINITY } else { most.max(off) }
    });
    let off = farthest / largest.max(1e-6);
    let predictions = counts().predictions - before;
    let wrong = match (found.len() == expected.len(), predictions) {
        (false, _) => Some(format!("{} logits, expected {}", found.len(), expected.len())),
        (true, 0) => Some("the engine has predicted nothing".to_owned()),
        (true, _) if off > DISTANCE => {
            Some(format!("logits are off by {off:.2e} of the largest, allowed {DISTANCE:.0e}"))
        }
        _ => None,
    };
    Ok(SubjectReport::passed()
        .figure("convert_ms", convert_ms)
        .figure("load_ms", load_ms)
        .figure("difference", f64::from(off))
        .figure("at_most_steps_per_s", (STEPS + 1) as f64 / seconds)
        .checked(wrong))
}

/// The logits of chunks in an engine, or in sessions.
fn stepped(
    folder: &Path,
    manifest: &ChunkManifest,
    runner: Option<Arc<ChunkRunner>>,
) -> Result<Vec<f32>, String> {
    let chunk_engine = runner.map(|runner| runner as Arc<dyn ChunkEngine>);
    let providers = engine().providers(Some("cpu"))?;
    let options = CheckpointOptions { chunk_engine, ..CheckpointOptions::new(providers) };
    let mut model =
        ChunkModel::load(folder, &options.chunks()).map_err(|error| error.to_string())?;
    logits(&mut model, manifest.vocabulary)
}

/// Says why an engine takes no chunks.
fn refused(error: &LlmError) -> FeatureFailure {
    match error.kind() {
        LlmErrorKind::Unavailable => FeatureFailure::Unavailable(error.to_string()),
        _ => FeatureFailure::Failed(error.to_string()),
    }
}
