//! Gemma 3 (text): local and global layers in turn, norms before and behind each part.

use galatea_graph::ops::fused::FusedActivation;
use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::Tensor;

use super::built::LookUpKey;
use super::decoder::{self, rms};
use super::net::{LinearSizes, NetBuilder, int};
use super::operands::{AttentionOperands, LayerHeads, StepAngles};
use super::rope::RopeScaling;
use super::step::StepForm;
use super::{
    BuiltArchitecture, CheckpointWeights, GraphForm, ModelArchitecture, ModelShape, contradiction,
};
use crate::config::JsonConfig;
use crate::error::Result;

/// Gemma 3, also the text part of checkpoints that read pictures.
pub(super) const GEMMA3: ModelArchitecture = ModelArchitecture {
    model_types: &["gemma3_text", "gemma3"],
    shape: |config| decoder::shape(&text(config)?),
    build: |config, weights, options| {
        GemmaArchitecture::new(&text(config)?)?.graph(weights, options)
    },
};

/// Fields of a configuration about the text part, with what it need not say.
fn text(config: &JsonConfig) -> Result<JsonConfig> {
    let inner = config.object("text_config")?.unwrap_or_else(|| config.clone());
    Ok(inner
        .or("num_attention_heads", 8)
        .or("num_key_value_heads", 4)
        .or("head_dim", 256)
        .or("hidden_size", 2304)
        .or("intermediate_size", 9216)
        .or("num_hidden_layers", 26)
        .or("max_position_embeddings", 131_072)
        .or("query_pre_attn_scalar", 256)
        .or("sliding_window", 4096)
        .or("vocab_size", 262_208))
}

/// Where the weights of the text part are, in checkpoints of it alone and in older and newer ones
/// that read pictures.
const PREFIXES: &[&str] = &["model.", "language_model.model.", "model.language_model."];

struct GemmaArchitecture {
    shape: ModelShape,
    hidden: usize,
    inner: usize,
    heads: usize,
    epsilon: f64,
    scale: f32,
    /// Where the scores and the logits are kept inside; 0 is nowhere.
    softcaps: [f32; 2],
    /// How many positions each layer sees; 0 is all.
    windows: Vec<usize>,
    /// Rotations of layers with a window, and of the others.
    ropes: [RopeScaling; 2],
    tied: bool,
    bias: bool,
}

impl GemmaArchitecture {
    fn new(config: &JsonConfig) -> Result<Self> {
        let shape = decoder::shape(config)?;
        // Old configurations name another activation than the one that was trained.
        match config.text("hidden_activation")? {
            None | Some("gelu_pytorch_tanh") => {}
            Some(_) => return Err(config.unknown("hidden_activation", &["gelu_pytorch_tanh"])),
        }
        #[allow(clippy::cast_possible_truncation, reason = "attributes of FP32")]
        let softcap = |key: &str| -> Result<f32> {
            Ok(config.number(key)?.map_or(0.0, |softcap| softcap.max(0.0) as f32))
        };
        #[allow(clippy::cast_possible_truncation, reason = "an attribute of FP32")]
        let scale = config.positive_or("query_pre_attn_scalar", 256.0)?.powf(-0.5) as f32;
        Ok(Self {
            hidden: config.length("hidden_size")?,
            inner: config.length("intermediate_size")?,
            heads: config.length("num_attention_heads")?,
            epsilon: config.positive_or("rms_norm_eps", 1e-6)?,
            scale,
            softcaps: [softcap("attn_logit_softcapping")?, softcap("final_logit_softcapping")?],
            windows: windows(config, shape.layers)?,
            ropes: ropes(config, shape.head_size, shape.positions)?,
            tied: config.flag("tie_word_embeddings", true)?,
            bias: config.flag("attention_bias", false)?,
            shape,
        })
    }

