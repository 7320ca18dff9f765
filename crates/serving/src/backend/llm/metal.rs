//! Effects of `metal_config` on a checkpoint.

use galatea_llm::model::CheckpointOptions;

use super::EngineArguments;
use crate::backend::graph::metal::{FieldAccount, engine_fields, pools};
use crate::config::metal::MetalConfig;

/// Provider that computes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointForm {
    /// An engine, whose graph is made when the checkpoint is loaded.
    Engine,
    /// An engine over chunks, which are programs already.
    Chunks,
    /// An encoder.
    Encoder,
}

/// How weights are rounded for `int8`.
const INT8: &str = "q8_0";
/// How weights are rounded for `int4`.
const INT4: &str = "q4_0";

/// The arguments of an engine, with what `metal_config` says where they are silent: `precision` and `batch_size`. What
/// acts and what does not is said in the log.
#[must_use]
pub fn metal_arguments(
    model: &str,
    arguments: &EngineArguments,
    form: CheckpointForm,
) -> EngineArguments {
    let mut account = FieldAccount::default();
    let mut completed = arguments.clone();
    if let Some(setting) = arguments.metal.find("precision") {
        let stated = match setting.text.as_str() {
            "int8" | "int4" => arguments.quantization.as_ref().map(|_| "quantization"),
            _ => arguments.dtype.as_ref().map(|_| "dtype"),
        };
        match (stated, form, setting.text.as_str()) {
            (_, CheckpointForm::Chunks, _) => {
                account.idle(setting, "but chunks compute in what they were converted for");
            }
            (Some(argument), ..) => {
                account.idle(setting, &format!("but the model's own '{argument}' holds"));
            }
            (None, _, "int8") => {
                completed.quantization = Some(INT8.to_owned());
                account.act(setting, "weights of floats are rounded to 8 bits in blocks");
            }
            (None, _, "int4") => {
                completed.quantization = Some(INT4.to_owned());
                account.act(setting, "weights of floats are rounded to 4 bits in blocks");
            }
            (None, _, text) => {
                let (dtype, how) = match text {
                    "bf16" => ("bfloat16", "operands BF16, sums FP32"),
                    "fp32" => ("float32", "all of it"),
                    _ => ("float16", "values or weights FP16, sums FP32"),
                };
                completed.dtype = Some(dtype.to_owned());
                account.act(setting, how);
            }
        }
    }
    if let Some(setting) = arguments.metal.find("batch_size") {
        match (arguments.max_num_seqs, form) {
            (_, CheckpointForm::Encoder) => {
                account.idle(setting, "but an encoder takes texts together as they come");
            }
            (Some(own), _) => {
                account.idle(setting, &format!("but the model's own max_num_seqs {own} holds"));
            }
            (None, _) => {
                completed.max_num_seqs = setting.text.parse().ok();
                account.act(setting, "the most sequences at once");
            }
        }
    }
    account.log(model);
    completed
}

/// Takes the other fields, but for those on power, over into what a checkpoint is loaded with. What acts and what does
/// not is said in the log.
///
/// # Errors
/// Names the field, what was found and what was expected.
pub fn metal_options(
    model: &str,
    metal: &MetalConfig,
    options: &mut CheckpointOptions,
    form: CheckpointForm,
) -> Result<(), String> {
    let mut account = FieldAccount::default();
    match form {
        CheckpointForm::Chunks => {
            let own = ["precision", "batch_size", "latency_goal_ms"];
            let power = |field: &str| metal.power().any(|setting| setting.field == field);
            // Fields on tuning are accounted for where the backend decides on it.
            let tuning = ["enable_auto_tuning", "auto_tuning_seconds"];
            let rest = metal.settings().iter().filter(|one| !tuning.contains(&one.field));
            for setting in rest.filter(|one| !own.contains(&one.field) && !power(one.field)) {
                account.idle(setting, "but chunks are programs already");
            }
        }
        CheckpointForm::Engine | CheckpointForm::Encoder => {
            pools(&mut options.providers, metal)?;
            engine_fields(&mut options.session, metal, &options.providers, &mut account)?;
        }
    }
    account.log(model);
    Ok(())
}

#[cfg(test)]
mod tests {
    use galatea_runtime::OptimiseLevel;
    use galatea_runtime::prefetch::PrefetchPolicy;

    use super::*;
    use crate::config::metal::MetalSource;

    fn arguments(metal: &str) -> EngineArguments {
        let metal = MetalConfig::parse(metal, MetalSource::Parameter).unwrap();
        EngineArguments { metal, ..EngineArguments::default() }
    }

    #[test]
    fn precision_and_batch_size_are_arguments_of_the_engine() {
        let of = |metal: &str| metal_arguments("m", &arguments(metal), CheckpointForm::Engine);
        for (precision, dtype) in
            [("fp32", "float32"), ("fp16", "float16"), ("mixed", "float16"), ("bf16", "bfloat16")]
        {
            let completed = of(&format!(r#"{{"precision": "{precision}", "batch_size": 3}}"#));
            assert_eq!(completed.dtype.as_deref(), Some(dtype));
            assert_eq!((completed.max_num_seqs, completed.quantization), (Some(3), None));
        }
        assert_eq!(of(r#"{"precision": "int8"}"#).quantization.as_deref(), Some(INT8));
        assert_eq!(of(r#"{"precision": "int4"}"#).quantization.as_deref(), Some(INT4));
    }

    #[test]
    fn the_engines_own_arguments_win() {
        let own = EngineArguments {
            dtype: Some("float32".to_owned()),
            max_num_seqs: Some(7),
            ..arguments(r#"{"preset": "high_throughput"}"#)
        };
        assert_eq!(metal_arguments("m", &own, CheckpointForm::Engine), own);
        let chunks = arguments(r#"{"precision": "int8", "batch_size": 2}"#);
        let chunks = metal_arguments("m", &chunks, CheckpointForm::Chunks);
        assert_eq!((chunks.quantization, chunks.max_num_seqs), (None, Some(2)));
        let encoder = arguments(r#"{"precision": "bf16", "batch_size": 2}"#);
        let encoder = metal_arguments("m", &encoder, CheckpointForm::Encoder);
        assert_eq!(encoder.dtype.as_deref(), Some("bfloat16"));
        assert_eq!(encoder.max_num_seqs, None);
    }

    #[test]
    fn the_other_fields_change_how_a_checkpoint_is_loaded() {
        let metal = r#"{"kernel_fusion": false, "persistent_kernels": true, "minimize_launches": true,
            "prefetch_policy": "aggressive", "enable_auto_tuning": false}"#;
        let metal = MetalConfig::parse(metal, MetalSource::Parameter).unwrap();
        let loaded = |form| {
            let mut options = CheckpointOptions::new(Vec::new());
            metal_options("m", &metal, &mut options, form).unwrap();
            options.session
        };
        let engine = loaded(CheckpointForm::Engine);
        assert_eq!((engine.optimise, engine.max_partitions), (OptimiseLevel::O1, 1));
        assert_eq!((engine.prefetch, engine.plan_cache), (PrefetchPolicy::Aggressive, 512));
        let usual = CheckpointOptions::new(Vec::new()).session;
        assert_eq!(loaded(CheckpointForm::Chunks).optimise, usual.optimise);
    }
}
