//! `galatea run`: a model on inputs from NumPy archives. Checkpoints have [`run_checkpoint`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use galatea_formats::npy;
use galatea_tensor::Tensor;

use super::arguments::path;
use super::model::{
    self, CacheChoices, GpuMemoryChoice, SessionChoices, ThreadChoice, TimelineChoices,
};
use super::run_checkpoint::{self, PromptChoices, RunFiles};
use super::say;

/// Command line of `galatea run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[command(flatten)]
    files: RunFiles,
    #[command(flatten)]
    session: SessionChoices,
    #[command(flatten)]
    threads: ThreadChoice,
    #[command(flatten)]
    prompt: PromptChoices,
    #[command(flatten)]
    cache: CacheChoices,
    #[command(flatten)]
    gpu_memory: GpuMemoryChoice,
    #[command(flatten)]
    timeline: TimelineChoices,
}

/// Runs a model once for each file of inputs.
pub(super) fn run(arguments: &RunArguments) -> Result<ExitCode, String> {
    let RunArguments { files, session, threads, prompt, .. } = arguments;
    arguments.gpu_memory.apply()?;
    let _timeline = arguments.timeline.start()?;
    if let Some(checkpoint) = model::checkpoint(&arguments.model)? {
        return run_checkpoint::run(&checkpoint, files, prompt, session, threads.count);
    }
    if prompt.text.is_some() {
        return Err("--prompt is for checkpoints of language models".to_owned());
    }
    let path = model::find(&arguments.model)?;
    if files.inputs.is_empty() {
        return Err("--inputs IN.npz is missing".to_owned());
    }
    let prefix = files.prefix()?;
    let model = model::cached_model(&path, session, threads.count, &arguments.cache)?;
    let mut runs = model.runs();
    for (index, file) in files.inputs.iter().enumerate() {
        let inputs = npy::read_npz(file).map_err(|error| error.to_string())?;
        let named: Vec<(&str, Tensor)> =
            inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let outputs = runs.next(&named).map_err(|error| format!("{}: {error}", file.display()))?;
        let target = format!("{prefix}{index}.npz");
        let named = outputs.iter().map(|(name, tensor)| (name.as_str(), tensor));
        npy::write_npz(target.as_ref(), named).map_err(|error| error.to_string())?;
        say(&target);
    }
    Ok(ExitCode::SUCCESS)
}
