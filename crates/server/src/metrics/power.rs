//! Families of the power that the machine draws, of its heat, and of the limits that follow from them.

use galatea_runtime::power::{PowerDraw, PowerLimit};
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};
use galatea::power::{ModelPowerReport, PowerState};

/// The families; none where no sensor is read. `tokens` is how many language models have generated since the
/// start.
pub(super) fn page(state: Option<PowerState>, tokens: u64) -> Vec<MetricFamily> {
    let Some(state) = state else { return Vec::new() };
    let draw = &state.reading.draw;
    let energy = &state.energy;
    let allowed = &state.allowed;
    let watts = units(draw).map(|(unit, watts)| (unit, watts));
    let joules = units(&PowerDraw {
        cpu: energy.cpu,
        gpu: energy.gpu,
        engine: energy.engine,
        memory: energy.memory,
        package: energy.chip,
        system: energy.system,
    });
    let single = |value: Option<f64>| value.map(|value| Metric::from_gauge(gauge(value)));
    let limits = [PowerLimit::Target, PowerLimit::UnreachableTarget, PowerLimit::Heat];
    let limited = limits.map(|limit| {
        let held = f64::from(u8::from(limit == allowed.limit));
        labelled(Metric::from_gauge(gauge(held)), "reason", &limit.to_string())
    });
    let thermal = state.reading.thermal.map(|state| f64::from(state as u8));
    let saving = state.reading.low_power.map(|on| f64::from(u8::from(on)));
    let gauges = |name, help, metrics: Vec<Metric>| (name, help, MetricType::GAUGE, metrics);
    let one = |name, help, value| gauges(name, help, single(value).into_iter().collect());
    let all = [
        gauges("apple_power_watts", "Watts that a unit draws", series(watts, unit_gauge)),
        (
            "apple_energy_joules_total",
            "Joules that a unit drew since the start",
            MetricType::COUNTER,
            series(joules, unit_counter),
        ),
        one("apple_thermal_state", "0 nominal, 1 fair, 2 serious, 3 critical", thermal),
        one("apple_temperature_celsius", "The hottest part that is watched", state.reading.celsius),
        one("apple_low_power_mode", "1 where the user asked the system to save power", saving),
        one(
            "apple_power_target_watts",
            "Watts that the chip is to draw at most",
            state.target_watts,
        ),
        one(
            "apple_pace_ratio",
            "Share of its full pace that the server may have",
            Some(allowed.pace),
        ),
        gauges(
            "apple_pace_limited",
            "1 for what keeps the server from its full pace",
            limited.to_vec(),
        ),
        one(
            "apple_tokens_per_joule",
            "Generated tokens for a joule of the chip",
            energy.per_joule(tokens),
        ),
    ];
    let there = all.into_iter().filter(|(.., metrics)| !metrics.is_empty());
    there.map(|(name, help, kind, metrics)| family(name, help, kind, metrics)).collect()
}

/// The families of models with wishes of their own on power; none where there are none.
pub(super) fn of_models(models: &[ModelPowerReport]) -> Vec<MetricFamily> {
    let series = |number: fn(&ModelPowerReport) -> Option<f64>| -> Vec<Metric> {
        let one = |model: &ModelPowerReport| {
            let metric = Metric::from_gauge(gauge(number(model)?));
            Some(labelled(metric, "model", &model.name))
        };
        models.iter().filter_map(one).collect()
    };
    let all = [
        (
            "apple_model_power_watts",
            "Watts that a model makes the chip draw",
            series(|model| Some(model.watts)),
        ),
        (
            "apple_model_power_target_watts",
            "Watts that it is to make the chip draw at most",
            series(|model| model.target),
        ),
        (
            "apple_model_pace_ratio",
            "Share of their full pace that its runs may have",
            series(|model| Some(model.pace)),
        ),
    ];
    let there = all.into_iter().filter(|(.., metrics)| !metrics.is_empty());
    there.map(|(name, help, metrics)| family(name, help, MetricType::GAUGE, metrics)).collect()
}

/// Numbers by unit; the chip has its own number, or the sum of its parts.
fn units(draw: &PowerDraw) -> [(&'static str, Option<f64>); 6] {
    [
        ("cpu", draw.cpu),
        ("gpu", draw.gpu),
        ("neural_engine", draw.engine),
        ("memory", draw.memory),
        ("chip", draw.chip()),
        ("system", draw.system),
    ]
}

fn series(
    numbers: [(&'static str, Option<f64>); 6],
    metric: fn(&'static str, f64) -> Metric,
) -> Vec<Metric> {
    numbers.into_iter().filter_map(|(unit, number)| Some(metric(unit, number?))).collect()
}

fn unit_gauge(unit: &'static str, value: f64) -> Metric {
    labelled(Metric::from_gauge(gauge(value)), "unit", unit)
}

fn unit_counter(unit: &'static str, value: f64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value);
    let mut metric = Metric::default();
    metric.set_counter(counter);
    labelled(metric, "unit", unit)
}

fn labelled(mut metric: Metric, name: &str, value: &str) -> Metric {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    metric.set_label(vec![pair]);
    metric
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use galatea_runtime::power::{
        EnergyMeter, PowerGovernor, PowerSettings, SensorReading, ThermalState,
    };
    use prometheus::{Encoder, TextEncoder};

    use super::*;

    #[test]
    fn the_page_has_what_sensors_say_and_nothing_else() {
        assert!(page(None, 5).is_empty());
        let draw = PowerDraw { cpu: Some(4.0), gpu: Some(6.0), ..PowerDraw::default() };
        let reading =
            SensorReading { draw, thermal: Some(ThermalState::Fair), ..SensorReading::default() };
        let settings = PowerSettings { target_watts: Some(8.0), ..PowerSettings::default() };
        let second = Duration::from_secs(1);
        let mut energy = EnergyMeter::new();
        energy.add(second, &draw);
        let state = PowerState {
            reading,
            allowed: PowerGovernor::new(settings).step(second, &reading, 0.8),
            energy: energy.report(),
            target_watts: settings.target_watts,
            idle_watts: None,
        };
        let mut text = Vec::new();
        TextEncoder::new().encode(&page(Some(state), 50), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            r#"apple_power_watts{unit="chip"} 10"#,
            r#"apple_energy_joules_total{unit="gpu"} 6"#,
            "apple_thermal_state 1",
            "apple_tokens_per_joule 5",
            r#"apple_pace_limited{reason="target"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("neural_engine") && !text.contains("celsius"), "{text}");
    }

    #[test]
    fn models_have_lines_of_their_own() {
        assert!(of_models(&[]).is_empty());
        let free = ModelPowerReport { name: "a".to_owned(), watts: 2.0, target: None, pace: 1.0 };
        let held =
            ModelPowerReport { name: "b".to_owned(), watts: 9.5, target: Some(10.0), pace: 0.25 };
        let mut text = Vec::new();
        TextEncoder::new().encode(&of_models(&[free, held]), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(r#"apple_model_power_watts{model="a"} 2"#), "{text}");
        assert!(text.contains(r#"apple_model_power_target_watts{model="b"} 10"#), "{text}");
        assert!(!text.contains(r#"target_watts{model="a"}"#), "{text}");
        assert!(text.contains(r#"apple_model_pace_ratio{model="b"} 0.25"#), "{text}");
    }
}
