//! Memory of GPUs on the metrics page.

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};
use crate::gpus::GpuMemory;

fn measured(labels: &[(&str, &str)], value: u64) -> Metric {
    let pair = |&(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    };
    let mut metric = Metric::from_gauge(gauge(value as f64));
    metric.set_label(labels.iter().map(pair).collect());
    metric
}

/// Families of the GPUs that are open; none where there are none.
pub(super) fn page(gpus: &[GpuMemory]) -> Vec<MetricFamily> {
    let (mut bytes, mut buffers) = (Vec::new(), Vec::new());
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
    named.map(|(name, help, metrics)| family(name, help, MetricType::GAUGE, metrics)).collect()
}

#[cfg(test)]
mod tests {
    use prometheus::{Encoder, TextEncoder};

    use super::*;

    #[test]
    fn every_gpu_says_what_its_memory_is_used_for() {
        let gpu = GpuMemory {
            number: 1,
            name: "M4".to_owned(),
            bytes: vec![("used", 512), ("budget", 4096)],
            buffers: vec![("shared", 256, 2, 0)],
        };
        let mut text = Vec::new();
        TextEncoder::new().encode(&page(&[gpu]), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            r#"metal_memory_stats{gpu="1",kind="used",name="M4"} 512"#,
            r#"metal_memory_stats{gpu="1",kind="budget",name="M4"} 4096"#,
            r#"metal_memory_pool_buffers{class_bytes="256",gpu="1",memory="shared",name="M4",state="used"} 2"#,
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(page(&[]).is_empty());
    }
}
