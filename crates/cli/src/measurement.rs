//! Measuring runs of a model, and texts of what was measured.

use std::path::Path;
use std::time::{Duration, Instant};

use galatea_runtime::{PlacementReport, Run, Session};
use galatea_serving::model_cache::SessionOrigin;
use galatea_tensor::Tensor;
use indicatif::{ProgressBar, ProgressStyle};

use super::model::{self, CacheChoices, SessionChoices};
use crate::table::table;

/// Fewest runs of a measurement, however long they take.
const MIN_RUNS: usize = 5;
/// Runs before the measurement: the first ones pack weights and plan memory.
const WARM_UP_RUNS: usize = 2;
/// The most time in which units are compared.
pub(super) const SETTLING: Duration = Duration::from_secs(20);

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
    choices: &SessionChoices,
    cache: &CacheChoices,
    threads: usize,
) -> Result<BenchModel, String> {
    let started = Instant::now();
    let model = model::cached_model(path, choices, threads, cache)?;
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

    /// A table of one row.
    pub(super) fn text(&self, loaded: &BenchModel, figures: BenchFigures) -> String {
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
