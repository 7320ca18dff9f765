//! Times of the parts of a run, or of a language model's steps: part of `galatea bench --profile`.

use std::path::Path;
use std::time::{Duration, Instant};

use galatea_llm::engine::{SessionModel, StepBatch, StepModel};
use galatea_llm::model::CheckpointOptions;
use galatea_llm::sampling::LogitNeed;
use galatea_runtime::{ArithmeticUnit, ArithmeticWork, DevicePeaks, ProfileRow, RooflineBound};
use galatea_tensor::OrderedMap;
use serde_json::{Value, json};

use crate::table::table;
use galatea::devices;
use galatea::profile::processor_peaks;

use super::engine;

/// The operator of rows that say what the processor does around a GPU's kernels.
pub(super) const HOST: &str = "host";

/// The provider whose peaks are measured.
const GPU: &str = "gpu";

/// Steps that are timed as a whole.
const ROUNDS: usize = 20;

/// Sentence below a table with estimated times.
const ESTIMATES: &str =
    "~ marks estimates: shares of a measured prediction by the weights of Core ML's plan.\n";

/// Peaks of the devices that kernels run on, as far as known.
#[derive(Debug, Default)]
pub(super) struct DeviceRoofs {
    gpu: Option<(String, DevicePeaks)>,
    processor: DevicePeaks,
}

impl DeviceRoofs {
    /// Measures the GPU that a provider's name stands for, if any row ran on one. The CPU's peaks were measured on
    /// this host before, or are now.
    pub(super) fn of(provider: Option<&str>, rows: &[ProfileRow]) -> Self {
        let on_gpu = rows.iter().any(|row| row.provider == GPU);
        let number = on_gpu.then(|| devices::gpu_number(provider)).flatten();
        let measured = number
            .map(|number| engine().gpus().peaks(number))
            .transpose()
            .unwrap_or_else(|error| {
                tracing::warn!("the peaks of the GPU are not known: {error}");
                None
            });
        let on_cpu = rows.iter().any(|row| row.provider == galatea_providers::cpu::NAME);
        let processor = if on_cpu { processor_peaks() } else { DevicePeaks::default() };
        Self { gpu: measured, processor }
    }

    /// Returns the peaks of a provider's device, as far as known.
    pub(super) fn peaks(&self, provider: &str) -> DevicePeaks {
        match provider {
            GPU => self.gpu.as_ref().map(|(_, peaks)| *peaks).unwrap_or_default(),
            galatea_providers::cpu::NAME => self.processor,
            _ => DevicePeaks::default(),
        }
    }

    /// Returns what bounds the run of the GPU's kernels, or of the CPU's where no GPU has a part.
    fn run(&self, rows: &[ProfileRow]) -> Option<RooflineBound> {
        if self.gpu.is_none() {
            let cpu = galatea_providers::cpu::NAME;
            let kernels: Vec<ProfileRow> =
                rows.iter().filter(|row| row.provider == cpu && row.op != HOST).cloned().collect();
            let whole = kernels.iter().map(|row| row.time).sum();
            return self.processor.run_bound(&kernels, whole);
        }
        let (host, kernels): (Vec<&ProfileRow>, Vec<&ProfileRow>) =
            rows.iter().filter(|row| row.provider == GPU).partition(|row| row.op == HOST);
        let whole = host.iter().map(|row| row.time).sum();
        let kernels: Vec<ProfileRow> = kernels.into_iter().cloned().collect();
        self.peaks(GPU).run_bound(&kernels, whole)
    }

    /// A sentence on the peaks, and one on the run.
    pub(super) fn text(&self, rows: &[ProfileRow]) -> String {
        let bound = self.run(rows).map_or("", RooflineBound::name);
        let run =
            if bound.is_empty() { String::new() } else { format!("The run is {bound}-bound. ") };
        let Some((name, peaks)) = &self.gpu else {
            let peaks = peaks_text(&self.processor);
            return match peaks.is_empty() {
                true => run,
                false => format!("{run}Measured peaks of the CPU: {peaks}.\n"),
            };
        };
        format!("{run}Measured peaks of {name}: {}.\n", peaks_text(peaks))
    }

