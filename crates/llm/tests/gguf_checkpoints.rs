//! Checkpoints in GGUF beside the same ones as safetensors, and weights of few bits beside their floats.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use galatea_formats::gguf::{GgmlType, GgufValue, GgufWriter, TensorData};
use galatea_formats::safetensors;
use galatea_graph::blocks::BlockWeights;
use galatea_graph::{Graph, evaluate};
use galatea_llm::arch::{self, ModelShape};
use galatea_llm::config::JsonConfig;
use galatea_llm::error::Result;
use galatea_llm::facts::CheckpointFacts;
use galatea_llm::gguf::GgufCheckpoint;
use galatea_llm::weights::CheckpointWeights;
use galatea_tensor::{DataType, Tensor, bf16};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

/// The names of a decoder's tensors in GGUF.
fn gguf_name(kind: &str, name: &str) -> String {
    let mut name = name.replace("model.layers.", "blk.");
    let gemma = [
        ("post_attention_layernorm", "post_attention_norm"),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
    ];
    let own = if kind == "gemma3" { &gemma[..] } else { &[] };
    for &(from, to) in own.iter().chain(&[
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]) {
        name = name.replace(from, to);
    }
    name
}

/// Sizes of a checkpoint, as `config.json` has them.
fn metadata(writer: &mut GgufWriter<'_>, config: &JsonConfig) {
    let kind = config.text("model_type").unwrap().unwrap();
    let kind = kind.strip_suffix("_text").unwrap_or(kind).to_owned();
    writer
        .set("general.architecture", GgufValue::String(kind.clone().into_bytes().into()))
        .unwrap();
    for (key, from) in [
        ("embedding_length", "hidden_size"),
        ("block_count", "num_hidden_layers"),
        ("feed_forward_length", "intermediate_size"),
        ("attention.head_count", "num_attention_heads"),
        ("attention.head_count_kv", "num_key_value_heads"),
        ("context_length", "max_position_embeddings"),
    ] {
        let length = u32::try_from(config.length(from).unwrap()).unwrap();
        writer.set(&format!("{kind}.{key}"), GgufValue::U32(length)).unwrap();
    }
    if let Some(width) = config.optional_length("head_dim").unwrap() {
        let width = GgufValue::U32(u32::try_from(width).unwrap());
        writer.set(&format!("{kind}.attention.key_length"), width).unwrap();
    }
    let epsilon = config.number("rms_norm_eps").unwrap().unwrap();
    let key = format!("{kind}.attention.layer_norm_rms_epsilon");
    #[allow(clippy::cast_possible_truncation, reason = "GGUF has FP32")]
    let epsilon = epsilon as f32;
    writer.set(&key, GgufValue::F32(epsilon)).unwrap();
    let base = if kind == "gemma3" { 1_000_000.0 } else { 10_000.0 };
    writer.set(&format!("{kind}.rope.freq_base"), GgufValue::F32(base)).unwrap();
    if let Some(window) = config.optional_length("sliding_window").unwrap() {
        let window = GgufValue::U32(u32::try_from(window).unwrap());
        writer.set(&format!("{kind}.attention.sliding_window"), window).unwrap();
    }
}

/// The rows of heads, their halves in pairs as LLaMA's converter writes them.
fn in_pairs(tensor: &Tensor, heads: usize) -> Tensor {
    let rows = tensor.shape()[0];
    let rest: usize = tensor.shape()[1..].iter().product();
    let halves = tensor.reshape(&[heads, 2, rows / heads / 2, rest]).unwrap();
    let pairs = halves.permute(&[0, 2, 1, 3]).unwrap().contiguous().unwrap();
    pairs.reshape(tensor.shape()).unwrap()
}

/// Writes a checkpoint of safetensors as GGUF.
fn converted(name: &str) -> (tempfile::TempDir, PathBuf) {
    let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
    let weights = safetensors::open(&folder(name)).unwrap();
    let mut writer = GgufWriter::new();
    metadata(&mut writer, &config);
    let llama = config.text("model_type").unwrap() == Some("llama");
    let kind = if name == "gemma3" { name } else { "" };
    for (name, tensor) in weights.tensors() {
        let heads = match name.as_str() {
            name if !llama => (name, None),
            name if name.contains("q_proj") => (name, Some("num_attention_heads")),
            name if name.contains("k_proj") => (name, Some("num_key_value_heads")),
            name => (name, None),
        };
        let tensor = match heads.1 {
            Some(key) => in_pairs(tensor, config.length(key).unwrap()),
            None if kind == "gemma3" && name.ends_with("norm.weight") => {
                let numbers = tensor.to_vec::<bf16>().unwrap().into_iter();
                Tensor::vector(numbers.map(|number| number.to_f32() + 1.0).collect())
            }
            None => tensor.clone(),
        };
        writer.plain(&gguf_name(kind, name), &tensor).unwrap();
    }
    write(writer)
}

