//! Tests of the options that configurations ask of providers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::time::Duration;

use galatea_runtime::prefetch::PrefetchPolicy;
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, Precision, ProviderClaims, ProviderTraits,
    RuntimeError,
};
use galatea_tensor::OrderedMap;

use super::*;
use crate::backend::AutoTuning;
use crate::config::metal::MetalSource;
use crate::config::{MetalConfig, from_text};

const POLICY: KernelTuningPolicy =
    KernelTuningPolicy { models: AutoTuning::Asked, time: Duration::from_secs(60), cores: 1 };

/// A provider that says what it was asked for.
#[derive(Clone)]
struct Told {
    name: &'static str,
    settings: OrderedMap<String, String>,
    forced: bool,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} forced: {}, settings: {:?}", self.name, self.forced, self.settings)
    }
}

impl ExecutionProvider for Told {
    fn traits(&self) -> ProviderTraits {
        let optimise = if self.name == "coreml" { OptimiseLevel::O1 } else { OptimiseLevel::O3 };
        ProviderTraits { optimise, ..ProviderTraits::named(self.name) }
    }

    fn variant(
        &self,
        wish: &ProviderWish<'_>,
    ) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
        let mut changed = self.clone();
        changed.forced |= wish.forced;
        if let Some(settings) = wish.settings {
            match settings.get("precision").map(String::as_str) {
                None | Some("fp16") => changed.settings.clone_from(settings),
                Some(other) => return Err(format!("precision '{other}' found, expected fp16")),
            }
        }
        Ok(Some(Arc::new(changed)))
    }

    fn claim(&self, _: &ClaimRequest<'_>) -> ProviderClaims {
        ProviderClaims::default()
    }

    fn compile(&self, _: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Err(RuntimeError::provider(self.name, "nothing is compiled here"))
    }
}

fn provider(name: &'static str) -> Arc<dyn ExecutionProvider> {
    Arc::new(Told { name, settings: OrderedMap::new(), forced: false })
}

fn config(name: &str, accelerator: &str, parameters: &str) -> ModelConfig {
    from_text(&format!(
        "name: \"{name}\" optimization {{ execution_accelerators {{ gpu_execution_accelerator: [ \
         {{ name: \"{accelerator}\" {parameters} }} ] }} }}"
    ))
    .unwrap()
}

const HALF: &str = "parameters { key: \"precision\" value: \"fp16\" }";

#[test]
fn the_neural_engine_is_the_first_provider_of_the_model_that_names_it() {
    let optional = vec![provider("coreml")];
    let own = configured(
        vec![provider("cpu")],
        &optional,
        &files(config("a", "apple_neural_engine", HALF)),
    );
    let own = own.unwrap();
    let names: Vec<&str> = own.iter().map(|provider| provider.name()).collect();
    assert_eq!(names, ["coreml", "cpu"]);
    let shown = format!("{:?}", own.first());
    assert!(shown.contains("forced: true") && shown.contains("\"fp16\""), "{shown}");
    // The one that other models get knows nothing of it.
    assert!(format!("{optional:?}").contains("settings: {}"));
    let other =
        configured(vec![provider("cpu")], &optional, &files(ModelConfig::default())).unwrap();
    assert_eq!(other.len(), 1);
}

#[test]
fn a_wrong_parameter_is_named_with_its_field_and_model() {
    let wrong = "parameters { key: \"precision\" value: \"half\" }";
    let config = config("a", "apple_neural_engine", wrong);
    let error = configured(Vec::new(), &vec![provider("coreml")], &files(config)).unwrap_err();
    let expected = "optimization.execution_accelerators.gpu_execution_accelerator 'apple_neural_engine' of model \
                    'a': precision 'half' found, expected fp16";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn metal_is_the_gpu_where_there_is_one() {
    let config = files(config("a", "metal", ""));
    let names = |providers: ProviderFactory| -> Vec<&'static str> {
        providers.iter().map(|provider| provider.name()).collect()
    };
    let here = configured(vec![provider("gpu"), provider("cpu")], &Vec::new(), &config).unwrap();
    assert_eq!(names(here), ["gpu", "cpu"]);
    let absent = configured(vec![provider("cpu")], &Vec::new(), &config).unwrap();
    assert_eq!(names(absent), ["cpu"]);
}

fn files(config: ModelConfig) -> ModelFiles {
    ModelFiles {
        name: "a".to_owned(),
        config: config.into(),
        version: 1,
        model_dir: PathBuf::new(),
        version_dir: PathBuf::new(),
        settings: OrderedMap::new(),
        metal: Arc::default(),
        auto_complete: true,
        host: crate::backend::HostLink::default(),
    }
}

#[test]
fn a_model_that_is_warmed_up_waits_until_it_is_compiled() {
    let background =
        SessionOptions { compile: CompileMode::Background, ..SessionOptions::default() };
    let mode = |text: &str| {
        let config = from_text(text).unwrap();
        session_options(&background, &[provider("cpu")], &files(config), POLICY, ModelFormat::Onnx)
            .unwrap()
            .compile
    };
    assert_eq!(mode("name: \"a\""), CompileMode::Background);
    let warm = "name: \"a\" model_warmup [ { name: \"zeros\" batch_size: 1 } ]";
    assert_eq!(mode(warm), CompileMode::Wait);
}

