//! T5 and Flan-T5: an encoder and a decoder that attends to its rows, with positions as what is added
//! to scores by distance.
//!
//! The encoder's graph takes `tokens` `[batch, length]`, their `positions` `[length]` and `mask` `[batch,
//! length]` of FP32, 0 where a token is and −∞ where a text has ended. It gives `rows` `[batch, length,
//! model]`, and for each layer of the decoder `cross_key.N` and `cross_value.N` `[batch, length, heads,
//! width]`. The decoder's takes `tokens` `[batch, new]`, their `positions` `[batch, new]`, `keys` `[batch,
//! total]`, the positions of all tokens so far (places that hold nothing have one behind all others), the
//! encoder's `mask`, and for each layer `cross_key.N`, `cross_value.N`, and `key.N` and `value.N` `[batch,
//! past, heads, width]`. It gives `logits` `[batch, new, vocabulary]`, and the new keys and values
//! `[batch, new, heads, width]`, in the order of the inputs.
//!
//! Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", arXiv 1910.10683; gates:
//! Shazeer 2020, arXiv 2002.05202.

use galatea_graph::{AttributeValue, Dim, Graph, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::decoder::rms;
use super::encoder::{attention_of, heads_apart, key_mask, per_token, product};
use super::net::{LinearSizes, NetBuilder, int};
use super::operands::AttentionOperands;
use super::{CheckpointWeights, contradiction};
use crate::config::JsonConfig;
use crate::error::Result;

/// The sizes of an encoder and its decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncoderDecoderShape {
    /// Layers of the decoder, each with two caches.
    pub layers: usize,
    /// Heads of queries, keys and values.
    pub heads: usize,
    /// Length of a key and of a value.
    pub head_size: usize,
    /// Tokens that exist.
    pub vocabulary: usize,
    /// The token that answers begin with, which is no part of them.
    pub start: u32,
}

/// A checkpoint of T5.
#[derive(Debug)]
pub struct T5Architecture {
    shape: EncoderDecoderShape,
    /// Layers of the encoder.
    layers: usize,
    model: usize,
    inner: usize,
    buckets: usize,
    distance: usize,
    epsilon: f64,
    /// Operator and form of the activation.
    activation: (&'static str, &'static str),
    gated: bool,
    /// Factor on the rows that logits are made of.
    factor: f32,
}

/// Values of `model_type` that are T5.
pub const T5_TYPES: &[&str] = &["t5", "mt5"];

/// Kinds of networks: activations, and whether there is a gate.
const NETWORKS: &[(&str, (&str, &str), bool)] = &[
    ("relu", ("Relu", ""), false),
    ("gated-gelu", ("Gelu", "tanh"), true),
    ("gated-relu", ("Relu", ""), true),
];

