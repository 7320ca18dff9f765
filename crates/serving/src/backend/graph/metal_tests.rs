//! Every field of `metal_config`: a right value has an effect or a reason why it has none, a wrong type is refused.

use std::path::PathBuf;

use galatea_runtime::power::PowerSettings;
use galatea_runtime::tune::{ConfigSpace, TuningCache};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ProviderClaims, ProviderTraits, RuntimeError,
};
use galatea_tensor::OrderedSet;
use serde_json::{Value, json};

use super::*;
use crate::backend::HostLink;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::metal::{MetalSource, field_names};
use crate::config::{ModelConfig, from_text};
use crate::latency_target::LatencyTargets;

/// A provider that keeps the settings it is given.
#[derive(Clone)]
struct SettledProvider {
    name: &'static str,
    settings: OrderedMap<String, String>,
}

impl std::fmt::Debug for SettledProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.name, self.settings)
    }
}

impl ExecutionProvider for SettledProvider {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named(self.name)
    }

    fn variant(
        &self,
        wish: &ProviderWish<'_>,
    ) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
        let settings = wish.settings.cloned().unwrap_or_default();
        Ok(Some(Arc::new(Self { name: self.name, settings })))
    }

    fn claim(&self, _: &ClaimRequest<'_>) -> ProviderClaims {
        ProviderClaims::default()
    }

    fn compile(&self, _: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Err(RuntimeError::provider(self.name, "nothing is compiled here"))
    }
}

/// KeptRecords of a tuner.
#[derive(Debug)]
struct KeptRecords;

impl TuningCache for KeptRecords {
    fn choose(&self, _: &str, _: &str, _: &ConfigSpace) -> Option<usize> {
        None
    }
}

/// Effect of a field.
#[derive(Clone, Copy)]
enum FieldEffect {
    /// Options of the session, as this tells.
    Session(fn(&SessionOptions) -> bool),
    /// Settings of the GPU's provider, under the field's own name; without a GPU the log says why nothing happens.
    Gpu,
    /// The preferred batch.
    Batch,
    /// The latency target of requests.
    Latency,
    /// Settings of power.
    Power,
    /// The most time that kernels are measured in idle moments.
    TuningTime,
}

/// A field with a value that is right and differs from the usual one.
struct FieldProof {
    field: &'static str,
    value: Value,
    effect: FieldEffect,
}

fn proofs() -> Vec<FieldProof> {
    use FieldEffect::{Batch, Gpu, Latency, Power, Session, TuningTime};
    let proof = |field, value, effect| FieldProof { field, value, effect };
    vec![
        proof("precision", json!("bf16"), Session(|to| to.precision == Precision::Bf16)),
        proof("batch_size", json!(4), Batch),
        proof("latency_goal_ms", json!(20.5), Latency),
        proof("enable_auto_tuning", json!(false), Session(|to| to.choices.0.is_none())),
        proof("auto_tuning_seconds", json!(90), TuningTime),
        proof("kernel_fusion", json!(false), Session(|to| to.optimise == OptimiseLevel::O1)),
        proof(
            "prefetch_policy",
            json!("none"),
            Session(|to| to.prefetch != SessionOptions::default().prefetch),
        ),
        proof("persistent_kernels", json!(true), Session(|to| to.plan_cache == PERSISTENT_PLANS)),
        proof("minimize_launches", json!(true), Session(|to| to.max_partitions == 1)),
        proof("memory_pool_sizes", json!([65536, 131_072]), Gpu),
        proof("initial_pool_sizes", json!([2, 1]), Gpu),
        proof("max_pool_sizes", json!([8, 4]), Gpu),
        proof("use_unified_memory", json!(false), Gpu),
        proof("unified_memory_threshold", json!(4096), Gpu),
        proof("gpu_memory_limit", json!(1_000_000), Gpu),
        proof("gpu_submission_ms", json!(40), Gpu),
        proof("power_policy", json!("low_power"), Power),
        proof("power_target_watts", json!(12.5), Power),
        proof("enable_thermal_protection", json!(false), Power),
        proof("adaptive_frequency", json!(false), Power),
        proof("efficiency_core_offload", json!(false), Power),
    ]
}

fn metal_of(field: &str, value: &Value) -> Result<MetalConfig, String> {
    MetalConfig::parse(&json!({field: value}).to_string(), MetalSource::Parameter)
}

fn model() -> ModelConfig {
    from_text("name: 'm' backend: 'onnxruntime' max_batch_size: 8").unwrap()
}

fn files(metal: MetalConfig) -> ModelFiles {
    ModelFiles {
        name: "m".to_owned(),
        version: 1,
        model_dir: PathBuf::new(),
        version_dir: PathBuf::new(),
        config: Arc::new(model()),
        settings: OrderedMap::new(),
        metal: Arc::new(metal),
        auto_complete: true,
        host: HostLink::default(),
    }
}

