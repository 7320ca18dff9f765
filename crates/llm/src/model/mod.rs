//! A language model with all that front ends need of it.

mod cache_type;
mod load;
mod perplexity;

use std::sync::{Arc, OnceLock};

pub use cache_type::CacheType;
pub use load::CheckpointOptions;
pub use perplexity::{PerplexityModel, PerplexityScore};

use crate::engine::{GenerationEngine, StepTuner};
use crate::error::Result;
use crate::grammar::GrammarCompiler;
use crate::sampling::SamplingParameters;
use crate::template::ChatTemplate;
use crate::tokens::Tokenizer;
use crate::tools::ToolFormat;

/// An engine, and what lies between it and texts. It has no name.
#[derive(Debug)]
pub struct LanguageModel {
    tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    tool_format: ToolFormat,
    defaults: SamplingParameters,
    engine: GenerationEngine,
    weight_bytes: usize,
    /// Bytes of keys and values of a position.
    position_bytes: usize,
    /// Bytes of a draft model's weights and cache.
    draft_bytes: usize,
    /// Tuner of its kernels, where a session computes steps.
    tuner: Option<Arc<StepTuner>>,
    grammars: OnceLock<Result<GrammarCompiler>>,
}

impl LanguageModel {
    /// Puts the parts together. Of the defaults, an answer without a most number of tokens goes on as
    /// far as the context.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        template: Option<ChatTemplate>,
        tool_format: ToolFormat,
        defaults: SamplingParameters,
        engine: GenerationEngine,
    ) -> Self {
        let grammars = OnceLock::new();
        Self {
            tokenizer,
            template,
            tool_format,
            defaults,
            engine,
            weight_bytes: 0,
            position_bytes: 0,
            draft_bytes: 0,
            tuner: None,
            grammars,
        }
    }

    /// Text to tokens and back.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Messages to text; nothing where the model does not chat.
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// How the model writes calls of tools.
    pub fn tool_format(&self) -> ToolFormat {
        self.tool_format.clone()
    }

    /// Maker of constraints of grammars. It is made when it is first asked for, which takes a
    /// while.
    ///
    /// # Errors
    /// A tokenizer for which there is none, each time.
    pub fn grammars(&self) -> Result<&GrammarCompiler> {
        let make = || GrammarCompiler::new(Arc::clone(&self.tokenizer));
        self.grammars.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// How tokens are chosen where a request does not say so.
    pub fn defaults(&self) -> &SamplingParameters {
        &self.defaults
    }

    /// The most tokens of a prompt and its answer together.
    pub fn context(&self) -> usize {
        self.engine.context()
    }

    /// Memory of the weights, in bytes; 0 where nobody knows it.
    pub fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }

    /// Memory of the keys and values of a position, in bytes; 0 where nobody knows it.
    pub fn position_bytes(&self) -> usize {
        self.position_bytes
    }

    /// Memory of the weights, of the cache and of what is kept outside it, and of a draft model, in bytes,
    /// as far as it is known.
    pub fn memory_bytes(&self) -> usize {
        let has = self.engine.statistics();
        let positions = (has.blocks + has.swap_blocks).saturating_mul(has.block_size);
        let cache = positions.saturating_mul(self.position_bytes);
        self.weight_bytes.saturating_add(cache).saturating_add(self.draft_bytes)
    }

    /// Tuner of the kernels of its steps; `None` where there is none.
    pub fn tuner(&self) -> Option<&Arc<StepTuner>> {
        self.tuner.as_ref()
    }

    /// The engine.
    pub fn engine(&self) -> &GenerationEngine {
        &self.engine
    }
}
