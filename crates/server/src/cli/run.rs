//! `galatea run`: a model on inputs from NumPy archives. Checkpoints have [`run_checkpoint`].

use std::path::Path;
use std::process::ExitCode;

use galatea_formats::npy;
use galatea_runtime::Session;
use galatea_tensor::{DataType, Tensor};

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
    let ready = model::cached_session(&path, arguments, arguments.number("threads", 0)?)?;
    let mut runs = ModelRuns::new(&ready);
    for (index, file) in inputs.iter().enumerate() {
        let outputs = runs.next(Path::new(file))?;
        let target = format!("{prefix}{index}.npz");
        let named = outputs.iter().map(|(name, tensor)| (name.as_str(), tensor));
        npy::write_npz(Path::new(&target), named).map_err(|error| error.to_string())?;
        say(&target);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs of a model, one after the other: its states go from one to the next.
struct ModelRuns<'m> {
    ready: &'m model::ReadyModel,
    /// Inputs and their values.
    states: Vec<(String, Tensor)>,
}

impl<'m> ModelRuns<'m> {
    fn new(ready: &'m model::ReadyModel) -> Self {
        let all = ready.interface.iter().flat_map(|interface| &interface.states);
        let states = all.map(|state| (state.input.clone(), state.zeros.clone())).collect();
        Self { ready, states }
    }

    /// Runs the model on the inputs in a file and gives its outputs by name.
    fn next(&mut self, file: &Path) -> Result<Vec<(String, Tensor)>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let inputs = npy::read_npz(file).map_err(|error| error.to_string())?;
        let session = &self.ready.session;
        let mut named: Vec<(&str, Tensor)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in &inputs {
            let tensor = match &self.ready.interface {
                Some(_) => as_declared(session, name, tensor).map_err(|error| failed(&error))?,
                None => tensor.clone(),
            };
            named.push((name, tensor));
        }
        if let Some(interface) = &self.ready.interface {
            let given = named.iter().map(|(name, tensor)| (*name, tensor));
            interface.check(given).map_err(|error| failed(&error))?;
        }
        named.extend(self.states.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let outputs = session.run(&named).map_err(|error| failed(&error))?;
        let names = session.outputs().iter().map(|output| output.name.clone());
        let mut outputs: Vec<(String, Tensor)> = names.zip(outputs).collect();
        let all = self.ready.interface.iter().flat_map(|interface| &interface.states);
        for (state, (_, value)) in all.zip(&mut self.states) {
            let Some(at) = outputs.iter().position(|(name, _)| *name == state.output) else {
                continue;
            };
            *value = outputs.remove(at).1;
        }
        Ok(outputs)
    }
}

/// A float as another float, an integer as another integer, if the model of Core ML takes that: it converts arrays
/// itself.
fn as_declared(session: &Session, name: &str, tensor: &Tensor) -> Result<Tensor, String> {
    let Some(input) = session.inputs().iter().find(|input| input.name == name) else {
        return Ok(tensor.clone());
    };
    let is_float =
        |dtype| matches!(dtype, DataType::Fp16 | DataType::Fp32 | DataType::Fp64 | DataType::Bf16);
    let from = tensor.dtype();
    let to = input.dtype;
    let number = |dtype| !matches!(dtype, DataType::Bool | DataType::Bytes);
    match from != to && number(from) && number(to) && is_float(from) == is_float(to) {
        true => galatea_graph::converted(tensor, to).map_err(|error| error.to_string()),
        false => Ok(tensor.clone()),
    }
}
