//! Operands of the attention of a layer.

use galatea_graph::ValueId;

/// How the heads of a layer attend.
pub(super) struct LayerHeads {
    /// Heads of queries.
    pub(super) heads: usize,
    /// Heads of keys and values.
    pub(super) kv_heads: usize,
    /// How many positions a row sees; 0 is all.
    pub(super) window: usize,
    /// Factor on scores; `None` is one divided by the root of a key's length.
    pub(super) scale: Option<f32>,
    /// Where scores are kept inside; 0 is nowhere.
    pub(super) softcap: f32,
}

impl LayerHeads {
    pub(super) fn new(heads: usize, kv_heads: usize) -> Self {
        Self { heads, kv_heads, window: 0, scale: None, softcap: 0.0 }
    }
}

/// Queries, keys and values of a layer.
#[derive(Clone, Copy)]
pub(super) struct AttentionOperands {
    /// The queries.
    pub(super) query: ValueId,
    /// The keys.
    pub(super) key: ValueId,
    /// The values.
    pub(super) value: ValueId,
}

/// Angles that the rows of a step are turned by.
#[derive(Clone, Copy)]
pub(super) struct StepAngles {
    /// The cosines.
    pub(super) cos: ValueId,
    /// The sines.
    pub(super) sin: ValueId,
}
