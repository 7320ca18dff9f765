//! What takes how long in a run or in the steps of a language model: part of `galatea bench --profile`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use galatea_llm::engine::{SessionModel, StepBatch, StepModel};
use galatea_llm::model::LoadOptions;
use galatea_runtime::ProfileRow;

use crate::table::table;

/// The operator of rows that say what the processor does around a GPU's kernels.
const HOST: &str = "host";

/// Steps that are timed as a whole.
const ROUNDS: usize = 20;

/// For each step, given as the positions before it and its rows, a table of its kernels.
///
/// # Errors
/// When the model cannot be loaded or a step fails.
pub(super) fn tables(
    path: &Path,
    options: &LoadOptions,
    steps: &[(usize, usize)],
) -> Result<String, String> {
    let mut model = SessionModel::load(path, options).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for &(before, rows) in steps {
        let batch = batch(&model, before, rows);
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let logits = model.step(&batch).map_err(|error| error.to_string())?;
            times.push(start.elapsed());
            model.take_back(logits);
        }
        times.sort_unstable();
        let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
        let profile = model.profile(&batch).map_err(|error| error.to_string())?;
        text.push_str(&summary(before, rows, median, &profile));
    }
    Ok(text)
}

/// One sequence of so many rows behind so many positions; the last row's logits are wanted.
fn batch(model: &SessionModel, before: usize, rows: usize) -> StepBatch {
    let int = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let vocabulary = model.shape().vocabulary.max(1);
    let most = model.block_count();
    StepBatch {
        tokens: (0..rows).map(|row| int((row * 31 + 7) % vocabulary)).collect(),
        positions: (before..before + rows).map(int).collect(),
        starts: vec![0, int(rows)],
        lengths: vec![int(before + rows)],
        blocks: (0..most).map(int).collect(),
        most_blocks: most,
        wanted: vec![int(rows) - 1],
    }
}

/// A step and its kernels.
fn summary(before: usize, rows: usize, step: Duration, profile: &[ProfileRow]) -> String {
    let (count, all) = started(profile);
    format!(
        "\nA step of {rows} rows behind {before} positions takes {} us, its {count} kernels {} us:\n{}",
        micros(step),
        micros(all),
        kernels(profile)
    )
}

/// How many kernels were started, and the time of all of them.
fn started(profile: &[ProfileRow]) -> (usize, Duration) {
    let started = profile.iter().filter(|row| row.op != HOST);
    started.fold((0, Duration::ZERO), |(count, all), row| (count + 1, all + row.time))
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

/// A table of kernels by the time that all their starts take together.
pub(super) fn kernels(profile: &[ProfileRow]) -> String {
    let mut kernels: BTreeMap<(&str, &str), (usize, Duration)> = BTreeMap::new();
    for row in profile {
        let entry = kernels.entry((&row.kernel, &row.op)).or_default();
        *entry = (entry.0 + 1, entry.1 + row.time);
    }
    let mut sorted: Vec<_> = kernels.into_iter().collect();
    sorted.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
    let cells = sorted.into_iter().map(|((kernel, op), (starts, time))| {
        let each = time / u32::try_from(starts).unwrap_or(u32::MAX).max(1);
        vec![micros(time), starts.to_string(), micros(each), kernel.to_owned(), op.to_owned()]
    });
    table(&["us", "Starts", "Each", "Kernel", "Operator"], cells)
}
