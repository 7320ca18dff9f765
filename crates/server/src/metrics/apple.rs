//! Families `metal_*`, `amx_*` and `ane_*`: what GPUs, the processor's products and the Neural Engine take and draw,
//! and the kernels that run while a profile is made.

use galatea_runtime::power::SensorReading;
use galatea_serving::statistics::ModelMetricsRow;
use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};
use galatea::gpus::GpuMemory;
use galatea::profile::KernelCounts;

fn label(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

fn measured(value: f64, labels: Vec<LabelPair>) -> Metric {
    let mut metric = Metric::from_gauge(gauge(value));
    metric.set_label(labels);
    metric
}

fn counted(value: f64, labels: Vec<LabelPair>) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value);
    let mut metric = Metric::from_label(labels);
    metric.set_counter(counter);
    metric
}

/// Facts that the families report.
#[derive(Debug, Default)]
pub(super) struct AppleFacts<'f> {
    /// Memory of the GPUs that are open.
    pub(super) gpus: &'f [GpuMemory],
    /// Last reading of the sensors, if there are any.
    pub(super) reading: Option<SensorReading>,
    /// The models.
    pub(super) models: &'f [ModelMetricsRow],
    /// Kernels that ran since the profile began that is under way; nothing where none is.
    pub(super) kernels: KernelCounts,
}

/// The families that have anything to say.
pub(super) fn page(facts: &AppleFacts<'_>) -> Vec<MetricFamily> {
    let all = [
        (
            "metal_memory_allocated_bytes",
            "Bytes of memory of the GPU that are in use",
            MetricType::GAUGE,
            allocated(facts.gpus),
        ),
        (
            "metal_power_usage_watts",
            "Watts that the GPU draws",
            MetricType::GAUGE,
            drawn_by_gpu(facts),
        ),
        (
            "metal_thermal_state",
            "0 nominal, 1 fair, 2 serious, 3 critical",
            MetricType::GAUGE,
            single(facts.reading.and_then(|of| of.thermal).map(|state| f64::from(state as u8))),
        ),
        (
            "metal_kernel_execution_total",
            "Starts of a kernel of GPUs since the profile began",
            MetricType::COUNTER,
            kernels(&facts.kernels.gpu, |(count, _)| count as f64),
        ),
        (
            "metal_kernel_execution_seconds_total",
            "Time of a kernel of GPUs since the profile began",
            MetricType::COUNTER,
            kernels(&facts.kernels.gpu, |(_, time)| time.as_secs_f64()),
        ),
        (
            "amx_operations_total",
            "Multiplications and additions of products and convolutions that the processor computed",
            MetricType::COUNTER,
            operations(facts.models),
        ),
        (
            "amx_power_usage_watts",
            "Watts that the processor draws, whose matrix units have no sensor of their own",
            MetricType::GAUGE,
            single(facts.reading.and_then(|reading| reading.draw.cpu)),
        ),
        (
            "amx_kernel_execution_total",
            "Starts of a kernel of the processor since the profile began",
            MetricType::COUNTER,
            kernels(&facts.kernels.processor, |(count, _)| count as f64),
        ),
        (
            "amx_kernel_execution_seconds_total",
            "Time of a kernel of the processor since the profile began",
            MetricType::COUNTER,
            kernels(&facts.kernels.processor, |(_, time)| time.as_secs_f64()),
        ),
        (
            "ane_operator_execution_total",
            "Runs of an operator of Core ML since the profile began",
            MetricType::COUNTER,
            estimates(&facts.kernels.estimated, |(count, _)| count as f64),
        ),
        (
            "ane_operator_execution_seconds_total",
            "Time of an operator of Core ML since the profile began, an estimate: its share of predictions by its plan",
            MetricType::COUNTER,
            estimates(&facts.kernels.estimated, |(_, time)| time.as_secs_f64()),
        ),
        (
            "ane_power_usage_watts",
            "Watts that the Neural Engine draws",
            MetricType::GAUGE,
            single(facts.reading.and_then(|reading| reading.draw.engine)),
        ),
    ];
    let there = all.into_iter().filter(|(.., metrics)| !metrics.is_empty());
    there.map(|(name, help, kind, metrics)| family(name, help, kind, metrics)).collect()
}

fn single(value: Option<f64>) -> Vec<Metric> {
    value.into_iter().map(|value| measured(value, Vec::new())).collect()
}

