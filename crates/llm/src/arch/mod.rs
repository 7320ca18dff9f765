//! Architectures: from `config.json` and named weights to a graph.
//!
//! A decoder's graph computes one step for rows of several sequences that follow each other. Its
//! inputs are `tokens` `[rows]` and `positions` `[rows]`, then `starts` `[sequences + 1]`, `lengths`
//! `[sequences]` and `blocks` `[sequences, blocks]` as `PagedAttention` takes them, `wanted` `[wanted]`,
//! the rows whose logits are asked for, and for each layer the caches `key.N` and `value.N`. Its outputs
//! are `logits` `[wanted, vocabulary]` and the caches after the step, in the order of the inputs.
//! [`StepOptions`] says which type the caches have. [`add_choices`] adds outputs for whoever chooses tokens without
//! reading all logits.

mod bert;
mod built;
mod choices;
mod decoder;
mod encoder;
mod encoders;
mod fixed;
mod gemma;
mod gpt2;
mod llama;
mod net;
mod olmo;
mod operands;
mod qwen;
mod rope;
mod step;
mod t5;

pub use built::{LookUpKey, RowTable};
pub use choices::{CHOICES, add_choices};
pub use fixed::{FixedGraph, FixedOptions};
use galatea_graph::Graph;
use galatea_tensor::DataType;
pub use t5::{EncoderDecoderShape, T5_TYPES, T5Architecture};

use built::BuiltArchitecture;

pub use encoder::{EncoderArchitecture, EncoderShape};
pub use encoders::{ENCODERS, encoder};

use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::weights::CheckpointWeights;

/// A way from a checkpoint to a graph.
#[derive(Debug)]
pub struct ModelArchitecture {
    /// Values of `model_type` that name it.
    pub model_types: &'static [&'static str],
    /// Facts about a checkpoint's caches.
    shape: fn(&JsonConfig) -> Result<ModelShape>,
    build: fn(&JsonConfig, &dyn CheckpointWeights, &GraphForm) -> Result<BuiltArchitecture>,
}

/// Purpose of a decoder's graph, beside its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOptions {
    /// The type of keys and values in the caches: FP32, FP16, BF16 or INT8.
    pub cache: DataType,
    /// Most positions of a sequence, where these are fewer than the model's.
    pub positions: Option<usize>,
}

impl Default for StepOptions {
    /// Caches of FP32, and all positions of the model.
    fn default() -> Self {
        Self { cache: DataType::Fp32, positions: None }
    }
}

impl StepOptions {
    /// Positions that tables need.
    fn positions(&self, shape: &ModelShape) -> usize {
        self.positions.map_or(shape.positions, |positions| positions.min(shape.positions))
    }
}

/// Meaning of the rows of a graph.
enum GraphForm {
    /// Rows of several sequences, over blocks.
    Paged(StepOptions),
    /// Rows of one sequence, with lengths that are all known.
    Fixed(FixedOptions),
}

impl GraphForm {
    /// Positions that tables need.
    fn positions(&self, shape: &ModelShape) -> usize {
        match self {
            Self::Paged(options) => options.positions(shape),
            Self::Fixed(options) => options.context,
        }
    }
}

/// The sizes that an engine needs to know of a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Layers, each with two caches.
    pub layers: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Length of a key and of a value.
    pub head_size: usize,
    /// Tokens that exist.
    pub vocabulary: usize,
    /// Most positions of a sequence.
    pub positions: usize,
}

impl ModelShape {
    /// Bytes of all keys and values of a position.
    pub(crate) fn position_bytes(&self, cache: DataType) -> usize {
        let vector = self.head_size.saturating_mul(cache.size_bytes().unwrap_or(4));
        let scale = if cache == DataType::Int8 { size_of::<f32>() } else { 0 };
        (2 * self.layers * self.kv_heads).saturating_mul(vector.saturating_add(scale))
    }

    /// The shapes of a layer's caches of keys and of values, of so many blocks of so many positions:
    /// an element of the keys of a block is a vector of its positions.
    #[must_use]
    pub fn caches(&self, blocks: usize, positions: usize) -> [[usize; 4]; 2] {
        let heads = self.kv_heads;
        let size = self.head_size;
        [[blocks, heads, size, positions], [blocks, heads, positions, size]]
    }
}

