//! Qwen 2, 2.5 and 3.

use super::ModelArchitecture;
use super::decoder::{self, DecoderTraits, QueryKeyNorm};
use crate::config::JsonConfig;
use crate::error::Result;

/// Qwen 2 and 2.5: LLaMA with biases on queries, keys and values.
pub(super) const QWEN2: ModelArchitecture = ModelArchitecture {
    model_types: &["qwen2"],
    shape: decoder::shape,
    build: |config, weights, form| {
        let plain = DecoderTraits { biases: [true, false], ..DecoderTraits::new(config)? };
        let windows = windows(config, plain.shape.layers)?;
        DecoderTraits { windows, ..plain }.graph("qwen2", weights, form)
    },
};

/// Qwen 3: LLaMA with queries and keys normalised head by head.
pub(super) const QWEN3: ModelArchitecture = ModelArchitecture {
    model_types: &["qwen3"],
    shape: decoder::shape,
    build: |config, weights, form| {
        let bias = config.flag("attention_bias", false)?;
        let plain = DecoderTraits {
            biases: [bias; 2],
            query_key_norm: QueryKeyNorm::Heads,
            ..DecoderTraits::new(config)?
        };
        let windows = windows(config, plain.shape.layers)?;
        DecoderTraits { windows, ..plain }.graph("qwen3", weights, form)
    },
};

/// The window of each layer: of those that `layer_types` names so, or of all from a layer on.
fn windows(config: &JsonConfig, layers: usize) -> Result<Vec<usize>> {
    let window = config.optional_length("sliding_window")?.unwrap_or(0);
    if !config.flag("use_sliding_window", false)? || window == 0 {
        return Ok(vec![0; layers]);
    }
    let from = config.optional_length("max_window_layers")?.unwrap_or(0);
    let types = config.texts("layer_types")?;
    Ok((0..layers)
        .map(|layer| {
            let slides = match &types {
                Some(types) => types.get(layer) == Some(&"sliding_attention"),
                None => layer >= from,
            };
            if slides { window } else { 0 }
        })
        .collect())
}
