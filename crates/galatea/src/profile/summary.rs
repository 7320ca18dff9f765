//! Summary of a profile as JSON: the activity of devices, the times of operators, and their bounds.

use std::time::{Duration, Instant};

use galatea_providers::cpu;
use galatea_runtime::power::EnergyReport;
use galatea_runtime::{ArithmeticWork, DevicePeaks, RooflineBound};
use serde_json::{Map, Value, json};

use super::ProfileSources;
use super::host_peaks::known_processor_peaks;
use super::spread::TimeSpread;
use super::tally::{
    GPU, ModelTally, OperatorTally, ProfilePlace, ProfileSums, ProfiledOperator, UnitTally,
};
use crate::power::PowerState;

/// Operators of a model that are listed.
const LISTED: usize = 100;

/// Facts about devices that a summary tells.
pub(super) struct SummaryFacts<'a> {
    /// Peaks of a device, as far as known.
    pub(super) peaks: &'a dyn Fn(&ProfilePlace) -> DevicePeaks,
    /// Name of a GPU; empty if it is not open.
    pub(super) gpu_name: &'a dyn Fn(usize) -> String,
    /// Sensors of the machine, if there are any.
    pub(super) power: Option<PowerState>,
}

/// Returns the peaks of a device that are known without a new measurement.
pub(super) fn known_peaks(sources: &ProfileSources, place: &ProfilePlace) -> DevicePeaks {
    match place {
        ProfilePlace::Provider(name) if *name == cpu::NAME => {
            known_processor_peaks().unwrap_or_default()
        }
        ProfilePlace::Provider(_) => DevicePeaks::default(),
        ProfilePlace::Device(number) => sources.gpus.known_peaks(*number).unwrap_or_default(),
    }
}

/// Time span and models of a profile.
pub(super) struct ProfileWindow {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    /// Joules of the devices at the begin.
    pub(super) energy: Option<EnergyReport>,
    /// The models that were asked for; all where there are none.
    pub(super) models: Vec<String>,
}

/// The whole summary.
pub(super) fn summary(
    tally: &ProfileSums,
    window: &ProfileWindow,
    facts: &SummaryFacts<'_>,
) -> Value {
    let wall = window.end.saturating_duration_since(window.begin);
    let units =
        tally.units.iter().map(|(place, unit)| unit_json(place, unit, window.begin, wall, facts));
    let models = tally.models.iter().map(|(name, model)| model_json(name, model, facts));
    let mut whole = json!({
        "seconds": wall.as_secs_f64(),
        "models_asked": window.models,
        "units": units.collect::<Vec<_>>(),
        "models": models.collect::<Vec<_>>(),
    });
    if let Some(fields) = whole.as_object_mut() {
        fields.extend(machine(facts.power, window.energy, wall));
    }
    whole
}

/// A member that is left out where there is nothing to say.
fn put(fields: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Reports the sensors of the machine: average watts over the window, and the heat at its end.
fn machine(
    now: Option<PowerState>,
    before: Option<EnergyReport>,
    wall: Duration,
) -> Map<String, Value> {
    let mut fields = Map::new();
    let Some(state) = now else { return fields };
    let before = before.unwrap_or_default();
    let now = state.energy;
    let mut watts = Map::new();
    for (name, before, now) in [
        ("cpu", before.cpu, now.cpu),
        ("gpu", before.gpu, now.gpu),
        ("neural_engine", before.engine, now.engine),
        ("memory", before.memory, now.memory),
        ("chip", before.chip, now.chip),
        ("system", before.system, now.system),
    ] {
        let drawn = now.map(|now| (now - before.unwrap_or(0.0)).max(0.0));
        put(&mut watts, name, drawn.map(|joules| joules / wall.as_secs_f64().max(1e-9)));
    }
    put(&mut fields, "watts", (!watts.is_empty()).then_some(watts));
    put(&mut fields, "celsius", state.reading.celsius);
    put(&mut fields, "thermal_state", state.reading.thermal.map(|state| state.name().to_owned()));
    fields
}

/// 10⁹ of something in a second; nothing of nothing.
fn giga(amount: u64, time: Duration) -> Option<f64> {
    (amount > 0 && !time.is_zero()).then(|| amount as f64 / time.as_secs_f64() / 1e9)
}

fn place_fields(fields: &mut Map<String, Value>, place: &ProfilePlace, facts: &SummaryFacts<'_>) {
    match place {
        ProfilePlace::Provider(name) => put(fields, "unit", Some((*name).to_owned())),
        ProfilePlace::Device(number) => {
            put(fields, "unit", Some(format!("{GPU}:{number}")));
            put(fields, "name", Some((facts.gpu_name)(*number)).filter(|name| !name.is_empty()));
        }
    }
}

fn unit_json(
    place: &ProfilePlace,
    unit: &UnitTally,
    begin: Instant,
    wall: Duration,
    facts: &SummaryFacts<'_>,
) -> Value {
    let busy = unit.busy.since(begin);
    let mut fields = Map::new();
    place_fields(&mut fields, place, facts);
    put(&mut fields, "runs", Some(unit.runs));
    put(&mut fields, "busy_seconds", Some(busy.as_secs_f64()));
    let share = busy.as_secs_f64() / wall.as_secs_f64().max(1e-9);
    put(&mut fields, "utilization", Some(share.min(1.0)));
    work_fields(&mut fields, unit.work, busy);
    Value::Object(fields)
}

fn work_fields(fields: &mut Map<String, Value>, work: ArithmeticWork, time: Duration) {
    put(fields, "operations", Some(work.operations).filter(|count| *count > 0));
    put(fields, "gflops", giga(work.operations, time));
    put(fields, "bytes", Some(work.bytes).filter(|count| *count > 0));
    put(fields, "gb_per_s", giga(work.bytes, time));
}

/// Count, mean and quantiles in microseconds.
fn spread_fields(fields: &mut Map<String, Value>, times: &TimeSpread) {
    let us = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e6);
    put(fields, "count", Some(times.count()));
    put(fields, "mean_us", us(times.mean()));
    put(fields, "p50_us", us(times.quantile(0.5)));
    put(fields, "p99_us", us(times.quantile(0.99)));
}