/// All architectures.
pub const ARCHITECTURES: &[ModelArchitecture] =
    &[llama::LLAMA, qwen::QWEN2, qwen::QWEN3, gpt2::GPT2, gemma::GEMMA3, olmo::OLMO2];

/// The architecture that a checkpoint's `config.json` names.
///
/// # Errors
/// When there is none of that name.
pub fn architecture(config: &JsonConfig) -> Result<&'static ModelArchitecture> {
    let name = config.text("model_type")?;
    let found =
        ARCHITECTURES.iter().find(|row| name.is_some_and(|name| row.model_types.contains(&name)));
    found.ok_or_else(|| {
        let known: Vec<&str> =
            ARCHITECTURES.iter().flat_map(|row| row.model_types).copied().collect();
        config.unknown("model_type", &known)
    })
}

impl ModelArchitecture {
    /// The sizes of a checkpoint.
    ///
    /// # Errors
    /// When the configuration lacks something or contradicts itself.
    pub fn shape(&self, config: &JsonConfig) -> Result<ModelShape> {
        (self.shape)(config)
    }

    /// The graph of a checkpoint, with the usual options.
    ///
    /// # Errors
    /// Fails like [`ModelArchitecture::graph_for`].
    pub fn graph(&self, config: &JsonConfig, weights: &dyn CheckpointWeights) -> Result<Graph> {
        self.graph_for(config, weights, &StepOptions::default())
    }

    /// The graph of a checkpoint. Caches of INT8 have their scales behind each layer's keys and values:
    /// `key_scales.N` and `value_scales.N`.
    ///
    /// # Errors
    /// When the configuration contradicts itself, or weights are missing, have another shape or are
    /// not known.
    pub fn graph_for(
        &self,
        config: &JsonConfig,
        weights: &dyn CheckpointWeights,
        options: &StepOptions,
    ) -> Result<Graph> {
        (self.build)(config, weights, &GraphForm::Paged(*options)).map(|built| built.graph)
    }

    /// The graph of one sequence whose lengths are all known, as [`FixedGraph`] describes it.
    ///
    /// # Errors
    /// Fails like [`ModelArchitecture::graph_for`], and lengths that are nothing or beyond the model's positions.
    pub fn fixed_graph(
        &self,
        config: &JsonConfig,
        weights: &dyn CheckpointWeights,
        options: &FixedOptions,
    ) -> Result<FixedGraph> {
        let shape = self.shape(config)?;
        options.check(&shape)?;
        let built =
            (self.build)(config, &fixed::PlainWeights(weights), &GraphForm::Fixed(*options))?;
        FixedGraph::new(built, *options, shape)
    }
}

/// The error of sizes that do not fit each other.
fn contradiction(text: String) -> LlmError {
    LlmError::new(LlmErrorKind::Config, "config.json", text)
}

/// Most layers of a model, more than any has: a graph has inputs for each before any weight is read.
const MAX_LAYERS: usize = 4096;

/// The number of layers under a key.
fn layers(config: &JsonConfig, key: &str) -> Result<usize> {
    match config.length(key)? {
        layers if layers <= MAX_LAYERS => Ok(layers),
        layers => Err(contradiction(format!("{key} {layers}, expected at most {MAX_LAYERS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_that_are_not_here_are_refused_with_those_that_are() {
        for name in ["gptj", "gpt_neox", "openai-gpt", "whisper"] {
            let text = format!(r#"{{"model_type": "{name}"}}"#);
            let config = JsonConfig::parse("config.json", text.as_bytes()).unwrap();
            let error = architecture(&config).err().unwrap().to_string();
            assert!(error.contains(name) && error.contains(", gpt2,"), "{error}");
        }
    }

    #[test]
    fn positions_take_what_their_type_takes() {
        let shape =
            ModelShape { layers: 2, kv_heads: 3, head_size: 8, vocabulary: 9, positions: 64 };
        assert_eq!(shape.position_bytes(DataType::Fp32), 2 * 2 * 3 * 8 * 4);
        assert_eq!(shape.position_bytes(DataType::Bf16), 2 * 2 * 3 * 8 * 2);
        assert_eq!(shape.position_bytes(DataType::Int8), 2 * 2 * 3 * (8 + 4));
    }
}