impl T5Architecture {
    /// Fields of a configuration.
    ///
    /// # Errors
    /// When it is of another architecture, lacks something or contradicts itself.
    pub fn new(config: &JsonConfig) -> Result<Self> {
        if !config.text("model_type")?.is_some_and(|name| T5_TYPES.contains(&name)) {
            return Err(config.unknown("model_type", T5_TYPES));
        }
        let kinds: Vec<&str> = NETWORKS.iter().map(|(name, ..)| *name).collect();
        let wanted = config.text("feed_forward_proj")?.unwrap_or("relu");
        let network = NETWORKS.iter().find(|(name, ..)| *name == wanted);
        let &(_, activation, gated) =
            network.ok_or_else(|| config.unknown("feed_forward_proj", &kinds))?;
        let model = config.length("d_model")?;
        let layers = super::layers(config, "num_layers")?;
        let written = match config.optional_length("num_decoder_layers")? {
            Some(_) => super::layers(config, "num_decoder_layers")?,
            None => layers,
        };
        let start = config.number("decoder_start_token_id")?.unwrap_or(0.0);
        let vocabulary = config.length("vocab_size")?;
        #[allow(clippy::cast_precision_loss, reason = "compared with a token")]
        if !(0.0..vocabulary as f64).contains(&start) || start.fract() != 0.0 {
            return Err(config.unknown("decoder_start_token_id", &["a token"]));
        }
        let buckets = config.optional_length("relative_attention_num_buckets")?.unwrap_or(32);
        let distance = config.optional_length("relative_attention_max_distance")?.unwrap_or(128);
        if buckets < 4 || !buckets.is_multiple_of(2) || distance <= buckets / 2 {
            let text = format!("{buckets} buckets for distances up to {distance}");
            return Err(contradiction(text));
        }
        if distance > 1 << 20 {
            return Err(contradiction(format!("distances up to {distance}")));
        }
        // Files of older releases say it by whether tokens and logits share weights.
        let tied = config.flag("tie_word_embeddings", true)?;
        let scaled = config.flag("scale_decoder_outputs", tied)?;
        #[allow(clippy::cast_precision_loss, reason = "the length of a row")]
        let factor = if scaled { (model as f32).sqrt().recip() } else { 1.0 };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let start = start as u32;
        Ok(Self {
            shape: EncoderDecoderShape {
                layers: written,
                heads: config.length("num_heads")?,
                head_size: config.length("d_kv")?,
                vocabulary,
                start,
            },
            layers,
            model,
            inner: config.length("d_ff")?,
            buckets,
            distance,
            epsilon: config.positive_or("layer_norm_epsilon", 1e-6)?,
            activation,
            gated,
            factor,
        })
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &EncoderDecoderShape {
        &self.shape
    }

    /// The encoder's graph.
    ///
    /// # Errors
    /// When weights are missing, have another shape or are not known.
    pub fn encoder(&self, weights: &dyn CheckpointWeights) -> Result<Graph> {
        let mut net = NetBuilder::new("t5-encoder", weights);
        let tokens = per_token(&mut net, "tokens", DataType::Int64);
        let positions = net.input("positions", DataType::Int64, &[Dim::symbol("length")]);
        let mask = per_token(&mut net, "mask", DataType::Fp32);
        let mask = key_mask(&mut net, mask)?;
        let bias = self.bias(&mut net, "encoder", positions, positions)?;
        let added = net.one("Add", &[], &[bias, mask])?;
        let mut x = self.embedded(&mut net, tokens)?;
        for layer in 0..self.layers {
            let at = format!("encoder.block.{layer}.layer");
            let normal = self.normalised(&mut net, x, &format!("{at}.0.layer_norm"))?;
            let own = format!("{at}.0.SelfAttention");
            let [query, key, value] =
                ["q", "k", "v"].map(|part| self.heads(&mut net, normal, &own, part));
            let heads = AttentionOperands { query: query?, key: key?, value: value? };
            let out = self.attended(&mut net, heads, added, &own)?;
            x = net.one("Add", &[], &[x, out])?;
            x = self.network(&mut net, x, &format!("{at}.1"))?;
        }
        let rows = self.normalised(&mut net, x, "encoder.final_layer_norm")?;
        net.output("rows", rows)?;
        for layer in 0..self.shape.layers {
            let at = format!("decoder.block.{layer}.layer.1.EncDecAttention");
            for (part, kind) in [("k", "key"), ("v", "value")] {
                let heads = self.heads(&mut net, rows, &at, part)?;
                net.output(&format!("cross_{kind}.{layer}"), heads)?;
            }
        }
        net.finish(|name| name.starts_with("decoder.") || is_words(name))
    }

    /// The decoder's graph.
    ///
    /// # Errors
    /// Fails like [`Self::encoder`].
    pub fn decoder(&self, weights: &dyn CheckpointWeights) -> Result<Graph> {
        let mut net = NetBuilder::new("t5-decoder", weights);
        let [batch, new, source] = ["batch", "new", "source"].map(Dim::symbol);
        let tokens = net.input("tokens", DataType::Int64, &[batch.clone(), new.clone()]);
        let positions = net.input("positions", DataType::Int64, &[batch.clone(), new]);
        let keys = net.input("keys", DataType::Int64, &[batch.clone(), Dim::symbol("total")]);
        let mask = net.input("mask", DataType::Fp32, &[batch, source]);
        let mut caches = Vec::new();
        for layer in 0..self.shape.layers {
            caches.push(self.layer_inputs(&mut net, layer));
        }
        let mask = key_mask(&mut net, mask)?;
        let bias = self.bias(&mut net, "decoder", positions, keys)?;
        let mut x = self.embedded(&mut net, tokens)?;
        let mut after = Vec::new();
        for (layer, [cross_key, cross_value, past_key, past_value]) in
            caches.into_iter().enumerate()
        {
            let at = format!("decoder.block.{layer}.layer");
            let normal = self.normalised(&mut net, x, &format!("{at}.0.layer_norm"))?;
            let own = format!("{at}.0.SelfAttention");
            let query = self.heads(&mut net, normal, &own, "q")?;
            let new_key = self.heads(&mut net, normal, &own, "k")?;
            let new_value = self.heads(&mut net, normal, &own, "v")?;
            after.extend([("key", layer, new_key), ("value", layer, new_value)]);
            let axis = [("axis", AttributeValue::Int(1))];
            let key = net.one("Concat", &axis, &[past_key, new_key])?;
            let value = net.one("Concat", &axis, &[past_value, new_value])?;
            let heads = AttentionOperands { query, key, value };
            let out = self.attended(&mut net, heads, bias, &own)?;
            x = net.one("Add", &[], &[x, out])?;
            let normal = self.normalised(&mut net, x, &format!("{at}.1.layer_norm"))?;
            let cross = format!("{at}.1.EncDecAttention");
            let query = self.heads(&mut net, normal, &cross, "q")?;
            let heads = AttentionOperands { query, key: cross_key, value: cross_value };
            let out = self.attended(&mut net, heads, mask, &cross)?;
            x = net.one("Add", &[], &[x, out])?;
            x = self.network(&mut net, x, &format!("{at}.2"))?;
        }
        let last = self.normalised(&mut net, x, "decoder.final_layer_norm")?;
        let factor = net.constant("factor", Tensor::scalar(self.factor));
        let last = net.one("Mul", &[], &[last, factor])?;
        let words = if net.has("lm_head.weight") { "lm_head" } else { "shared" };
        let sizes = LinearSizes { inputs: self.model, outputs: self.shape.vocabulary };
        let logits = product(&mut net, last, words, sizes, false)?;
        net.output("logits", logits)?;
        for (kind, layer, value) in after {
            net.output(&format!("{kind}.{layer}.new"), value)?;
        }
        net.finish(|name| {
            let cross = name.contains(".EncDecAttention.");
            // An old file has a table of distances that the model never read.
            let encoders = cross
                && [".k.weight", ".v.weight", ".relative_attention_bias.weight"]
                    .iter()
                    .any(|end| name.ends_with(end));
            name.starts_with("encoder.") || encoders || is_words(name)
        })
    }

    /// Keys and values of the source and of the tokens so far.
    fn layer_inputs(&self, net: &mut NetBuilder<'_>, layer: usize) -> [ValueId; 4] {
        let mut input = |kind: &str, length: &str| {
            let [heads, width] = [self.shape.heads, self.shape.head_size].map(Dim::Known);
            let dims = [Dim::symbol("batch"), Dim::symbol(length), heads, width];
            net.input(&format!("{kind}.{layer}"), DataType::Fp32, &dims)
        };
        [
            input("cross_key", "source"),
            input("cross_value", "source"),
            input("key", "past"),
            input("value", "past"),
        ]
    }

    fn embedded(&self, net: &mut NetBuilder<'_>, tokens: ValueId) -> Result<ValueId> {
        net.rows_of("shared.weight", [self.shape.vocabulary, self.model], tokens)
    }

    fn normalised(&self, net: &mut NetBuilder<'_>, x: ValueId, name: &str) -> Result<ValueId> {
        let scale = net.floats(&format!("{name}.weight"), &[self.model])?;
        rms(net, x, scale, self.epsilon)
    }

    /// Vectors of heads `[batch, length, heads, width]`.
    fn heads(&self, net: &mut NetBuilder<'_>, x: ValueId, at: &str, part: &str) -> Result<ValueId> {
        let EncoderDecoderShape { heads, head_size, .. } = self.shape;
        let sizes = LinearSizes { inputs: self.model, outputs: heads * head_size };
        let rows = product(net, x, &format!("{at}.{part}"), sizes, false)?;
        heads_apart(net, rows, heads, head_size)
    }

    fn attended(
        &self,
        net: &mut NetBuilder<'_>,
        heads: AttentionOperands,
        added: ValueId,
        at: &str,
    ) -> Result<ValueId> {
        let columns = self.shape.heads * self.shape.head_size;
        let rows = attention_of(net, heads, added, columns, 1.0)?;
        let sizes = LinearSizes { inputs: columns, outputs: self.model };
        product(net, rows, &format!("{at}.o"), sizes, false)
    }

    /// `x + out(activation(in(norm(x))))`, with a gate in some releases.
    fn network(&self, net: &mut NetBuilder<'_>, x: ValueId, at: &str) -> Result<ValueId> {
        let normal = self.normalised(net, x, &format!("{at}.layer_norm"))?;
        let at = format!("{at}.DenseReluDense");
        let sizes = LinearSizes { inputs: self.model, outputs: self.inner };
        let first = if self.gated { "wi_0" } else { "wi" };
        let inner = product(net, normal, &format!("{at}.{first}"), sizes, false)?;
        let (op, form) = self.activation;
        let form = ("approximate", AttributeValue::String(form.into()));
        let attributes = if op == "Gelu" { vec![form] } else { Vec::new() };
        let mut inner = net.one(op, &attributes, &[inner])?;
        if self.gated {
            let up = product(net, normal, &format!("{at}.wi_1"), sizes, false)?;
            inner = net.one("Mul", &[], &[inner, up])?;
        }
        let sizes = LinearSizes { inputs: self.inner, outputs: self.model };
        let out = product(net, inner, &format!("{at}.wo"), sizes, false)?;
        net.one("Add", &[], &[x, out])
    }

    /// Bias that is added to scores: `[heads, queries, keys]`, of a decoder `[batch, heads, queries, keys]`
    /// with −∞ where a query would see a later key.
    fn bias(
        &self,
        net: &mut NetBuilder<'_>,
        stack: &str,
        queries: ValueId,
        keys: ValueId,
    ) -> Result<ValueId> {
        let both = stack == "encoder";
        let name = format!("{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
        let table = net.floats(&name, &[self.buckets, self.shape.heads])?;
        // A row for every distance from −distance up to distance; farther ones are alike.
        let most = int(self.distance);
        let buckets: Vec<i64> = (-most..=most).map(|at| self.bucket(at, both)).collect();
        let buckets = net.constant("buckets", Tensor::vector(buckets));
        let mut table = net.one("Gather", &[], &[table, buckets])?;
        if !both {
            let hidden = |at: i64| if at > 0 { f32::NEG_INFINITY } else { 0.0 };
            let hidden: Vec<f32> = (-most..=most).map(hidden).collect();
            let hidden = Tensor::from_vec(&[hidden.len(), 1], hidden)
                .map_err(|error| contradiction(error.to_string()))?;
            let hidden = net.constant("later", hidden);
            table = net.one("Add", &[], &[table, hidden])?;
        }
        // Behind the batch, where there is one.
        let before = i64::from(!both);
        let [first, second] =
            [before, before + 1].map(|axis| net.constant("axis", Tensor::vector(vec![axis])));
        let keys = net.one("Unsqueeze", &[], &[keys, first])?;
        let queries = net.one("Unsqueeze", &[], &[queries, second])?;
        let distance = net.one("Sub", &[], &[keys, queries])?;
        let [least, most] = [-most, most].map(|bound| net.constant("bound", Tensor::scalar(bound)));
        let distance = net.one("Clip", &[], &[distance, least, most])?;
        let row = net.one("Add", &[], &[distance, most])?;
        let bias = net.one("Gather", &[], &[table, row])?;
        let order = if both { vec![2, 0, 1] } else { vec![0, 3, 1, 2] };
        net.one("Transpose", &[("perm", AttributeValue::Ints(order))], &[bias])
    }

    /// The bucket of a distance: small ones have their own, larger ones share more and more.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "as the reference library rounds"
    )]
    fn bucket(&self, distance: i64, both: bool) -> i64 {
        let half = if both { self.buckets / 2 } else { self.buckets };
        let base = if both && distance > 0 { int(half) } else { 0 };
        let far = if both { distance.abs() } else { (-distance).max(0) };
        let exact = half / 2;
        if far < int(exact) {
            return base + far;
        }
        let span = (self.distance as f64 / exact as f64).ln() as f32;
        let share = (far as f32 / exact as f32).ln() / span * (half - exact) as f32;
        base + (int(exact) + share as i64).min(int(half) - 1)
    }
}

/// Whether a weight is a table of tokens, which some files have several times.
fn is_words(name: &str) -> bool {
    matches!(
        name,
        "shared.weight"
            | "lm_head.weight"
            | "encoder.embed_tokens.weight"
            | "decoder.embed_tokens.weight"
    )
}
