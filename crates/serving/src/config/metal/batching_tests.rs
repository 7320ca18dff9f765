//! Tests of the rule for `batch_size`, over all combinations of what a configuration says on batches.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::config::from_text;
use crate::config::metal::MetalSource;

/// Schedulers that a configuration may name; the braces hold its preferred sizes.
const SCHEDULERS: [&str; 4] = [
    "",
    "dynamic_batching { SIZES }",
    "sequence_batching { oldest { max_candidate_sequences: 8 SIZES } }",
    "sequence_batching { direct { } }",
];
/// Preferred sizes of a configuration.
const STATED: [&[i32]; 4] = [&[], &[1], &[8, 16], &[4, 32]];
const MOST: [i32; 4] = [0, 1, 16, 32];
const SIZES: [i32; 5] = [1, 2, 8, 16, 32];

/// A combination of what is said on the batches of a model.
#[derive(Clone, Copy, Debug)]
struct BatchCase {
    scheduler: &'static str,
    stated: &'static [i32],
    most: i32,
    size: i32,
}

impl BatchCase {
    fn config(self) -> ModelConfig {
        let sizes = match self.stated {
            [] => String::new(),
            sizes => format!("preferred_batch_size: {sizes:?}"),
        };
        let scheduler = self.scheduler.replace("SIZES", &sizes);
        from_text(&format!("name: 'm' max_batch_size: {} {scheduler}", self.most)).unwrap()
    }

    /// Every combination that a configuration can state.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for scheduler in SCHEDULERS {
            for stated in STATED {
                // Who has no such list, has none to state.
                if !scheduler.contains("SIZES") && !stated.is_empty() {
                    continue;
                }
                for most in MOST {
                    let sizes = SIZES.iter();
                    all.extend(sizes.map(|&size| Self { scheduler, stated, most, size }));
                }
            }
        }
        all
    }

    /// The preferred sizes that the rule leaves, or nothing where it refuses.
    fn expected(self) -> Option<Vec<i32>> {
        let Self { scheduler, stated, most, size } = self;
        let lists = scheduler.contains("SIZES");
        match (most, size) {
            (0, 1) => Some(stated.to_vec()),
            (most, size) if size > most => None,
            (_, 1) if scheduler.is_empty() => Some(Vec::new()),
            _ if scheduler.contains("direct") => None,
            _ if lists && !stated.is_empty() => Some(stated.to_vec()),
            _ => Some(vec![size]),
        }
    }
}

/// The preferred sizes of a configuration.
fn preferred(config: &ModelConfig) -> Vec<i32> {
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(batching)) => batching.preferred_batch_size.clone(),
        Some(SchedulingChoice::SequenceBatching(batching)) => match &batching.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => oldest.preferred_batch_size.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn metal(text: &str, place: MetalSource) -> MetalConfig {
    MetalConfig::parse(text, place).unwrap()
}

#[test]
fn one_rule_holds_for_all_combinations() {
    let all = BatchCase::all();
    assert_eq!(all.len(), 200);
    for case in all {
        let text = format!(r#"{{"batch_size": {}}}"#, case.size);
        let mut config = case.config();
        let own = metal(&text, MetalSource::File).prefer_batch(&mut config);
        match case.expected() {
            Some(expected) => {
                own.unwrap();
                assert_eq!(preferred(&config), expected, "{case:?}");
            }
            None => {
                let error = own.unwrap_err().to_string();
                let said = format!("metal_config.json: batch_size {} found, expected", case.size);
                assert!(error.contains(&said), "{case:?}: {error}");
            }
        }
        // What the server says for all models keeps none from loading.
        let mut config = case.config();
        metal(&text, MetalSource::Flag).prefer_batch(&mut config).unwrap();
        let left = case.expected().unwrap_or_else(|| preferred(&case.config()));
        assert_eq!(preferred(&config), left, "{case:?}");
    }
}

#[test]
fn presets_keep_no_model_from_loading_and_say_what_holds() {
    let presets = [("high_throughput", 32), ("low_latency", 1)];
    for case in BatchCase::all().into_iter().filter(|case| case.size == 2) {
        for (preset, size) in presets {
            let text = format!(r#"{{"preset": "{preset}"}}"#);
            let mut config = case.config();
            metal(&text, MetalSource::File).prefer_batch(&mut config).unwrap();
            let expected = BatchCase { size, ..case }.expected();
            let left = expected.unwrap_or_else(|| preferred(&case.config()));
            assert_eq!(preferred(&config), left, "{preset} {case:?}");
        }
    }
}

#[test]
fn a_size_that_has_no_effect_has_a_reason() {
    let stated = "dynamic_batching { SIZES }";
    for size in [1, 2, 32] {
        let case = BatchCase { scheduler: stated, stated: &[8, 16], most: 32, size };
        let expected = "but the model's own preferred_batch_size [8, 16] holds".to_owned();
        assert_eq!(prefer(&mut case.config(), size), Ok(BatchEffect::Yields(expected)));
    }
    let case = BatchCase { scheduler: stated, stated: &[8, 16], most: 32, size: 8 };
    let effect = prefer(&mut case.config(), 8).unwrap();
    assert!(matches!(effect, BatchEffect::Acts(how) if how.contains("one of the model's own")));
}

#[test]
fn an_ensemble_has_no_batch_of_its_own() {
    let own = metal(r#"{"batch_size": 2}"#, MetalSource::File).refuse_batch("m").unwrap_err();
    let said = "model 'm': metal_config.json: batch_size 2 found, expected none: the steps";
    assert!(own.to_string().contains(said), "{own}");
    metal(r#"{"preset": "low_latency"}"#, MetalSource::File).refuse_batch("m").unwrap();
    metal("{}", MetalSource::File).refuse_batch("m").unwrap();
}

#[test]
fn a_batch_that_completion_gives_holds_the_size() {
    let metal = metal(r#"{"preset": "high_throughput"}"#, MetalSource::File);
    assert_eq!((metal.completed_batch(4), metal.completed_batch(64)), (32, 64));
}
