//! Tests of fields that contradict each other, over the places that state them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// Two members of an object that contradict each other.
struct FieldPair {
    one: &'static str,
    other: &'static str,
}

const PAIRS: &[FieldPair] = &[
    FieldPair {
        one: r#""use_unified_memory": false"#,
        other: r#""unified_memory_threshold": 4096"#,
    },
    FieldPair { one: r#""use_unified_memory": true"#, other: r#""unified_memory_threshold": 0"# },
    FieldPair { one: r#""enable_auto_tuning": false"#, other: r#""auto_tuning_seconds": 5"# },
    FieldPair { one: r#""memory_pool_sizes": [8, 4]"#, other: r#""max_pool_sizes": [8, 4]"# },
    FieldPair { one: r#""memory_pool_sizes": [256, 512]"#, other: r#""max_pool_sizes": [8]"# },
    FieldPair {
        one: r#""memory_pool_sizes": [256, 512]"#,
        other: r#""initial_pool_sizes": [1, 2, 3]"#,
    },
    FieldPair { one: r#""memory_pool_sizes": [8, 4]"#, other: r#""initial_pool_sizes": [9]"# },
    FieldPair { one: r#""max_pool_sizes": [8, 4]"#, other: r#""initial_pool_sizes": [8, 5]"# },
];

const PLACES: [MetalSource; 5] = [
    MetalSource::Backend,
    MetalSource::Flag,
    MetalSource::File,
    MetalSource::Parameter,
    MetalSource::Accelerator,
];

fn parse(members: &str, place: MetalSource) -> MetalConfig {
    MetalConfig::parse(&format!("{{{members}}}"), place).unwrap()
}

fn field(member: &str) -> &str {
    member.split('"').nth(1).unwrap()
}

#[test]
fn of_two_fields_that_contradict_each_other_the_nearer_one_holds() {
    for FieldPair { one, other } in PAIRS {
        for near in PLACES {
            for far in PLACES {
                for (nearer, farther) in [(one, other), (other, one)] {
                    let mut both = parse(farther, far);
                    both.set_all(parse(nearer, near));
                    let found = both.settle();
                    if near == far {
                        let error = found.unwrap_err();
                        assert!(error.contains("expected"), "{error}");
                        continue;
                    }
                    let lines = found.unwrap();
                    let (holds, left) = match near > far {
                        true => (field(nearer), field(farther)),
                        false => (field(farther), field(nearer)),
                    };
                    assert!(both.find(holds).is_some() && both.find(left).is_none(), "{lines:?}");
                    let [line] = &*lines else { panic!("{lines:?}") };
                    assert!(line.contains(left) && line.contains("holds"), "{line}");
                    assert_eq!(both.settle(), Ok(Vec::new()));
                }
            }
        }
    }
}

#[test]
fn a_field_wins_over_a_preset_that_contradicts_it() {
    let preset = r#""preset": "high_throughput", "max_pool_sizes": [4]"#;
    let mut config = parse(preset, MetalSource::File);
    let lines = config.settle().unwrap();
    assert!(config.find("memory_pool_sizes").is_none(), "{lines:?}");
    assert!(lines[0].contains("memory_pool_sizes 256, 128, 64, 32 found"), "{lines:?}");
    assert!(lines[0].contains("max_pool_sizes 4 of metal_config.json holds"), "{lines:?}");
    // The preset of a nearer place wins over a field farther away.
    let mut config = parse(r#""max_pool_sizes": [4]"#, MetalSource::Flag);
    config.set_all(parse(r#""preset": "high_throughput""#, MetalSource::File));
    config.settle().unwrap();
    assert!(config.find("max_pool_sizes").is_none());
}

#[test]
fn fields_that_go_together_stay() {
    for members in [
        r#""use_unified_memory": true, "unified_memory_threshold": 4096"#,
        r#""use_unified_memory": false, "unified_memory_threshold": 0"#,
        r#""enable_auto_tuning": true, "auto_tuning_seconds": 5"#,
        r#""memory_pool_sizes": [8, 4], "initial_pool_sizes": [8, 4]"#,
        r#""memory_pool_sizes": [256, 512], "initial_pool_sizes": [1, 2], "max_pool_sizes": [1, 2]"#,
        r#""preset": "high_throughput", "gpu_memory_limit": 1, "prefetch_policy": "none""#,
        r#""preset": "low_latency", "latency_goal_ms": 5, "batch_size": 8"#,
        r#""preset": "power_efficient", "power_policy": "high_performance", "precision": "fp16""#,
    ] {
        let mut config = parse(members, MetalSource::File);
        let before = config.clone();
        assert_eq!(config.settle(), Ok(Vec::new()), "{members}");
        assert_eq!(config, before);
    }
}
