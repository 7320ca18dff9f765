//! `galatea chip`: what this machine can do, or what is known of another chip.

use std::process::ExitCode;

use clap::Args;
use galatea_apple::CpuFeature;
use galatea_coreml::NeuralEngine;
use galatea_providers::{CoreKind, HostCapabilities};
use galatea_runtime::chips::LowBitSupport;
use serde_json::{Value, json};

use super::{chip_facts, say};

/// Command line of `galatea chip`.
#[derive(Debug, Args)]
pub(super) struct ChipArguments {
    #[arg(value_name = "NAME|FILE.toml")]
    chip: Option<String>,
    #[arg(long, help = "print one line of JSON")]
    json: bool,
}

/// Prints what this machine can do, or what is known of the chip that is named.
pub(super) fn chip(arguments: &ChipArguments) -> Result<ExitCode, String> {
    if let Some(chip) = &arguments.chip {
        let asked = chip_facts::AskedChip::find(chip)?;
        say(&match arguments.json {
            true => chip_facts::as_json(&asked).to_string(),
            false => chip_facts::as_text(&asked),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let found = HostCapabilities::detect();
    let neural_engine = NeuralEngine::of_host();
    say(&match arguments.json {
        true => as_json(&found, neural_engine.as_ref()).to_string(),
        false => as_text(&found, neural_engine.as_ref()),
    });
    Ok(ExitCode::SUCCESS)
}

/// Renders the capabilities as JSON; unknown values are left out.
pub(super) fn as_json(found: &HostCapabilities, neural_engine: Option<&NeuralEngine>) -> Value {
    let [f32, bf16, int8] = found.kernels;
    let core = |kind: &CoreKind| {
        known(&[
            ("name", kind.name.clone().map(Value::from)),
            ("cores", Some(kind.cores.into())),
            ("l1_data_bytes", kind.l1_data_bytes.map(Value::from)),
            ("l2_bytes", kind.l2_bytes.map(Value::from)),
        ])
    };
    let peaks = found.peaks.iter().map(|peak| (peak.unit, Some(peak.gflops.into())));
    let features: Vec<String> = found.features.iter().map(feature).collect();
    known(&[
        ("chip", found.chip.clone().map(Value::from)),
        ("kernels", Some(json!({"f32": f32, "bf16": bf16, "int8": int8}))),
        ("features", Some(features.into())),
        ("cores", Some(found.cores.iter().map(core).collect())),
        ("memory_bytes", found.memory_bytes.map(Value::from)),
        ("matrix_unit", found.matrix_unit.map(|unit| unit.name().into())),
        ("matrix_version", found.matrix_version.clone().map(Value::from)),
        ("peak_gflops", Some(known(&peaks.collect::<Vec<_>>()))),
        ("bandwidth_gb_per_s", found.bandwidth_gb_per_s.map(Value::from)),
        ("neural_engine", neural_engine.map(engine)),
        ("figures_of", found.figures_of.clone().map(Value::from)),
    ])
}

fn engine(engine: &NeuralEngine) -> Value {
    known(&[
        ("generation", engine.generation.map(Value::from)),
        ("cores", Some(engine.cores.into())),
        ("engines", Some(engine.engines.into())),
        ("stated_tops", engine.stated_tops.map(Value::from)),
        ("fp16_tops", Some(engine.fp16_tops.into())),
        ("int8", engine.int8.map(|narrow| narrow.name().into())),
        ("int4", engine.int4.map(|narrow| narrow.name().into())),
    ])
}

fn known(fields: &[(&str, Option<Value>)]) -> Value {
    let there = fields
        .iter()
        .filter_map(|(name, value)| value.clone().map(|value| ((*name).to_owned(), value)));
    Value::Object(there.collect())
}

fn feature(feature: &CpuFeature) -> String {
    format!("{feature:?}")
}

/// The same for people.
pub(super) fn as_text(found: &HostCapabilities, neural_engine: Option<&NeuralEngine>) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<18}{value}"));
    if let Some(chip) = &found.chip {
        line("Chip", chip.clone());
    }
    for kind in &found.cores {
        let name = kind.name.as_deref().unwrap_or("");
        let cache = |level: &str, bytes: Option<u64>| {
            bytes.map(|bytes| format!(", {level} {} KiB", bytes / 1024)).unwrap_or_default()
        };
        let caches = cache("L1d", kind.l1_data_bytes) + &cache("L2", kind.l2_bytes);
        line("Cores", format!("{} {name}{caches}", kind.cores));
    }
    if let Some(bytes) = found.memory_bytes {
        line("Memory", format!("{} MiB", bytes >> 20));
    }
    let [f32, bf16, int8] = found.kernels;
    line("Kernels", format!("FP32 {f32}, BF16 {bf16}, INT8 {int8}"));
    if !found.features.is_empty() {
        line("Features", found.features.iter().map(feature).collect::<Vec<_>>().join(" "));
    }
    if let Some(unit) = found.matrix_unit {
        let version = found.matrix_version.as_ref();
        let version = version.map(|name| format!(", instructions {name}")).unwrap_or_default();
        line("Matrix unit", format!("{}{version}", unit.name()));
    }
    for peak in &found.peaks {
        line("Peak, estimated", format!("{} {:.0} Gflop/s", peak.unit, peak.gflops));
    }
    if let Some(bandwidth) = found.bandwidth_gb_per_s {
        line("Memory, estimated", format!("{bandwidth:.0} GB/s"));
    }
    if let Some(engine) = neural_engine {
        let count =
            if engine.engines > 1 { format!("{} of ", engine.engines) } else { String::new() };
        let cores = format!("{count}{} cores", engine.cores / engine.engines.max(1));
        let stated = engine.stated_tops.map(|tops| format!(", {tops} TOPS stated"));
        let narrow = |name: &str, narrow: Option<LowBitSupport>| {
            narrow.map(|narrow| format!(", {name} {}", narrow.name())).unwrap_or_default()
        };
        let eight = narrow("INT8", engine.int8);
        let four = narrow("INT4", engine.int4);
        let half = format!(", {} TFLOPS of FP16", engine.fp16_tops);
        line("Neural Engine", cores + &stated.unwrap_or_default() + &half + &eight + &four);
    }
    if let Some(name) = found.figures_of.as_ref().filter(|name| found.chip.as_ref() != Some(name)) {
        line("Estimates from", format!("{name}, the nearest that is known"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use galatea_providers::PeakEstimate;

    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut found = HostCapabilities::detect();
        (found.memory_bytes, found.figures_of) = (None, None);
        (found.matrix_unit, found.bandwidth_gb_per_s) = (None, Some(100.0));
        found.matrix_version = None;
        found.peaks = vec![PeakEstimate { unit: "vector-f32", gflops: 408.0 }];
        let json = as_json(&found, None);
        assert!(json.get("memory_bytes").is_none() && json.get("matrix_unit").is_none(), "{json}");
        assert_eq!(json["peak_gflops"]["vector-f32"], 408.0);
        let text = as_text(&found, None);
        assert!(text.contains("vector-f32 408 Gflop/s") && text.contains("100 GB/s"), "{text}");
        let engine = NeuralEngine::of("M2 Ultra");
        let text = as_text(&found, engine.as_ref());
        let expected =
            "2 of 16 cores, 31.6 TOPS stated, 31.6 TFLOPS of FP16, INT8 storage, INT4 storage";
        assert!(text.contains(expected), "{text}");
        let json = as_json(&found, engine.as_ref());
        assert_eq!(
            (&json["neural_engine"]["engines"], &json["neural_engine"]["int8"]),
            (&2.into(), &"storage".into())
        );
        assert!(!text.contains("Matrix unit") && !text.contains("Estimates from"), "{text}");
    }
}
