//! Memory of GPUs on the metrics page.

use prometheus::proto::{Counter, LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};
use galatea::gpus::GpuMemory;

fn pairs(labels: &[(&str, &str)]) -> Vec<LabelPair> {
    let pair = |&(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    };
    labels.iter().map(pair).collect()
}

fn measured(labels: &[(&str, &str)], value: u64) -> Metric {
    let mut metric = Metric::from_gauge(gauge(value as f64));
    metric.set_label(pairs(labels));
    metric
}

fn counted(labels: &[(&str, &str)], value: f64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value);
    let mut metric = Metric::from_label(pairs(labels));
    metric.set_counter(counter);
    metric
}

/// Runs that GPUs lost without a word; none where no GPU is open.
fn lost_runs(gpus: &[GpuMemory]) -> Option<MetricFamily> {
    let count = |gpu: &GpuMemory| {
        let device = gpu.number.to_string();
        counted(&[("gpu", &device), ("name", &gpu.name)], gpu.lost_runs as f64)
    };
    let counts: Vec<Metric> = gpus.iter().map(count).collect();
    let help = "Runs that GPUs reported as done and did not finish";
    let some = !counts.is_empty();
    some.then(|| family("metal_lost_runs_total", help, MetricType::COUNTER, counts))
}

/// Families of weights that are brought to GPUs while models run; none where no model needs that.
fn prefetch(gpus: &[GpuMemory]) -> Vec<MetricFamily> {
    let mut touches = Vec::new();
    let mut bytes = Vec::new();
    let mut stalls = Vec::new();
    let mut distances = Vec::new();
    for gpu in gpus {
        let Some(found) = gpu.prefetch else { continue };
        let device = gpu.number.to_string();
        let labels = [("gpu", device.as_str()), ("name", &gpu.name)];
        for (result, count) in [("hit", found.hits), ("late", found.late), ("miss", found.misses)] {
            let [number, name] = labels;
            touches.push(counted(&[number, name, ("result", result)], count as f64));
        }
        bytes.push(counted(&labels, found.loaded_bytes as f64));
        stalls.push(counted(&labels, found.stall_ns as f64 / 1e9));
        distances.push(measured(&labels, found.distance as u64));
    }
    let families = [
        ("metal_prefetch_touches", "Uses of streamed weights by what they found", touches),
        ("metal_prefetch_bytes", "Bytes of weights brought to GPUs for use", bytes),
        ("metal_prefetch_stall_seconds", "Time that uses of streamed weights waited", stalls),
    ];
    let counters =
        families.into_iter().map(|(name, help, all)| (name, help, MetricType::COUNTER, all));
    let help = "Uses ahead of which weights are brought";
    let distance = ("metal_prefetch_distance", help, MetricType::GAUGE, distances);
    let all = counters.chain([distance]).filter(|(.., metrics)| !metrics.is_empty());
    all.map(|(name, help, kind, metrics)| family(name, help, kind, metrics)).collect()
}

/// Families of the GPUs that are open; none where there are none.
pub(super) fn page(gpus: &[GpuMemory]) -> Vec<MetricFamily> {
    let mut bytes = Vec::new();
    let mut buffers = Vec::new();
    for gpu in gpus {
        let device = gpu.number.to_string();
        let of = |&(kind, value): &(&str, u64)| {
            measured(&[("gpu", &device), ("kind", kind), ("name", &gpu.name)], value)
        };
        bytes.extend(gpu.bytes.iter().map(of));
        for &(reach, size, used, kept) in &gpu.buffers {
            let size = size.to_string();
            for (state, count) in [("kept", kept), ("used", used)] {
                let labels = [
                    ("class_bytes", size.as_str()),
                    ("gpu", &device),
                    ("memory", reach),
                    ("name", &gpu.name),
                    ("state", state),
                ];
                buffers.push(measured(&labels, count as u64));
            }
        }
    }
    let families = [
        ("metal_memory_stats", "Memory of GPUs by kind, in bytes", bytes),
        ("metal_memory_pool_buffers", "Buffers in the pools of GPUs, by their size", buffers),
    ];
    let named = families.into_iter().filter(|(_, _, metrics)| !metrics.is_empty());
    let memory = named.map(|(name, help, all)| family(name, help, MetricType::GAUGE, all));
    memory.chain(lost_runs(gpus)).chain(prefetch(gpus)).collect()
}

#[cfg(test)]
mod tests {
    use prometheus::{Encoder, TextEncoder};

    use super::*;
    use galatea::gpus::GpuPrefetch;

    #[test]
    fn every_gpu_says_what_its_memory_is_used_for() {
        let gpu = GpuMemory {
            lost_runs: 2,
            number: 1,
            name: "M4".to_owned(),
            bytes: vec![("used", 512), ("budget", 4096)],
            buffers: vec![("shared", 256, 2, 0)],
            prefetch: Some(GpuPrefetch {
                late: 3,
                stall_ns: 500_000_000,
                distance: 4,
                ..GpuPrefetch::default()
            }),
        };
        let mut text = Vec::new();
        TextEncoder::new().encode(&page(&[gpu]), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            r#"metal_memory_stats{gpu="1",kind="used",name="M4"} 512"#,
            r#"metal_memory_stats{gpu="1",kind="budget",name="M4"} 4096"#,
            r#"metal_memory_pool_buffers{class_bytes="256",gpu="1",memory="shared",name="M4",state="used"} 2"#,
            r#"metal_prefetch_touches{gpu="1",name="M4",result="late"} 3"#,
            r#"metal_prefetch_stall_seconds{gpu="1",name="M4"} 0.5"#,
            r#"metal_lost_runs_total{gpu="1",name="M4"} 2"#,
            r#"metal_prefetch_distance{gpu="1",name="M4"} 4"#,
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(page(&[]).is_empty());
    }
}
