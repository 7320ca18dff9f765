//! Links to the other crates: backends from providers, and tables about models.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_llm::chunked::ChunkManifest;
use galatea_llm::embed::{EncoderEngine, TextEncoder};
use galatea_llm::engine::SpeculationMethod;
use galatea_llm::model::{CacheType, CheckpointOptions, LanguageModel};
use galatea_llm::template::is_template_text;
use galatea_llm::weights::GgmlQuantization;
use galatea_llm::{LlmError, LlmErrorKind};
use galatea_runtime::{CompileMode, PlacementOptions, SessionOptions};
use galatea_serving::backend::builtin;
use galatea_serving::backend::graph::{GraphBackend, MetalBackend, PowerOf};
use galatea_serving::backend::llm::{
    CheckpointForm, EngineArguments, LlmBackend, LoadModel, ModelMemory, metal_arguments,
    metal_options,
};
use galatea_serving::backend::python::{PythonBackend, PytorchBackend, TensorflowBackend};
use galatea_serving::backend::{CheckpointHandle, KernelTuningPolicy, ModelBackend};
use galatea_serving::config::MetalConfig;
use galatea_serving::model_cache::ModelCache;
use galatea_tensor::OrderedMap;

use crate::Engine;
use crate::chunks::ChunkRunner;
use crate::{devices, placement_file};

/// Tokens of a guess, and last tokens that are looked up, where nothing is said.
const GUESSED: usize = 5;
const LOOKED_UP: usize = 4;

/// The value of `quantization` that leaves weights as they are stored.
const AS_STORED: &str = "none";

/// Defaults for loading checkpoints whose own configuration is silent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointDefaults {
    quantization: Option<String>,
    kv_cache_dtype: Option<String>,
    chat_template: Option<String>,
}

impl CheckpointDefaults {
    /// Reads the names of a quantization and of a type of the cache; a missing one leaves the checkpoint's own.
    ///
    /// # Errors
    /// Fails for an unknown name, by the flag that gives it.
    pub fn parse(quantized_as: Option<&str>, kv_cache_dtype: Option<&str>) -> Result<Self, String> {
        let defaults = Self {
            quantization: quantized_as.map(str::to_owned),
            kv_cache_dtype: kv_cache_dtype.map(str::to_owned),
            chat_template: None,
        };
        let arguments = defaults.complete(&EngineArguments::default());
        quantization(&arguments).map_err(|error| format!("--{error}"))?;
        cache_type(&arguments)
            .map_err(|error| format!("--{}", error.to_string().replace('_', "-")))?;
        Ok(defaults)
    }

    /// The same with a chat template, as its text or the path of its file; without one where there is none.
    ///
    /// # Errors
    /// Fails where neither a text nor a file is given.
    pub fn with_chat_template(self, given: Option<&str>) -> Result<Self, String> {
        let Some(given) = given else { return Ok(self) };
        if !is_template_text(given) && !Path::new(given).is_file() {
            return Err(format!(
                "--chat-template: '{given}' is no file, expected a template's text or the path of its file"
            ));
        }
        Ok(Self { chat_template: Some(given.to_owned()), ..self })
    }

    /// The arguments of a model, with these where they are silent.
    fn complete(&self, arguments: &EngineArguments) -> EngineArguments {
        let own = arguments.clone();
        EngineArguments {
            quantization: own.quantization.or_else(|| self.quantization.clone()),
            kv_cache_dtype: own.kv_cache_dtype.or_else(|| self.kv_cache_dtype.clone()),
            chat_template: own.chat_template.or_else(|| self.chat_template.clone()),
            ..own
        }
    }
}

fn shared_backend(backend: impl ModelBackend + 'static) -> Arc<dyn ModelBackend> {
    Arc::new(backend)
}

/// The units that models run on.
#[derive(Debug, Default)]
pub struct ModelMachine {
    /// GPUs that instances of models may be placed on, in the order of their numbers.
    pub gpus: devices::ProviderList,
    /// Devices of a model that asks for none, preferred ones first.
    pub shared: devices::ProviderList,
    /// Routing that divides runs between these devices, if they are divided.
    pub routing: Option<PlacementOptions>,
    /// Policy on tuning kernels in idle moments.
    pub tuning: KernelTuningPolicy,
}

