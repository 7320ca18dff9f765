//! From the files of a checkpoint to a model that generates.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_runtime::{ExecutionProvider, Session, SessionOptions};
use galatea_tensor::{DataType, read_plain_file, read_plain_text};
use serde_json::Value;

use super::LanguageModel;
use super::cache_type::CacheType;
use crate::arch::{self, ModelShape, StepOptions};
use crate::chunked::{ChunkEngine, ChunkLoadOptions, ChunkManifest, ChunkModel};
use crate::config::JsonConfig;
use crate::encoder_decoder::EncoderDecoder;
use crate::engine::{EngineOptions, GenerationEngine, SessionModel, StepModel};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::gguf::GgufCheckpoint;
use crate::sampling::SamplingParameters;
use crate::template::{ChatTemplate, given_template, template_beside};
use crate::tokens::Tokenizer;
use crate::tools::ToolFormat;
use crate::weights::{CheckpointWeights, FolderWeights, GgmlQuantization, RoundedCheckpoint};

/// How a checkpoint is loaded.
#[derive(Clone)]
pub struct CheckpointOptions {
    /// Providers that compute, preferred ones first.
    pub providers: Vec<Arc<dyn ExecutionProvider>>,
    /// How.
    pub session: SessionOptions,
    /// Resources that the engine may use.
    pub engine: EngineOptions,
    /// Positions of a block of the cache.
    pub block_size: usize,
    /// Blocks of the cache; as many as `cache_bytes` has room for where it is `None`.
    pub blocks: Option<usize>,
    /// The most memory of the cache.
    pub cache_bytes: usize,
    /// The folder of the tokenizer, where that is not the checkpoint's.
    pub tokenizer: Option<PathBuf>,
    /// A chat template in the place of the checkpoint's: its text, or the path of its file.
    pub template: Option<String>,
    /// How matrices of floats are rounded while they are loaded.
    pub quantization: Option<GgmlQuantization>,
    /// Element type of stored keys and values.
    pub cache_type: CacheType,
    /// The most memory outside the cache for the blocks of preempted sequences; without it these are
    /// computed anew.
    pub swap_bytes: usize,
    /// A smaller checkpoint of the same tokens that guesses, and the most tokens of a guess.
    pub draft: Option<(PathBuf, usize)>,
    /// Runner of the packages of a folder of chunks; without one sessions do.
    pub chunk_engine: Option<Arc<dyn ChunkEngine>>,
}

impl CheckpointOptions {
    /// The usual options: blocks of 16 positions in at most 1 GiB.
    pub fn new(providers: Vec<Arc<dyn ExecutionProvider>>) -> Self {
        Self {
            providers,
            session: SessionOptions::default(),
            engine: EngineOptions::default(),
            block_size: 16,
            blocks: None,
            cache_bytes: 1 << 30,
            tokenizer: None,
            template: None,
            quantization: None,
            cache_type: CacheType::default(),
            swap_bytes: 0,
            draft: None,
            chunk_engine: None,
        }
    }

    /// Options of a checkpoint that lies in chunks.
    #[must_use]
    pub fn chunks(&self) -> ChunkLoadOptions {
        ChunkLoadOptions {
            providers: self.providers.clone(),
            session: self.session.clone(),
            engine: self.chunk_engine.clone(),
            sequences: self.blocks,
            max_sequences: self.engine.max_sequences,
            cache_bytes: self.cache_bytes,
        }
    }

    /// How the cache is cut into blocks.
    fn blocks(&self, shape: &ModelShape, cache: DataType) -> Result<(NonZeroUsize, usize)> {
        let refused =
            |field: &str, message: String| LlmError::new(LlmErrorKind::Parameter, field, message);
        let Some(size) = NonZeroUsize::new(self.block_size) else {
            return Err(refused("block_size", "0 found, expected at least 1".to_owned()));
        };
        if let Some(blocks) = self.blocks {
            return Ok((size, blocks));
        }
        let each = shape.position_bytes(cache).saturating_mul(size.get()).max(1);
        // No more than all sequences can have.
        let context = self.engine.context.unwrap_or(shape.positions);
        let most = context.div_ceil(size.get()).saturating_mul(self.engine.max_sequences);
        match (self.cache_bytes / each).min(most) {
            0 => Err(refused(
                "cache_bytes",
                format!("{} found, expected at least {each} for one block", self.cache_bytes),
            )),
            blocks => Ok((size, blocks)),
        }
    }
}

impl std::fmt::Debug for CheckpointOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions")
            .field("engine", &self.engine)
            .field("block_size", &self.block_size)
            .field("blocks", &self.blocks)
            .field("cache_bytes", &self.cache_bytes)
            .finish_non_exhaustive()
    }
}