fn provider(name: &'static str) -> Arc<dyn ExecutionProvider> {
    Arc::new(SettledProvider { name, settings: OrderedMap::new() })
}

/// Options of the session of a model on these providers.
fn options_of(metal: &MetalConfig, providers: &[Arc<dyn ExecutionProvider>]) -> SessionOptions {
    let mut options = SessionOptions {
        choices: ChoiceSource(Some(Arc::new(KeptRecords))),
        ..SessionOptions::default()
    };
    let terms = SessionTerms {
        stated: StatedFields { precision: false, level: false },
        tuning: KernelTuningPolicy::default(),
        format: ModelFormat::Onnx,
    };
    session(&mut options, &files(metal.clone()), providers, &terms).unwrap();
    options
}

#[test]
fn every_field_has_its_proof() {
    let proved: OrderedSet<&str> = proofs().iter().map(|proof| proof.field).collect();
    assert_eq!(proved, field_names().collect());
}

#[test]
fn a_right_value_of_each_field_has_an_effect() {
    for FieldProof { field, value, effect } in proofs() {
        let metal = metal_of(field, &value).unwrap();
        let setting = metal.find(field).unwrap();
        match effect {
            FieldEffect::Session(changed) => {
                let providers = [provider("gpu"), provider("cpu")];
                let usual = options_of(&MetalConfig::default(), &providers);
                assert!(!changed(&usual), "{field}: {value} is the usual value");
                assert!(
                    changed(&options_of(&metal, &providers)),
                    "{field}: {value} changes nothing"
                );
            }
            FieldEffect::Gpu => {
                let given = OrderedMap::new();
                let all = configured(vec![provider("gpu")], &metal, "m", &given).unwrap();
                // The one is a form of the other.
                let known =
                    if field == "use_unified_memory" { "unified_memory_threshold" } else { field };
                assert!(format!("{all:?}").contains(known), "{field}: {all:?}");
                let mut account = FieldAccount::default();
                let mut options = SessionOptions::default();
                other_fields(&mut options, &metal, &[provider("cpu")], &mut account).unwrap();
                let said = account.idle.join("; ");
                assert!(said.contains(field) && said.contains("expected a GPU"), "{field}: {said}");
            }
            FieldEffect::Batch => {
                let mut config = model();
                metal.prefer_batch(&mut config).unwrap();
                let Some(SchedulingChoice::DynamicBatching(batching)) = config.scheduling_choice
                else {
                    panic!("{field}: no batches are made");
                };
                assert_eq!(batching.preferred_batch_size, [4]);
            }
            FieldEffect::Latency => {
                let targets = LatencyTargets::of_model(&model(), &metal).unwrap();
                assert_eq!(targets.latency.unwrap().as_secs_f64(), 0.0205);
            }
            FieldEffect::TuningTime => {
                let base = KernelTuningPolicy::default();
                let found = tuning_policy(&base, &metal).time;
                assert_eq!((found, found == base.time), (Duration::from_secs(90), false));
                let mut account = FieldAccount::default();
                tuning_fields(
                    &metal_of("enable_auto_tuning", &json!(false)).unwrap(),
                    &base,
                    &mut account,
                );
                assert!(account.idle.is_empty(), "nothing was asked for");
            }
            FieldEffect::Power => {
                assert!(metal.power().any(|power| power.field == field));
                let mut settings = PowerSettings::default();
                settings.set(field, &setting.text).unwrap();
                assert_ne!(settings, PowerSettings::default(), "{field}: {value} changes nothing");
            }
        }
    }
}

#[test]
fn a_value_of_another_type_is_refused_with_what_was_found_and_expected() {
    let samples = [
        json!(null),
        json!(true),
        json!(7),
        json!(1.5),
        json!("word"),
        json!("7"),
        json!([]),
        json!([1, "a"]),
        json!([-1]),
        json!({}),
        json!({"value": 7}),
    ];
    let kind = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    for FieldProof { field, value, .. } in proofs() {
        for sample in samples.iter().filter(|sample| kind(sample) != kind(&value)) {
            let error = metal_of(field, sample).unwrap_err();
            let expected = format!("parameter 'metal_config': {field}: {sample} found, expected ");
            assert!(error.starts_with(&expected), "{error}");
        }
        // Values of the right type that are none of the field's.
        let impossible = match &value {
            Value::String(_) => vec![json!("word"), json!("")],
            Value::Number(_) => vec![json!(-1), json!(1e300)],
            Value::Array(_) => vec![json!([]), json!([1, "a"]), json!([-1]), json!([1.5])],
            _ => Vec::new(),
        };
        for sample in impossible {
            let error = metal_of(field, &sample).unwrap_err();
            assert!(error.contains(&format!("{field}: {sample} found, expected ")), "{error}");
        }
    }
}
