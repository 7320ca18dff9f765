//! Output of `galatea simulate`.

use std::time::Duration;

use galatea_runtime::simulate::{
    Fleet, MachineReport, SimulatedModelReport, SimulationReport, TimeQuantiles,
};
use serde_json::{Map, Value, json};

use crate::table::table;

/// Notice at the head of every report.
const SIMULATED: &str = "SIMULATED: predicted from facts about chips; nothing here was measured.";
/// Machines up to which each has a line of its own; beyond, those of a kind share one.
const FEW: usize = 16;

/// For programs.
pub(super) fn as_json(fleet: &Fleet, report: &SimulationReport, took: Duration) -> Value {
    let machines: Vec<Value> = report.machines.iter().map(machine_json).collect();
    let models: Vec<Value> = report.models.iter().map(model_json).collect();
    json!({
        "simulated": true,
        "policy": fleet.power.policy.to_string(),
        "power_target_watts": fleet.power.target_watts,
        "seconds": report.seconds,
        "requests": report.requests(),
        "refused": report.refused(),
        "requests_per_second": report.per_second(report.requests()),
        "tokens": report.tokens(),
        "tokens_per_second": report.per_second(report.tokens()),
        "latency_seconds": quantiles_json(report.latency),
        "loads": report.loads().map(|[loads, _]| loads),
        "evictions": report.loads().map(|[_, evictions]| evictions),
        "network": fleet.network.map(|network| json!({
            "latency_seconds": network.seconds,
            "bytes_per_second": network.bytes,
        })),
        "joules": report.joules(),
        "tokens_per_joule": report.tokens_per_joule(),
        "models": models,
        "machines": machines,
        "pieces": report.pieces,
        "took_seconds": took.as_secs_f64(),
    })
}

fn quantiles_json(quantiles: Option<TimeQuantiles>) -> Value {
    quantiles.map_or(
        Value::Null,
        |TimeQuantiles { p50, p90, p99 }| json!({"p50": p50, "p90": p90, "p99": p99}),
    )
}

fn model_json(model: &SimulatedModelReport) -> Value {
    let placements =
        model.placements.iter().map(|(unit, count)| (unit.name().to_owned(), (*count).into()));
    json!({
        "model": model.name,
        "requests": model.requests,
        "refused": model.refused,
        "tokens": model.tokens,
        "latency_seconds": quantiles_json(model.latency),
        "first_token_seconds": quantiles_json(model.first_token),
        "placements": placements.collect::<Map<String, Value>>(),
    })
}

fn machine_json(machine: &MachineReport) -> Value {
    let units =
        machine.units.iter().map(|unit| (unit.unit.name().to_owned(), unit.utilisation.into()));
    json!({
        "machine": machine.number,
        "chip": machine.kind,
        "requests": machine.requests,
        "tokens": machine.tokens,
        "latency_seconds": quantiles_json(machine.latency),
        "tokens_per_joule": machine.tokens_per_joule(),
        "utilisation": units.collect::<Map<String, Value>>(),
        "watts": machine.watts,
        "joules": machine.joules,
        "hottest_celsius": machine.hottest,
        "throttled_seconds": machine.throttled_seconds,
        "limited_seconds": machine.limited_seconds,
        "loads": machine.loads.map(|[loads, _]| loads),
        "evictions": machine.loads.map(|[_, evictions]| evictions),
    })
}

/// For people.
pub(super) fn as_text(fleet: &Fleet, report: &SimulationReport, took: Duration) -> String {
    let target = fleet.power.target_watts.map(|watts| format!(", target {watts} W a chip"));
    let requests = report.requests();
    let tokens = report.tokens();
    let mut text = format!(
        "{SIMULATED}\n{requests} requests in {:.3} s ({:.2}/s), {} refused; {tokens} tokens ({:.1}/s)\n\
         policy {}{}; {:.0} J{}{}\n",
        report.seconds,
        report.per_second(requests),
        report.refused(),
        report.per_second(tokens),
        fleet.power.policy,
        target.unwrap_or_default(),
        report.joules(),
        report.tokens_per_joule().map(|rate| format!(", {rate:.2} tokens/J")).unwrap_or_default(),
        report
            .loads()
            .map(|[loads, evictions]| format!("; {loads} loads of models, {evictions} evictions"))
            .unwrap_or_default(),
    );
    let models = report.models.iter().map(|model| {
        let placed: Vec<String> = model
            .placements
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(unit, count)| format!("{} {count}", unit.name()))
            .collect();
        vec![
            model.name.clone(),
            model.requests.to_string(),
            model.refused.to_string(),
            millis(model.latency),
            millis(model.first_token),
            placed.join(", "),
        ]
    });
    let head = ["Model", "Requests", "Refused", "ms p50/p90/p99", "First token", "Placed on"];
    text += &table(&head, models);
    let head = [
        "Machine",
        "Requests",
        "Tokens",
        "Utilisation",
        "ms p50/p90/p99",
        "Watts",
        "Tokens/J",
        "°C",
        "Throttled s",
        "Limited s",
    ];
    text += &table(&head, machines(fleet, report));
    let ms = took.as_secs_f64() * 1e3;
    text + &format!("{} pieces of work in {ms:.0} ms of real time", report.pieces)
}

