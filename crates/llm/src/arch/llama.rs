//! LLaMA 1 to 3 and Mistral.

use super::Architecture;
use super::decoder::{self, Decoder};
use crate::config::Config;
use crate::error::Result;

/// LLaMA and Mistral, which may see a window of positions only.
pub(super) const LLAMA: Architecture = Architecture {
    model_types: &["llama", "mistral"],
    shape: decoder::shape,
    build: |config, weights, form| decoder(config)?.graph("llama", weights, form),
};

fn decoder(config: &Config) -> Result<Decoder> {
    let bias = config.flag("attention_bias", false)?;
    let window = config.optional_length("sliding_window")?.unwrap_or(0);
    let plain = Decoder::new(config)?;
    Ok(Decoder {
        biases: [bias; 2],
        inner_bias: config.flag("mlp_bias", false)?,
        windows: vec![window; plain.shape.layers],
        ..plain
    })
}
