//! Tests of precedence where several places set a field.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::config::from_text;

fn own(config: &str, file: Option<&str>, flag: &str) -> Result<MetalConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    if let Some(file) = file {
        fs::write(folder.path().join(FILE), file).unwrap();
    }
    let config = from_text(&format!("name: 'm' {config}")).unwrap();
    let all = MetalConfig::of_flag(flag)?;
    MetalConfig::of_model(&config, folder.path(), &all).map_err(|error| error.to_string())
}

fn parameter(json: &str) -> String {
    format!("parameters {{ key: 'metal_config' value {{ string_value: '{json}' }} }}")
}

fn value<'a>(config: &'a MetalConfig, field: &str) -> (&'a str, MetalSource, bool) {
    let found = config.find(field).unwrap();
    (&found.text, found.place, found.preset)
}

#[test]
fn what_is_nearer_to_the_model_wins_field_by_field() {
    let accelerator = "optimization { execution_accelerators { gpu_execution_accelerator { name: 'metal' \
                       parameters { key: 'kernel_fusion' value: 'off' } } } }";
    let config =
        format!("{} {accelerator}", parameter(r#"{"batch_size": 4, "kernel_fusion": true}"#));
    let file =
        r#"{"metal_config": {"batch_size": 2, "precision": "mixed", "kernel_fusion": true}}"#;
    let flag = r#"{"precision": "fp32", "prefetch_policy": "none", "power_target_watts": 9}"#;
    let found = own(&config, Some(file), flag).unwrap();
    assert_eq!(value(&found, "kernel_fusion"), ("false", MetalSource::Accelerator, false));
    assert_eq!(value(&found, "batch_size"), ("4", MetalSource::Parameter, false));
    assert_eq!(value(&found, "precision"), ("mixed", MetalSource::File, false));
    assert_eq!(value(&found, "prefetch_policy"), ("none", MetalSource::Flag, false));
    // The watts of the flag are those of the whole server.
    assert_eq!(found.find("power_target_watts"), None);
}

#[test]
fn a_field_wins_over_the_preset_beside_it_and_a_nearer_preset_over_fields() {
    let bare = r#"{"kernel_fusion": false, "preset": "high_throughput", "batch_size": 8}"#;
    let found = own("", Some(bare), "").unwrap();
    assert_eq!(value(&found, "batch_size"), ("8", MetalSource::File, false));
    assert_eq!(value(&found, "kernel_fusion"), ("false", MetalSource::File, false));
    assert_eq!(value(&found, "memory_pool_sizes"), ("256, 128, 64, 32", MetalSource::File, true));
    let found = own(&parameter(r#"{"preset": "low_latency"}"#), Some(bare), "").unwrap();
    assert_eq!(value(&found, "batch_size"), ("1", MetalSource::Parameter, true));
    assert_eq!(value(&found, "kernel_fusion"), ("false", MetalSource::File, false));
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (config, file, flag, said) in [
        (
            parameter("[1]"),
            None,
            "",
            "model 'm': parameter 'metal_config': [1] found, expected an object",
        ),
        (parameter("{"), None, "", "parameter 'metal_config': no JSON"),
        (
            parameter(r#"{"batch": 1}"#),
            None,
            "",
            "'batch' found, expected one of preset, precision, batch_size",
        ),
        (
            String::new(),
            Some(r#"{"preset": "fast"}"#),
            "",
            "metal_config.json: preset: 'fast' found, expected high_throughput or low_latency",
        ),
        (String::new(), Some(r#"{"preset": 3}"#), "", "preset: 3 found"),
        (
            String::new(),
            Some(r#"{"metal_config": {"batch_size": true}}"#),
            "",
            "batch_size: true found, expected a whole number",
        ),
        (
            String::new(),
            None,
            "nowhere.json",
            "--metal-config: 'nowhere.json' found, expected an object of JSON or a file",
        ),
        (String::new(), None, r#"{"precision": 16}"#, "--metal-config: precision: 16 found"),
    ] {
        let error = own(&config, file, flag).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn the_flag_may_name_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.json");
    fs::write(&path, r#"{"metal_config": {"preset": "power_efficient"}}"#).unwrap();
    let all = MetalConfig::of_flag(path.to_str().unwrap()).unwrap();
    assert_eq!(all.power().count(), 4);
    let settings = OrderedMap::from([("power_target_watts".to_owned(), "20".to_owned())]);
    let both = MetalConfig::of_server(path.to_str().unwrap(), Some(&settings)).unwrap();
    assert_eq!(both, all);
    let settings = OrderedMap::from([("batch_size".to_owned(), "few".to_owned())]);
    let error = MetalConfig::of_server("", Some(&settings)).unwrap_err();
    assert!(error.starts_with("--backend-config=metal: batch_size: 'few' found"), "{error}");
    fs::write(&path, vec![b' '; 1 << 17]).unwrap();
    let error = MetalConfig::of_flag(path.to_str().unwrap()).unwrap_err();
    assert!(error.contains("at most 65536 bytes"), "{error}");
}

#[test]
fn contradictions_of_one_place_are_refused_and_those_of_two_settled() {
    let both = r#"{"use_unified_memory": false, "unified_memory_threshold": 4096}"#;
    let error = own("", Some(both), "").unwrap_err();
    let said =
        "model 'm': metal_config.json: unified_memory_threshold 4096 found, expected none where";
    assert!(error.contains(said), "{error}");
    let server = MetalConfig::of_server(both, None).unwrap_err();
    assert!(server.contains("--metal-config: unified_memory_threshold 4096 found"), "{server}");
    // What the server says keeps no model from saying something else.
    let flag = r#"{"unified_memory_threshold": 4096}"#;
    let found = own("", Some(r#"{"use_unified_memory": false}"#), flag).unwrap();
    assert_eq!(found.find("unified_memory_threshold"), None);
    let settings = found.pool_settings();
    assert_eq!(settings.get("unified_memory_threshold").map(String::as_str), Some("0"));
}