fn millis(quantiles: Option<TimeQuantiles>) -> String {
    quantiles.map_or_else(String::new, |TimeQuantiles { p50, p90, p99 }| {
        format!("{:.1}/{:.1}/{:.1}", p50 * 1e3, p90 * 1e3, p99 * 1e3)
    })
}

/// A line for each machine, or for those of each kind together.
fn machines(fleet: &Fleet, report: &SimulationReport) -> Vec<Vec<String>> {
    if report.machines.len() <= FEW {
        let line = |one: &MachineReport| line(&format!("{} {}", one.number, one.kind), &[one]);
        return report.machines.iter().map(line).collect();
    }
    let mut rest = report.machines.as_slice();
    let of_kind = fleet.kinds.iter().map(|kind| {
        let (own, others) = rest.split_at(kind.count.min(rest.len()));
        rest = others;
        line(&format!("{} × {}", own.len(), kind.name), &own.iter().collect::<Vec<_>>())
    });
    of_kind.collect()
}

/// Sums of counts, averages of shares and watts, and the hottest.
fn line(name: &str, all: &[&MachineReport]) -> Vec<String> {
    let count = all.len().max(1) as f64;
    let mean =
        |of: &dyn Fn(&MachineReport) -> f64| all.iter().map(|one| of(one)).sum::<f64>() / count;
    let tokens = all.iter().map(|one| one.tokens).sum::<u64>();
    let joules = all.iter().map(|one| one.joules).sum::<f64>();
    let units = all.first().map_or(&[][..], |one| one.units.as_slice());
    let shares = units.iter().enumerate().map(|(at, unit)| {
        let share = mean(&|one| one.units.get(at).map_or(0.0, |unit| unit.utilisation));
        let times = if unit.count > 1 { format!("{} × ", unit.count) } else { String::new() };
        format!("{times}{} {:.0} %", unit.unit.name(), share * 100.0)
    });
    vec![
        name.to_owned(),
        all.iter().map(|one| one.requests).sum::<u64>().to_string(),
        tokens.to_string(),
        shares.collect::<Vec<_>>().join(", "),
        match all {
            [one] => millis(one.latency),
            _ => String::new(),
        },
        format!("{:.1}", mean(&|one| one.watts)),
        if tokens > 0 && joules > 0.0 {
            format!("{:.2}", tokens as f64 / joules)
        } else {
            String::new()
        },
        format!("{:.0}", all.iter().map(|one| one.hottest).fold(0.0, f64::max)),
        format!("{:.0}", mean(&|one| one.throttled_seconds)),
        format!("{:.0}", mean(&|one| one.limited_seconds)),
    ]
}

#[cfg(test)]
mod tests {
    use galatea_runtime::cost::ComputeUnit;
    use galatea_runtime::simulate::SimulatedDeviceReport;

    use super::*;

    #[test]
    fn every_report_says_that_it_is_simulated() {
        let machine = MachineReport {
            kind: "Apple M1".to_owned(),
            number: 0,
            requests: 3,
            tokens: 40,
            latency: None,
            units: vec![
                SimulatedDeviceReport { unit: ComputeUnit::Gpu, count: 1, utilisation: 0.5 },
                SimulatedDeviceReport {
                    unit: ComputeUnit::NeuralEngine,
                    count: 2,
                    utilisation: 0.25,
                },
            ],
            watts: 8.0,
            joules: 16.0,
            hottest: 50.0,
            throttled_seconds: 0.0,
            limited_seconds: 0.0,
            loads: Some([2, 1]),
        };
        let latency = Some(TimeQuantiles { p50: 0.1, p90: 0.2, p99: 0.3 });
        let model = SimulatedModelReport {
            name: "m".to_owned(),
            requests: 3,
            refused: 0,
            tokens: 40,
            latency,
            first_token: None,
            placements: vec![(ComputeUnit::Gpu, 3)],
        };
        let report = SimulationReport {
            seconds: 2.0,
            machines: vec![machine],
            models: vec![model],
            latency,
            pieces: 7,
        };
        let fleet = Fleet::default();
        let text = as_text(&fleet, &report, Duration::from_millis(3));
        for part in [
            "SIMULATED",
            "2.50 tokens/J",
            "gpu 50 %",
            "100.0/200.0/300.0",
            "gpu 3",
            "2 × neural_engine 25 %",
            "2 loads of models, 1 evictions",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = as_json(&fleet, &report, Duration::from_millis(3));
        assert_eq!((&json["simulated"], &json["tokens_per_second"]), (&true.into(), &20.0.into()));
        assert_eq!(json["models"][0]["placements"]["gpu"], 3);
        assert_eq!((&json["loads"], &json["network"]), (&2.into(), &Value::Null));
    }
}