impl Engine {
    /// Returns the backends of models on the CPU, with prepared models in a cache.
    #[must_use]
    pub fn backends(&self, cache: Option<ModelCache>) -> Vec<Arc<dyn ModelBackend>> {
        let machine = ModelMachine { shared: devices::processor(), ..ModelMachine::default() };
        self.backends_with(cache, CheckpointDefaults::default(), None, machine)
    }

    /// Returns the backends: with what checkpoints are loaded with, so many bytes of memory for all of them, and the
    /// devices of models.
    #[must_use]
    pub fn backends_with(
        &self,
        cache: Option<ModelCache>,
        defaults: CheckpointDefaults,
        limit: Option<u64>,
        machine: ModelMachine,
    ) -> Vec<Arc<dyn ModelBackend>> {
        let options = SessionOptions {
            choices: self.choices(),
            // Who wants no files of models wants none of what they took.
            ways: cache.is_some().then(placement_file::records).unwrap_or_default(),
            pace: self.power().pace(),
            turns: self.turns(),
            // Requests are answered from the start.
            compile: CompileMode::Background,
            watch: self.profiler().watch(""),
            ..SessionOptions::default()
        };
        let core_ml = GraphBackend::core_ml(devices::processor(), options.clone());
        let ModelMachine { gpus, shared, routing, tuning } = machine;
        let core_ml = core_ml.with_gpus(gpus.clone()).with_optional(devices::optional());
        let core_ml = core_ml.with_shared(shared.clone(), routing.clone());
        let core_ml = core_ml.with_power(self.model_power()).with_tuning(tuning);
        let onnx = GraphBackend::onnx(devices::processor(), options).with_gpus(gpus);
        let onnx = onnx.with_optional(devices::optional()).with_shared(shared, routing);
        let onnx = onnx.with_power(self.model_power()).with_cache(cache).with_tuning(tuning);
        let metal = MetalBackend::of_formats(&onnx, &core_ml).map(shared_backend);
        let llm = LlmBackend::within(&self.checkpoints(defaults), &ModelMemory::new(limit), tuning);
        let tensorflow = TensorflowBackend::of_platforms().map(shared_backend);
        let first = [
            shared_backend(onnx),
            shared_backend(core_ml),
            shared_backend(PythonBackend::default()),
            shared_backend(PytorchBackend::default()),
        ];
        let rest = tensorflow.into_iter().chain(metal).chain(llm).chain(builtin::all());
        first.into_iter().chain(rest).collect()
    }

    /// Returns the loader of checkpoints of language models and encoders.
    fn checkpoints(&self, defaults: CheckpointDefaults) -> LoadModel {
        let engine = self.clone();
        Arc::new(move |name, path, arguments| {
            let observer = engine.profiler().of_model(name);
            // What is wrong with the file is said by whoever reads it next.
            let encodes = path.is_dir() && TextEncoder::recognises(path).unwrap_or(false);
            let form = match (encodes, ChunkManifest::is_in(path)) {
                (true, _) => CheckpointForm::Encoder,
                (false, true) => CheckpointForm::Chunks,
                (false, false) => CheckpointForm::Engine,
            };
            let arguments = &defaults.complete(&metal_arguments(name, arguments, form));
            let mut options = engine.load_options(arguments)?;
            options.session.watch = engine.profiler().watch(name);
            engine
                .take_metal(&mut options, name, &arguments.metal, form)
                .map_err(|text| LlmError::new(LlmErrorKind::Parameter, "metal_config", text))?;
            if encodes {
                let encoder = load_encoder(path, arguments, &options)?;
                encoder.observe(observer);
                return Ok(CheckpointHandle::Encoder(Arc::new(encoder)));
            }
            let model = LanguageModel::load(path, &options)?;
            model.engine().observe(observer);
            Ok(CheckpointHandle::Language(Arc::new(model)))
        })
    }

    /// Returns what makes the pace of a model from its `metal_config`.
    fn model_power(&self) -> PowerOf {
        let power = Arc::clone(self.power());
        Arc::new(move |name: &str, metal: &MetalConfig| power.of_model(name, metal))
    }

