//! LLaMA 1 to 3 and Mistral.

use super::ModelArchitecture;
use super::decoder::{self, DecoderTraits};
use crate::config::JsonConfig;
use crate::error::Result;

/// LLaMA and Mistral, which may see a window of positions only.
pub(super) const LLAMA: ModelArchitecture = ModelArchitecture {
    model_types: &["llama", "mistral"],
    shape: decoder::shape,
    build: |config, weights, form| decoder(config)?.graph("llama", weights, form),
};

fn decoder(config: &JsonConfig) -> Result<DecoderTraits> {
    let bias = config.flag("attention_bias", false)?;
    let window = config.optional_length("sliding_window")?.unwrap_or(0);
    let plain = DecoderTraits::new(config)?;
    Ok(DecoderTraits {
        biases: [bias; 2],
        inner_bias: config.flag("mlp_bias", false)?,
        windows: vec![window; plain.shape.layers],
        ..plain
    })
}