/// Watts of the chip's own GPU, which has its number where it is open and is else the first.
fn drawn_by_gpu(facts: &AppleFacts<'_>) -> Vec<Metric> {
    let watts = facts.reading.and_then(|reading| reading.draw.gpu);
    let number = facts.gpus.first().map_or(0, |gpu| gpu.number);
    let labelled = |watts| measured(watts, vec![label("device", &number.to_string())]);
    watts.into_iter().map(labelled).collect()
}

fn allocated(gpus: &[GpuMemory]) -> Vec<Metric> {
    let of = |gpu: &GpuMemory| {
        let (_, bytes) = gpu.bytes.iter().find(|(kind, _)| *kind == "used")?;
        Some(measured(*bytes as f64, vec![label("device", &gpu.number.to_string())]))
    };
    gpus.iter().filter_map(of).collect()
}

fn kernels(
    found: &[(String, (u64, std::time::Duration))],
    value: fn((u64, std::time::Duration)) -> f64,
) -> Vec<Metric> {
    let of = |(kernel, sums): &(String, _)| counted(value(*sums), vec![label("kernel", kernel)]);
    found.iter().map(of).collect()
}

/// Operators whose times are estimates, which a label says.
fn estimates(
    found: &[(String, (u64, std::time::Duration))],
    value: fn((u64, std::time::Duration)) -> f64,
) -> Vec<Metric> {
    let of = |(operator, sums): &(String, _)| {
        counted(value(*sums), vec![label("estimated", "true"), label("operator", operator)])
    };
    found.iter().map(of).collect()
}

fn operations(models: &[ModelMetricsRow]) -> Vec<Metric> {
    let of = |row: &ModelMetricsRow| {
        let labels =
            [("model", &row.model), ("namespace", &row.namespace), ("version", &row.version)];
        let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
        let labels = labels.map(|(name, value)| label(name, value)).collect();
        Some(counted(row.arithmetic?.operations as f64, labels))
    };
    models.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use galatea_runtime::power::{PowerDraw, ThermalState};
    use prometheus::{Encoder, TextEncoder};

    use super::*;

    fn text(facts: &AppleFacts<'_>) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&page(facts), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_host_that_tells_nothing_has_no_families() {
        assert!(page(&AppleFacts::default()).is_empty());
        let gpu = GpuMemory { number: 0, bytes: vec![("budget", 1)], ..GpuMemory::default() };
        assert!(page(&AppleFacts { gpus: &[gpu], ..AppleFacts::default() }).is_empty());
    }

    #[test]
    fn every_unit_has_its_own_families() {
        let gpu = GpuMemory { number: 1, bytes: vec![("used", 512)], ..GpuMemory::default() };
        let draw =
            PowerDraw { cpu: Some(3.0), gpu: Some(4.5), engine: Some(0.5), ..PowerDraw::default() };
        let thermal = Some(ThermalState::Fair);
        let kernel = |name: &str| vec![(name.to_owned(), (7, Duration::from_millis(500)))];
        let kernels = KernelCounts {
            gpu: kernel("matmul-f32"),
            processor: kernel("conv-f32"),
            estimated: kernel("ios16.conv on Neural Engine"),
        };
        let found = text(&AppleFacts {
            gpus: &[gpu],
            reading: Some(SensorReading { draw, thermal, ..SensorReading::default() }),
            models: &[],
            kernels,
        });
        for line in [
            r#"metal_memory_allocated_bytes{device="1"} 512"#,
            r#"metal_power_usage_watts{device="1"} 4.5"#,
            "metal_thermal_state 1",
            r#"metal_kernel_execution_total{kernel="matmul-f32"} 7"#,
            r#"metal_kernel_execution_seconds_total{kernel="matmul-f32"} 0.5"#,
            r#"amx_kernel_execution_total{kernel="conv-f32"} 7"#,
            r#"ane_operator_execution_total{estimated="true",operator="ios16.conv on Neural Engine"} 7"#,
            r#"ane_operator_execution_seconds_total{estimated="true",operator="ios16.conv on Neural Engine"} 0.5"#,
            "amx_power_usage_watts 3",
            "ane_power_usage_watts 0.5",
        ] {
            assert!(found.contains(line), "{line} is not in\n{found}");
        }
        assert!(!found.contains("amx_operations_total"), "{found}");
    }
}