    /// Takes the fields of `metal_config` that are no arguments of the engine.
    ///
    /// # Errors
    /// Names the field, what was found and what was expected.
    fn take_metal(
        &self,
        options: &mut CheckpointOptions,
        name: &str,
        metal: &MetalConfig,
        form: CheckpointForm,
    ) -> Result<(), String> {
        metal_options(name, metal, options, form)?;
        if metal.power().next().is_some() {
            options.session.pace = self.power().of_checkpoint(name, metal)?;
        }
        Ok(())
    }

    /// Returns the options for loading a checkpoint for an engine of these arguments.
    ///
    /// # Errors
    /// Fails when an argument asks for something that does not exist.
    pub fn load_options(
        &self,
        arguments: &EngineArguments,
    ) -> Result<CheckpointOptions, galatea_llm::LlmError> {
        let refused =
            |field: &str, text: String| LlmError::new(LlmErrorKind::Parameter, field, text);
        let unit = unit(arguments);
        let providers = self.providers(unit).map_err(|error| refused("device", error))?;
        let mut options = CheckpointOptions::new(providers);
        let worker = arguments.worker.clone();
        let power = arguments.power_mode.clone();
        let settings = [("worker", worker), ("power_mode", power)].into_iter();
        let settings = settings.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let settings: OrderedMap<String, String> = settings.collect();
        let engine = ChunkRunner::named(unit, &settings, self.profiler().intervals());
        options.chunk_engine = engine.map_err(|error| refused("worker", error))?;
        options.session.choices = self.choices();
        options.session.pace = self.power().pace();
        let engine = &mut options.engine;
        engine.context = arguments.max_model_len;
        engine.max_sequences = arguments.max_num_seqs.unwrap_or(engine.max_sequences);
        let rows = engine.max_batched_tokens.max(engine.max_sequences);
        engine.max_batched_tokens = arguments.max_num_batched_tokens.unwrap_or(rows);
        engine.max_waiting = arguments.max_waiting.unwrap_or(engine.max_waiting);
        engine.prefix_caching = arguments.enable_prefix_caching.unwrap_or(engine.prefix_caching);
        options.block_size = arguments.block_size.unwrap_or(options.block_size);
        options.blocks = arguments.num_gpu_blocks_override;
        options.cache_bytes = arguments.kv_cache_memory_bytes.unwrap_or(options.cache_bytes);
        options.swap_bytes = arguments.swap_space.unwrap_or(options.swap_bytes);
        options.tokenizer = arguments.tokenizer.as_ref().map(PathBuf::from);
        options.template.clone_from(&arguments.chat_template);
        let max_tokens = arguments.num_speculative_tokens.unwrap_or(GUESSED);
        match arguments.speculative_model.as_deref() {
            None => {}
            Some("[ngram]" | "ngram") => {
                let ngram = arguments.ngram_prompt_lookup_max.unwrap_or(LOOKED_UP);
                options.engine.speculative =
                    Some(SpeculationMethod::PromptLookup { max_tokens, ngram });
            }
            Some(path) => options.draft = Some((PathBuf::from(path), max_tokens)),
        }
        let precision = match arguments.dtype.as_deref() {
            None | Some("auto" | "float" | "float32") => "fp32",
            Some("bfloat16") => "bf16",
            Some("half" | "float16") => "fp16",
            Some(other) => {
                let text = format!("{other:?} found, expected auto, float32, bfloat16 or float16");
                return Err(refused("dtype", text));
            }
        };
        options.session.precision = precision.parse().map_err(|error| refused("dtype", error))?;
        options.quantization = quantization(arguments)?;
        options.cache_type = cache_type(arguments)?;
        Ok(options)
    }
}

/// Loads an encoder's checkpoint.
pub(crate) fn load_encoder(
    path: &Path,
    arguments: &EngineArguments,
    options: &CheckpointOptions,
) -> Result<EncoderEngine, LlmError> {
    if let Some(tokenizer) = &arguments.tokenizer {
        let text = format!("{tokenizer:?} found, but an encoder has its tokenizer beside it");
        return Err(LlmError::new(LlmErrorKind::Parameter, "tokenizer", text));
    }
    let providers = &options.providers;
    let session = &options.session;
    let mut model = TextEncoder::load_as(path, providers, session, options.quantization)?;
    if let Some(most) = arguments.max_model_len {
        model = model.with_context(most)?;
    }
    EncoderEngine::start(model, options.engine.max_waiting)
}