fn spread_json(times: &TimeSpread) -> Option<Value> {
    let mut fields = Map::new();
    spread_fields(&mut fields, times);
    (times.count() > 0).then_some(Value::Object(fields))
}

fn model_json(name: &str, model: &ModelTally, facts: &SummaryFacts<'_>) -> Value {
    let mut operators: Vec<(&ProfiledOperator, &OperatorTally)> = model.operators.iter().collect();
    operators.sort_by(|a, b| b.1.times.sum().cmp(&a.1.times.sum()).then_with(|| a.0.cmp(b.0)));
    let all: Duration = operators.iter().map(|(_, tally)| tally.times.sum()).sum();
    let bounds = operators.iter().map(|(operator, tally)| (bound(operator, tally, facts), *tally));
    let whole = model_bound(bounds, all);
    let listed = operators.iter().take(LISTED);
    let listed = listed.map(|(operator, tally)| operator_json(operator, tally, all, facts));
    let listed: Vec<Value> = listed.collect();
    let mut fields = Map::new();
    put(&mut fields, "model", Some(name.to_owned()));
    put(&mut fields, "runs", Some(model.runs));
    put(&mut fields, "requests", spread_json(&model.requests));
    put(&mut fields, "queue", spread_json(&model.queue));
    let [prompt, answer] = model.tokens;
    put(&mut fields, "prompt_tokens", Some(prompt).filter(|count| *count > 0));
    put(&mut fields, "completion_tokens", Some(answer).filter(|count| *count > 0));
    put(&mut fields, "bound", whole.map(|bound| bound.name().to_owned()));
    put(&mut fields, "operators", Some(listed));
    Value::Object(fields)
}

/// Returns the bound that holds for more than half of the time of a model's operators, if any.
fn model_bound<'t>(
    bounds: impl Iterator<Item = (Option<RooflineBound>, &'t OperatorTally)>,
    all: Duration,
) -> Option<RooflineBound> {
    let mut times = [RooflineBound::Compute, RooflineBound::Memory, RooflineBound::Launch]
        .map(|of| (of, Duration::ZERO));
    for (bound, tally) in bounds {
        for (_, time) in times.iter_mut().filter(|(of, _)| Some(*of) == bound) {
            *time += tally.times.sum();
        }
    }
    let most = times.into_iter().max_by_key(|(_, time)| *time);
    most.filter(|(_, time)| !all.is_zero() && *time * 2 > all).map(|(bound, _)| bound)
}

fn bound(
    operator: &ProfiledOperator,
    tally: &OperatorTally,
    facts: &SummaryFacts<'_>,
) -> Option<RooflineBound> {
    let starts = usize::try_from(tally.times.count()).unwrap_or(usize::MAX);
    (facts.peaks)(&operator.place).bound(tally.work, operator.unit, starts, tally.times.sum())
}

