//! `galatea bench`: how long one run of a model takes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Arg, Args};
use galatea_runtime::{PlacementReport, ProfileRow, Run, Session};
use galatea_serving::model_cache::SessionOrigin;
use galatea_tensor::Tensor;
use indicatif::{ProgressBar, ProgressStyle};

use super::arguments::{path, time};
use super::bench_language::{self, CheckpointJob};
use super::generate::{self, ShapeChoices};
use super::language_choices::{CheckpointChoices, TokenCounts, WeightChoices};
use super::model::{self, CacheChoices, GpuMemoryChoice, SessionChoices, TimelineChoices};
use super::say;
use super::step_profile::{self, DeviceRoofs};
use super::sweep::{BenchSweep, SweepChoices};
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
    pub(super) shapes: ShapeChoices,
    #[command(flatten)]
    pub(super) session: SessionChoices,
    #[arg(
        long = "seconds",
        value_name = "S",
        value_parser = time,
        default_value = "3",
        help = "time to measure each of them [3]"
    )]
    pub(super) time: Duration,
    #[arg(
        long,
        value_name = "FILE.svg",
        value_parser = path,
        help = "draw the times of several batches, sequences or numbers of threads as curves"
    )]
    pub(super) plot: Option<PathBuf>,
    #[arg(long, help = "show the slowest operators too, what kernels reach and what bounds them")]
    pub(super) profile: bool,
    #[command(flatten)]
    gpu_memory: GpuMemoryChoice,
    #[command(flatten)]
    timeline: TimelineChoices,
    #[arg(long, help = "print one line of JSON")]
    pub(super) json: bool,
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

/// Fewest runs of a measurement, however long they take.
const MIN_RUNS: usize = 5;
/// Runs before the measurement: the first ones pack weights and plan memory.
const WARM_UP_RUNS: usize = 2;
/// The most time in which units are compared.
pub(super) const SETTLING: Duration = Duration::from_secs(20);
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
        return sweep.run(&path, arguments).map(|()| ExitCode::SUCCESS);
    };
    if arguments.plot.is_some() {
        return Err("--plot needs a list of --batch, --sequence or --threads".to_owned());
    }
    let _timeline = arguments.timeline.start()?;
    let loaded = load(&path, arguments, threads)?;
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

/// A model that is ready to run.
#[derive(Debug)]
pub(super) struct BenchModel {
    pub(super) session: Session,
    source: SessionOrigin,
    took: Duration,
}

/// Loads the model for the given number of threads.
///
/// # Errors
/// Fails as [`model::cached_model`] does.
pub(super) fn load(
    path: &Path,
    arguments: &BenchArguments,
    threads: usize,
) -> Result<BenchModel, String> {
    let started = Instant::now();
    let model = model::cached_model(path, &arguments.session, threads, &arguments.cache)?;
    let source = model.origin();
    Ok(BenchModel { session: model.into_session(), source, took: started.elapsed() })
}

/// Runs the session for a time.
///
/// # Errors
/// Fails when a run fails.
pub(super) fn figures(
    session: &Session,
    inputs: &[(String, Tensor)],
    time: Duration,
    quiet: bool,
) -> Result<BenchFigures, String> {
    measure(session, inputs, time, quiet).map(|times| BenchFigures::of(&times))
}

pub(super) fn named(inputs: &[(String, Tensor)]) -> Vec<(&str, Tensor)> {
    inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect()
}

fn measure(
    session: &Session,
    inputs: &[(String, Tensor)],
    time: Duration,
    quiet: bool,
) -> Result<Vec<Duration>, String> {
    let inputs = named(inputs);
    let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(100) };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}") {
        bar.set_style(style);
    }
    // Where runs are divided, each unit shows first what it can.
    session.try_placements(&inputs, SETTLING).map_err(|error| error.to_string())?;
    for _ in 0..WARM_UP_RUNS {
        session.run(Run::named(&inputs)).map_err(|error| error.to_string())?;
    }
    let mut times = Vec::new();
    let started = Instant::now();
    while times.len() < MIN_RUNS || started.elapsed() < time {
        let run = Instant::now();
        session.run(Run::named(&inputs)).map_err(|error| error.to_string())?;
        times.push(run.elapsed());
        let share = started.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-9);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 100"
        )]
        bar.set_position((share.min(1.0) * 100.0) as u64);
        bar.set_message(format!("{} runs", times.len()));
    }
    bar.finish_and_clear();
    times.sort_unstable();
    Ok(times)
}

/// Milliseconds of the runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchFigures {
    pub(super) runs: usize,
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) mean: f64,
    pub(super) p99: f64,
}

impl BenchFigures {
    /// Computes the figures of times in ascending order.
    fn of(times: &[Duration]) -> Self {
        let ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        let at = |share: usize| {
            let index = (ms.len() * share / 100).min(ms.len().saturating_sub(1));
            ms.get(index).copied().unwrap_or(0.0)
        };
        let sum: f64 = ms.iter().sum();
        Self {
            runs: ms.len(),
            min: at(0),
            median: at(50),
            mean: sum / ms.len().max(1) as f64,
            p99: at(99),
        }
    }
}