    /// All that is known of the kernels of a run.
    pub(super) fn json(&self, rows: &[ProfileRow]) -> Value {
        let sum = |of: &dyn Fn(&&ProfileRow) -> bool| -> f64 {
            rows.iter().filter(of).map(|row| row.time.as_secs_f64() * 1e6).sum()
        };
        json!({
            "kernels": summed(rows, self).iter().map(KernelSum::json).collect::<Vec<_>>(),
            "kernels_us": sum(&|row| row.op != HOST),
            "host_us": sum(&|row| row.op == HOST),
            "bound": self.run(rows).map(RooflineBound::name),
            "peaks": self.gpu.as_ref().map(|(name, peaks)| peaks_json(name, peaks)),
            "cpu_peaks": cpu_peaks_json(&self.processor),
        })
    }
}

/// The peaks that are known, for people.
pub(super) fn peaks_text(peaks: &DevicePeaks) -> String {
    let giga = |what: &str, peak: Option<f64>, unit: &str| {
        peak.map(|peak| format!("{what} {:.1} {unit}", peak / 1e9))
    };
    let micros = |what: &str, time: Option<Duration>| {
        time.map(|time| format!("{what} {:.2} us", time.as_secs_f64() * 1e6))
    };
    // GPUs, which start kernels, are measured by copies, and the CPU by reads.
    let bytes = if peaks.dispatch.is_some() { "copies" } else { "memory" };
    let all = [
        giga("FP32", peaks.vector_f32, "GFLOP/s"),
        giga("FP16", peaks.vector_f16, "GFLOP/s"),
        giga("matrices of FP16", peaks.matrix_f16, "GFLOP/s"),
        giga("BF16", peaks.bf16, "GFLOP/s"),
        giga("INT8", peaks.int8, "GOP/s"),
        giga(bytes, peaks.bytes, "GB/s"),
        micros("an empty kernel", peaks.dispatch),
        micros("handing one over and waiting", peaks.submit),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The same for programs.
pub(super) fn peaks_json(name: &str, peaks: &DevicePeaks) -> Value {
    let giga = |peak: Option<f64>| peak.map(|peak| peak / 1e9);
    let micros = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e6);
    json!({
        "gpu": name,
        "vector_f32_gflops": giga(peaks.vector_f32),
        "vector_f16_gflops": giga(peaks.vector_f16),
        "matrix_f16_gflops": giga(peaks.matrix_f16),
        "copy_gb_per_s": giga(peaks.bytes),
        "dispatch_us": micros(peaks.dispatch),
        "submit_us": micros(peaks.submit),
    })
}

/// The peaks of a CPU for programs; nothing where they are not known.
fn cpu_peaks_json(peaks: &DevicePeaks) -> Value {
    let giga = |peak: Option<f64>| peak.map(|peak| peak / 1e9);
    match *peaks == DevicePeaks::default() {
        true => Value::Null,
        false => json!({
            "vector_f32_gflops": giga(peaks.vector_f32),
            "bf16_gflops": giga(peaks.bf16),
            "int8_gops": giga(peaks.int8),
            "memory_gb_per_s": giga(peaks.bytes),
        }),
    }
}

/// For each step, given as the positions before it and its rows, a table of its kernels, and the same for
/// programs.
///
/// # Errors
/// Fails when the model cannot be loaded or a step fails.
pub(super) fn tables(
    path: &Path,
    options: &CheckpointOptions,
    steps: &[(usize, usize)],
    provider: Option<&str>,
) -> Result<(String, Vec<Value>), String> {
    let mut model = SessionModel::load(path, options).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let mut all = Vec::new();
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
        let roofs = DeviceRoofs::of(provider, &profile);
        text.push_str(&summary(before, rows, median, &profile, &roofs));
        let mut step = roofs.json(&profile);
        for (name, value) in [
            ("positions_before", json!(before)),
            ("rows", json!(rows)),
            ("step_us", json!(median.as_secs_f64() * 1e6)),
        ] {
            if let Some(fields) = step.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        }
        all.push(step);
    }
    Ok((text, all))
}

/// One sequence of so many rows behind so many positions; the last row's most probable token is wanted.
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
        need: LogitNeed::Best,
    }
}

/// A step and its kernels.
fn summary(
    before: usize,
    rows: usize,
    step: Duration,
    profile: &[ProfileRow],
    roofs: &DeviceRoofs,
) -> String {
    let (count, all) = started(profile);
    format!(
        "\nA step of {rows} rows behind {before} positions takes {} us, its {count} kernels {} us. {}\n{}",
        micros(step),
        micros(all),
        roofs.text(profile),
        kernels(profile, roofs)
    )
}