#[test]
fn a_preferred_provider_says_how_far_graphs_are_rewritten() {
    let level = |accelerator: &str, more: &str| {
        let mut config = config("a", accelerator, "");
        if !more.is_empty() {
            config.parameters.insert(
                "optimization_level".to_owned(),
                crate::config::inference::ModelParameter { string_value: more.to_owned() },
            );
        }
        let providers =
            configured(vec![provider("cpu")], &vec![provider("coreml")], &files(config.clone()))
                .unwrap();
        let options = session_options(
            &SessionOptions::default(),
            &providers,
            &files(config),
            POLICY,
            ModelFormat::Onnx,
        );
        options.unwrap().optimise
    };
    assert_eq!(level("apple_neural_engine", ""), OptimiseLevel::O1);
    assert_eq!(level("apple_neural_engine", "O2"), OptimiseLevel::O2);
    assert_eq!(level("metal", ""), SessionOptions::default().optimise);
}

#[test]
fn the_level_of_the_graph_says_how_far_it_is_rewritten() {
    let level = |text: &str| {
        let config = from_text(&format!("name: 'a' {text}")).unwrap();
        let base = SessionOptions::default();
        let cpu = [provider("cpu")];
        let options = session_options(&base, &cpu, &files(config), POLICY, ModelFormat::Onnx);
        options.unwrap().optimise
    };
    assert_eq!(level("optimization { graph { level: -1 } }"), OptimiseLevel::O1);
    assert_eq!(level("optimization { graph { level: 1 } }"), OptimiseLevel::O2);
    assert_eq!(level("optimization { graph { level: 0 } }"), OptimiseLevel::O3);
}

fn asking(metal: &str) -> ModelFiles {
    let config = ModelConfig { name: "a".to_owned(), ..ModelConfig::default() };
    let metal = MetalConfig::parse(metal, MetalSource::Parameter).unwrap();
    ModelFiles { metal: Arc::new(metal), ..files(config) }
}

#[test]
fn every_field_of_metal_config_changes_the_session() {
    let of = |metal: &str, units: &[Arc<dyn ExecutionProvider>]| {
        session_options(
            &SessionOptions::default(),
            units,
            &asking(metal),
            POLICY,
            ModelFormat::Onnx,
        )
        .unwrap()
    };
    let both = [provider("gpu"), provider("cpu")];
    let usual = SessionOptions::default();
    assert_eq!(of("{}", &both), usual);
    let fast = of(r#"{"preset": "high_throughput"}"#, &both);
    assert_eq!(fast.precision, Precision::Fp16);
    assert_eq!(fast.prefetch, PrefetchPolicy::Aggressive);
    let soon = of(r#"{"preset": "low_latency"}"#, &both);
    assert_eq!((soon.precision, soon.prefetch), (Precision::Fp32, PrefetchPolicy::Conservative));
    assert_eq!((soon.max_partitions, soon.plan_cache), (1, 512));
    let plain = of(r#"{"kernel_fusion": false, "minimize_launches": false}"#, &both);
    assert_eq!((plain.optimise, plain.max_partitions), (OptimiseLevel::O1, usual.max_partitions));
    assert_eq!(of(r#"{"precision": "mixed"}"#, &both).precision, Precision::Fp16);
    assert_eq!(of(r#"{"precision": "bf16"}"#, &both).precision, Precision::Bf16);
    // Without a unit for it the model computes as it says.
    assert_eq!(of(r#"{"precision": "int8"}"#, &both).precision, Precision::Fp32);
}

#[test]
fn what_a_model_says_by_itself_wins_over_metal_config() {
    let mut files = asking(r#"{"precision": "fp16", "kernel_fusion": false}"#);
    let config = from_text(
        "name: 'a' parameters [ { key: 'precision' value { string_value: 'bf16' } }, \
         { key: 'optimization_level' value { string_value: 'O2' } } ]",
    );
    files.config = Arc::new(config.unwrap());
    files.settings.insert("precision".to_owned(), "fp32".to_owned());
    let own = session_options(
        &SessionOptions::default(),
        &[provider("cpu")],
        &files,
        POLICY,
        ModelFormat::Onnx,
    )
    .unwrap();
    assert_eq!((own.precision, own.optimise), (Precision::Bf16, OptimiseLevel::O2));
    // A setting of the server does not.
    files.config = Arc::default();
    let own = session_options(
        &SessionOptions::default(),
        &[provider("cpu")],
        &files,
        POLICY,
        ModelFormat::Onnx,
    )
    .unwrap();
    assert_eq!((own.precision, own.optimise), (Precision::Fp16, OptimiseLevel::O1));
}

#[test]
fn units_get_the_fields_that_are_theirs() {
    let metal = r#"{"precision": "int8", "max_pool_sizes": [4, 2], "use_unified_memory": false}"#;
    let files = asking(metal);
    let given = configured(vec![provider("gpu"), provider("cpu")], &Vec::new(), &files).unwrap();
    let shown = format!("{given:?}");
    assert!(shown.contains("\"max_pool_sizes\": \"4, 2\""), "{shown}");
    assert!(shown.contains("\"unified_memory_threshold\": \"0\""), "{shown}");
    assert!(shown.contains("cpu forced: false, settings: {}"), "{shown}");
    let error = configured(vec![provider("coreml")], &Vec::new(), &files).unwrap_err();
    // This one knows halves only.
    assert!(error.to_string().contains("parameter 'metal_config' of model 'a'"), "{error}");
}
