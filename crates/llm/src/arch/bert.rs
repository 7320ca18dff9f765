//! BERT, RoBERTa and DistilBERT: rows normalised behind attention and behind a network.

use galatea_graph::{AttributeValue, Graph, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::CheckpointWeights;
use super::encoder::{
    EncoderArchitecture, EncoderShape, attention, head_width, key_mask, per_token, product,
};
use super::net::{LinearSizes, NetBuilder};
use super::operands::AttentionOperands;
use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};

/// BERT, also what MiniLM, BGE, E5 and GTE are.
pub(super) const BERT: EncoderArchitecture = EncoderArchitecture {
    model_types: &["bert"],
    shape: |config, weights| Ok(BertArchitecture::new(config, weights, &BERT_NAMES)?.shape),
    build: |config, weights| BertArchitecture::new(config, weights, &BERT_NAMES)?.graph(weights),
};

/// RoBERTa, whose positions begin behind the number of the padding token.
pub(super) const ROBERTA: EncoderArchitecture = EncoderArchitecture {
    model_types: &["roberta", "xlm-roberta", "camembert"],
    shape: |config, weights| Ok(BertArchitecture::new(config, weights, &ROBERTA_NAMES)?.shape),
    build: |config, weights| BertArchitecture::new(config, weights, &ROBERTA_NAMES)?.graph(weights),
};

/// DistilBERT, which has no types of tokens.
pub(super) const DISTILBERT: EncoderArchitecture = EncoderArchitecture {
    model_types: &["distilbert"],
    shape: |config, weights| {
        Ok(BertArchitecture::new(&renamed(config)?, weights, &DISTIL_NAMES)?.shape)
    },
    build: |config, weights| {
        BertArchitecture::new(&renamed(config)?, weights, &DISTIL_NAMES)?.graph(weights)
    },
};