fn operator_json(
    operator: &ProfiledOperator,
    tally: &OperatorTally,
    all: Duration,
    facts: &SummaryFacts<'_>,
) -> Value {
    let time = tally.times.sum();
    let [compute, memory] = (facts.peaks)(&operator.place).shares(tally.work, operator.unit, time);
    let mut fields = Map::new();
    put(&mut fields, "operator", Some(operator.op.clone()));
    put(&mut fields, "kernel", Some(operator.kernel.clone()));
    place_fields(&mut fields, &operator.place, facts);
    put(&mut fields, "estimated", operator.estimated.then_some(true));
    spread_fields(&mut fields, &tally.times);
    put(&mut fields, "total_ms", Some(time.as_secs_f64() * 1e3));
    put(&mut fields, "share", Some(time.as_secs_f64() / all.as_secs_f64().max(1e-9)));
    work_fields(&mut fields, tally.work, time);
    put(&mut fields, "compute_share", compute);
    put(&mut fields, "memory_share", memory);
    put(&mut fields, "bound", bound(operator, tally, facts).map(|bound| bound.name().to_owned()));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use galatea_runtime::{PartRun, ProfileRow};

    use super::*;

    fn row(op: &str, us: u64, work: ArithmeticWork) -> ProfileRow {
        ProfileRow {
            op: op.to_owned(),
            kernel: op.to_lowercase(),
            provider: cpu::NAME,
            time: Duration::from_micros(us),
            work,
            ..ProfileRow::default()
        }
    }

    fn tally(begin: Instant) -> ProfileSums {
        let work = |operations, bytes| ArithmeticWork { operations, bytes };
        let mut tally = ProfileSums::default();
        for at in 0..10 {
            tally.part(&PartRun {
                model: "m".into(),
                provider: cpu::NAME,
                begin: begin + Duration::from_micros(1000 * at),
                time: Duration::from_micros(500),
                rows: vec![
                    row("MatMul", 300, work(240_000_000, 3_000_000)),
                    row("Add", 100, work(1000, 8_000_000)),
                ],
            });
        }
        tally
    }

    fn facts(peaks: &dyn Fn(&ProfilePlace) -> DevicePeaks) -> SummaryFacts<'_> {
        SummaryFacts { peaks, gpu_name: &|_| String::new(), power: None }
    }

    #[test]
    fn units_and_operators_are_added_up() {
        let begin = Instant::now();
        let end = begin + Duration::from_millis(10);
        let window = ProfileWindow { begin, end, energy: None, models: Vec::new() };
        let peaks =
            DevicePeaks { vector_f32: Some(1e12), bytes: Some(1e11), ..DevicePeaks::default() };
        let found = summary(&tally(begin), &window, &facts(&|_| peaks));
        let unit = &found["units"][0];
        assert_eq!((&unit["unit"], &unit["runs"]), (&json!("cpu"), &json!(10)));
        assert!((unit["utilization"].as_f64().unwrap() - 0.5).abs() < 1e-9, "{unit}");
        let model = &found["models"][0];
        let first = &model["operators"][0];
        assert_eq!((&first["operator"], &first["count"]), (&json!("MatMul"), &json!(10)));
        assert!((first["share"].as_f64().unwrap() - 0.75).abs() < 1e-9);
        assert!((first["p99_us"].as_f64().unwrap() - 300.0).abs() < 3.0);
        assert_eq!((&first["bound"], &model["bound"]), (&json!("compute"), &json!("compute")));
        assert_eq!(model["operators"][1]["bound"], json!("memory"));
    }

    #[test]
    fn times_that_a_plan_estimates_are_marked() {
        let begin = Instant::now();
        let estimated = |op: &str, us| ProfileRow {
            provider: "coreml",
            estimated: true,
            ..row(op, us, ArithmeticWork::default())
        };
        let mut tally = ProfileSums::default();
        tally.part(&PartRun {
            model: "m".into(),
            provider: "coreml",
            begin,
            time: Duration::from_micros(400),
            rows: vec![estimated("conv", 300), estimated("relu", 100)],
        });
        let window = ProfileWindow { begin, end: begin, energy: None, models: Vec::new() };
        let found = summary(&tally, &window, &facts(&|_| DevicePeaks::default()));
        let operators = &found["models"][0]["operators"];
        assert_eq!(
            (&operators[0]["operator"], &operators[0]["estimated"]),
            (&json!("conv"), &json!(true))
        );
        assert!((operators[1]["share"].as_f64().unwrap() - 0.25).abs() < 1e-9);
        let kernels = tally.kernels();
        assert_eq!(kernels.estimated.len(), 2);
        assert!(kernels.processor.is_empty() && kernels.gpu.is_empty());
        // What is measured says nothing of estimates.
        let measured = summary(&self::tally(begin), &window, &facts(&|_| DevicePeaks::default()));
        assert!(measured["models"][0]["operators"][0].get("estimated").is_none());
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let begin = Instant::now();
        let window = ProfileWindow { begin, end: begin, energy: None, models: Vec::new() };
        let found = summary(&tally(begin), &window, &facts(&|_| DevicePeaks::default()));
        let model = &found["models"][0];
        for name in ["bound", "requests", "queue", "prompt_tokens"] {
            assert!(model.get(name).is_none(), "{model}");
        }
        assert!(model["operators"][0].get("bound").is_none());
        assert!(model["operators"][0].get("compute_share").is_none());
    }
}
