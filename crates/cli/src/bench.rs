//! `galatea bench`: how long one run of a model takes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Args};
use galatea_runtime::{ProfileRow, Run, Session};
use galatea_tensor::Tensor;

use super::arguments::{path, time};
use super::bench_language::{self, CheckpointJob};
use super::generate::{self, ShapeChoices};
use super::language_choices::{CheckpointChoices, TokenCounts, WeightChoices};
use super::measurement::{BenchJob, figures, load, named, way_json, way_table, ways};
use super::model::{self, CacheChoices, GpuMemoryChoice, SessionChoices, TimelineChoices};
use super::say;
use super::step_profile::{self, DeviceRoofs};
use super::sweep::{BenchSweep, SweepChoices, SweepOptions};
use crate::table::table;

/// Command line of `galatea bench`.
#[derive(Debug, Args)]
#[command(mut_args(several_providers))]
pub(super) struct BenchArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[command(flatten)]
    sweep: SweepChoices,
    #[command(flatten)]
    shapes: ShapeChoices,
    #[command(flatten)]
    session: SessionChoices,
    #[arg(
        long = "seconds",
        value_name = "S",
        value_parser = time,
        default_value = "3",
        help = "time to measure each of them [3]"
    )]
    time: Duration,
    #[arg(
        long,
        value_name = "FILE.svg",
        value_parser = path,
        help = "draw the times of several batches, sequences or numbers of threads as curves"
    )]
    plot: Option<PathBuf>,
    #[arg(long, help = "show the slowest operators too, what kernels reach and what bounds them")]
    profile: bool,
    #[command(flatten)]
    gpu_memory: GpuMemoryChoice,
    #[command(flatten)]
    timeline: TimelineChoices,
    #[arg(long, help = "print one line of JSON")]
    json: bool,
    #[command(flatten)]
    counts: TokenCounts,
    #[command(flatten)]
    checkpoint: CheckpointChoices,
    #[command(flatten)]
    weights: WeightChoices,
    #[command(flatten)]
    cache: CacheChoices,
}

/// Lets `--provider` say that several may divide runs.
pub(super) fn several_providers(arg: Arg) -> Arg {
    match arg.get_id() == "provider" {
        true => arg
            .value_name("NAME[,NAME…]")
            .help("run on this provider, or divide runs among several"),
        false => arg,
    }
}

/// Rows of the profile.
const PROFILE_ROWS: usize = 15;

/// Measures a model on generated inputs.
pub(super) fn bench(arguments: &BenchArguments) -> Result<ExitCode, String> {
    let BenchArguments { time, json: quiet, .. } = *arguments;
    arguments.gpu_memory.apply()?;
    if let Some(checkpoint) = model::checkpoint(&arguments.model)? {
        return arguments.measure_checkpoint(&checkpoint);
    }
    let path = model::find(&arguments.model)?;
    let sweep = BenchSweep::of(&arguments.sweep)?;
    let Some((batch, sequence, threads)) = sweep.single() else {
        if arguments.profile {
            return Err("--profile goes with one batch, sequence and number of threads".to_owned());
        }
        return sweep.run(&path, &arguments.sweep_options()).map(|()| ExitCode::SUCCESS);
    };
    if arguments.plot.is_some() {
        return Err("--plot needs a list of --batch, --sequence or --threads".to_owned());
    }
    let _timeline = arguments.timeline.start()?;
    let loaded = load(&path, &arguments.session, &arguments.cache, threads)?;
    let lengths = generate::FreeLengths { batch, sequence };
    let inputs = generate::inputs(&loaded.session, lengths, &arguments.shapes.by_input())?.inputs;
    let figures = figures(&loaded.session, &inputs, time, quiet)?;
    let provider = arguments.session.provider.as_deref();
    let job = BenchJob { path: &path, provider, batch, sequence, threads };
    let rows = match arguments.profile {
        true => Some(profile(&loaded.session, &inputs)?),
        false => None,
    };
    let roofs = rows.as_ref().map(|rows| DeviceRoofs::of(provider, rows));
    let measured = rows.zip(roofs);
    if quiet {
        let mut line = job.json(&loaded, figures);
        if let (Some(fields), Some((rows, roofs))) = (line.as_object_mut(), &measured) {
            fields.insert("profile".to_owned(), roofs.json(rows));
        }
        let ways = ways(&loaded.session, &inputs)?;
        if let Some(fields) = line.as_object_mut().filter(|_| !ways.is_empty()) {
            fields.insert("ways".to_owned(), ways.iter().map(way_json).collect());
        }
        say(&line.to_string());
    } else {
        say(&job.text(&loaded, figures));
        let ways = ways(&loaded.session, &inputs)?;
        if !ways.is_empty() {
            say(&way_table(&ways));
        }
        measured.iter().for_each(|(rows, roofs)| say(&slowest(rows, roofs)));
    }
    Ok(ExitCode::SUCCESS)
}

impl BenchArguments {
    fn sweep_options(&self) -> SweepOptions<'_> {
        SweepOptions {
            shapes: &self.shapes,
            session: &self.session,
            cache: &self.cache,
            time: self.time,
            plot: self.plot.as_deref(),
            json: self.json,
        }
    }

    fn measure_checkpoint(&self, path: &Path) -> Result<ExitCode, String> {
        let job = CheckpointJob {
            path,
            counts: &self.counts,
            weights: &self.weights,
            provider: self.session.provider.as_deref(),
            threads: self.sweep.single_threads()?,
            concurrency: self.checkpoint.concurrency,
            profile: self.profile,
        };
        let perplexity = self.checkpoint.perplexity.as_deref();
        bench_language::bench(job, perplexity, &self.timeline, self.json)
    }
}

fn profile(session: &Session, inputs: &[(String, Tensor)]) -> Result<Vec<ProfileRow>, String> {
    let rows =
        session.run(Run::named(&named(inputs)).profiled()).map_err(|error| error.to_string())?.rows;
    Ok(rows)
}

/// The slowest nodes, and kernels by all their starts.
fn slowest(rows: &[ProfileRow], roofs: &DeviceRoofs) -> String {
    let mut sorted: Vec<&ProfileRow> = rows.iter().collect();
    sorted.sort_by_key(|row| std::cmp::Reverse(row.time));
    let cells = sorted.into_iter().take(PROFILE_ROWS).map(|row| {
        let wave = if row.estimated { "~" } else { "" };
        let ms = format!("{wave}{:.3}", row.time.as_secs_f64() * 1e3);
        vec![ms, row.op.clone(), row.kernel.clone(), row.node.clone()]
    });
    let nodes = table(&["ms", "Operator", "Kernel", "Node"], cells);
    format!("{nodes}\n{}{}", roofs.text(rows), step_profile::kernels(rows, roofs))
}
