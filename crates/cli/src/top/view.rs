//! A snapshot as text.

use super::snapshot::{GpuSnapshot, MachineSnapshot, ModelSnapshot, ServerSnapshot, UnitSnapshot};
use crate::table::table;

/// Key by which models are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ModelOrder {
    /// Requests a second, the most first.
    #[default]
    Requests,
    /// Time of a request, the longest first.
    Latency,
    /// Name.
    Name,
}

impl ModelOrder {
    /// The one behind it.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Requests => Self::Latency,
            Self::Latency => Self::Name,
            Self::Name => Self::Requests,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Latency => "latency",
            Self::Name => "name",
        }
    }

    pub(super) fn sort(self, models: &mut [ModelSnapshot]) {
        let falling = |of: fn(&ModelSnapshot) -> Option<f64>| {
            move |a: &ModelSnapshot, b: &ModelSnapshot| {
                of(b).unwrap_or(-1.0).total_cmp(&of(a).unwrap_or(-1.0))
            }
        };
        match self {
            Self::Requests => models.sort_by(falling(|model| model.requests_per_s)),
            Self::Latency => models.sort_by(falling(|model| model.p99_ms.or(model.mean_ms))),
            Self::Name => {
                models.sort_by(|a, b| (&a.model, &a.version).cmp(&(&b.model, &b.version)))
            }
        }
    }
}

/// All that is known, as lines.
pub(super) fn text(snapshot: &ServerSnapshot, order: ModelOrder) -> String {
    let mut models = snapshot.models.clone();
    order.sort(&mut models);
    let server = snapshot.server.as_deref().unwrap_or("server");
    let mut text = format!("{server} at {}, of {:.1} s\n", snapshot.address, snapshot.seconds);
    text.push_str(&machine(&snapshot.machine));
    if !snapshot.units.is_empty() {
        let head = ["Unit", "Busy %", "Runs/s", "Running", "Owed ms", ""];
        text.push_str(&table(&head, snapshot.units.iter().map(unit)));
    }
    if !snapshot.gpus.is_empty() {
        let head = ["GPU", "Busy %", "GB/s", "Memory", "Of", "Name"];
        text.push_str(&table(&head, snapshot.gpus.iter().map(gpu)));
    }
    text.push_str(&model_table(&models));
    text
}

/// A number with few digits; nothing where it is not known.
fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(0.0) => "0".to_owned(),
        Some(value) => format!("{value:.2}"),
    }
}

fn bytes(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value >= 1e9 => format!("{:.1} GB", value / 1e9),
        Some(value) => format!("{:.1} MB", value / 1e6),
    }
}

/// One line on the machine; empty where nothing is known of it.
fn machine(of: &MachineSnapshot) -> String {
    let mut parts = Vec::new();
    let mut say = |what: &str, value: Option<f64>, unit: &str| {
        parts.extend(value.map(|value| format!("{what} {}{unit}", number(Some(value)))));
    };
    say("processors", of.cpu_percent, " %");
    of.watts.iter().for_each(|(unit, watts)| say(unit, Some(*watts), " W"));
    say("heat", of.celsius, " °C");
    say("pace", of.pace.map(|share| share * 100.0), " %");
    say("tokens/joule", of.tokens_per_joule, "");
    parts.extend(of.thermal_state.map(|state| format!("thermal state {state}")));
    if let (Some(used), Some(total)) = (of.memory_used_bytes, of.memory_total_bytes) {
        parts.push(format!("memory {} of {}", bytes(Some(used)), bytes(Some(total))));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}\n", parts.join(", ")),
    }
}

fn unit(of: &UnitSnapshot) -> Vec<String> {
    vec![
        of.unit.clone(),
        number(Some(of.busy_percent)),
        number(Some(of.runs_per_s)),
        number(Some(of.running)),
        number(Some(of.owed_ms)),
        if of.open { "" } else { "closed" }.to_owned(),
    ]
}

