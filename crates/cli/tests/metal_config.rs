//! Tests of the program's log about `metal_config`.

use crate::program;
use std::path::Path;

/// A sample model in a folder of models, with a `metal_config.json`.
fn sample(root: &Path, name: &str, metal: &str) {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models").join(name);
    let model = root.join(name);
    std::fs::create_dir_all(model.join("1")).unwrap();
    std::fs::copy(sample.join("1/model.onnx"), model.join("1/model.onnx")).unwrap();
    std::fs::write(model.join("metal_config.json"), metal).unwrap();
}

/// A server that ends at its start since the model `simple` cannot be loaded, with more flags and variables. Its log.
fn log(digits: &str, flags: &[&str], variables: &[(&str, &str)]) -> String {
    let root = tempfile::tempdir().unwrap();
    sample(root.path(), "digits", digits);
    sample(root.path(), "simple", r#"{"precision": "half"}"#);
    let log = root.path().join("log");
    let status = program::galatea()
        .args(["serve", "--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"])
        .arg("--model-cache-byte-size=0")
        .arg(format!("--model-repository={}", root.path().display()))
        .arg(format!("--log-file={}", log.display()))
        .args(flags)
        .envs(variables.iter().copied())
        .status()
        .unwrap();
    assert!(!status.success());
    std::fs::read_to_string(&log).unwrap()
}

#[test]
fn the_log_says_what_acts_and_what_does_not() {
    let flag = r#"--metal-config={"prefetch_policy": "none", "kernel_fusion": false}"#;
    let digits =
        r#"{"preset": "power_efficient", "enable_auto_tuning": false, "kernel_fusion": true}"#;
    let log = log(digits, &[flag, "--provider=cpu"], &[]);
    for said in [
        "; kernel_fusion true (the graph is rewritten up to O3)",
        "enable_auto_tuning false (records of the tuner are left out, and nothing is measured)",
        "precision int8 (layers are quantized as far as results stay within the bound)",
        // Its convolutions are not quantized without samples.
        "metal_config: int8 in 1 of 4 layers, top-1 1.0000 on 8 made inputs",
        "metal_config: --metal-config: prefetch_policy none found, expected a GPU",
        "power_target_watts 10; enable_thermal_protection true",
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        "adaptive_frequency true found, but this system has no classes of threads",
        "model 'simple': metal_config.json: precision: \\\"half\\\" found, expected fp32 or fp16",
    ] {
        assert!(log.contains(said), "'{said}' is not in\n{log}");
    }
}

#[test]
fn a_wrong_flag_ends_the_start() {
    let wrong = program::galatea()
        .args(["serve", "--model-repository=nowhere", r#"--metal-config={"watts": 3}"#])
        .output()
        .unwrap();
    assert!(!wrong.status.success());
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.contains("--metal-config: 'watts' found, expected one of preset"), "{said}");
}

#[test]
fn variables_make_units_tell_what_they_do() {
    let routed = log("{}", &["--provider=cpu"], &[("TRITON_APPLE_VERBOSE", "1")]);
    let line = routed.lines().find(|line| line.contains("unit=cpu"));
    let said = line.is_some_and(|line| line.contains("\"runs ") && line.contains("part=0"));
    assert!(said, "{routed}");
    let usual = log("{}", &["--provider=cpu"], &[("TRITON_APPLE_VERBOSE", "0")]);
    assert!(!usual.contains("unit=cpu"), "{usual}");
    let wrong = program::galatea()
        .args(["serve", "--model-repository=nowhere"])
        .env("TRITON_METAL_DEBUG", "maybe")
        .output()
        .unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.contains("TRITON_METAL_DEBUG: 'maybe' found, expected true or false"), "{said}");
}

#[test]
#[cfg(any(feature = "gpu", target_os = "macos"))]
fn a_gpu_tells_what_it_does_where_it_is_asked_to() {
    if galatea_gpu::devices().is_empty() {
        return;
    }
    let flags = ["--allow-software-gpu=true", "--provider=gpu"];
    let told = log("{}", &flags, &[("TRITON_METAL_DEBUG", "1")]);
    // Kernels are compiled when they first run.
    assert!(told.contains("opened a GPU"), "{told}");
    assert!(!told.contains("unit=gpu"), "{told}");
}
