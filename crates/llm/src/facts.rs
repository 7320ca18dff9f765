//! Contents of a checkpoint, without loading it.

use std::path::Path;

use galatea_tensor::{DataType, OrderedMap};

use crate::arch::{self, ModelShape, T5_TYPES, T5Architecture};
use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::gguf::GgufCheckpoint;
use crate::template::{ChatTemplate, template_beside};
use crate::tokens::Tokenizer;
use crate::weights::{CheckpointWeights, FolderWeights, StoredWeight};

/// Purpose of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelDuty {
    /// It continues a text.
    Decoder,
    /// It makes vectors of texts.
    Encoder,
    /// It scores texts, or pairs of them.
    Classifier,
    /// It reads a text whole and writes another one.
    EncoderDecoder,
}

impl ModelDuty {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Encoder => "encoder",
            Self::Classifier => "classifier",
            Self::EncoderDecoder => "encoder-decoder",
        }
    }
}

/// Weights that are stored alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightType {
    /// How they are stored, such as `BF16`, `Q4_K` or `MLX 4 bits`.
    pub name: String,
    /// Tensors.
    pub tensors: usize,
    /// Numbers of all of them.
    pub numbers: usize,
    /// Their bytes, scales and offsets included.
    pub bytes: usize,
}

/// Memory of the keys and values of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBytes {
    /// Element types that they are stored as.
    pub dtype: &'static str,
    /// Bytes in all layers.
    pub bytes: usize,
}

/// A tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizerFacts {
    /// The sort of its model.
    pub kind: &'static str,
    /// Its tokens.
    pub tokens: usize,
}

/// Description of a checkpoint. What does not apply to it, or is not known, is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFacts {
    /// How the files are made: `safetensors`, `MLX` or `GGUF`.
    pub format: &'static str,
    /// Value of `model_type`.
    pub architecture: String,
    /// Purpose of it.
    pub duty: ModelDuty,
    /// Layers, of a model that reads and writes those that write.
    pub layers: usize,
    /// Layers that read, where others write.
    pub encoder_layers: Option<usize>,
    /// Length of a token's row.
    pub hidden: Option<usize>,
    /// Heads of queries.
    pub heads: Option<usize>,
    /// Heads of keys and values.
    pub kv_heads: Option<usize>,
    /// Length of a key.
    pub head_size: Option<usize>,
    /// Most tokens of a text, where the model has a bound.
    pub context: Option<usize>,
    /// Tokens that the weights know.
    pub vocabulary: usize,
    /// How weights are stored, most bytes first.
    pub weights: Vec<WeightType>,
    /// Element types that keys and values may be stored as; nothing where none are kept.
    pub cache: Vec<CacheBytes>,
    /// The tokenizer, or why there is none.
    pub tokenizer: std::result::Result<TokenizerFacts, LlmError>,
    /// Whether it has a chat template of its own.
    pub chat_template: bool,
    /// Why no model can be made of the weights, where that is so.
    pub problem: Option<LlmError>,
}

/// The types that keys and values may have.
const CACHE_TYPES: [(&str, DataType); 4] = [
    ("float32", DataType::Fp32),
    ("float16", DataType::Fp16),
    ("bfloat16", DataType::Bf16),
    ("int8", DataType::Int8),
];

impl CheckpointFacts {
    /// Reads what a folder of `config.json` and safetensors, or a GGUF file, says of itself.
    ///
    /// # Errors
    /// Files that are missing or damaged, and an architecture that is not known.
    pub fn read(path: &Path) -> Result<Self> {
        if path.is_dir() { Self::of_folder(path) } else { Self::of_gguf(path) }
    }

    fn of_folder(folder: &Path) -> Result<Self> {
        let config = JsonConfig::read(&folder.join("config.json"))?;
        let duty = ModelSizes::sort(&config)?;
        let weights = FolderWeights::open(folder, &config)?;
        let sizes = ModelSizes::of(duty, &config, &weights)?;
        let format = if weights.is_coded() { "MLX" } else { "safetensors" };
        let tokenizer = Tokenizer::from_folder(folder)
            .map(|made| TokenizerFacts { kind: made.kind(), tokens: made.vocabulary_size() });
        let own = ChatTemplate::is_in(folder)?;
        Ok(sizes.facts(format, &config, weights.stored()?, tokenizer, own))
    }

    fn of_gguf(path: &Path) -> Result<Self> {
        let file = GgufCheckpoint::open(path)?;
        let sizes = ModelSizes::of(ArchitectureTable::Decoder, file.config(), &file)?;
        let own = file.template_source()?.is_some() || template_beside(path)?.is_some();
        // To make the tokenizer takes a second where it has many tokens.
        let tokenizer = file.vocabulary().and_then(|vocabulary| {
            Ok(TokenizerFacts { kind: vocabulary.kind()?, tokens: vocabulary.tokens.len() })
        });
        Ok(sizes.facts("GGUF", file.config(), file.stored(), tokenizer, own))
    }

    /// Bytes of all weights.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.weights.iter().map(|kind| kind.bytes).sum()
    }

    /// Numbers of all weights.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|kind| kind.numbers).sum()
    }
}

/// Which table an architecture stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchitectureTable {
    Decoder,
    Encoder,
    Both,
}

/// Fields of a configuration.
struct ModelSizes {
    duty: ModelDuty,
    layers: usize,
    encoder_layers: Option<usize>,
    kv_heads: Option<usize>,
    head_size: Option<usize>,
    context: Option<usize>,
    vocabulary: usize,
    /// Bytes that a decoder keeps of each token.
    cached: Option<ModelShape>,
    /// Types that caches may have.
    cache_types: &'static [(&'static str, DataType)],
    problem: Option<LlmError>,
}