fn gpu(of: &GpuSnapshot) -> Vec<String> {
    vec![
        of.gpu.clone(),
        number(of.busy_percent),
        number(of.gb_per_s),
        bytes(of.memory_used_bytes),
        bytes(of.memory_budget_bytes),
        of.name.clone(),
    ]
}

/// A column of models.
struct ModelColumn {
    name: &'static str,
    value: fn(&ModelSnapshot) -> Option<f64>,
}

/// Columns that every table has, and behind them those that are left out where no model has a value.
const COLUMNS: &[ModelColumn] = &[
    ModelColumn { name: "Req/s", value: |of| of.requests_per_s },
    ModelColumn { name: "Mean ms", value: |of| of.mean_ms },
    ModelColumn { name: "P50 ms", value: |of| of.p50_ms },
    ModelColumn { name: "P99 ms", value: |of| of.p99_ms },
    ModelColumn { name: "Queue ms", value: |of| of.queue_ms },
    ModelColumn { name: "Waiting", value: |of| of.pending },
    ModelColumn { name: "Fail/s", value: |of| of.failures_per_s },
    ModelColumn { name: "Tok/s", value: |of| of.tokens_per_s },
    ModelColumn { name: "Prompt/s", value: |of| of.prompt_tokens_per_s },
    ModelColumn { name: "KV %", value: |of| of.kv_cache_percent },
];

fn model_table(models: &[ModelSnapshot]) -> String {
    let known = |column: &&ModelColumn| models.iter().any(|model| (column.value)(model).is_some());
    let columns: Vec<&ModelColumn> = COLUMNS.iter().filter(known).collect();
    let ready = |model: &ModelSnapshot| model.state.as_deref().is_none_or(|state| state == "READY");
    let states = models.iter().any(|model| !ready(model));
    let mut head = vec!["Model", "Version"];
    head.extend(columns.iter().map(|column| column.name));
    head.extend(states.then_some("State"));
    let row = |model: &ModelSnapshot| {
        let mut cells = vec![model.model.clone(), model.version.clone()];
        cells.extend(columns.iter().map(|column| number((column.value)(model))));
        cells.extend(states.then(|| model.state.clone().unwrap_or_default()));
        cells
    };
    table(&head, models.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, requests: Option<f64>, mean: Option<f64>) -> ModelSnapshot {
        ModelSnapshot {
            model: name.to_owned(),
            version: "1".to_owned(),
            requests_per_s: requests,
            mean_ms: mean,
            ..ModelSnapshot::default()
        }
    }

    #[test]
    fn models_are_sorted_as_asked() {
        let models = [
            model("b", Some(1.0), Some(9.0)),
            model("a", Some(5.0), Some(1.0)),
            model("c", None, None),
        ];
        let sorted = |order: ModelOrder| -> Vec<String> {
            let mut models = models.to_vec();
            order.sort(&mut models);
            models.into_iter().map(|model| model.model).collect()
        };
        assert_eq!(sorted(ModelOrder::Requests), ["a", "b", "c"]);
        assert_eq!(sorted(ModelOrder::Latency), ["b", "a", "c"]);
        assert_eq!(sorted(ModelOrder::Name), ["a", "b", "c"]);
        assert_eq!(ModelOrder::Requests.next().next().next(), ModelOrder::Requests);
    }

    #[test]
    fn what_is_not_known_has_no_column() {
        let snapshot = ServerSnapshot {
            address: "h:1".to_owned(),
            models: vec![model("m", Some(2.0), None)],
            ..ServerSnapshot::default()
        };
        let found = text(&snapshot, ModelOrder::Name);
        assert!(found.contains("| Model | Version | Req/s |\n"), "{found}");
        assert!(found.contains("| m     | 1       | 2.00  |\n"), "{found}");
        assert!(!found.contains("Unit") && !found.contains("GPU"), "{found}");
    }
}