/// Returns the number of kernels that were started, and their total time.
fn started(profile: &[ProfileRow]) -> (usize, Duration) {
    let started = profile.iter().filter(|row| row.op != HOST);
    started.fold((0, Duration::ZERO), |(count, all), row| (count + 1, all + row.time))
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

/// All starts of a kernel for an operator.
struct KernelSum<'a> {
    kernel: &'a str,
    op: &'a str,
    unit: ArithmeticUnit,
    /// True if its times are shares of a longer one, by a plan.
    estimated: bool,
    starts: usize,
    time: Duration,
    work: ArithmeticWork,
    /// The share of the most arithmetic, and that of the most bytes.
    shares: [Option<f64>; 2],
    bound: Option<RooflineBound>,
}

/// Largest share of a peak that is an error of measurement; a larger one says that something else bounds a kernel.
const MAX_SHARE: f64 = 1.1;

/// The share of the nearer peak, as people read it.
#[derive(Debug, PartialEq)]
pub(crate) struct ReachedPeak {
    pub(crate) share: Option<f64>,
    pub(crate) bound: String,
}

impl ReachedPeak {
    /// Reads the shares of the most arithmetic and of the most bytes. More bytes than memory gives come from caches,
    /// whose most is not known; more arithmetic than the most was saved by the kernel.
    pub(crate) fn of(shares: [Option<f64>; 2], bound: &str) -> Self {
        let [compute, memory] = shares;
        let cached = memory.is_some_and(|share| share > MAX_SHARE);
        let known = [compute, memory.filter(|_| !cached)].into_iter().flatten();
        let share = known.reduce(f64::max).map(|share| share.min(1.0));
        let bound = if cached && bound == RooflineBound::Memory.name() { "cache" } else { bound };
        Self { share, bound: bound.to_owned() }
    }
}

/// Kernels by the time that all their starts take together.
fn summed<'a>(profile: &'a [ProfileRow], roofs: &DeviceRoofs) -> Vec<KernelSum<'a>> {
    type Key<'a> = (&'a str, &'a str, &'static str, ArithmeticUnit, bool);
    let mut kernels: OrderedMap<Key<'a>, (usize, Duration, ArithmeticWork)> = OrderedMap::new();
    for row in profile {
        let key = (row.kernel.as_str(), row.op.as_str(), row.provider, row.unit, row.estimated);
        let entry = kernels.entry(key).or_default();
        *entry = (entry.0 + 1, entry.1 + row.time, entry.2.plus(row.work));
    }
    let sum = |((kernel, op, provider, unit, estimated), (starts, time, work)): (Key<'a>, _)| {
        // What the host does is no work of a kernel.
        let peaks = if op == HOST { DevicePeaks::default() } else { roofs.peaks(provider) };
        let shares = peaks.shares(work, unit, time);
        let bound = peaks.bound(work, unit, starts, time);
        KernelSum { kernel, op, unit, estimated, starts, time, work, shares, bound }
    };
    let mut sorted: Vec<KernelSum<'a>> = kernels.into_iter().map(sum).collect();
    sorted.sort_by_key(|sum| std::cmp::Reverse(sum.time));
    sorted
}

/// A table of kernels by the time that all their starts take together.
pub(super) fn kernels(profile: &[ProfileRow], roofs: &DeviceRoofs) -> String {
    let sums = summed(profile, roofs);
    let head =
        ["us", "Starts", "Each", "GFLOP/s", "GB/s", "Of peak", "Bound", "Kernel", "Operator"];
    let mut text = table(&head, sums.iter().map(KernelSum::cells));
    if sums.iter().any(|sum| sum.estimated) {
        text.push_str(ESTIMATES);
    }
    text
}

