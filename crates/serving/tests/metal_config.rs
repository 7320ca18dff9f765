//! Models that say in `metal_config` how they use the machine.

use std::path::Path;
use std::sync::Arc;

use crate::plain::Plain;
use galatea_runtime::SessionOptions;
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::config::MetalConfig;
use galatea_serving::config::inference::model_config::SchedulingChoice;
use galatea_serving::{Core, CoreOptions};

/// The sample model `simple` with a configuration and, if there is one, a `metal_config.json`, under `--metal-config`.
fn serve(config: &str, file: Option<&str>, flag: &str) -> (Arc<Core>, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/simple/1");
    let model = root.path().join("simple");
    std::fs::create_dir_all(model.join("1")).unwrap();
    std::fs::copy(sample.join("model.onnx"), model.join("1/model.onnx")).unwrap();
    std::fs::write(model.join("config.pbtxt"), config).unwrap();
    if let Some(file) = file {
        std::fs::write(model.join("metal_config.json"), file).unwrap();
    }
    let options = CoreOptions {
        repositories: vec![root.path().to_owned()],
        exit_on_error: false,
        metal_config: MetalConfig::of_server(flag, None).unwrap(),
        ..CoreOptions::default()
    };
    let backend = GraphBackend::onnx(vec![Arc::new(Plain)], SessionOptions::default());
    (Core::start(options, vec![Arc::new(backend)]).unwrap(), root)
}

/// The largest batch and the preferred ones of the model.
fn batches(core: &Core) -> (i32, Vec<i32>) {
    let failures = core.load_failures();
    assert!(failures.is_empty(), "{failures:?}");
    let config = core.resolve("simple", "").unwrap().config();
    let preferred = match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => batching.preferred_batch_size.clone(),
        _ => Vec::new(),
    };
    (config.max_batch_size, preferred)
}

#[test]
fn a_batch_size_decides_where_the_configuration_is_silent() {
    let throughput = r#"{"metal_config": {"preset": "high_throughput"}}"#;
    assert_eq!(batches(&serve("", Some(throughput), "").0), (32, vec![32]));
    assert_eq!(batches(&serve("", None, throughput).0), (32, vec![32]));
    // The model's own file wins over what is said for all.
    assert_eq!(batches(&serve("", Some(r#"{"batch_size": 2}"#), throughput).0), (4, vec![2]));
    let stated = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [4] }";
    assert_eq!(batches(&serve(stated, Some(throughput), "").0), (8, vec![4]));
    assert_eq!(batches(&serve("max_batch_size: 8", None, throughput).0), (8, vec![8]));
    let latency = r#"{"preset": "low_latency"}"#;
    assert_eq!(batches(&serve("max_batch_size: 8", Some(latency), "").0), (8, vec![1]));
}

#[test]
fn a_model_does_not_load_that_asks_for_what_it_cannot_have() {
    let parameter =
        r#"parameters { key: "metal_config" value { string_value: "{\"batch_size\": 16}" } }"#;
    for (config, file, said) in [
        (
            "max_batch_size: 8",
            Some(r#"{"batch_size": 9}"#),
            "metal_config.json: batch_size 9 found, expected at most the 8",
        ),
        (
            &format!("max_batch_size: 8 {parameter}"),
            None,
            "parameter 'metal_config': batch_size 16 found",
        ),
        (&format!("max_batch_size: 8 {parameter}"), Some("{"), "metal_config.json: no JSON"),
        (
            "",
            Some(r#"{"kernel_fusion": "yes"}"#),
            "kernel_fusion: \"yes\" found, expected true or false",
        ),
        ("", Some(r#"{"tile": 3}"#), "'tile' found, expected one of preset, precision"),
    ] {
        let (core, _root) = serve(config, file, "");
        let failures = core.load_failures();
        let reason = &failures.first().unwrap().reason;
        assert!(reason.contains(said), "{reason}");
    }
    // The file next to the parameter does not matter where both say the same field.
    let both = format!("max_batch_size: 16 {parameter}");
    assert_eq!(batches(&serve(&both, Some(r#"{"batch_size": 32}"#), "").0), (16, vec![16]));
}
