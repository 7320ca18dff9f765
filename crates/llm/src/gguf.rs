//! Checkpoints in GGUF: names and metadata as architectures know them from `config.json`.

use std::path::Path;
use std::sync::Arc;

use galatea_formats::gguf::{self, GgufFile, GgufMetadata};
use galatea_graph::OpError;
use galatea_graph::blocks::{BlockRow, BlockWeights, CodeFormat, CodeMeaning, SuperScales};
use galatea_tensor::{DataType, OrderedMap, Tensor};
use serde_json::{Map, Value, json};

use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::template::ChatTemplate;
use crate::tokens::{GgufVocabulary, Tokenizer};
use crate::weights::{CheckpointWeights, FloatMatrix, StoredWeight};

/// Names of tensors: in the file, and as architectures call them.
type TensorNames = &'static [(&'static str, &'static str)];

/// Tensors outside of layers.
const OUTSIDE: TensorNames =
    &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")];

/// Tensors of a layer.
const INSIDE: TensorNames = &[
    ("attn_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// Extra tensors of Gemma's layers, and those that it calls otherwise.
const INSIDE_GEMMA: TensorNames = &[
    ("post_attention_norm", "post_attention_layernorm"),
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];

/// Architectures: their names in files, what `config.json` calls them, and names of tensors of their own.
const ARCHITECTURES: &[(&str, &str, TensorNames)] = &[
    ("llama", "llama", &[]),
    ("qwen2", "qwen2", &[]),
    ("qwen3", "qwen3", &[]),
    ("gemma3", GEMMA, INSIDE_GEMMA),
];

/// The architecture whose files have one more than the weights of its norms.
const GEMMA: &str = "gemma3_text";

/// Layers of the one Gemma 3 whose scores have a factor of another length than that of its keys.
const MAX_GEMMA: u64 = 62;

/// The tensor of factors of rotations, which LLaMA 3.1 and newer have.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// A checkpoint of one file, or several.
#[derive(Debug)]
pub struct GgufCheckpoint {
    file: GgufFile,
    config: JsonConfig,
    /// Names in the file, by those that architectures use.
    names: OrderedMap<String, String>,
    /// Tensors whose rows lie in another order, with their heads.
    paired: OrderedMap<String, usize>,
    /// Whether weights of norms are one more than the architecture takes them.
    one_more: bool,
}

impl GgufCheckpoint {
    /// Maps a file, of several the first.
    ///
    /// # Errors
    /// When it is damaged, or of an architecture that is not known.
    pub fn open(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let file = gguf::open(path).map_err(|error| {
            LlmError::new(LlmErrorKind::Weights, place.clone(), error.to_string())
        })?;
        let config = configuration(&file).map_err(|error| error.within(&place))?;
        let config = JsonConfig::of(place, config);
        let heads = paired_heads(&config)?;
        let model_type = config.text("model_type")?.unwrap_or_default().to_owned();
        let own = ARCHITECTURES.iter().find(|(_, known, _)| *known == model_type);
        let own = own.map_or(&[][..], |(.., own)| own);
        let mut names = OrderedMap::new();
        for tensor in file.tensors() {
            let known = known_name(own, tensor.name()).unwrap_or_else(|| tensor.name().to_owned());
            names.insert(known, tensor.name().to_owned());
        }
        let mut paired = OrderedMap::new();
        // LLaMA's rows of queries and keys lie in pairs, as its first program rotated them.
        if let Some([heads, kv_heads]) = heads {
            for name in names.keys() {
                if name.contains("self_attn.q_proj") {
                    paired.insert(name.clone(), heads);
                } else if name.contains("self_attn.k_proj") {
                    paired.insert(name.clone(), kv_heads);
                }
            }
        }
        Ok(Self { file, config, names, paired, one_more: model_type == GEMMA })
    }

    /// The configuration, with the keys of `config.json`.
    #[must_use]
    pub fn config(&self) -> &JsonConfig {
        &self.config
    }

    /// Bytes of all files.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.file.size_bytes()
    }

    /// How each tensor is stored.
    pub(crate) fn stored(&self) -> Vec<StoredWeight> {
        let of = |entry: &gguf::TensorEntry| StoredWeight {
            kind: entry.ggml_type().name().to_owned(),
            numbers: entry.shape().iter().product(),
            bytes: entry.bytes().len(),
        };
        self.file.tensors().iter().map(of).collect()
    }

    /// The tokenizer that the metadata holds.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        Tokenizer::from_gguf(&vocabulary(self.file.metadata())?)
    }

    /// The vocabulary that the metadata holds, without making a tokenizer of it.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn vocabulary(&self) -> Result<GgufVocabulary> {
        vocabulary(self.file.metadata())
    }

    /// The chat template that the metadata holds, if any.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn template(&self) -> Result<Option<ChatTemplate>> {
        self.template_source()?.map(|source| self.template_of(source)).transpose()
    }

    /// Compiles a template that speaks of this file's special tokens.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn template_of(&self, source: &str) -> Result<ChatTemplate> {
        let metadata = self.file.metadata();
        let tokens = find::<&gguf::GgufArray>(metadata, "tokenizer.ggml.tokens")?;
        let named = |key: &str| -> Result<Option<String>> {
            let id = find::<u32>(metadata, &format!("tokenizer.ggml.{key}_token_id"))?;
            let bytes = tokens.zip(id).and_then(|(all, id)| all.strings().nth(id as usize));
            Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        };
        let names = json!({ "bos_token": named("bos")?, "eos_token": named("eos")? });
        Ok(ChatTemplate::new(source)?.with_tokens(&names))
    }

    /// The text of that template.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn template_source(&self) -> Result<Option<&str>> {
        find::<&str>(self.file.metadata(), "tokenizer.chat_template")
    }

    /// A tensor of two axes where it lies, of whatever numbers.
    fn matrix(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        let entry = self.entry(name)?;
        let wrong = |error: &dyn std::fmt::Display| failed(entry.name(), error);
        if entry.shape().len() != 2 {
            return Ok(None);
        }
        let matrix = match entry.ggml_type().data_type() {
            None => Some(Arc::new(entry.blocks().map_err(|error| wrong(&error))?) as _),
            Some(_) => FloatMatrix::of(&entry.tensor().map_err(|error| wrong(&error))?),
        };
        let Some(matrix): Option<Arc<dyn BlockWeights>> = matrix else { return Ok(None) };
        Ok(Some(match self.paired.get(name) {
            Some(&heads) => {
                Arc::new(UnpairedMatrix { order: unpaired(matrix.rows(), heads), matrix })
            }
            None => matrix,
        }))
    }

    fn entry(&self, name: &str) -> Result<&gguf::TensorEntry> {
        let own = self.names.get(name).map_or(name, String::as_str);
        self.file.tensor(own).map_err(|error| failed(own, &error))
    }
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> LlmError {
    LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), error.to_string())
}

