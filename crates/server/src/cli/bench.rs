//! `galatea bench`: how long one run of a model takes.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use galatea_runtime::Session;
use galatea_serving::model_cache::Source;
use galatea_tensor::Tensor;
use indicatif::{ProgressBar, ProgressStyle};

use super::arguments::{Arguments, Choice, help};
use super::{generate, model, say};
use crate::table::table;

const CHOICES: &[Choice] = &[
    Choice { name: "batch", value: "N", sentence: "length of the batch axis [1]" },
    Choice { name: "shape", value: "NAME=D,D…", sentence: "shape of an input; repeatable" },
    Choice { name: "threads", value: "N", sentence: "threads inside an operator [all cores]" },
    Choice { name: "provider", value: "NAME", sentence: "run on this provider" },
    Choice { name: "function", value: "NAME", sentence: "function of a model that has several" },
    Choice { name: "seconds", value: "S", sentence: "time to measure [3]" },
    Choice { name: "profile", value: "", sentence: "show the slowest operators too" },
    Choice { name: "json", value: "", sentence: "print one line of JSON" },
    Choice {
        name: "precision",
        value: "fp32|bf16",
        sentence: "what products and convolutions compute in [fp32]",
    },
    Choice { name: "level", value: "O0…O3", sentence: "how far the graph is rewritten [O3]" },
    model::CACHE_CHOICES[0],
    model::CACHE_CHOICES[1],
    Choice { name: "help", value: "", sentence: "print this" },
];

/// Fewest runs of a measurement, however long they take.
const LEAST_RUNS: usize = 5;
/// Runs before the measurement: the first ones pack weights and plan memory.
const WARM_UP_RUNS: usize = 2;
/// Rows of the profile.
const PROFILE_ROWS: usize = 15;

/// Measures a model on generated inputs.
pub(super) fn bench(arguments: &[String]) -> Result<ExitCode, String> {
    let arguments = Arguments::parse(arguments, CHOICES)?;
    if arguments.has("help") {
        say(&help("galatea bench MODEL [--batch N] [--json] …", CHOICES));
        return Ok(ExitCode::SUCCESS);
    }
    let path = model::find(arguments.only("MODEL")?)?;
    let batch: usize = arguments.number("batch", 1)?;
    let seconds: f64 = arguments.number("seconds", 3.0)?;
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("--seconds expects a time, got '{seconds}'"))?;
    let started = Instant::now();
    let (session, source) = model::cached_session(&path, &arguments)?;
    let load = started.elapsed();
    let shapes = generate::parse_shapes(arguments.all("shape"))?;
    let inputs = generate::inputs(&session, batch, &shapes)?;
    let quiet = arguments.has("json");
    let times = measure(&session, &inputs, time, quiet)?;
    let figures = Figures::of(&times);
    if quiet {
        say(&json(&path, &session, batch, &arguments, (load, source), figures)?);
        return Ok(ExitCode::SUCCESS);
    }
    say(&text(&path, &session, batch, (load, source), figures));
    if arguments.has("profile") {
        say(&profile(&session, &inputs)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn named(inputs: &[(String, Tensor)]) -> Vec<(&str, Tensor)> {
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
    for _ in 0..WARM_UP_RUNS {
        session.run(&inputs).map_err(|error| error.to_string())?;
    }
    let mut times = Vec::new();
    let started = Instant::now();
    while times.len() < LEAST_RUNS || started.elapsed() < time {
        let run = Instant::now();
        session.run(&inputs).map_err(|error| error.to_string())?;
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
struct Figures {
    runs: usize,
    min: f64,
    median: f64,
    mean: f64,
    p99: f64,
}

impl Figures {
    /// Of times in ascending order.
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

fn json(
    path: &Path,
    session: &Session,
    batch: usize,
    arguments: &Arguments,
    (load, source): (Duration, Source),
    figures: Figures,
) -> Result<String, String> {
    let threads: usize = arguments.number("threads", 0)?;
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let used = model::used_providers(session);
    let (memory, plans) = (session.memory(), session.plans());
    Ok(serde_json::json!({
        "model": path.display().to_string(),
        "provider": arguments.last("provider").unwrap_or(&used),
        "providers_used": used,
        "batch": batch,
        "threads": if threads == 0 { all() } else { threads },
        "runs": figures.runs,
        "min_ms": figures.min,
        "median_ms": figures.median,
        "mean_ms": figures.mean,
        "p99_ms": figures.p99,
        "per_second": batch as f64 * 1e3 / figures.median.max(1e-9),
        "load_ms": load.as_secs_f64() * 1e3,
        "loaded_from": source.to_string(),
        "weight_bytes": memory.initializer_bytes,
        "mapped_bytes": memory.mapped_bytes,
        "arena_bytes": plans.arena_bytes,
        "live_bytes": plans.live_bytes,
        "plan_ms": plans.time.as_secs_f64() * 1e3 / plans.made.max(1) as f64,
    })
    .to_string())
}

fn text(
    path: &Path,
    session: &Session,
    batch: usize,
    (load, source): (Duration, Source),
    figures: Figures,
) -> String {
    let cell = |value: f64| format!("{value:.3}");
    let row = vec![
        model::used_providers(session),
        batch.to_string(),
        figures.runs.to_string(),
        cell(figures.min),
        cell(figures.median),
        cell(figures.mean),
        cell(figures.p99),
        format!("{:.1}", batch as f64 * 1e3 / figures.median.max(1e-9)),
    ];
    let head =
        ["Provider", "Batch", "Runs", "Min ms", "Median ms", "Mean ms", "P99 ms", "Per second"];
    let plans = session.plans();
    let kilobytes = |bytes: usize| bytes.div_ceil(1024);
    format!(
        "{}: loaded in {:.0} ms ({source}); intermediate values in {} KiB, of which {} KiB live at once\n{}",
        path.display(),
        load.as_secs_f64() * 1e3,
        kilobytes(plans.arena_bytes),
        kilobytes(plans.live_bytes),
        table(&head, [row])
    )
}

fn profile(session: &Session, inputs: &[(String, Tensor)]) -> Result<String, String> {
    let (_, mut rows) = session.profile(&named(inputs)).map_err(|error| error.to_string())?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    let cells = rows.into_iter().take(PROFILE_ROWS).map(|row| {
        vec![format!("{:.3}", row.time.as_secs_f64() * 1e3), row.op, row.kernel, row.node]
    });
    Ok(table(&["ms", "Operator", "Kernel", "Node"], cells))
}
