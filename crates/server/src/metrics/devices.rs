//! Families of the devices among which runs are divided: work done and work pending.

use galatea_runtime::device_selector::DeviceReport;
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};

struct DeviceFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&DeviceReport) -> f64,
}

const FAMILIES: &[DeviceFamily] = &[
    DeviceFamily {
        name: "apple_unit_busy_seconds_total",
        help: "Time during which a unit had something to run",
        kind: MetricType::COUNTER,
        value: |unit| unit.busy.as_secs_f64(),
    },
    DeviceFamily {
        name: "apple_unit_runs_total",
        help: "Runs, and parts of runs, that a unit was handed",
        kind: MetricType::COUNTER,
        value: |unit| unit.runs as f64,
    },
    DeviceFamily {
        name: "apple_unit_running",
        help: "Runs under way on a unit",
        kind: MetricType::GAUGE,
        value: |unit| unit.running as f64,
    },
    DeviceFamily {
        name: "apple_unit_waiting",
        help: "Runs that wait for their turn on a unit",
        kind: MetricType::GAUGE,
        value: |unit| unit.waiting as f64,
    },
    DeviceFamily {
        name: "apple_unit_owed_seconds",
        help: "Predicted time of what a unit has to do",
        kind: MetricType::GAUGE,
        value: |unit| unit.owed.as_secs_f64(),
    },
    DeviceFamily {
        name: "apple_unit_open",
        help: "1 where a unit takes work",
        kind: MetricType::GAUGE,
        value: |unit| f64::from(u8::from(unit.open)),
    },
];

/// The families; none where runs are not divided between units.
pub(super) fn page(units: &[DeviceReport]) -> Vec<MetricFamily> {
    if units.is_empty() {
        return Vec::new();
    }
    let row = |row: &DeviceFamily| {
        let metrics = units.iter().map(|unit| metric(row, unit)).collect();
        family(row.name, row.help, row.kind, metrics)
    };
    FAMILIES.iter().map(row).collect()
}

fn metric(row: &DeviceFamily, unit: &DeviceReport) -> Metric {
    let value = (row.value)(unit);
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
    let mut label = LabelPair::default();
    label.set_name("unit".to_owned());
    label.set_value(unit.name.clone());
    metric.set_label(vec![label]);
    metric
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use galatea_runtime::device_selector::ComputeDevice;

    use super::*;

    #[test]
    fn units_are_told_apart_by_a_label() {
        assert!(page(&[]).is_empty());
        let gpu = Arc::new(ComputeDevice::new("gpu"));
        let under_way = gpu.begin(Duration::from_secs(2));
        let page = page(&[gpu.report(), ComputeDevice::new("cpu").report()]);
        let owed = page.iter().find(|one| one.name() == "apple_unit_owed_seconds").unwrap();
        let first = &owed.get_metric()[0];
        assert_eq!(first.get_label()[0].value(), "gpu");
        assert_eq!(first.get_gauge().get_value(), 2.0);
        drop(under_way);
        assert_eq!(gpu.report().owed, Duration::ZERO);
    }
}