    fn graph(
        &self,
        weights: &dyn CheckpointWeights,
        form: &GraphForm,
    ) -> Result<BuiltArchitecture> {
        let mut net = NetBuilder::new("gemma3", weights);
        let has = |prefix: &&&str| net.has(&format!("{prefix}embed_tokens.weight"));
        let prefix = PREFIXES.iter().find(has).copied().unwrap_or("model.");
        let step = StepForm::inputs(&mut net, &self.shape, form);
        let mut tables = Vec::new();
        for (rope, kind) in self.ropes.iter().zip(["_window", ""]) {
            let [cos, sin] = rope.tables(form.positions(&self.shape))?;
            tables.push(step.angles(&mut net, kind, cos, sin));
        }
        let shape = [self.shape.vocabulary, self.hidden];
        let words = format!("{prefix}embed_tokens.weight");
        let x = step.looked_up(&mut net, &words, shape, LookUpKey::Token)?;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a length")]
        let root = net.constant("root", Tensor::scalar((self.hidden as f64).sqrt() as f32));
        let mut x = net.one("Mul", &[], &[x, root])?;
        let mut caches = Vec::new();
        for (layer, &window) in self.windows.iter().enumerate() {
            let at = format!("{prefix}layers.{layer}");
            let angles = tables.get(usize::from(window == 0)).copied();
            let angles = angles.unwrap_or(StepAngles { cos: x, sin: x });
            let normal = self.normalised(&mut net, x, &format!("{at}.input_layernorm"))?;
            let rows = self.rows(&mut net, normal, &format!("{at}.self_attn"), &step, angles)?;
            let heads = LayerHeads {
                window,
                scale: Some(self.scale),
                softcap: self.softcaps[0],
                ..LayerHeads::new(self.heads, self.shape.kv_heads)
            };
            let (attended, kept) = step.attended(&mut net, rows, &heads, layer)?;
            caches.extend(kept);
            let columns = self.heads * self.shape.head_size;
            let sizes = LinearSizes { inputs: columns, outputs: self.hidden };
            let out = net.linear(attended, &format!("{at}.self_attn.o_proj"), sizes, self.bias)?;
            let out = self.normalised(&mut net, out, &format!("{at}.post_attention_layernorm"))?;
            x = net.one("Add", &[], &[x, out])?;
            let before = format!("{at}.pre_feedforward_layernorm");
            let normal = self.normalised(&mut net, x, &before)?;
            let inner = self.gated(&mut net, normal, &format!("{at}.mlp"))?;
            let behind = format!("{at}.post_feedforward_layernorm");
            let inner = self.normalised(&mut net, inner, &behind)?;
            x = net.one("Add", &[], &[x, inner])?;
            step.end(&mut net, x);
        }
        let wanted = step.wanted(&mut net, x)?;
        let last = self.normalised(&mut net, wanted, &format!("{prefix}norm"))?;
        let head = format!("{}lm_head", prefix.strip_suffix("model.").unwrap_or_default());
        let words = if self.tied { format!("{prefix}embed_tokens") } else { head.clone() };
        let sizes = LinearSizes { inputs: self.hidden, outputs: self.shape.vocabulary };
        let logits = step.logits(&mut net, last, &words, sizes)?;
        let capped = |part| self.capped(&mut net, part);
        let logits = logits.into_iter().map(capped).collect::<Result<Vec<_>>>()?;
        step.outputs(&mut net, &logits, caches)?;
        net.finish_step(|name| {
            let pictures = ["vision_tower.", "multi_modal_projector."];
            let own = name.strip_prefix("model.").unwrap_or(name);
            pictures.iter().any(|part| own.starts_with(part))
                || self.tied && name.strip_suffix(".weight") == Some(&head)
        })
    }

    /// Rows of a mean square of 1, times one more than the weights.
    fn normalised(&self, net: &mut NetBuilder<'_>, x: ValueId, name: &str) -> Result<ValueId> {
        let scale = one_more(net, name, self.hidden)?;
        rms(net, x, scale, self.epsilon)
    }

    /// Queries, keys and values of a layer.
    fn rows(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        at: &str,
        step: &StepForm,
        angles: StepAngles,
    ) -> Result<AttentionOperands> {
        let ModelShape { kv_heads, head_size, .. } = self.shape;
        let columns = [self.heads, kv_heads, kv_heads].map(|heads| heads * head_size);
        let names = ["q_proj", "k_proj", "v_proj"].map(|name| format!("{at}.{name}"));
        let names = [names[0].as_str(), names[1].as_str(), names[2].as_str()];
        let [query, key, value] = net.linears(x, names, self.hidden, columns, self.bias)?;
        let mut turned = |rows: ValueId, name: &str, heads: usize| -> Result<ValueId> {
            let each = net.constant("heads", Tensor::vector(vec![-1_i64, int(head_size)]));
            let vectors = net.one("Reshape", &[], &[rows, each])?;
            let scale = one_more(net, &format!("{at}.{name}_norm"), head_size)?;
            let vectors = rms(net, vectors, scale, self.epsilon)?;
            let columns = int(heads * head_size);
            let whole = net.constant("rows", Tensor::vector(vec![-1_i64, columns]));
            let rows = net.one("Reshape", &[], &[vectors, whole])?;
            step.turned(net, rows, angles, heads)
        };
        let query = turned(query, "q", self.heads)?;
        let key = turned(key, "k", kv_heads)?;
        Ok(AttentionOperands { query, key, value })
    }