fn write(writer: GgufWriter<'_>) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("model.gguf");
    writer.write(std::fs::File::create(&path).unwrap()).unwrap();
    (place, path)
}

/// The logits of all of some tokens.
fn logits(graph: &Graph, shape: &ModelShape, tokens: &[i64]) -> Vec<f32> {
    let rows = tokens.len() as i64;
    let list = |all: Vec<i64>| Tensor::vector(all);
    let mut inputs = vec![
        list(tokens.to_vec()),
        list((0..rows).collect()),
        list(vec![0, rows]),
        list(vec![rows]),
        Tensor::from_vec(&[1, 4], vec![2_i64, 0, 3, 1]).unwrap(),
        list((0..rows).collect()),
    ];
    for dims in shape.caches(4, 4).iter().cycle().take(2 * shape.layers) {
        inputs.push(Tensor::zeros(DataType::Fp32, dims).unwrap());
    }
    evaluate::run(graph, &inputs).unwrap()[0].to_vec::<f32>().unwrap()
}

const TOKENS: [i64; 7] = [3, 17, 5, 60, 2, 33, 8];

fn built(config: &JsonConfig, weights: &dyn CheckpointWeights) -> (Graph, ModelShape) {
    let row = arch::architecture(config).unwrap();
    (row.graph(config, weights).unwrap(), row.shape(config).unwrap())
}

#[test]
fn a_checkpoint_of_floats_is_that_of_its_safetensors() {
    for name in ["llama", "llama-biases", "qwen2", "qwen3"] {
        let (_place, path) = converted(name);
        let checkpoint = GgufCheckpoint::open(&path).unwrap();
        if name == "llama-biases" {
            // GGUF says nothing of biases: they are weights that LLaMA does not have.
            let row = arch::architecture(checkpoint.config()).unwrap();
            let error = row.graph(checkpoint.config(), &checkpoint).unwrap_err().to_string();
            assert!(error.contains("the architecture has no such weight"), "{error}");
            continue;
        }
        let (graph, shape) = built(checkpoint.config(), &checkpoint);
        let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
        let (own, own_shape) = built(&config, &safetensors::open(&folder(name)).unwrap());
        assert_eq!(shape, own_shape, "{name}");
        assert_eq!(logits(&graph, &shape, &TOKENS), logits(&own, &own_shape, &TOKENS), "{name}");
    }
}

#[test]
fn gemma_is_that_of_its_safetensors_without_what_converters_add_to_norms() {
    let (_place, path) = converted("gemma3");
    let checkpoint = GgufCheckpoint::open(&path).unwrap();
    let config = JsonConfig::read(&folder("gemma3").join("config.json")).unwrap();
    // The tiny checkpoint's pattern of windows is its own; files have that of the released ones.
    let (graph, shape) = built(checkpoint.config(), &checkpoint);
    let read = std::fs::read_to_string(folder("gemma3").join("config.json")).unwrap();
    let mut own: serde_json::Value = serde_json::from_str(&read).unwrap();
    let own = own.as_object_mut().unwrap();
    for key in ["layer_types", "sliding_window_pattern", "_sliding_window_pattern"] {
        own.remove(key);
    }
    // What files do not say.
    for key in ["rope_parameters", "attn_logit_softcapping", "final_logit_softcapping"] {
        own.remove(key);
    }
    own.insert("query_pre_attn_scalar".to_owned(), config.length("head_dim").unwrap().into());
    let text = serde_json::to_string(own).unwrap();
    let config = JsonConfig::parse("config.json", text.as_bytes()).unwrap();
    let (plain, plain_shape) = built(&config, &safetensors::open(&folder("gemma3")).unwrap());
    assert_eq!(shape, plain_shape);
    let (found, expected) =
        (logits(&graph, &shape, &TOKENS), logits(&plain, &plain_shape, &TOKENS));
    for (found, expected) in found.iter().zip(&expected) {
        // One more and one less again rounds the weights of norms.
        assert!((found - expected).abs() <= 1e-4 * expected.abs().max(1.0), "{found}, {expected}");
    }
}

/// A checkpoint whose matrices are no longer of few bits.
struct Widened(GgufCheckpoint);

