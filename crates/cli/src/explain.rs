//! `galatea explain`: who runs which part of a model, and why not somebody else.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{PlacementReport, Run, RuntimeError, Session, SessionExplanation};

use super::arguments::{number, path, purpose};
use super::generate::{self, ShapeChoices};
use super::model::{self, GpuMemoryChoice, SessionChoices, ThreadChoice};
use super::{chunk_facts, engine, explain_kernels, explain_settings, measurement, say};
use crate::table::table;

/// Command line of `galatea explain`.
#[derive(Debug, Args)]
#[command(
    mut_args(purpose("provider", PROVIDER)),
    mut_args(purpose("threads", "threads inside an operator [all fast cores]")),
    mut_args(purpose("shape", "with --measure: shape of an input; repeatable"))
)]
pub(super) struct ExplainArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[command(flatten)]
    session: SessionChoices,
    #[command(flatten)]
    threads: ThreadChoice,
    #[arg(long, help = "print the partitions without their nodes")]
    brief: bool,
    #[arg(long, help = "run it too, and print what providers took beside what was predicted")]
    measure: bool,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = 1,
        help = "with --measure: length of the batch axis [1]"
    )]
    batch: usize,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "with --measure: length of axes along a sequence that the model leaves open [128]"
    )]
    sequence: Option<usize>,
    #[command(flatten)]
    shapes: ShapeChoices,
    #[command(flatten)]
    gpu_memory: GpuMemoryChoice,
    #[arg(long, value_name = "FILE_OR_JSON", help = "what the server is given for all models")]
    metal_config: Option<String>,
}

/// Purpose of `--provider` here.
const PROVIDER: &str = "as on this provider; coreml:CHIP, such as coreml:M4, predicts what a chip's Neural Engine takes";

/// Prints the partitions of a model with their nodes, predicted times and the reasons of who refused.
pub(super) fn explain(arguments: &ExplainArguments) -> Result<ExitCode, String> {
    let given = &arguments.model;
    if let Some(checkpoint) = model::checkpoint(given)? {
        if ChunkManifest::is_in(&checkpoint) {
            return chunk_facts::explain(&checkpoint, &arguments.session, arguments.brief);
        }
        let given = given.display();
        return Err(format!("'{given}' is a checkpoint; explain takes models that are graphs"));
    }
    arguments.gpu_memory.apply()?;
    let path = model::find(given)?;
    let session = model::session(&path, &arguments.session, arguments.threads.count)?;
    let measured = match arguments.measure {
        true => Some(measure(&session, arguments)?),
        false => None,
    };
    let flag = arguments.metal_config.as_deref().unwrap_or("");
    let settings = explain_settings::text(given, flag)?;
    let quantization = explain_settings::quantization(given, &path, flag)?;
    let kernels = kernels(&session, arguments);
    let mut explained = session.explain();
    if !arguments.brief {
        say(explained.to_string().trim_end());
        measured.iter().for_each(|measured| say(&measured.text(&explained)));
        kernels.iter().for_each(|kernels| say(kernels));
        settings.iter().chain(&quantization).for_each(|text| say(text));
        return Ok(ExitCode::SUCCESS);
    }
    for index in 0..explained.partitions.len() {
        say(&explained.heading(index));
    }
    explained.notes.drain(..).for_each(|note| say(&format!("note: {note}")));
    measured.iter().for_each(|measured| say(&measured.text(&explained)));
    kernels.iter().for_each(|kernels| say(kernels));
    settings.iter().chain(&quantization).for_each(|text| say(text));
    Ok(ExitCode::SUCCESS)
}

/// The records of the model's kernels, for one row, for `--batch` and for what the model's configuration prefers.
fn kernels(session: &Session, arguments: &ExplainArguments) -> Option<String> {
    let mut rows = explain_settings::expected_rows(&arguments.model);
    if !rows.contains(&arguments.batch) {
        rows.push(arguments.batch);
    }
    let found = explain_kernels::text(session, &rows, engine().tuning_records());
    found.unwrap_or_else(|error| Some(format!("choices between kernels are not listed: {error}")))
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
fn measure(session: &Session, arguments: &ExplainArguments) -> Result<MeasuredRun, String> {
    let ExplainArguments { batch, sequence, .. } = *arguments;
    let shapes = arguments.shapes.by_input();
    let lengths = generate::FreeLengths { batch, sequence };
    let inputs = generate::inputs(session, lengths, &shapes)?.inputs;
    let named = measurement::named(&inputs);
    let failed = |error: RuntimeError| error.to_string();
    session.try_placements(&named, measurement::SETTLING).map_err(failed)?;
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
    Ok(MeasuredRun { providers, whole, ways: measurement::ways(session, &inputs)? })
}

impl MeasuredRun {
    /// Renders the measured times beside the predicted ones.
    fn text(&self, explained: &SessionExplanation) -> String {
        let predicted = |name: Option<&str>| {
            let nodes = explained.partitions.iter().flatten();
            let own = nodes.filter(|node| name.is_none_or(|name| node.provider == name));
            // A provider that only stood in for another has no node that a time was predicted of.
            own.map(|node| node.cost_ns).reduce(|sum, cost| sum + cost)
        };
        let row = |name: &str, predicted: Option<f64>, time: Duration| {
            let ms = format!("{:.3}", time.as_secs_f64() * 1e3);
            let predicted = predicted.map_or_else(String::new, |ns| format!("{:.3}", ns / 1e6));
            vec![name.to_owned(), predicted, ms]
        };
        let own = self.providers.iter().map(|(name, time)| row(name, predicted(Some(name)), *time));
        let all = std::iter::once(row("whole run", predicted(None), self.whole));
        let rows = own.chain(all);
        let mut text = table(&["Provider", "Predicted ms", "Measured ms"], rows);
        if !self.ways.is_empty() {
            text.push_str(&format!("\n{}", measurement::way_table(&self.ways)));
        }
        text
    }
}