    /// `down(gelu(gate(x)) · up(x))`.
    fn gated(&self, net: &mut NetBuilder<'_>, x: ValueId, at: &str) -> Result<ValueId> {
        let inward = LinearSizes { inputs: self.hidden, outputs: self.inner };
        let outward = LinearSizes { inputs: self.inner, outputs: self.hidden };
        let names = [format!("{at}.gate_proj"), format!("{at}.up_proj")];
        let [gate, up] = [names[0].as_str(), names[1].as_str()];
        if let Some(inner) = net.gated(x, gate, up, inward, FusedActivation::GeluTanh)? {
            return net.linear(inner, &format!("{at}.down_proj"), outward, false);
        }
        let gate = net.linear(x, gate, inward, false)?;
        let up = net.linear(x, up, inward, false)?;
        let tanh = [("approximate", AttributeValue::String("tanh".into()))];
        let active = net.one("Gelu", &tanh, &[gate])?;
        let inner = net.one("Mul", &[], &[active, up])?;
        net.linear(inner, &format!("{at}.down_proj"), outward, false)
    }

    /// Logits kept inside their bounds.
    fn capped(&self, net: &mut NetBuilder<'_>, logits: ValueId) -> Result<ValueId> {
        let [_, most] = self.softcaps;
        if most == 0.0 {
            return Ok(logits);
        }
        let most = net.constant("softcap", Tensor::scalar(most));
        let part = net.one("Div", &[], &[logits, most])?;
        let part = net.one("Tanh", &[], &[part])?;
        net.one("Mul", &[], &[part, most])
    }
}

fn one_more(net: &mut NetBuilder<'_>, name: &str, length: usize) -> Result<ValueId> {
    let weight = net.floats(&format!("{name}.weight"), &[length])?;
    let one = net.constant("one", Tensor::scalar(1.0_f32));
    net.one("Add", &[], &[weight, one])
}

/// The window of each layer: `layer_types` names those that have one, or all but every `n`th do.
fn windows(config: &JsonConfig, layers: usize) -> Result<Vec<usize>> {
    let window = config.length("sliding_window")?;
    let types = config.texts("layer_types")?;
    if let Some(types) = &types
        && types.len() != layers
    {
        return Err(contradiction(format!("layer_types of {} for {layers} layers", types.len())));
    }
    let pattern = match config.optional_length("sliding_window_pattern")? {
        Some(pattern) => pattern,
        None => config.optional_length("_sliding_window_pattern")?.unwrap_or(6),
    };
    let slides = |layer: usize| match &types {
        Some(types) => types.get(layer) == Some(&"sliding_attention"),
        None => !(layer + 1).is_multiple_of(pattern),
    };
    Ok((0..layers).map(|layer| if slides(layer) { window } else { 0 }).collect())
}

/// Rotations of layers with a window, and of the others.
fn ropes(config: &JsonConfig, width: usize, positions: usize) -> Result<[RopeScaling; 2]> {
    let newer = config.object("rope_parameters")?;
    let rope =
        |layers: &str, key: &str, base: f64, older: Option<JsonConfig>| -> Result<RopeScaling> {
            let own = match &newer {
                Some(newer) => newer.object(layers)?,
                None => older,
            };
            let base = config.positive_or(key, base)?;
            let Some(own) = own else { return Ok(RopeScaling::plain(base, width)) };
            let base = own.positive_or("rope_theta", base)?;
            RopeScaling::variant(config, &own, base, width, positions)
        };
    let local = rope("sliding_attention", "rope_local_base_freq", 10_000.0, None)?;
    let older = config.object("rope_scaling")?;
    Ok([local, rope("full_attention", "rope_theta", 1_000_000.0, older)?])
}