/// A checkpoint whose files are found, with all that is small.
pub(super) struct FoundCheckpoint {
    config: JsonConfig,
    pub(super) tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    tool_format: ToolFormat,
    defaults: SamplingParameters,
    weights: Box<dyn CheckpointWeights>,
}

impl FoundCheckpoint {
    /// Opens a folder of `config.json`, safetensors and `tokenizer.json`, or a GGUF file.
    pub(super) fn open(path: &Path, options: &CheckpointOptions) -> Result<Self> {
        let mut found = Self::found(path, options)?;
        if let Some(to) = options.quantization {
            found.weights = Box::new(RoundedCheckpoint::new(found.weights, to));
        }
        Ok(found)
    }

    fn found(path: &Path, options: &CheckpointOptions) -> Result<Self> {
        if path.is_dir() {
            return Self::of_folder(path, options);
        }
        if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf")) {
            let text = "expected a folder with config.json, safetensors and tokenizer.json, or a \
                        .gguf file";
            return Err(LlmError::new(LlmErrorKind::Read, path.display().to_string(), text));
        }
        let file = GgufCheckpoint::open(path)?;
        let tokenizer = match &options.tokenizer {
            Some(folder) => Tokenizer::from_folder(folder)?,
            None => file.tokenizer().map_err(|error| error.within(path.display()))?,
        };
        let given = match &options.template {
            Some(given) => Some(given_template(given)?),
            None => template_beside(path)?,
        };
        let source = match &given {
            Some(given) => Some(given.as_str()),
            None => file.template_source()?,
        };
        let template = source.map(|source| file.template_of(source)).transpose();
        Ok(Self {
            config: file.config().clone(),
            tokenizer: Arc::new(tokenizer),
            template: template.map_err(|error| error.within(path.display()))?,
            tool_format: source.and_then(ToolFormat::of_template).unwrap_or(ToolFormat::Hermes),
            defaults: SamplingParameters { max_tokens: None, ..SamplingParameters::default() },
            weights: Box::new(file),
        })
    }

    fn of_folder(folder: &Path, options: &CheckpointOptions) -> Result<Self> {
        let config = JsonConfig::read(&folder.join("config.json"))?;
        // What can be wrong with small files is found before large ones are read.
        arch::architecture(&config)?.shape(&config)?;
        let place = options.tokenizer.as_deref().unwrap_or(folder);
        let tokenizer = Arc::new(Tokenizer::from_folder(place)?);
        let FolderTemplate { template, tool_format } = FolderTemplate::find(place, options)?;
        let template = Some(template);
        let defaults = defaults(folder)?;
        let weights = Box::new(FolderWeights::open(folder, &config)?);
        Ok(Self { config, tokenizer, template, tool_format, defaults, weights })
    }

    /// Its sizes.
    pub(super) fn shape(&self) -> Result<ModelShape> {
        arch::architecture(&self.config)?.shape(&self.config)
    }

    /// Model that computes its steps.
    pub(super) fn step_model(
        &self,
        path: &Path,
        options: &CheckpointOptions,
    ) -> Result<SessionModel> {
        step_model(&self.config, &*self.weights, path, options)
    }
}

/// Model that computes the steps of a checkpoint.
fn step_model(
    config: &JsonConfig,
    weights: &dyn CheckpointWeights,
    path: &Path,
    options: &CheckpointOptions,
) -> Result<SessionModel> {
    let architecture = arch::architecture(config)?;
    let shape = architecture.shape(config)?;
    let cache = options.cache_type.of(weights, options.session.precision);
    let (size, blocks) = options.blocks(&shape, cache)?;
    let step = StepOptions { cache, positions: options.engine.context };
    let mut graph = architecture.graph_for(config, weights, &step)?;
    if options.providers.iter().any(|provider| provider.traits().reads_back) {
        arch::add_choices(&mut graph, shape.vocabulary)?;
    }
    let session = Session::new(graph, &options.providers, &options.session);
    let session = session.map_err(|error| {
        LlmError::new(LlmErrorKind::Model, path.display().to_string(), error.to_string())
    })?;
    weights.release();
    SessionModel::new(session, shape, size, blocks)
}

impl SessionModel {
    /// Loads a folder of `config.json` and safetensors, or a GGUF file, without a tokenizer.
    ///
    /// # Errors
    /// Fails like [`LanguageModel::load`].
    pub fn load(path: &Path, options: &CheckpointOptions) -> Result<Self> {
        if path.is_dir() {
            let config = JsonConfig::read(&path.join("config.json"))?;
            arch::architecture(&config)?.shape(&config)?;
            let weights = FolderWeights::open(path, &config)?;
            return step_model(&config, &weights, path, options);
        }
        let file = GgufCheckpoint::open(path)?;
        step_model(file.config(), &file, path, options)
    }
}

