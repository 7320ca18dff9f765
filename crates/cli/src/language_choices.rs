//! Options of commands for language models.

use std::path::PathBuf;

use clap::Args;
use galatea_serving::backend::llm::EngineArguments;

use super::arguments::{number, path};

/// Option for the length of prompts.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PromptLength {
    #[arg(
        long = "prompt-tokens",
        value_name = "N",
        value_parser = number::<usize>,
        help = "tokens of the prompt of a language model [512]"
    )]
    pub(super) prompt_tokens: Option<usize>,
}

/// Option for the length of a text. Each command says what it does with the text.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ContextLength {
    #[arg(
        long = "context",
        value_name = "N",
        value_parser = number::<usize>,
        help = "tokens before that answer [8]"
    )]
    pub(super) context: Option<usize>,
}

/// Options for the lengths of prompts and answers.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TokenCounts {
    #[command(flatten)]
    pub(super) prompt: PromptLength,
    #[command(flatten)]
    pub(super) text: ContextLength,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "tokens of its answers [64]"
    )]
    pub(super) decode_tokens: Option<usize>,
}

/// Options for the storage of a language model's weights and cache.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct WeightChoices {
    #[arg(
        long,
        value_name = "NAME",
        help = "round its weights to q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1 or q4_0"
    )]
    quantization: Option<String>,
    #[arg(
        long,
        value_name = "NAME",
        help = "its cache: auto, float32, float16, bfloat16 or int8 [auto]"
    )]
    kv_cache_dtype: Option<String>,
}

impl WeightChoices {
    /// Returns the arguments of an engine on a provider.
    pub(super) fn engine_arguments(&self, provider: Option<&str>) -> EngineArguments {
        EngineArguments {
            device: provider.map(str::to_owned),
            quantization: self.quantization.clone(),
            kv_cache_dtype: self.kv_cache_dtype.clone(),
            ..EngineArguments::default()
        }
    }
}

/// Options for what is measured of a checkpoint besides prompts and answers.
#[derive(Debug, Args)]
pub(super) struct CheckpointChoices {
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = 1,
        help = "its answers at once, too [1]"
    )]
    pub(super) concurrency: usize,
    #[arg(
        long,
        value_name = "FILE",
        value_parser = path,
        help = "instead: how well it foresees a text, in pieces of the prompt's length"
    )]
    pub(super) perplexity: Option<PathBuf>,
}