/// The unit of an engine, by vLLM's names for them; none where nothing is chosen.
fn unit(arguments: &EngineArguments) -> Option<&str> {
    match arguments.device.as_deref() {
        None | Some("auto") => None,
        Some("cuda" | "mps" | "metal") => Some("gpu"),
        given => given,
    }
}

fn quantization(arguments: &EngineArguments) -> Result<Option<GgmlQuantization>, LlmError> {
    let told = arguments.quantization.as_deref().filter(|name| *name != AS_STORED);
    told.map(str::parse).transpose()
}

fn cache_type(arguments: &EngineArguments) -> Result<CacheType, LlmError> {
    arguments.kv_cache_dtype.as_deref().map_or(Ok(CacheType::default()), str::parse)
}

/// The cache of prepared models in a folder, or in the system's own where it is empty; none of 0
/// bytes, or where the system has no such folder.
#[must_use]
pub fn model_cache(folder: &str, bytes: u64) -> Option<ModelCache> {
    let folder = match folder {
        "" => ModelCache::default_folder()?,
        given => PathBuf::from(given),
    };
    (bytes > 0).then(|| ModelCache::new(folder, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_speak_where_a_model_is_silent() {
        let defaults = CheckpointDefaults::parse(Some("q8_0"), Some("int8")).unwrap();
        let engine = Engine::new();
        let loaded = |own: &EngineArguments| engine.load_options(&defaults.complete(own)).unwrap();
        let silent = loaded(&EngineArguments::default());
        assert_eq!(silent.quantization, Some("q8_0".parse().unwrap()));
        assert_eq!(silent.cache_type, "int8".parse().unwrap());
        let own = EngineArguments {
            quantization: Some("none".to_owned()),
            kv_cache_dtype: Some("auto".to_owned()),
            ..EngineArguments::default()
        };
        let told = loaded(&own);
        assert_eq!((told.quantization, told.cache_type), (None, CacheType::default()));
    }

    #[test]
    fn unknown_names_are_refused_by_the_flag_that_gives_them() {
        assert_eq!(CheckpointDefaults::parse(None, None).unwrap(), CheckpointDefaults::default());
        let error = CheckpointDefaults::parse(Some("int3"), None).unwrap_err();
        assert!(error.starts_with("--quantization: 'int3' found, expected one of"), "{error}");
        let error = CheckpointDefaults::parse(None, Some("fp8")).unwrap_err();
        assert!(error.starts_with("--kv-cache-dtype: \"fp8\" found, which"), "{error}");
    }

    #[test]
    fn a_checkpoint_takes_metal_config() {
        let checkpoint = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/chat/1");
        let metal = |text: &str| {
            let place = galatea_serving::config::metal::MetalSource::Parameter;
            EngineArguments {
                metal: MetalConfig::parse(text, place).unwrap(),
                ..EngineArguments::default()
            }
        };
        let load = Engine::new().checkpoints(CheckpointDefaults::default());
        let loaded = |name: &str, text: &str| load(name, Path::new(checkpoint), &metal(text));
        let all = r#"{"preset": "high_throughput", "kernel_fusion": false, "minimize_launches": true,
            "persistent_kernels": true, "power_target_watts": 5, "efficiency_core_offload": true}"#;
        let CheckpointHandle::Language(_) = loaded("checkpoint-with-metal", all).unwrap() else {
            panic!("a decoder");
        };
        assert!(loaded("checkpoint-with-int8", r#"{"preset": "power_efficient"}"#).is_ok());
        let unprotected = r#"{"enable_thermal_protection": false}"#;
        let error = loaded("unprotected-checkpoint", unprotected).unwrap_err().to_string();
        assert!(error.contains("enable_thermal_protection false found, but"), "{error}");
    }

    #[test]
    fn caches_have_the_type_that_is_asked_for() {
        let checkpoint = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/llm/qwen3");
        let bytes = |name: &str| {
            let arguments = EngineArguments {
                kv_cache_dtype: Some(name.to_owned()),
                max_num_seqs: Some(1),
                ..EngineArguments::default()
            };
            let options = Engine::new().load_options(&arguments).unwrap();
            let model = galatea_llm::engine::SessionModel::load(Path::new(checkpoint), &options);
            model.unwrap().cache_bytes()
        };
        let whole = bytes("float32");
        assert_eq!(bytes("float16") * 2, whole);
        assert!(bytes("int8") < bytes("float16"));
    }
}