impl KernelSum<'_> {
    fn each(&self) -> Duration {
        self.time / u32::try_from(self.starts).unwrap_or(u32::MAX).max(1)
    }

    /// 10⁹ of something in a second.
    fn giga(&self, amount: u64) -> f64 {
        amount as f64 / self.time.as_secs_f64().max(1e-9) / 1e9
    }

    /// The time; a wave before it marks an estimate.
    fn time_text(&self) -> String {
        format!("{}{}", if self.estimated { "~" } else { "" }, micros(self.time))
    }

    fn cells(&self) -> Vec<String> {
        let rate = |amount: u64| match amount {
            0 => String::new(),
            amount => format!("{:.1}", self.giga(amount)),
        };
        let reached = ReachedPeak::of(self.shares, self.bound.map_or("", RooflineBound::name));
        vec![
            self.time_text(),
            self.starts.to_string(),
            micros(self.each()),
            rate(self.work.operations),
            rate(self.work.bytes),
            reached.share.map_or(String::new(), |share| format!("{:.0} %", share * 100.0)),
            reached.bound,
            self.kernel.to_owned(),
            self.op.to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let [compute, memory] = self.shares;
        json!({
            "kernel": self.kernel,
            "operator": self.op,
            "unit": self.unit.name(),
            "starts": self.starts,
            "us": self.time.as_secs_f64() * 1e6,
            "estimated": self.estimated,
            "flop": self.work.operations,
            "bytes": self.work.bytes,
            "gflops": self.giga(self.work.operations),
            "gb_per_s": self.giga(self.work.bytes),
            "compute_share": compute,
            "memory_share": memory,
            "bound": self.bound.map(RooflineBound::name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_of_a_peak_is_more_than_all_of_it() {
        for (shares, bound, share, text) in [
            ([Some(0.25), Some(3.0)], "memory", Some(0.25), "cache"),
            ([None, Some(3.0)], "memory", None, "cache"),
            ([Some(0.2), Some(1.04)], "memory", Some(1.0), "memory"),
            ([Some(1.7), Some(0.3)], "compute", Some(1.0), "compute"),
            ([None, None], "launch", None, "launch"),
        ] {
            let found = ReachedPeak::of(shares, bound);
            assert_eq!(found, ReachedPeak { share, bound: text.to_owned() }, "{shares:?}");
        }
    }

    #[test]
    fn times_that_a_plan_estimates_are_marked() {
        let estimated = |op: &str, us: u64| ProfileRow {
            kernel: format!("ios16.{op} on Neural Engine"),
            op: op.to_owned(),
            provider: "coreml",
            time: Duration::from_micros(us),
            estimated: true,
            ..ProfileRow::default()
        };
        let rows = [estimated("conv", 30), estimated("conv", 20), estimated("relu", 10)];
        let roofs = DeviceRoofs::default();
        let found = roofs.json(&rows);
        assert_eq!(
            (&found["kernels"][0]["us"], &found["kernels"][0]["starts"]),
            (&json!(50.0), &json!(2))
        );
        assert_eq!(found["kernels"][1]["estimated"], json!(true));
        let text = kernels(&rows, &roofs);
        assert!(text.contains("~50.0") && text.ends_with(ESTIMATES), "{text}");
    }

    fn row(kernel: &str, us: u64, work: ArithmeticWork) -> ProfileRow {
        ProfileRow {
            kernel: kernel.to_owned(),
            op: if kernel == "wait" { HOST } else { "MatMul" }.to_owned(),
            provider: GPU,
            time: Duration::from_micros(us),
            work,
            ..ProfileRow::default()
        }
    }

    #[test]
    fn kernels_are_summed_and_bound_by_the_nearer_peak() {
        let peaks = DevicePeaks {
            vector_f32: Some(1e12),
            bytes: Some(1e11),
            dispatch: Some(Duration::from_micros(1)),
            ..DevicePeaks::default()
        };
        let roofs = DeviceRoofs { gpu: Some(("g".to_owned(), peaks)), ..DeviceRoofs::default() };
        let work = |operations, bytes| ArithmeticWork { operations, bytes };
        let rows = [
            row("wait", 400, ArithmeticWork::default()),
            row("many", 100, work(1000, 5_000_000)),
            row("many", 100, work(1000, 5_000_000)),
            row("much", 100, work(90_000_000, 1)),
            row("none", 1, work(1, 1)),
        ];
        let found = roofs.json(&rows);
        let kernels = found["kernels"].as_array().unwrap();
        let bound =
            |name: &str| kernels.iter().find(|of| of["kernel"] == name).unwrap()["bound"].clone();
        assert_eq!((bound("many"), bound("much")), (json!("memory"), json!("compute")));
        assert_eq!((bound("none"), bound("wait")), (json!("launch"), Value::Null));
        assert_eq!((&found["bound"], &found["kernels_us"]), (&json!("memory"), &json!(301.0)));
        assert_eq!(kernels[1]["gb_per_s"], json!(50.0));
        assert!(roofs.text(&rows).starts_with("The run is memory-bound."));
        assert!(!super::kernels(&rows, &roofs).contains('~'));
        let unknown = DeviceRoofs::default();
        assert_eq!(unknown.json(&rows)["kernels"][1]["bound"], Value::Null);
        assert_eq!(unknown.text(&rows), "");
    }
}