/// The first of some keys that says a length.
fn length(config: &JsonConfig, keys: &[&str]) -> Result<Option<usize>> {
    for key in keys {
        if let Some(found) = config.optional_length(key)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

impl ModelSizes {
    /// Where the architecture of a configuration stands.
    fn sort(config: &JsonConfig) -> Result<ArchitectureTable> {
        let name = config.text("model_type")?;
        if name.is_some_and(|name| T5_TYPES.contains(&name)) {
            return Ok(ArchitectureTable::Both);
        }
        if arch::encoder(config)?.is_some() {
            return Ok(ArchitectureTable::Encoder);
        }
        if arch::architecture(config).is_ok() {
            return Ok(ArchitectureTable::Decoder);
        }
        let known: Vec<&str> = arch::ARCHITECTURES
            .iter()
            .map(|row| row.model_types)
            .chain(arch::ENCODERS.iter().map(|row| row.model_types))
            .chain([T5_TYPES])
            .flatten()
            .copied()
            .collect();
        Err(config.unknown("model_type", &known))
    }

    fn of(
        sort: ArchitectureTable,
        config: &JsonConfig,
        weights: &dyn CheckpointWeights,
    ) -> Result<Self> {
        match sort {
            ArchitectureTable::Decoder => Self::of_decoder(config, weights),
            ArchitectureTable::Encoder => Self::of_encoder(config, weights),
            ArchitectureTable::Both => Self::of_both(config, weights),
        }
    }

    fn of_decoder(config: &JsonConfig, weights: &dyn CheckpointWeights) -> Result<Self> {
        let row = arch::architecture(config)?;
        let shape = row.shape(config)?;
        Ok(Self {
            duty: ModelDuty::Decoder,
            layers: shape.layers,
            encoder_layers: None,
            kv_heads: Some(shape.kv_heads),
            head_size: Some(shape.head_size),
            context: Some(shape.positions),
            vocabulary: shape.vocabulary,
            cached: Some(shape),
            cache_types: &CACHE_TYPES,
            problem: row.graph(config, weights).err(),
        })
    }

    fn of_encoder(config: &JsonConfig, weights: &dyn CheckpointWeights) -> Result<Self> {
        let Some(row) = arch::encoder(config)? else {
            return Err(LlmError::new(LlmErrorKind::Config, config.place(), "no encoder"));
        };
        let shape = row.shape(config, weights)?;
        Ok(Self {
            duty: if shape.labels.is_some() { ModelDuty::Classifier } else { ModelDuty::Encoder },
            layers: length(config, &["num_hidden_layers", "n_layers"])?.unwrap_or(0),
            encoder_layers: None,
            kv_heads: None,
            head_size: None,
            context: Some(shape.positions),
            vocabulary: shape.vocabulary,
            cached: None,
            cache_types: &[],
            problem: row.graph(config, weights).err(),
        })
    }

    fn of_both(config: &JsonConfig, weights: &dyn CheckpointWeights) -> Result<Self> {
        let model = T5Architecture::new(config)?;
        let shape = model.shape();
        Ok(Self {
            duty: ModelDuty::EncoderDecoder,
            layers: shape.layers,
            encoder_layers: config.optional_length("num_layers")?,
            kv_heads: Some(shape.heads),
            head_size: Some(shape.head_size),
            context: None,
            vocabulary: shape.vocabulary,
            cached: Some(ModelShape {
                layers: shape.layers,
                kv_heads: shape.heads,
                head_size: shape.head_size,
                vocabulary: shape.vocabulary,
                positions: 0,
            }),
            // Rows of answers are kept as they are computed.
            cache_types: CACHE_TYPES.split_at(1).0,
            problem: model.encoder(weights).and_then(|_| model.decoder(weights)).err(),
        })
    }

    fn facts(
        self,
        format: &'static str,
        config: &JsonConfig,
        stored: Vec<StoredWeight>,
        tokenizer: Result<TokenizerFacts>,
        chat_template: bool,
    ) -> CheckpointFacts {
        let cached = |shape: &ModelShape| -> Vec<CacheBytes> {
            let bytes = |&(dtype, of)| CacheBytes { dtype, bytes: shape.position_bytes(of) };
            self.cache_types.iter().map(bytes).collect()
        };
        // A key that holds something else was refused before, where a model needs it.
        let told = |keys: &[&str]| length(config, keys).ok().flatten();
        CheckpointFacts {
            format,
            architecture: config.text("model_type").ok().flatten().unwrap_or_default().to_owned(),
            duty: self.duty,
            layers: self.layers,
            encoder_layers: self.encoder_layers,
            hidden: told(&["hidden_size", "n_embd", "d_model", "dim"]),
            heads: told(&["num_attention_heads", "n_head", "num_heads", "n_heads"]),
            kv_heads: self.kv_heads,
            head_size: self.head_size,
            context: self.context,
            vocabulary: self.vocabulary,
            weights: by_type(stored),
            cache: self.cached.as_ref().map(cached).unwrap_or_default(),
            tokenizer,
            chat_template,
            problem: self.problem,
        }
    }
}

/// Weights by how they are stored, most bytes first.
fn by_type(all: Vec<StoredWeight>) -> Vec<WeightType> {
    let mut types: OrderedMap<String, WeightType> = OrderedMap::new();
    for StoredWeight { kind, numbers, bytes } in all {
        let found = types.entry(kind).or_default();
        found.tensors += 1;
        found.numbers = found.numbers.saturating_add(numbers);
        found.bytes = found.bytes.saturating_add(bytes);
    }
    let named = |(name, found)| WeightType { name, ..found };
    let mut types: Vec<WeightType> = types.into_iter().map(named).collect();
    types.sort_by_key(|kind| std::cmp::Reverse(kind.bytes));
    types
}