/// Names of the parts of a checkpoint.
struct BertNames {
    /// In front of all but a classifier's own parts; files of the bare model leave it out.
    prefix: &'static str,
    layer: &'static str,
    /// Projections to queries, keys and values, and the one behind attention.
    attention: [&'static str; 4],
    /// Projections into the network and out of it.
    network: [&'static str; 2],
    /// Norms behind attention and behind the network.
    norms: [&'static str; 2],
    /// A classifier's first projection, its activation, and its second projection.
    classifier: [&'static str; 3],
    /// Whether positions begin behind the number of the padding token.
    after_padding: bool,
}

const BERT_NAMES: BertNames = BertNames {
    prefix: "bert.",
    layer: "encoder.layer",
    attention: [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
    ],
    network: ["intermediate.dense", "output.dense"],
    norms: ["attention.output.LayerNorm", "output.LayerNorm"],
    classifier: ["bert.pooler.dense", "Tanh", "classifier"],
    after_padding: false,
};

const ROBERTA_NAMES: BertNames = BertNames {
    prefix: "roberta.",
    classifier: ["classifier.dense", "Tanh", "classifier.out_proj"],
    after_padding: true,
    ..BERT_NAMES
};

const DISTIL_NAMES: BertNames = BertNames {
    prefix: "distilbert.",
    layer: "transformer.layer",
    attention: ["attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"],
    network: ["ffn.lin1", "ffn.lin2"],
    norms: ["sa_layer_norm", "output_layer_norm"],
    classifier: ["pre_classifier", "Relu", "classifier"],
    after_padding: false,
};

/// DistilBERT's configuration in BERT's words.
fn renamed(config: &JsonConfig) -> Result<JsonConfig> {
    let activation = config.text("activation")?.unwrap_or("gelu");
    Ok(config
        .clone()
        .or("hidden_size", config.length("dim")?)
        .or("intermediate_size", config.length("hidden_dim")?)
        .or("num_hidden_layers", config.length("n_layers")?)
        .or("num_attention_heads", config.length("n_heads")?)
        .or("hidden_act", activation))
}

struct BertArchitecture {
    shape: EncoderShape,
    names: &'static BertNames,
    layers: usize,
    heads: usize,
    width: usize,
    inner: usize,
    /// How many rows the table of positions has.
    places: usize,
    epsilon: f32,
    activation: (&'static str, &'static str),
}

/// Activations by their names, as operators with the form of GELU.
const ACTIVATIONS: &[(&str, (&str, &str))] = &[
    ("gelu", ("Gelu", "none")),
    ("gelu_new", ("Gelu", "tanh")),
    ("gelu_pytorch_tanh", ("Gelu", "tanh")),
    ("relu", ("Relu", "")),
];

impl BertArchitecture {
    fn new(
        config: &JsonConfig,
        weights: &dyn CheckpointWeights,
        names: &'static BertNames,
    ) -> Result<Self> {
        let hidden = config.length("hidden_size")?;
        let heads = config.length("num_attention_heads")?;
        if !matches!(config.text("position_embedding_type")?, None | Some("absolute")) {
            return Err(config.unknown("position_embedding_type", &["absolute"]));
        }
        let wanted = config.text("hidden_act")?.unwrap_or("gelu");
        let activation = ACTIVATIONS.iter().find(|(name, _)| *name == wanted);
        let known: Vec<&str> = ACTIVATIONS.iter().map(|(name, _)| *name).collect();
        let &(_, activation) = activation.ok_or_else(|| config.unknown("hidden_act", &known))?;
        let places = config.length("max_position_embeddings")?;
        let first_position = if names.after_padding {
            // 0 is a number of a token, though no length.
            let padding = config.number("pad_token_id")?.unwrap_or(1.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            match (0.0..1e9).contains(&padding) && padding.fract() == 0.0 {
                true => padding as usize + 1,
                false => return Err(config.unknown("pad_token_id", &["a number from 0 on"])),
            }
        } else {
            0
        };
        let positions = places.checked_sub(first_position).filter(|&positions| positions > 0);
        let positions = positions
            .ok_or_else(|| config.unknown("max_position_embeddings", &["more positions"]))?;
        let types = match names.layer {
            "encoder.layer" => config.optional_length("type_vocab_size")?.unwrap_or(2),
            _ => 0,
        };
        let shape = EncoderShape {
            hidden,
            vocabulary: config.length("vocab_size")?,
            positions,
            first_position,
            types,
            labels: labels(config, weights, names)?,
        };
        #[allow(clippy::cast_possible_truncation, reason = "an attribute of FP32")]
        let epsilon = config.positive_or("layer_norm_eps", 1e-12)? as f32;
        Ok(Self {
            shape,
            names,
            layers: config.length("num_hidden_layers")?,
            heads,
            width: head_width(hidden, heads)?,
            inner: config.length("intermediate_size")?,
            places,
            epsilon,
            activation,
        })
    }

    fn graph(&self, weights: &dyn CheckpointWeights) -> Result<Graph> {
        let EncoderShape { hidden, types, .. } = self.shape;
        let mut net = NetBuilder::new("encoder", weights);
        let prefix = self.names.prefix;
        let own = net.has(&format!("{prefix}embeddings.word_embeddings.weight"));
        let prefix = if own { prefix } else { "" };
        let tokens = per_token(&mut net, "tokens", DataType::Int64);
        let positions = per_token(&mut net, "positions", DataType::Int64);
        let mut tables =
            vec![("word", self.shape.vocabulary, tokens), ("position", self.places, positions)];
        if types > 0 {
            tables.push(("token_type", types, per_token(&mut net, "types", DataType::Int64)));
        }
        let mask = per_token(&mut net, "mask", DataType::Fp32);
        let mask = key_mask(&mut net, mask)?;
        let mut sum = None;
        for (kind, rows, indices) in tables {
            let table = format!("{prefix}embeddings.{kind}_embeddings.weight");
            let part = net.rows_of(&table, [rows, hidden], indices)?;
            sum = Some(match sum {
                Some(sum) => net.one("Add", &[], &[sum, part])?,
                None => part,
            });
        }
        let mut x = sum.unwrap_or(tokens);
        x = self.normalised(&mut net, x, &format!("{prefix}embeddings.LayerNorm"))?;
        for layer in 0..self.layers {
            let at = format!("{prefix}{}.{layer}", self.names.layer);
            x = self.layer(&mut net, x, mask, &at)?;
        }
        match self.shape.labels {
            Some(labels) => {
                let scores = self.classified(&mut net, x, labels)?;
                net.output("scores", scores)?;
            }
            None => net.output("rows", x)?,
        }
        let labels = self.shape.labels.is_some();
        net.finish(|name| {
            let own = name.strip_prefix(self.names.prefix).unwrap_or(name);
            // Heads for the tasks of training, and numbers of positions in older files.
            let heads = ["cls.", "lm_head.", "vocab_", "qa_outputs."];
            own == "embeddings.position_ids"
                || own == "embeddings.token_type_ids"
                || heads.iter().any(|head| name.starts_with(head))
                || !labels && own.starts_with("pooler.")
        })
    }

    fn layer(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        mask: ValueId,
        at: &str,
    ) -> Result<ValueId> {
        let hidden = self.shape.hidden;
        let [query, key, value, out] = self.names.attention;
        let square = LinearSizes::square(hidden);
        let mut part = |name: &str| product(net, x, &format!("{at}.{name}"), square, true);
        let rows = AttentionOperands { query: part(query)?, key: part(key)?, value: part(value)? };
        #[allow(clippy::cast_precision_loss, reason = "the width of a head")]
        let scale = 1.0 / (self.width as f32).sqrt();
        let attended = attention(net, rows, mask, self.heads, self.width, scale)?;
        let attended = product(net, attended, &format!("{at}.{out}"), square, true)?;
        let sum = net.one("Add", &[], &[attended, x])?;
        let [behind, last] = self.names.norms;
        let x = self.normalised(net, sum, &format!("{at}.{behind}"))?;
        let [inward, outward] = self.names.network;
        let sizes = LinearSizes { inputs: hidden, outputs: self.inner };
        let inner = product(net, x, &format!("{at}.{inward}"), sizes, true)?;
        let active = self.active(net, inner)?;
        let sizes = LinearSizes { inputs: self.inner, outputs: hidden };
        let outer = product(net, active, &format!("{at}.{outward}"), sizes, true)?;
        let sum = net.one("Add", &[], &[outer, x])?;
        self.normalised(net, sum, &format!("{at}.{last}"))
    }

    fn active(&self, net: &mut NetBuilder<'_>, x: ValueId) -> Result<ValueId> {
        let (op, form) = self.activation;
        let form = ("approximate", AttributeValue::String(form.into()));
        let attributes = if op == "Gelu" { vec![form] } else { Vec::new() };
        net.one(op, &attributes, &[x])
    }

    fn normalised(&self, net: &mut NetBuilder<'_>, x: ValueId, name: &str) -> Result<ValueId> {
        // The oldest files call scale and bias as TensorFlow did.
        let old = net.has(&format!("{name}.gamma"));
        let [scale, bias] = if old { ["gamma", "beta"] } else { ["weight", "bias"] };
        let scale = net.floats(&format!("{name}.{scale}"), &[self.shape.hidden])?;
        let bias = net.floats(&format!("{name}.{bias}"), &[self.shape.hidden])?;
        let epsilon = ("epsilon", AttributeValue::Float(self.epsilon));
        net.one("LayerNormalization", &[epsilon], &[x, scale, bias])
    }

    /// Scores of the first token's row.
    fn classified(&self, net: &mut NetBuilder<'_>, x: ValueId, labels: usize) -> Result<ValueId> {
        let [dense, activation, out] = self.names.classifier;
        let hidden = self.shape.hidden;
        let first = net.constant("first", Tensor::scalar(0_i64));
        let row = net.one("Gather", &[("axis", AttributeValue::Int(1))], &[x, first])?;
        let inner = net.linear(row, dense, LinearSizes::square(hidden), true)?;
        let inner = net.one(activation, &[], &[inner])?;
        net.linear(inner, out, LinearSizes { inputs: hidden, outputs: labels }, true)
    }
}

/// How many labels a classifier's checkpoint has; `None` for other checkpoints.
fn labels(
    config: &JsonConfig,
    weights: &dyn CheckpointWeights,
    names: &BertNames,
) -> Result<Option<usize>> {
    let classifies = |name: &&str| name.ends_with("ForSequenceClassification");
    if !config.texts("architectures")?.unwrap_or_default().iter().any(classifies) {
        return Ok(None);
    }
    let [.., out] = names.classifier;
    let name = format!("{out}.weight");
    let tensor = weights.tensor(&name)?;
    match tensor.shape().first() {
        Some(&labels) if labels > 0 => Ok(Some(labels)),
        _ => {
            let text = format!("shape {:?}, expected a row for each label", tensor.shape());
            Err(LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), text))
        }
    }
}