impl LanguageModel {
    /// Loads a folder of `config.json`, safetensors and `tokenizer.json`, or a GGUF file (of several the
    /// first), and starts its engine.
    ///
    /// # Errors
    /// An architecture that is not known, weights that do not fit it, files that are missing or
    /// malformed, and options that contradict each other or the checkpoint.
    pub fn load(path: &Path, options: &CheckpointOptions) -> Result<Self> {
        if path.is_dir() && EncoderDecoder::recognises(path)? {
            return Self::load_encoder_decoder(path, options);
        }
        if ChunkManifest::is_in(path) {
            return Self::load_chunks(path, options);
        }
        let checkpoint = FoundCheckpoint::open(path, options)?;
        let model = checkpoint.step_model(path, options)?.with_swap_space(options.swap_bytes);
        let FoundCheckpoint { tokenizer, template, tool_format, defaults, .. } = checkpoint;
        let memory = model.session().report().memory;
        let weight_bytes = memory.initializer_bytes + memory.mapped_bytes;
        let positions = model.block_count().saturating_mul(model.block_size().get());
        let position_bytes = model.cache_bytes() / positions.max(1);
        let own = options.engine.clone();
        let tuner = Some(Arc::new(model.tuner(own.max_sequences, own.max_batched_tokens)));
        let model = Box::new(model);
        let mut draft_bytes = 0;
        let engine = match &options.draft {
            None => GenerationEngine::start(model, Arc::clone(&tokenizer), own)?,
            Some((path, max_tokens)) => {
                let draft = FoundCheckpoint::open(path, options)?;
                let draft = step_model(&draft.config, &*draft.weights, path, options)?;
                let memory = draft.session().report().memory;
                draft_bytes = memory.initializer_bytes + memory.mapped_bytes + draft.cache_bytes();
                let draft = Box::new(draft);
                let tokenizer = Arc::clone(&tokenizer);
                GenerationEngine::start_with_draft(model, draft, *max_tokens, tokenizer, own)?
            }
        };
        let model = Self::new(tokenizer, template, tool_format, defaults, engine);
        Ok(Self { weight_bytes, position_bytes, draft_bytes, tuner, ..model })
    }

    /// Loads a folder of chunks, with the tokenizer that lies there.
    fn load_chunks(folder: &Path, options: &CheckpointOptions) -> Result<Self> {
        let refused = |field: &str| {
            let text = "chunks are computed as they were converted, expected none";
            Err(LlmError::new(LlmErrorKind::Parameter, field, text))
        };
        if options.quantization.is_some() {
            return refused("quantization");
        }
        if options.draft.is_some() {
            return refused("draft");
        }
        let place = options.tokenizer.as_deref().unwrap_or(folder);
        let tokenizer = Arc::new(Tokenizer::from_folder(place)?);
        let FolderTemplate { template, tool_format } = FolderTemplate::find(place, options)?;
        let defaults = defaults(folder)?;
        let model = ChunkModel::load(folder, &options.chunks())?;
        let position_bytes = model.position_bytes();
        let weight_bytes = model.weight_bytes();
        let own = options.engine.clone();
        let engine = GenerationEngine::start(Box::new(model), Arc::clone(&tokenizer), own)?;
        let model = Self::new(tokenizer, Some(template), tool_format, defaults, engine);
        Ok(Self { weight_bytes, position_bytes, ..model })
    }

    /// Loads a folder whose model reads a text whole and writes another one. It chats only by a template that is given.
    fn load_encoder_decoder(folder: &Path, options: &CheckpointOptions) -> Result<Self> {
        let place = options.tokenizer.as_deref().unwrap_or(folder);
        let tokenizer = Arc::new(Tokenizer::from_folder(place)?);
        let defaults = defaults(folder)?;
        let providers = &options.providers;
        let session = &options.session;
        let model = EncoderDecoder::load_as(folder, providers, session, options.quantization)?;
        let weight_bytes = model.weight_bytes();
        let engine = GenerationEngine::start_encoder_decoder(
            model,
            Arc::clone(&tokenizer),
            options.engine.clone(),
        )?;
        let given = options.template.as_ref().map(|_| FolderTemplate::find(place, options));
        let (template, tool_format) = match given.transpose()? {
            Some(found) => (Some(found.template), found.tool_format),
            None => (None, ToolFormat::Hermes),
        };
        let model = Self::new(tokenizer, template, tool_format, defaults, engine);
        Ok(Self { weight_bytes, ..model })
    }
}

/// Chat template of a folder, and what it says of calls.
struct FolderTemplate {
    template: ChatTemplate,
    tool_format: ToolFormat,
}

