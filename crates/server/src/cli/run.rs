//! `galatea run`: a model on inputs from NumPy archives. Checkpoints have [`run_checkpoint`].

use std::path::Path;
use std::process::ExitCode;

use galatea_formats::npy;
use galatea_runtime::Session;
use galatea_tensor::Tensor;

use super::arguments::{Arguments, Choice, help};
use super::{model, run_checkpoint, say};

const CHOICES: &[Choice] = &[
    Choice { name: "inputs", value: "IN.npz", sentence: "named inputs of one run; repeatable" },
    Choice { name: "outputs", value: "PREFIX", sentence: "write PREFIX0.npz, PREFIX1.npz, …" },
    Choice { name: "provider", value: "NAME", sentence: "run on this provider" },
    Choice { name: "function", value: "NAME", sentence: "function of a model that has several" },
    Choice { name: "threads", value: "N", sentence: "threads inside an operator [all cores]" },
    Choice {
        name: "precision",
        value: "fp32|bf16|fp16",
        sentence: "what products and convolutions compute in [fp32]",
    },
    Choice { name: "level", value: "O0…O3", sentence: "how far the graph is rewritten [O3]" },
    Choice { name: "prompt", value: "TEXT", sentence: "print what a checkpoint writes behind it" },
    Choice { name: "max-tokens", value: "N", sentence: "longest text that it writes [64]" },
    model::CACHE_CHOICES[0],
    model::CACHE_CHOICES[1],
    model::GPU_MEMORY_CHOICE,
    model::TIMELINE_CHOICES[0],
    model::TIMELINE_CHOICES[1],
    Choice { name: "help", value: "", sentence: "print this" },
];

/// Runs a model once for each file of inputs.
pub(super) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let arguments = Arguments::parse(arguments, CHOICES)?;
    if arguments.has("help") {
        say(&help("galatea run MODEL --inputs IN.npz … --outputs PREFIX", CHOICES));
        return Ok(ExitCode::SUCCESS);
    }
    let given = arguments.only("MODEL")?;
    model::limit_gpus(&arguments)?;
    let _timeline = model::timeline(&arguments)?;
    if let Some(checkpoint) = model::checkpoint(given)? {
        return run_checkpoint::run(&checkpoint, &arguments);
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
    let (session, _) = model::cached_session(&path, &arguments, arguments.number("threads", 0)?)?;
    for (index, file) in inputs.iter().enumerate() {
        let outputs = step(&session, Path::new(file))?;
        let target = format!("{prefix}{index}.npz");
        let names = session.outputs().iter().map(|output| output.name.as_str());
        npy::write_npz(Path::new(&target), names.zip(&outputs))
            .map_err(|error| error.to_string())?;
        say(&target);
    }
    Ok(ExitCode::SUCCESS)
}

fn step(session: &Session, file: &Path) -> Result<Vec<Tensor>, String> {
    let inputs = npy::read_npz(file).map_err(|error| error.to_string())?;
    let named: Vec<(&str, Tensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    session.run(&named).map_err(|error| format!("{}: {error}", file.display()))
}
