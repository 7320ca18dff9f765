//! GPT-2: learned positions, layer normalisation, weights `[inputs, outputs]`.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::Tensor;

use super::built::LookUpKey;
use super::net::{LinearSizes, NetBuilder, int};
use super::operands::{AttentionOperands, LayerHeads};
use super::step::StepForm;
use super::{
    BuiltArchitecture, CheckpointWeights, GraphForm, ModelArchitecture, ModelShape, contradiction,
    layers,
};
use crate::config::JsonConfig;
use crate::error::Result;

/// GPT-2.
pub(super) const GPT2: ModelArchitecture =
    ModelArchitecture { model_types: &["gpt2"], shape, build };

fn shape(config: &JsonConfig) -> Result<ModelShape> {
    let hidden = config.length("n_embd")?;
    let heads = config.length("n_head")?;
    if !hidden.is_multiple_of(heads) {
        return Err(contradiction(format!("n_embd {hidden} for {heads} heads")));
    }
    Ok(ModelShape {
        layers: layers(config, "n_layer")?,
        kv_heads: heads,
        head_size: hidden / heads,
        vocabulary: config.length("vocab_size")?,
        positions: config.length("n_positions")?,
    })
}

/// A checkpoint's sizes and how it names its weights.
struct Gpt2Architecture<'w> {
    net: NetBuilder<'w>,
    prefix: &'static str,
    hidden: usize,
    epsilon: f32,
}

fn build(
    config: &JsonConfig,
    weights: &dyn CheckpointWeights,
    form: &GraphForm,
) -> Result<BuiltArchitecture> {
    let shape = shape(config)?;
    let hidden = config.length("n_embd")?;
    let inner = config.optional_length("n_inner")?.unwrap_or(4 * hidden);
    match config.text("activation_function")? {
        None | Some("gelu_new" | "gelu_pytorch_tanh") => {}
        Some(_) => return Err(config.unknown("activation_function", &["gelu_new"])),
    }
    let mut net = NetBuilder::new("gpt2", weights);
    let step = StepForm::inputs(&mut net, &shape, form);
    // The bare model's checkpoints name their weights without a prefix.
    let prefix = if net.has("transformer.wte.weight") { "transformer." } else { "" };
    #[allow(clippy::cast_possible_truncation, reason = "an attribute of FP32")]
    let epsilon = config.positive_or("layer_norm_epsilon", 1e-5)? as f32;
    let mut model = Gpt2Architecture { net, prefix, hidden, epsilon };
    let net = &mut model.net;
    let words = [shape.vocabulary, hidden];
    let word = step.looked_up(net, &format!("{prefix}wte.weight"), words, LookUpKey::Token)?;
    let places = [shape.positions, hidden];
    let place = step.looked_up(net, &format!("{prefix}wpe.weight"), places, LookUpKey::Position)?;
    let mut x = net.one("Add", &[], &[word, place])?;
    let mut caches = Vec::new();
    for layer in 0..shape.layers {
        let at = format!("h.{layer}");
        let normal = model.normalised(x, &format!("{at}.ln_1"))?;
        let sizes = LinearSizes { inputs: hidden, outputs: 3 * hidden };
        let joined = model.linear(normal, &format!("{at}.attn.c_attn"), sizes)?;
        let lengths = model.net.constant("lengths", Tensor::vector(vec![int(hidden); 3]));
        let axis = [("axis", AttributeValue::Int(1))];
        let [query, key, value] = model.net.several("Split", &axis, &[joined, lengths])?;
        let operands = AttentionOperands { query, key, value };
        let heads = LayerHeads::new(shape.kv_heads, shape.kv_heads);
        let (attended, kept) = step.attended(&mut model.net, operands, &heads, layer)?;
        caches.extend(kept);
        let sizes = LinearSizes::square(hidden);
        let attended = model.linear(attended, &format!("{at}.attn.c_proj"), sizes)?;
        x = model.net.one("Add", &[], &[x, attended])?;
        let normal = model.normalised(x, &format!("{at}.ln_2"))?;
        let sizes = LinearSizes { inputs: hidden, outputs: inner };
        let inside = model.linear(normal, &format!("{at}.mlp.c_fc"), sizes)?;
        let tanh = [("approximate", AttributeValue::String("tanh".into()))];
        let active = model.net.one("Gelu", &tanh, &[inside])?;
        let sizes = LinearSizes { inputs: inner, outputs: hidden };
        let outside = model.linear(active, &format!("{at}.mlp.c_proj"), sizes)?;
        x = model.net.one("Add", &[], &[x, outside])?;
        step.end(&mut model.net, x);
    }
    let wanted = step.wanted(&mut model.net, x)?;
    let last = model.normalised(wanted, "ln_f")?;
    let sizes = LinearSizes { inputs: hidden, outputs: shape.vocabulary };
    let logits = step.logits(&mut model.net, last, &format!("{prefix}wte"), sizes)?;
    step.outputs(&mut model.net, &logits, caches)?;
    // Old checkpoints keep the masks of their attention.
    model.net.finish_step(|name| {
        name == "lm_head.weight"
            || name.ends_with(".attn.bias")
            || name.ends_with(".attn.masked_bias")
    })
}

impl Gpt2Architecture<'_> {
    fn floats(&mut self, name: &str, shape: &[usize]) -> Result<ValueId> {
        self.net.floats(&format!("{}{name}", self.prefix), shape)
    }

    fn normalised(&mut self, x: ValueId, name: &str) -> Result<ValueId> {
        let scale = self.floats(&format!("{name}.weight"), &[self.hidden])?;
        let bias = self.floats(&format!("{name}.bias"), &[self.hidden])?;
        let epsilon = ("epsilon", AttributeValue::Float(self.epsilon));
        self.net.one("LayerNormalization", &[epsilon], &[x, scale, bias])
    }

    fn linear(&mut self, x: ValueId, name: &str, sizes: LinearSizes) -> Result<ValueId> {
        self.net.turned_linear(x, &format!("{}{name}", self.prefix), sizes)
    }
}