/// Description of a measurement: the model, its options and its sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchJob<'a> {
    pub(super) path: &'a Path,
    /// Provider that the options name.
    pub(super) provider: Option<&'a str>,
    pub(super) batch: usize,
    pub(super) sequence: Option<usize>,
    /// 0 for all fast cores.
    pub(super) threads: usize,
}

impl BenchJob<'_> {
    /// Returns the number of threads in use.
    pub(super) fn threads_used(&self) -> usize {
        match self.threads {
            0 => galatea_providers::HostCores::detect().fast,
            given => given,
        }
    }

    /// A line of JSON.
    pub(super) fn json(&self, loaded: &BenchModel, figures: BenchFigures) -> serde_json::Value {
        let session = &loaded.session;
        let used = model::used_providers(session);
        let memory = session.report().memory;
        let plans = session.report().plans;
        let mut line = serde_json::json!({
            "model": self.path.display().to_string(),
            "provider": self.provider.unwrap_or(&used),
            "providers_used": used,
            "batch": self.batch,
            "threads": self.threads_used(),
            "runs": figures.runs,
            "min_ms": figures.min,
            "median_ms": figures.median,
            "mean_ms": figures.mean,
            "p99_ms": figures.p99,
            "per_second": self.batch as f64 * 1e3 / figures.median.max(1e-9),
            "load_ms": loaded.took.as_secs_f64() * 1e3,
            "loaded_from": loaded.source.to_string(),
            "weight_bytes": memory.initializer_bytes,
            "mapped_bytes": memory.mapped_bytes,
            "arena_bytes": plans.arena_bytes,
            "live_bytes": plans.live_bytes,
            "plan_ms": plans.time.as_secs_f64() * 1e3 / plans.made.max(1) as f64,
        });
        if let (Some(fields), Some(sequence)) = (line.as_object_mut(), self.sequence) {
            fields.insert("sequence".to_owned(), sequence.into());
        }
        line
    }

    fn text(&self, loaded: &BenchModel, figures: BenchFigures) -> String {
        let session = &loaded.session;
        let cell = |value: f64| format!("{value:.3}");
        let row = vec![
            model::used_providers(session),
            self.batch.to_string(),
            figures.runs.to_string(),
            cell(figures.min),
            cell(figures.median),
            cell(figures.mean),
            cell(figures.p99),
            format!("{:.1}", self.batch as f64 * 1e3 / figures.median.max(1e-9)),
        ];
        let head =
            ["Provider", "Batch", "Runs", "Min ms", "Median ms", "Mean ms", "P99 ms", "Per second"];
        let plans = session.report().plans;
        let kilobytes = |bytes: usize| bytes.div_ceil(1024);
        format!(
            "{}: loaded in {:.0} ms ({}); intermediate values in {} KiB, of which {} KiB live at once\n{}",
            self.path.display(),
            loaded.took.as_secs_f64() * 1e3,
            loaded.source,
            kilobytes(plans.arena_bytes),
            kilobytes(plans.live_bytes),
            table(&head, [row])
        )
    }
}

/// The ways of running the model on the units among which runs are divided, the fastest first.
pub(super) fn ways(
    session: &Session,
    inputs: &[(String, Tensor)],
) -> Result<Vec<PlacementReport>, String> {
    session.placements(&named(inputs)).map_err(|error| error.to_string())
}

pub(super) fn way_json(way: &PlacementReport) -> serde_json::Value {
    serde_json::json!({
        "providers": way.providers,
        "ms": way.time.as_secs_f64() * 1e3,
        "measured": way.measured,
        "failed": way.failed,
    })
}

pub(super) fn way_table(ways: &[PlacementReport]) -> String {
    let row = |way: &PlacementReport| {
        let known = if way.measured { "measured" } else { "predicted" };
        vec![
            shortened(&way.providers),
            format!("{:.3}", way.time.as_secs_f64() * 1e3),
            way.failed.clone().unwrap_or_else(|| known.to_owned()),
        ]
    };
    table(&["Units", "ms", ""], ways.iter().map(row))
}

/// The providers of a way's parts, of which there may be many.
pub(super) fn shortened(providers: &[&str]) -> String {
    const MOST: usize = 6;
    let shown = providers.iter().take(MOST).copied().collect::<Vec<_>>().join(" → ");
    match providers.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{shown} → … ({more} more)"),
        _ => shown,
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
        let ms = format!("{:.3}", row.time.as_secs_f64() * 1e3);
        vec![ms, row.op.clone(), row.kernel.clone(), row.node.clone()]
    });
    let nodes = table(&["ms", "Operator", "Kernel", "Node"], cells);
    format!("{nodes}\n{}{}", roofs.text(rows), step_profile::kernels(rows, roofs))
}
