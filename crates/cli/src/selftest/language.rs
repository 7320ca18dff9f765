//! Steps of a language model on a device.

use std::path::{Path, PathBuf};
use std::time::Instant;

use galatea::{EngineArguments, GenerationSettings};

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
