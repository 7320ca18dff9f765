//! The decoder that the LLaMA family shares: attention and a gated network whose rows are normalised, positions
//! as rotations.

use galatea_graph::ops::fused::FusedActivation;
use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::Tensor;

use super::built::LookUpKey;
use super::net::{LinearSizes, NetBuilder, int};
use super::operands::{AttentionOperands, LayerHeads, StepAngles};
use super::rope::RopeScaling;
use super::step::StepForm;
use super::{BuiltArchitecture, CheckpointWeights, GraphForm, ModelShape, contradiction, layers};
use crate::config::JsonConfig;
use crate::error::Result;

/// Vectors that queries and keys are normalised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryKeyNorm {
    /// They are not normalised.
    Absent,
    /// Every head by itself, with the same weights.
    Heads,
    /// All heads of a row together.
    Rows,
}

/// Places of the norms of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NormPlacement {
    /// Before attention and before the gated network.
    Before,
    /// Behind them, before their results are added to the rows.
    Behind,
}

/// Differences between the family's members.
#[derive(Clone, Debug)]
pub(super) struct DecoderTraits {
    pub(super) shape: ModelShape,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    /// Length of the gated network's inside.
    pub(super) inner: usize,
    pub(super) epsilon: f64,
    pub(super) rope: RopeScaling,
    /// Whether the logits' weights are those of the tokens.
    pub(super) tied: bool,
    /// Whether the projections to queries, keys and values have biases, and the one behind attention.
    pub(super) biases: [bool; 2],
    /// Whether the gated network has biases.
    pub(super) inner_bias: bool,
    pub(super) query_key_norm: QueryKeyNorm,
    pub(super) norms: NormPlacement,
    /// How many positions each layer sees; 0 is all.
    pub(super) windows: Vec<usize>,
}

