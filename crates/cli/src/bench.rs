//! `galatea bench`: how long one run of a model takes.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use galatea_runtime::{PlacementReport, ProfileRow, Run, Session};
use galatea_serving::model_cache::SessionOrigin;
use galatea_tensor::Tensor;
use indicatif::{ProgressBar, ProgressStyle};

use super::arguments::{CommandArguments, CommandOption};
use super::step_profile::DeviceRoofs;
use super::sweep::BenchSweep;
use super::{bench_language, generate, model, say, step_profile};
use crate::table::table;

pub(super) const CHOICES: &[CommandOption] = &[
    CommandOption {
        name: "batch",
        value: "N[,N…]",
        sentence: "length of the batch axis, or several to measure one after the other [1]",
    },
    CommandOption {
        name: "sequence",
        value: "N[,N…]",
        sentence: "length of axes along a sequence that the model leaves open [128]",
    },
    CommandOption {
        name: "shape", value: "NAME=D,D…", sentence: "shape of an input; repeatable"
    },
    CommandOption {
        name: "threads",
        value: "N[,N…]",
        sentence: "threads inside an operator, 0 for all fast cores [0]",
    },
    CommandOption {
        name: "provider",
        value: "NAME[,NAME…]",
        sentence: "run on this provider, or divide runs among several",
    },
    CommandOption {
        name: "function",
        value: "NAME",
        sentence: "function of a model that has several",
    },
    CommandOption { name: "seconds", value: "S", sentence: "time to measure each of them [3]" },
    CommandOption {
        name: "plot",
        value: "FILE.svg",
        sentence: "draw the times of several batches, sequences or numbers of threads as curves",
    },
    CommandOption {
        name: "profile",
        value: "",
        sentence: "show the slowest operators too, what kernels reach and what bounds them",
    },
    model::GPU_MEMORY_CHOICE,
    model::TIMELINE_CHOICES[0],
    model::TIMELINE_CHOICES[1],
    CommandOption { name: "json", value: "", sentence: "print one line of JSON" },
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
        name: "prompt-tokens",
        value: "N",
        sentence: "tokens of the prompt of a language model [512]",
    },
    CommandOption { name: "context", value: "N", sentence: "tokens before that answer [8]" },
    CommandOption { name: "decode-tokens", value: "N", sentence: "tokens of its answers [64]" },
    CommandOption { name: "concurrency", value: "N", sentence: "its answers at once, too [1]" },
    CommandOption {
        name: "perplexity",
        value: "FILE",
        sentence: "instead: how well it foresees a text, in pieces of the prompt's length",
    },
    CommandOption {
        name: "quantization",
        value: "NAME",
        sentence: "round its weights to q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1 or q4_0",
    },
    CommandOption {
        name: "kv-cache-dtype",
        value: "NAME",
        sentence: "its cache: auto, float32, float16, bfloat16 or int8 [auto]",
    },
    model::CACHE_CHOICES[0],
    model::CACHE_CHOICES[1],
];

/// Fewest runs of a measurement, however long they take.
const MIN_RUNS: usize = 5;
/// Runs before the measurement: the first ones pack weights and plan memory.
const WARM_UP_RUNS: usize = 2;
/// The most time in which units are compared.
pub(super) const SETTLING: Duration = Duration::from_secs(20);
/// Rows of the profile.
const PROFILE_ROWS: usize = 15;

/// Returns the options of the command.
pub(super) fn options() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Measures a model on generated inputs.
pub(super) fn bench(arguments: &CommandArguments) -> Result<ExitCode, String> {
    model::limit_gpus(arguments)?;
    if let Some(checkpoint) = model::checkpoint(arguments.only("MODEL")?)? {
        return bench_language::bench(&checkpoint, arguments);
    }
    let path = model::find(arguments.only("MODEL")?)?;
    let sweep = BenchSweep::of(arguments)?;
    let Some((batch, sequence, threads)) = sweep.single() else {
        return sweep.run(&path, arguments).map(|()| ExitCode::SUCCESS);
    };
    if arguments.has("plot") {
        return Err("--plot needs a list of --batch, --sequence or --threads".to_owned());
    }
    let time = seconds(arguments)?;
    let _timeline = model::timeline(arguments)?;
    let loaded = load(&path, arguments, threads)?;
    let shapes = generate::parse_shapes(arguments.all("shape"))?;
    let lengths = generate::FreeLengths { batch, sequence };
    let inputs = generate::inputs(&loaded.session, lengths, &shapes)?.inputs;
    let quiet = arguments.has("json");
    let figures = figures(&loaded.session, &inputs, time, quiet)?;
    let job = BenchJob { path: &path, arguments, batch, sequence, threads };
    let rows = match arguments.has("profile") {
        true => Some(profile(&loaded.session, &inputs)?),
        false => None,
    };
    let roofs = rows.as_ref().map(|rows| DeviceRoofs::of(arguments.last("provider"), rows));
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

/// Returns the duration that `--seconds` allows a measurement.
///
/// # Errors
/// Fails when the value is not a time.
pub(super) fn seconds(arguments: &CommandArguments) -> Result<Duration, String> {
    let seconds: f64 = arguments.number("seconds", 3.0)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("--seconds expects a time, got '{seconds}'"))
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
    arguments: &CommandArguments,
    threads: usize,
) -> Result<BenchModel, String> {
    let started = Instant::now();
    let model = model::cached_model(path, arguments, threads)?;
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
    pub(super) arguments: &'a CommandArguments,
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
            "provider": self.arguments.last("provider").unwrap_or(&used),
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