impl CheckpointWeights for GgufCheckpoint {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        let entry = self.entry(name)?;
        let wrong = |error: &dyn std::fmt::Display| failed(entry.name(), error);
        let tensor = match entry.ggml_type().data_type() {
            Some(_) => entry.tensor().map_err(|error| wrong(&error))?,
            None => {
                let blocks = entry.blocks().map_err(|error| wrong(&error))?;
                blocks.dequantize().map_err(|error| wrong(&error))?
            }
        };
        if self.one_more && name.ends_with("norm.weight") {
            return one_less(&tensor).map_err(|error| wrong(&error));
        }
        let Some(&heads) = self.paired.get(name) else { return Ok(tensor) };
        apart(&tensor, heads).map_err(|error| wrong(&error))
    }

    fn blocks(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        let blocks = self.matrix(name)?;
        Ok(blocks.filter(|matrix| matrix.format().meaning() != CodeMeaning::Float(DataType::Fp32)))
    }

    fn table(&self, name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        self.matrix(name)
    }

    fn release(&self) {
        self.file.files().iter().for_each(|file| file.memory.release());
    }

    fn names(&self) -> Vec<String> {
        self.names.keys().filter(|name| *name != ROPE_FACTORS).cloned().collect()
    }
}

/// A tensor of FP32 whose numbers are one less.
fn one_less(tensor: &Tensor) -> std::result::Result<Tensor, galatea_tensor::TensorError> {
    let numbers = tensor.to_vec::<f32>()?.into_iter().map(|number| number - 1.0);
    Tensor::from_vec(tensor.shape(), numbers.collect())
}

/// Where the rows of heads are whose halves lie in pairs.
fn unpaired(rows: usize, heads: usize) -> Vec<usize> {
    let width = rows / heads.max(1);
    let place = |row: usize| {
        let head = row / width;
        let at = row % width;
        head * width + at % (width / 2) * 2 + at / (width / 2)
    };
    if width < 2 { (0..rows).collect() } else { (0..rows).map(place).collect() }
}