impl CheckpointWeights for Widened {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        self.0.tensor(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

/// A checkpoint of random blocks.
fn of_blocks(kind: &str, ggml: GgmlType) -> (tempfile::TempDir, PathBuf) {
    let text = format!(
        r#"{{"model_type": "{kind}", "hidden_size": 64, "num_hidden_layers": 2,
            "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 32, "rms_norm_eps": 1e-6}}"#
    );
    let config = JsonConfig::parse("config.json", text.as_bytes()).unwrap();
    let mut writer = GgufWriter::new();
    metadata(&mut writer, &config);
    let mut state = 7_u32;
    let mut matrix = |writer: &mut GgufWriter<'_>, name: &str, rows: usize, columns: usize| {
        let blocks = rows * columns / ggml.block();
        let mut bytes = Vec::new();
        for _ in 0..blocks {
            // A scale of 2^-7, and any codes.
            bytes.extend([0x00, 0x20]);
            for _ in 2..ggml.block_bytes() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes.push(state.to_be_bytes()[0]);
            }
        }
        let data = TensorData::Bytes(Bytes::from(bytes));
        writer.tensor(name, ggml, &[rows, columns], data).unwrap();
    };
    matrix(&mut writer, "token_embd.weight", 64, 64);
    let ones = Tensor::vector(vec![1.0_f32; 64]);
    writer.plain("output_norm.weight", &ones).unwrap();
    for layer in 0..2 {
        let at = format!("blk.{layer}");
        for part in ["attn_norm", "ffn_norm"] {
            writer.plain(&format!("{at}.{part}.weight"), &ones).unwrap();
        }
        for (part, rows, columns) in [
            ("attn_q", 64, 64),
            ("attn_k", 32, 64),
            ("attn_v", 32, 64),
            ("attn_output", 64, 64),
            ("ffn_gate", 96, 64),
            ("ffn_up", 96, 64),
            ("ffn_down", 64, 96),
        ] {
            matrix(&mut writer, &format!("{at}.{part}.weight"), rows, columns);
            if kind == "qwen2" && ["attn_q", "attn_k", "attn_v"].contains(&part) {
                let bias = Tensor::vector((0..rows).map(|at| at as f32 / 100.0).collect());
                writer.plain(&format!("{at}.{part}.bias"), &bias).unwrap();
            }
        }
    }
    write(writer)
}

#[test]
fn weights_of_few_bits_give_what_their_floats_give() {
    for kind in ["llama", "qwen2"] {
        for ggml in [GgmlType::Q4_0, GgmlType::Q8_0, GgmlType::Iq4Nl] {
            let (_place, path) = of_blocks(kind, ggml);
            let checkpoint = GgufCheckpoint::open(&path).unwrap();
            let query: Arc<dyn BlockWeights> =
                checkpoint.blocks("model.layers.0.self_attn.q_proj.weight").unwrap().unwrap();
            assert_eq!([query.rows(), query.columns()], [64, 64]);
            let (graph, shape) = built(checkpoint.config(), &checkpoint);
            let held = graph.nodes.iter().filter(|node| node.op_type == "BlockMatMul").count();
            // Queries with keys and values, what follows attention, both parts of the gated
            // network in each layer; and logits.
            assert_eq!(held, 2 * 4 + 1, "{kind} {ggml}");
            let widened = Widened(GgufCheckpoint::open(&path).unwrap());
            let (plain, _) = built(widened.0.config(), &widened);
            let (found, expected) =
                (logits(&graph, &shape, &TOKENS), logits(&plain, &shape, &TOKENS));
            for (found, expected) in found.iter().zip(&expected) {
                let near = (found - expected).abs() <= 1e-4 * expected.abs().max(1.0);
                assert!(near, "{kind} {ggml}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn what_a_file_lacks_is_named() {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", GgufValue::String(b"nonesuch".to_vec().into())).unwrap();
    let (_place, path) = write(writer);
    let error = GgufCheckpoint::open(&path).unwrap_err().to_string();
    assert!(error.contains("general.architecture: 'nonesuch', expected one of"), "{error}");
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", GgufValue::String(b"llama".to_vec().into())).unwrap();
    let (_place, path) = write(writer);
    let error = GgufCheckpoint::open(&path).unwrap_err().to_string();
    assert!(error.contains("token_embd.weight"), "{error}");
}

#[test]
fn files_tell_what_is_in_them() {
    let (_place, path) = converted("qwen3");
    let facts = CheckpointFacts::read(&path).unwrap();
    let source = CheckpointFacts::read(&folder("qwen3")).unwrap();
    assert_eq!(
        (facts.format, &*facts.architecture, facts.problem.clone()),
        ("GGUF", "qwen3", None)
    );
    assert_eq!(facts.parameters(), source.parameters());
    let sizes = |of: &CheckpointFacts| (of.layers, of.hidden, of.heads, of.kv_heads, of.vocabulary);
    assert_eq!(sizes(&facts), sizes(&source));
    assert_eq!((facts.cache, facts.context), (source.cache, source.context));
}
