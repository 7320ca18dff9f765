//! OLMo 2 and 3: norms behind attention and behind the gated network, queries and keys normalised row by row.
//!
//! Sources: "2 OLMo 2 Furious" (arXiv 2501.00656), section 2; for the windows of OLMo 3 its published configurations.

use super::ModelArchitecture;
use super::decoder::{self, DecoderTraits, NormPlacement, QueryKeyNorm};

/// OLMo 2.
pub(super) const OLMO2: ModelArchitecture = ModelArchitecture {
    model_types: &["olmo2"],
    shape: decoder::shape,
    build: |config, weights, form| {
        let bias = config.flag("attention_bias", false)?;
        let config = config.clone().or("rms_norm_eps", 1e-5);
        let traits = DecoderTraits {
            biases: [bias; 2],
            query_key_norm: QueryKeyNorm::Rows,
            norms: NormPlacement::Behind,
            ..DecoderTraits::new(&config)?
        };
        traits.graph("olmo2", weights, form)
    },
};
