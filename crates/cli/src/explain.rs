//! `galatea explain`: who runs which part of a model, and why not somebody else.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{PlacementReport, Run, RuntimeError, Session, SessionExplanation};

use super::arguments::{CommandArguments, CommandOption};
use super::{bench, chunk_facts, explain_settings, generate, model, say};
use crate::table::table;

const CHOICES: &[CommandOption] = &[
    CommandOption {
        name: "provider",
        value: "NAME",
        sentence: "as on this provider; coreml:CHIP, such as coreml:M4, predicts what a chip's Neural Engine takes",
    },
    CommandOption {
        name: "function",
        value: "NAME",
        sentence: "function of a model that has several",
    },
    CommandOption {
        name: "threads",
        value: "N",
        sentence: "threads inside an operator [all fast cores]",
    },
    CommandOption {
        name: "brief",
        value: "",
        sentence: "print the partitions without their nodes",
    },
    CommandOption {
        name: "measure",
        value: "",
        sentence: "run it too, and print what providers took beside what was predicted",
    },
    CommandOption {
        name: "batch",
        value: "N",
        sentence: "with --measure: length of the batch axis [1]",
    },
    CommandOption {
        name: "sequence",
        value: "N",
        sentence: "with --measure: length of axes along a sequence that the model leaves open [128]",
    },
    CommandOption {
        name: "shape",
        value: "NAME=D,D…",
        sentence: "with --measure: shape of an input; repeatable",
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
    model::GPU_MEMORY_CHOICE,
    CommandOption {
        name: "metal-config",
        value: "FILE_OR_JSON",
        sentence: "what the server is given for all models",
    },
];

/// Returns the options of the command.
pub(super) fn options() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Prints the partitions of a model with their nodes, predicted times and the reasons of who refused.
pub(super) fn explain(arguments: &CommandArguments) -> Result<ExitCode, String> {
    let given = arguments.only("MODEL")?;
    if let Some(checkpoint) = model::checkpoint(given)? {
        if ChunkManifest::is_in(&checkpoint) {
            return chunk_facts::explain(&checkpoint, arguments);
        }
        return Err(format!("'{given}' is a checkpoint; explain takes models that are graphs"));
    }
    model::limit_gpus(arguments)?;
    let session = model::session(&model::find(given)?, arguments)?;
    let measured = match arguments.has("measure") {
        true => Some(measure(&session, arguments)?),
        false => None,
    };
    let settings = explain_settings::text(given, arguments.last("metal-config").unwrap_or(""))?;
    let mut explained = session.explain();
    if !arguments.has("brief") {
        say(explained.to_string().trim_end());
        measured.iter().for_each(|measured| say(&measured.text(&explained)));
        settings.iter().for_each(|settings| say(settings));
        return Ok(ExitCode::SUCCESS);
    }
    for index in 0..explained.partitions.len() {
        say(&explained.heading(index));
    }
    explained.notes.drain(..).for_each(|note| say(&format!("note: {note}")));
    measured.iter().for_each(|measured| say(&measured.text(&explained)));
    settings.iter().for_each(|settings| say(settings));
    Ok(ExitCode::SUCCESS)
}

/// Times of a measured run.
struct MeasuredRun {
    /// Time of each provider's kernels, where it tells.
    providers: Vec<(&'static str, Duration)>,
    /// The whole run.
    whole: Duration,
    ways: Vec<PlacementReport>,
}

/// Runs a model on generated inputs.
fn measure(session: &Session, arguments: &CommandArguments) -> Result<MeasuredRun, String> {
    let shapes = generate::parse_shapes(arguments.all("shape"))?;
    let sequence = arguments.last("sequence").map(|_| arguments.number("sequence", 0));
    let batch = arguments.number("batch", 1)?;
    let lengths = generate::FreeLengths { batch, sequence: sequence.transpose()? };
    let inputs = generate::inputs(session, lengths, &shapes)?.inputs;
    let named = bench::named(&inputs);
    let failed = |error: RuntimeError| error.to_string();
    session.try_placements(&named, bench::SETTLING).map_err(failed)?;
    // The first run prepares what later ones find.
    session.run(Run::named(&named)).map_err(failed)?;
    let begin = Instant::now();
    session.run(Run::named(&named)).map_err(failed)?;
    let whole = begin.elapsed();
    let rows = session.run(Run::named(&named).profiled()).map_err(failed)?.rows;
    let mut providers: Vec<(&'static str, Duration)> = Vec::new();
    for row in rows {
        match providers.iter_mut().find(|(name, _)| *name == row.provider) {
            Some((_, time)) => *time += row.time,
            None => providers.push((row.provider, row.time)),
        }
    }
    Ok(MeasuredRun { providers, whole, ways: bench::ways(session, &inputs)? })
}

impl MeasuredRun {
    /// Renders the measured times beside the predicted ones.
    fn text(&self, explained: &SessionExplanation) -> String {
        let predicted = |name: Option<&str>| {
            let nodes = explained.partitions.iter().flatten();
            let own = nodes.filter(|node| name.is_none_or(|name| node.provider == name));
            own.map(|node| node.cost_ns).sum::<f64>() / 1e6
        };
        let row = |name: &str, predicted: f64, time: Duration| {
            let ms = format!("{:.3}", time.as_secs_f64() * 1e3);
            vec![name.to_owned(), format!("{predicted:.3}"), ms]
        };
        let own = self.providers.iter().map(|(name, time)| row(name, predicted(Some(name)), *time));
        let all = std::iter::once(row("whole run", predicted(None), self.whole));
        let rows = own.chain(all);
        let mut text = table(&["Provider", "Predicted ms", "Measured ms"], rows);
        if !self.ways.is_empty() {
            text.push_str(&format!("\n{}", bench::way_table(&self.ways)));
        }
        text
    }
}