impl FolderTemplate {
    /// Takes the template that the options give, or that of the folder.
    fn find(folder: &Path, options: &CheckpointOptions) -> Result<Self> {
        let Some(given) = &options.template else {
            let template = ChatTemplate::from_folder(folder)?;
            return Ok(Self { template, tool_format: tool_format(folder)? });
        };
        let source = given_template(given)?;
        let template = ChatTemplate::in_folder(&source, folder)?;
        let tool_format = ToolFormat::of_template(&source).unwrap_or(ToolFormat::Hermes);
        Ok(Self { template, tool_format })
    }
}

/// How the model writes calls, as its chat template has it; as Hermes does where that says nothing.
fn tool_format(folder: &Path) -> Result<ToolFormat> {
    let mut source = String::new();
    let jinja = folder.join("chat_template.jinja");
    let config = folder.join("tokenizer_config.json");
    if let Ok(text) = read_plain_text(&jinja) {
        source = text;
    } else if config.exists() {
        let bytes = read_plain_file(&config).map_err(|error| {
            LlmError::new(LlmErrorKind::Read, config.display().to_string(), error.to_string())
        })?;
        // Whatever is wrong with it, the template was read before.
        let all: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match all.get("chat_template") {
            Some(Value::String(text)) => source.clone_from(text),
            Some(named @ Value::Array(_)) => source = named.to_string(),
            _ => {}
        }
    }
    Ok(ToolFormat::of_template(&source).unwrap_or(ToolFormat::Hermes))
}

/// Sampling defaults of `generation_config.json`, as vLLM reads it.
fn defaults(folder: &Path) -> Result<SamplingParameters> {
    let plain = SamplingParameters { max_tokens: None, ..SamplingParameters::default() };
    let path = folder.join("generation_config.json");
    if !path.exists() {
        return Ok(plain);
    }
    let config = JsonConfig::read(&path)?;
    let number = |key: &str, default: f32| -> Result<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "settings have few digits")]
        Ok(config.number(key)?.map_or(default, |number| number as f32))
    };
    let count = |key: &str| -> Result<Option<u32>> {
        let length = config.optional_length(key)?;
        Ok(length.and_then(|length| u32::try_from(length).ok()))
    };
    // 0 keeps all tokens, as no number does.
    let top_k = config.number("top_k")?.filter(|k| *k >= 1.0);
    #[expect(clippy::cast_possible_truncation, reason = "a number of tokens")]
    let top_k = top_k.map_or(plain.top_k, |k| k as i64);
    Ok(SamplingParameters {
        temperature: number("temperature", plain.temperature)?,
        top_k,
        top_p: number("top_p", plain.top_p)?,
        min_p: number("min_p", plain.min_p)?,
        repetition_penalty: number("repetition_penalty", plain.repetition_penalty)?,
        max_tokens: count("max_new_tokens")?,
        ..plain
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_file_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let none = defaults(folder.path()).unwrap();
        assert_eq!((none.temperature, none.max_tokens), (1.0, None));
        let text = r#"{"temperature": 0.7, "top_k": 20, "top_p": 0.8, "max_new_tokens": 512,
                       "do_sample": true, "eos_token_id": [1, 2], "min_p": null}"#;
        std::fs::write(folder.path().join("generation_config.json"), text).unwrap();
        let found = defaults(folder.path()).unwrap();
        assert_eq!((found.temperature, found.top_k, found.top_p), (0.7, 20, 0.8));
        assert_eq!((found.min_p, found.max_tokens), (0.0, Some(512)));
        std::fs::write(folder.path().join("generation_config.json"), r#"{"top_p": "x"}"#).unwrap();
        let error = defaults(folder.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("generation_config.json: top_p: \"x\", expected a number"),
            "{error}"
        );
    }

    #[test]
    fn blocks_fill_the_memory_but_no_more_than_sequences_can_have() {
        let shape =
            ModelShape { layers: 2, kv_heads: 1, head_size: 4, vocabulary: 9, positions: 64 };
        let mut options = CheckpointOptions::new(Vec::new());
        // A block takes 16 positions of 2 layers with keys and values of 4 numbers.
        options.cache_bytes = 10 * 16 * 2 * 2 * 4 * 4;
        assert_eq!(options.blocks(&shape, DataType::Fp32).unwrap().1, 10);
        options.engine.max_sequences = 2;
        assert_eq!(options.blocks(&shape, DataType::Fp32).unwrap().1, 8);
        options.blocks = Some(3);
        assert_eq!(options.blocks(&shape, DataType::Fp32).unwrap().1, 3);
        options.blocks = None;
        options.cache_bytes = 100;
        assert!(
            options
                .blocks(&shape, DataType::Fp32)
                .unwrap_err()
                .to_string()
                .contains("at least 1024")
        );
    }
}
