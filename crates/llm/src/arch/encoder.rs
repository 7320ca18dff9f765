//! Encoders: from tokens of several texts to vectors or scores.
//!
//! An encoder's graph takes `tokens` `[batch, length]`, `positions` of the same shape and, where the model
//! has types of tokens, `types`; then `mask` of FP32, 0 where a token is and −∞ where a text has ended.
//! It gives `rows` `[batch, length, hidden]`, or of a classifier `scores` `[batch, labels]`.

use galatea_graph::{AttributeValue, Dim, Graph, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::net::{LinearSizes, NetBuilder, int};
use super::operands::AttentionOperands;
use super::{CheckpointWeights, contradiction};
use crate::config::JsonConfig;
use crate::error::Result;

/// A way from a checkpoint to an encoder's graph.
#[derive(Debug)]
pub struct EncoderArchitecture {
    /// Values of `model_type` that name it.
    pub model_types: &'static [&'static str],
    pub(super) shape: fn(&JsonConfig, &dyn CheckpointWeights) -> Result<EncoderShape>,
    pub(super) build: fn(&JsonConfig, &dyn CheckpointWeights) -> Result<Graph>,
}

/// Facts about an encoder for those who run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncoderShape {
    /// Length of a row.
    pub hidden: usize,
    /// Tokens that exist.
    pub vocabulary: usize,
    /// Most tokens of a text.
    pub positions: usize,
    /// The position of the first token.
    pub first_position: usize,
    /// How many types of tokens there are; 0 where the graph does not take them.
    pub types: usize,
    /// How many scores a text gets; `None` where the graph gives rows.
    pub labels: Option<usize>,
}

impl EncoderArchitecture {
    /// The sizes of a checkpoint.
    ///
    /// # Errors
    /// When the configuration lacks something or contradicts itself.
    pub fn shape(
        &self,
        config: &JsonConfig,
        weights: &dyn CheckpointWeights,
    ) -> Result<EncoderShape> {
        (self.shape)(config, weights)
    }

    /// The graph of a checkpoint.
    ///
    /// # Errors
    /// When the configuration contradicts itself, or weights are missing, have another shape or are
    /// not known.
    pub fn graph(&self, config: &JsonConfig, weights: &dyn CheckpointWeights) -> Result<Graph> {
        (self.build)(config, weights)
    }
}

/// A matrix of numbers for each token of a batch.
pub(super) fn per_token(net: &mut NetBuilder<'_>, name: &str, dtype: DataType) -> ValueId {
    net.input(name, dtype, &[Dim::symbol("batch"), Dim::symbol("length")])
}

/// The mask of keys `[batch, length]` as attention adds it.
pub(super) fn key_mask(net: &mut NetBuilder<'_>, mask: ValueId) -> Result<ValueId> {
    let axes = net.constant("axes", Tensor::vector(vec![1_i64, 2]));
    net.one("Unsqueeze", &[], &[mask, axes])
}

/// A projection of the last axis, with `W` `[outputs, inputs]`.
pub(super) fn product(
    net: &mut NetBuilder<'_>,
    x: ValueId,
    name: &str,
    sizes: LinearSizes,
    bias: bool,
) -> Result<ValueId> {
    if let Some(result) = net.held_linear(x, name, sizes, bias)? {
        return Ok(result);
    }
    let weight = net.floats(&format!("{name}.weight"), &[sizes.outputs, sizes.inputs])?;
    let turned = [("perm", AttributeValue::Ints(vec![1, 0]))];
    let weight = net.one("Transpose", &turned, &[weight])?;
    let result = net.one("MatMul", &[], &[x, weight])?;
    if !bias {
        return Ok(result);
    }
    let bias = net.floats(&format!("{name}.bias"), &[sizes.outputs])?;
    net.one("Add", &[], &[result, bias])
}

/// `[batch, length, heads · width]` as `[batch, length, heads, width]`.
pub(super) fn heads_apart(
    net: &mut NetBuilder<'_>,
    x: ValueId,
    heads: usize,
    width: usize,
) -> Result<ValueId> {
    let shape = net.constant("heads", Tensor::vector(vec![0, 0, int(heads), int(width)]));
    net.one("Reshape", &[], &[x, shape])
}

/// Attention of rows `[batch, length, heads · width]` with what is added to the scores.
pub(super) fn attention(
    net: &mut NetBuilder<'_>,
    rows: AttentionOperands,
    added: ValueId,
    heads: usize,
    width: usize,
    scale: f32,
) -> Result<ValueId> {
    let apart = AttentionOperands {
        query: heads_apart(net, rows.query, heads, width)?,
        key: heads_apart(net, rows.key, heads, width)?,
        value: heads_apart(net, rows.value, heads, width)?,
    };
    attention_of(net, apart, added, heads * width, scale)
}

/// The same of vectors `[batch, length, heads, width]`, whose results have so many columns together.
pub(super) fn attention_of(
    net: &mut NetBuilder<'_>,
    vectors: AttentionOperands,
    added: ValueId,
    columns: usize,
    scale: f32,
) -> Result<ValueId> {
    let order = || AttributeValue::Ints(vec![0, 2, 1, 3]);
    let mut attributes = vec![("scale", AttributeValue::Float(scale))];
    attributes.extend(["q_perm", "k_perm", "v_perm", "out_perm"].map(|name| (name, order())));
    let inputs = [vectors.query, vectors.key, vectors.value, added];
    let found = net.one("ai.galatea:Attention", &attributes, &inputs)?;
    let shape = net.constant("rows", Tensor::vector(vec![0, 0, int(columns)]));
    net.one("Reshape", &[], &[found, shape])
}

/// Width of a head.
pub(super) fn head_width(hidden: usize, heads: usize) -> Result<usize> {
    if hidden.is_multiple_of(heads) {
        return Ok(hidden / heads);
    }
    Err(contradiction(format!("rows of {hidden} for {heads} heads")))
}
