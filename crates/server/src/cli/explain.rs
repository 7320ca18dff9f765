//! `galatea explain`: who runs which part of a model, and why not somebody else.

use std::process::ExitCode;

use super::arguments::{Arguments, Choice, help};
use super::{model, say};

const CHOICES: &[Choice] = &[
    Choice {
        name: "provider",
        value: "NAME",
        sentence: "as on this provider; coreml:CHIP, such as coreml:M4, predicts what a chip's Neural Engine takes",
    },
    Choice { name: "function", value: "NAME", sentence: "function of a model that has several" },
    Choice { name: "threads", value: "N", sentence: "threads inside an operator [all fast cores]" },
    Choice { name: "brief", value: "", sentence: "print the partitions without their nodes" },
    Choice {
        name: "precision",
        value: "fp32|bf16|fp16",
        sentence: "what products and convolutions compute in [fp32]",
    },
    Choice { name: "level", value: "O0…O3", sentence: "how far the graph is rewritten [O3]" },
    model::GPU_MEMORY_CHOICE,
    Choice { name: "help", value: "", sentence: "print this" },
];

/// Prints the partitions of a model with their nodes, predicted times and the reasons of who refused.
pub(super) fn explain(arguments: &[String]) -> Result<ExitCode, String> {
    let arguments = Arguments::parse(arguments, CHOICES)?;
    if arguments.has("help") {
        say(&help("galatea explain MODEL [--provider NAME] [--brief]", CHOICES));
        return Ok(ExitCode::SUCCESS);
    }
    let given = arguments.only("MODEL")?;
    if model::checkpoint(given)?.is_some() {
        return Err(format!("'{given}' is a checkpoint; explain takes models that are graphs"));
    }
    model::limit_gpus(&arguments)?;
    let session = model::session(&model::find(given)?, &arguments)?;
    let mut explained = session.explain();
    if !arguments.has("brief") {
        say(explained.to_string().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    for index in 0..explained.partitions.len() {
        say(&explained.heading(index));
    }
    explained.notes.drain(..).for_each(|note| say(&format!("note: {note}")));
    Ok(ExitCode::SUCCESS)
}
