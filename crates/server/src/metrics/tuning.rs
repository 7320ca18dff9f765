//! Families of the kernels that are measured while the server is idle.

use galatea::kernel_tuning::VersionTuning;
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};

struct TuningFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&VersionTuning) -> f64,
}

const FAMILIES: &[TuningFamily] = &[
    TuningFamily {
        name: "galatea_tuning_measured_total",
        help: "Choices between kernels of a model that were measured while the server was idle",
        kind: MetricType::COUNTER,
        value: |version| version.measured as f64,
    },
    TuningFamily {
        name: "galatea_tuning_improved_total",
        help: "Measured choices of which another kernel than the default is the fastest",
        kind: MetricType::COUNTER,
        value: |version| version.improved as f64,
    },
    TuningFamily {
        name: "galatea_tuning_skipped_total",
        help: "Choices between kernels that were left out for lack of time",
        kind: MetricType::COUNTER,
        value: |version| version.left as f64,
    },
    TuningFamily {
        name: "galatea_tuning_seconds_total",
        help: "Time that measurements of a model's kernels took",
        kind: MetricType::COUNTER,
        value: |version| version.spent.as_secs_f64(),
    },
    TuningFamily {
        name: "galatea_tuning_renewals_total",
        help: "Times that a model took faster kernels while it served",
        kind: MetricType::COUNTER,
        value: |version| version.renewed as f64,
    },
    TuningFamily {
        name: "galatea_tuning_settled",
        help: "1 where nothing is left to measure of a model's kernels",
        kind: MetricType::GAUGE,
        value: |version| f64::from(u8::from(version.settled)),
    },
];

/// The families, and the number of records for this machine; none where no model's kernels are measured.
pub(super) fn page(
    versions: &[VersionTuning],
    records: impl FnOnce() -> usize,
) -> Vec<MetricFamily> {
    if versions.is_empty() {
        return Vec::new();
    }
    let of_models = FAMILIES.iter().map(|row| {
        let metrics = versions.iter().map(|version| metric(row, version)).collect();
        family(row.name, row.help, row.kind, metrics)
    });
    let records = family(
        "galatea_tuning_records",
        "Records of the tuner for this machine",
        MetricType::GAUGE,
        vec![Metric::from_gauge(gauge(records() as f64))],
    );
    of_models.chain([records]).collect()
}

fn metric(row: &TuningFamily, version: &VersionTuning) -> Metric {
    let value = (row.value)(version);
    let mut metric = match row.kind {
        MetricType::COUNTER => {
            let mut counter = Counter::default();
            counter.set_value(value);
            let mut metric = Metric::default();
            metric.set_counter(counter);
            metric
        }
        _ => Metric::from_gauge(gauge(value)),
    };
    let label = |name: &str, value: &str| {
        let mut label = LabelPair::default();
        label.set_name(name.to_owned());
        label.set_value(value.to_owned());
        label
    };
    metric.set_label(vec![label("model", &version.model), label("version", &version.version)]);
    metric
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn models_are_told_apart_and_records_counted() {
        assert!(page(&[], || panic!("nobody asks for records")).is_empty());
        let version = VersionTuning {
            model: "m".to_owned(),
            version: "3".to_owned(),
            measured: 5,
            spent: Duration::from_millis(250),
            settled: true,
            ..VersionTuning::default()
        };
        let page = page(&[version], || 7);
        let value = |name: &str| {
            let found = page.iter().find(|family| family.name() == name).unwrap();
            let metric = &found.get_metric()[0];
            match found.get_field_type() {
                MetricType::COUNTER => metric.get_counter().get_value(),
                _ => metric.get_gauge().get_value(),
            }
        };
        assert_eq!(value("galatea_tuning_measured_total"), 5.0);
        assert_eq!(value("galatea_tuning_seconds_total"), 0.25);
        assert_eq!(value("galatea_tuning_settled"), 1.0);
        assert_eq!(value("galatea_tuning_records"), 7.0);
        let labels = page[0].get_metric()[0].get_label();
        assert_eq!((labels[0].value(), labels[1].value()), ("m", "3"));
    }
}