/// A tensor whose rows were in that order.
fn apart(
    tensor: &Tensor,
    heads: usize,
) -> std::result::Result<Tensor, galatea_tensor::TensorError> {
    let rows = tensor.shape().first().copied().unwrap_or(0);
    let width = rows / heads.max(1) / 2 * 2;
    if width * heads != rows {
        return Ok(tensor.clone());
    }
    let rest: usize = tensor.shape().iter().skip(1).product();
    let pairs = tensor.reshape(&[heads, width / 2, 2, rest])?.permute(&[0, 2, 1, 3])?;
    pairs.contiguous()?.reshape(tensor.shape())
}

/// A matrix whose rows lie in another order.
struct UnpairedMatrix {
    matrix: Arc<dyn BlockWeights>,
    order: Vec<usize>,
}

impl std::fmt::Debug for UnpairedMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unpaired {{ {:?}, {} rows }}", self.matrix, self.order.len())
    }
}

impl UnpairedMatrix {
    fn row(&self, row: usize) -> std::result::Result<usize, OpError> {
        let found = self.order.get(row).copied();
        found.ok_or_else(|| OpError::new(format!("row {row} of {}", self.order.len())))
    }
}

impl BlockWeights for UnpairedMatrix {
    fn rows(&self) -> usize {
        self.matrix.rows()
    }

    fn columns(&self) -> usize {
        self.matrix.columns()
    }

    fn format(&self) -> CodeFormat {
        self.matrix.format()
    }

    fn size_bytes(&self) -> usize {
        self.matrix.size_bytes()
    }

    fn factors(&self) -> DataType {
        self.matrix.factors()
    }

    fn unpack_row(&self, row: usize, to: BlockRow<'_>) -> std::result::Result<(), OpError> {
        self.matrix.unpack_row(self.row(row)?, to)
    }

    fn superblock(&self) -> Option<usize> {
        self.matrix.superblock()
    }

    fn super_scales(&self, row: usize, to: SuperScales<'_>) -> std::result::Result<(), OpError> {
        self.matrix.super_scales(self.row(row)?, to)
    }

    fn dequantize_row(&self, row: usize, out: &mut [f32]) -> std::result::Result<(), OpError> {
        self.matrix.dequantize_row(self.row(row)?, out)
    }
}

/// Name that an architecture gives a tensor of a file.
fn known_name(inside: &[(&str, &str)], name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    if let Some((_, known)) = OUTSIDE.iter().find(|(own, _)| *own == stem) {
        return Some(format!("{known}.{kind}"));
    }
    let (layer, part) = stem.strip_prefix("blk.")?.split_once('.')?;
    let (_, known) = inside.iter().chain(INSIDE).find(|(own, _)| *own == part)?;
    Some(format!("model.layers.{layer}.{known}.{kind}"))
}

/// A value of the metadata, if the key is there.
fn find<'a, T: gguf::FromValue<'a>>(metadata: &'a GgufMetadata, key: &str) -> Result<Option<T>> {
    metadata.find(key).map_err(|error| LlmError::new(LlmErrorKind::Config, key, error.to_string()))
}

/// The keys of `config.json`.
fn configuration(file: &GgufFile) -> Result<Map<String, Value>> {
    let metadata = file.metadata();
    let name = find::<&str>(metadata, "general.architecture")?.unwrap_or_default();
    let Some((_, model_type, _)) = ARCHITECTURES.iter().find(|(own, ..)| *own == name) else {
        let known: Vec<&str> = ARCHITECTURES.iter().map(|(own, ..)| *own).collect();
        let text = format!("'{name}', expected one of {}", known.join(", "));
        return Err(LlmError::new(LlmErrorKind::Config, "general.architecture", text));
    };
    let mut all = Map::new();
    all.insert("model_type".to_owned(), (*model_type).into());
    let length = |key: &str| find::<u64>(metadata, &format!("{name}.{key}"));
    for (key, to) in [
        ("embedding_length", "hidden_size"),
        ("block_count", "num_hidden_layers"),
        ("feed_forward_length", "intermediate_size"),
        ("attention.head_count", "num_attention_heads"),
        ("attention.head_count_kv", "num_key_value_heads"),
        ("attention.key_length", "head_dim"),
        ("context_length", "max_position_embeddings"),
        ("attention.sliding_window", "sliding_window"),
    ] {
        if let Some(value) = length(key)? {
            all.insert(to.to_owned(), value.into());
        }
    }
    if *model_type == GEMMA {
        // Files do not say it: llama.cpp knows the model by its layers.
        let [layers, heads, width] = ["block_count", "attention.head_count", "embedding_length"];
        let largest = length(layers)? == Some(MAX_GEMMA);
        let key = match (length(width)?, length(heads)?) {
            (Some(width), Some(heads)) if largest && heads > 0 => Some(width / heads),
            _ => length("attention.key_length")?,
        };
        all.extend(key.map(|key| ("query_pre_attn_scalar".to_owned(), key.into())));
    }
    let number = |key: &str| find::<f32>(metadata, &format!("{name}.{key}"));
    for (key, to) in
        [("attention.layer_norm_rms_epsilon", "rms_norm_eps"), ("rope.freq_base", "rope_theta")]
    {
        if let Some(value) = number(key)? {
            all.insert(to.to_owned(), f64::from(value).into());
        }
    }
    let embedding = file.find("token_embd.weight").and_then(|entry| entry.shape().first().copied());
    let missing = || failed("token_embd.weight", &"missing, every checkpoint has it");
    all.insert("vocab_size".to_owned(), embedding.ok_or_else(missing)?.into());
    all.insert("tie_word_embeddings".to_owned(), file.find("output.weight").is_none().into());
    if let Some(scaling) = scaling(file, name)? {
        all.insert("rope_scaling".to_owned(), scaling);
    }
    Ok(all)
}

