//! `galatea run`: a model on inputs from NumPy archives. Checkpoints have [`run_checkpoint`].

use std::path::Path;
use std::process::ExitCode;

use galatea_formats::npy;
use galatea_tensor::Tensor;

use super::arguments::{CommandArguments, CommandOption};
use super::{model, run_checkpoint, say};

const CHOICES: &[CommandOption] = &[
    CommandOption {
        name: "inputs",
        value: "IN.npz",
        sentence: "named inputs of one run; repeatable",
    },
    CommandOption {
        name: "outputs",
        value: "PREFIX",
        sentence: "write PREFIX0.npz, PREFIX1.npz, …",
    },
    CommandOption { name: "provider", value: "NAME", sentence: "run on this provider" },
    CommandOption {
        name: "function",
        value: "NAME",
        sentence: "function of a model that has several",
    },
    CommandOption {
        name: "threads",
        value: "N",
        sentence: "threads inside an operator [all cores]",
    },
    CommandOption {
        name: "precision",
        value: "fp32|bf16|fp16",
        sentence: "what products and convolutions compute in [fp32]",
    },
    CommandOption {
        name: "level",
        value: "O0…O3",
        sentence: "how far the graph is rewritten [O3]",
    },
    CommandOption {
        name: "prompt",
        value: "TEXT",
        sentence: "print what a checkpoint writes behind it",
    },
    CommandOption { name: "max-tokens", value: "N", sentence: "longest text that it writes [64]" },
    model::CACHE_CHOICES[0],
    model::CACHE_CHOICES[1],
    model::GPU_MEMORY_CHOICE,
    model::TIMELINE_CHOICES[0],
    model::TIMELINE_CHOICES[1],
];

/// Returns the options of the command.
pub(super) fn options() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Runs a model once for each file of inputs.
pub(super) fn run(arguments: &CommandArguments) -> Result<ExitCode, String> {
    let given = arguments.only("MODEL")?;
    model::limit_gpus(arguments)?;
    let _timeline = model::timeline(arguments)?;
    if let Some(checkpoint) = model::checkpoint(given)? {
        return run_checkpoint::run(&checkpoint, arguments);
    }
    if arguments.has("prompt") {
        return Err("--prompt is for checkpoints of language models".to_owned());
    }
    let path = model::find(arguments.only("MODEL")?)?;
    let inputs = arguments.all("inputs");
    if inputs.is_empty() {
        return Err("--inputs IN.npz is missing".to_owned());
    }
    let prefix = arguments.last("outputs").ok_or("--outputs PREFIX is missing")?;
    let model = model::cached_model(&path, arguments, arguments.number("threads", 0)?)?;
    let mut runs = model.runs();
    for (index, file) in inputs.iter().enumerate() {
        let inputs = npy::read_npz(Path::new(file)).map_err(|error| error.to_string())?;
        let named: Vec<(&str, Tensor)> =
            inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let outputs = runs.next(&named).map_err(|error| format!("{file}: {error}"))?;
        let target = format!("{prefix}{index}.npz");
        let named = outputs.iter().map(|(name, tensor)| (name.as_str(), tensor));
        npy::write_npz(Path::new(&target), named).map_err(|error| error.to_string())?;
        say(&target);
    }
    Ok(ExitCode::SUCCESS)
}