impl DecoderTraits {
    /// Common fields of the members' configurations.
    ///
    /// # Errors
    /// When something is missing or does not fit.
    pub(super) fn new(config: &JsonConfig) -> Result<Self> {
        let shape = shape(config)?;
        let hidden = config.length("hidden_size")?;
        let heads = config.length("num_attention_heads")?;
        match config.text("hidden_act")? {
            None | Some("silu" | "swish") => {}
            Some(_) => return Err(config.unknown("hidden_act", &["silu"])),
        }
        let rope = RopeScaling::new(config, shape.head_size, shape.positions)?;
        Ok(Self {
            hidden,
            heads,
            inner: config.length("intermediate_size")?,
            epsilon: config.positive_or("rms_norm_eps", 1e-6)?,
            rope,
            tied: config.flag("tie_word_embeddings", false)?,
            biases: [false; 2],
            inner_bias: false,
            query_key_norm: QueryKeyNorm::Absent,
            norms: NormPlacement::Before,
            windows: vec![0; shape.layers],
            shape,
        })
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// When weights are missing, have another shape or are not known.
    pub(super) fn graph(
        &self,
        name: &str,
        weights: &dyn CheckpointWeights,
        form: &GraphForm,
    ) -> Result<BuiltArchitecture> {
        let mut net = NetBuilder::new(name, weights);
        let step = StepForm::inputs(&mut net, &self.shape, form);
        let [cos, sin] = self.rope.tables(form.positions(&self.shape))?;
        let angles = step.angles(&mut net, "", cos, sin);
        let shape = [self.shape.vocabulary, self.hidden];
        let mut x =
            step.looked_up(&mut net, "model.embed_tokens.weight", shape, LookUpKey::Token)?;
        let mut caches = Vec::new();
        for layer in 0..self.shape.layers {
            let at = format!("model.layers.{layer}");
            let [around_attention, around_inner] = match self.norms {
                NormPlacement::Before => ["input_layernorm", "post_attention_layernorm"],
                NormPlacement::Behind => ["post_attention_layernorm", "post_feedforward_layernorm"],
            }
            .map(|name| format!("{at}.{name}"));
            let rows = self.normalised_at(&mut net, x, &around_attention, NormPlacement::Before)?;
            let (attended, kept) = self.attention(&mut net, rows, &step, angles, layer)?;
            caches.extend(kept);
            let attended =
                self.normalised_at(&mut net, attended, &around_attention, NormPlacement::Behind)?;
            x = net.one("Add", &[], &[x, attended])?;
            let rows = self.normalised_at(&mut net, x, &around_inner, NormPlacement::Before)?;
            let inner = self.gated(&mut net, rows, &format!("{at}.mlp"))?;
            let inner =
                self.normalised_at(&mut net, inner, &around_inner, NormPlacement::Behind)?;
            x = net.one("Add", &[], &[x, inner])?;
            step.end(&mut net, x);
        }
        let wanted = step.wanted(&mut net, x)?;
        let last = self.normalised(&mut net, wanted, "model.norm")?;
        let words = if self.tied { "model.embed_tokens" } else { "lm_head" };
        let sizes = LinearSizes { inputs: self.hidden, outputs: self.shape.vocabulary };
        let logits = step.logits(&mut net, last, words, sizes)?;
        step.outputs(&mut net, &logits, caches)?;
        // Some checkpoints keep tables, and tied weights a second time.
        net.finish_step(|name| {
            name.ends_with("rotary_emb.inv_freq") || self.tied && name == "lm_head.weight"
        })
    }

    fn normalised(&self, net: &mut NetBuilder<'_>, x: ValueId, name: &str) -> Result<ValueId> {
        let scale = net.floats(&format!("{name}.weight"), &[self.hidden])?;
        rms(net, x, scale, self.epsilon)
    }

    /// Rows normalised where the layer has its norms at this place, else as they are.
    fn normalised_at(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        name: &str,
        place: NormPlacement,
    ) -> Result<ValueId> {
        if place == self.norms { self.normalised(net, x, name) } else { Ok(x) }
    }

    fn attention(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        step: &StepForm,
        angles: StepAngles,
        layer: usize,
    ) -> Result<(ValueId, Vec<ValueId>)> {
        let at = format!("model.layers.{layer}.self_attn");
        let ModelShape { kv_heads, head_size, .. } = self.shape;
        let [bias, last_bias] = self.biases;
        let columns = [self.heads, kv_heads, kv_heads].map(|heads| heads * head_size);
        let names = ["q_proj", "k_proj", "v_proj"].map(|name| format!("{at}.{name}"));
        let names = [names[0].as_str(), names[1].as_str(), names[2].as_str()];
        let [mut query, mut key, value] = net.linears(x, names, self.hidden, columns, bias)?;
        query = self.vectors_normalised(net, query, &format!("{at}.q_norm"), columns[0])?;
        key = self.vectors_normalised(net, key, &format!("{at}.k_norm"), columns[1])?;
        query = step.turned(net, query, angles, self.heads)?;
        key = step.turned(net, key, angles, kv_heads)?;
        let window = self.windows.get(layer).copied().unwrap_or(0);
        let heads = LayerHeads { window, ..LayerHeads::new(self.heads, kv_heads) };
        let operands = AttentionOperands { query, key, value };
        let (attended, caches) = step.attended(net, operands, &heads, layer)?;
        let sizes = LinearSizes { inputs: columns[0], outputs: self.hidden };
        Ok((net.linear(attended, &format!("{at}.o_proj"), sizes, last_bias)?, caches))
    }

    /// Queries or keys, normalised as [`QueryKeyNorm`] says.
    fn vectors_normalised(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        name: &str,
        columns: usize,
    ) -> Result<ValueId> {
        let width = match self.query_key_norm {
            QueryKeyNorm::Absent => return Ok(x),
            QueryKeyNorm::Heads => self.shape.head_size,
            QueryKeyNorm::Rows => columns,
        };
        let scale = net.floats(&format!("{name}.weight"), &[width])?;
        if width == columns {
            return rms(net, x, scale, self.epsilon);
        }
        let heads = net.constant("heads", Tensor::vector(vec![-1_i64, int(width)]));
        let rows = net.constant("rows", Tensor::vector(vec![-1_i64, int(columns)]));
        let vectors = net.one("Reshape", &[], &[x, heads])?;
        let normal = rms(net, vectors, scale, self.epsilon)?;
        net.one("Reshape", &[], &[normal, rows])
    }

    /// `down(silu(gate(x)) · up(x))`.
    fn gated(&self, net: &mut NetBuilder<'_>, x: ValueId, at: &str) -> Result<ValueId> {
        let inward = LinearSizes { inputs: self.hidden, outputs: self.inner };
        let outward = LinearSizes { inputs: self.inner, outputs: self.hidden };
        let names = [format!("{at}.gate_proj"), format!("{at}.up_proj")];
        let [gate, up] = [names[0].as_str(), names[1].as_str()];
        if !self.inner_bias
            && let Some(inner) = net.gated(x, gate, up, inward, FusedActivation::Silu)?
        {
            return net.linear(inner, &format!("{at}.down_proj"), outward, false);
        }
        let gate = net.linear(x, gate, inward, self.inner_bias)?;
        let up = net.linear(x, up, inward, self.inner_bias)?;
        let sigmoid = net.one("Sigmoid", &[], &[gate])?;
        let active = net.one("Mul", &[], &[gate, sigmoid])?;
        let inner = net.one("Mul", &[], &[active, up])?;
        net.linear(inner, &format!("{at}.down_proj"), outward, self.inner_bias)
    }
}

/// The longest head; no model comes near it.
const MAX_HEAD_SIZE: usize = 1 << 16;

/// The family's sizes.
///
/// # Errors
/// When something is missing or does not fit.
pub(super) fn shape(config: &JsonConfig) -> Result<ModelShape> {
    let heads = config.length("num_attention_heads")?;
    let kv_heads = config.optional_length("num_key_value_heads")?.unwrap_or(heads);
    let hidden = config.length("hidden_size")?;
    let head_size = match config.optional_length("head_dim")? {
        Some(size) => size,
        None if hidden.is_multiple_of(heads) => hidden / heads,
        None => {
            return Err(contradiction(format!("hidden_size {hidden} for {heads} heads")));
        }
    };
    let sound = head_size.is_multiple_of(2) && head_size <= MAX_HEAD_SIZE;
    if !heads.is_multiple_of(kv_heads) || !sound {
        let text = format!("{heads} heads of {head_size} share {kv_heads} heads of keys");
        return Err(contradiction(text));
    }
    Ok(ModelShape {
        layers: layers(config, "num_hidden_layers")?,
        kv_heads,
        head_size,
        vocabulary: config.length("vocab_size")?,
        positions: config.length("max_position_embeddings")?,
    })
}

/// Rows divided by the root of their mean square.
pub(super) fn rms(
    net: &mut NetBuilder<'_>,
    x: ValueId,
    scale: ValueId,
    epsilon: f64,
) -> Result<ValueId> {
    #[allow(clippy::cast_possible_truncation, reason = "an attribute of FP32")]
    let epsilon = ("epsilon", AttributeValue::Float(epsilon as f32));
    net.one("RMSNormalization", &[epsilon], &[x, scale])
}