/// The heads of queries and keys where their rows lie in pairs.
fn paired_heads(config: &JsonConfig) -> Result<Option<[usize; 2]>> {
    if config.text("model_type")? != Some("llama") {
        return Ok(None);
    }
    let heads = config.length("num_attention_heads")?;
    Ok(Some([heads, config.optional_length("num_key_value_heads")?.unwrap_or(heads)]))
}

/// How rotations are stretched.
fn scaling(file: &GgufFile, name: &str) -> Result<Option<Value>> {
    let metadata = file.metadata();
    if let Some(entry) = file.find(ROPE_FACTORS) {
        let mut factors = vec![0.0; entry.shape().iter().product()];
        entry.dequantize_row(0, &mut factors).map_err(|error| failed(ROPE_FACTORS, &error))?;
        return Ok(Some(json!({ "rope_type": "factors", "factors": factors })));
    }
    let kind = find::<&str>(metadata, &format!("{name}.rope.scaling.type"))?;
    let number = |key: &str| find::<f32>(metadata, &format!("{name}.rope.scaling.{key}"));
    let Some(kind) = kind.filter(|&kind| kind != "none") else { return Ok(None) };
    let trained = find::<u64>(metadata, &format!("{name}.rope.scaling.original_context_length"))?;
    Ok(Some(json!({
        "rope_type": kind,
        "factor": number("factor")?,
        "attention_factor": number("attn_factor")?.filter(|_| kind == "yarn"),
        "original_max_position_embeddings": trained,
    })))
}

/// The vocabulary of the metadata.
fn vocabulary(metadata: &GgufMetadata) -> Result<GgufVocabulary> {
    let key = |key: &str| format!("tokenizer.ggml.{key}");
    let texts = |name: &str| -> Result<Vec<String>> {
        let Some(all) = find::<&gguf::GgufArray>(metadata, &key(name))? else {
            return Ok(Vec::new());
        };
        Ok(all.strings().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
    };
    let text = |name: &str| -> Result<String> {
        Ok(find::<&str>(metadata, &key(name))?.unwrap_or_default().to_owned())
    };
    let id = |name: &str| find::<u32>(metadata, &key(&format!("{name}_token_id")));
    let flag = |name: &str| find::<bool>(metadata, &key(name));
    let charsmap = find::<Vec<i64>>(metadata, &key("precompiled_charsmap"))?;
    // Signed bytes in some files.
    let byte = |byte: &i64| u8::try_from(byte & 255).unwrap_or_default();
    Ok(GgufVocabulary {
        model: text("model")?,
        pre: text("pre")?,
        tokens: texts("tokens")?,
        scores: find::<Vec<f32>>(metadata, &key("scores"))?.unwrap_or_default(),
        token_types: find::<Vec<i32>>(metadata, &key("token_type"))?.unwrap_or_default(),
        merges: texts("merges")?,
        bos: id("bos")?,
        eos: id("eos")?,
        eot: id("eot")?,
        unk: id("unknown")?,
        pad: id("padding")?,
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
        precompiled_charsmap: charsmap.map(|all| all.iter().map(byte).collect()),
    })
}
