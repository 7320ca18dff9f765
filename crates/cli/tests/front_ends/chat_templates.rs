//! Chat templates of GGUF files that have none: beside the file, by the option, and the message without one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use galatea_formats::gguf::{GgufValue, GgufWriter};
use galatea_formats::safetensors;
use galatea_tensor::Tensor;
use serde_json::Value;

fn sample() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat")
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Rows of heads with their halves in pairs, as LLaMA's converter writes them.
fn in_pairs(tensor: &Tensor, heads: usize) -> Tensor {
    let [rows, columns] = [tensor.shape()[0], tensor.shape()[1]];
    let halves = tensor.reshape(&[heads, 2, rows / heads / 2, columns]).unwrap();
    let pairs = halves.permute(&[0, 2, 1, 3]).unwrap().contiguous().unwrap();
    pairs.reshape(tensor.shape()).unwrap()
}

fn gguf_name(name: &str) -> String {
    [
        ("model.layers.", "blk."),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// Writes the sample language model as a GGUF file without a chat template.
fn write_without_template(to: &Path) {
    let folder = sample().join("1");
    let mut writer = GgufWriter::new();
    let mut set = |key: &str, value: GgufValue| {
        writer.set(key, value).unwrap();
    };
    set("general.architecture", "llama".into());
    for (key, length) in [
        ("embedding_length", 128_u32),
        ("block_count", 4),
        ("feed_forward_length", 320),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("context_length", 1024),
    ] {
        set(&format!("llama.{key}"), length.into());
    }
    set("llama.attention.layer_norm_rms_epsilon", 1e-5_f32.into());
    set("llama.rope.freq_base", 10_000_f32.into());
    let tokenizer = json(&folder.join("tokenizer.json"));
    let vocabulary = tokenizer["model"]["vocab"].as_object().unwrap();
    let mut tokens = vec![""; 1024];
    for (name, id) in vocabulary {
        tokens[usize::try_from(id.as_u64().unwrap()).unwrap()] = name;
    }
    let types: Vec<i32> = (0..1024).map(|id| if id < 3 { 3 } else { 1 }).collect();
    let merges = tokenizer["model"]["merges"].as_array().unwrap().iter();
    let merges: Vec<String> = merges
        .map(|merge| match merge {
            Value::String(line) => line.clone(),
            pair => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
        })
        .collect();
    let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
    set("tokenizer.ggml.model", "gpt2".into());
    set("tokenizer.ggml.pre", "smollm".into());
    set("tokenizer.ggml.tokens", tokens.as_slice().into());
    set("tokenizer.ggml.token_type", types.as_slice().into());
    set("tokenizer.ggml.merges", merges.as_slice().into());
    set("tokenizer.ggml.eos_token_id", 2_u32.into());
    let weights = safetensors::open(&folder.join("model.safetensors")).unwrap();
    for (name, tensor) in weights.tensors() {
        let tensor = match name {
            name if name.contains("q_proj") => in_pairs(tensor, 4),
            name if name.contains("k_proj") => in_pairs(tensor, 2),
            _ => tensor.clone(),
        };
        writer.plain(&gguf_name(name), &tensor).unwrap();
    }
    writer.write(fs::File::create(to).unwrap()).unwrap();
}

fn chat(model: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.arg("chat").arg(model).args(["--temperature=0", "--prompt", "What is Galatea?"]);
    command.args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_gguf_file_without_a_template_chats_with_one_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("talker.gguf");
    write_without_template(&model);
    let config = json(&sample().join("1/tokenizer_config.json"));
    let template = config["chat_template"].as_str().unwrap();
    let expected = json(&sample().join("sample_chat.json"))[1][1]["content"].clone();
    let expected = expected.as_str().unwrap();

    let refused = chat(&model, &[]);
    let error = text(&refused.stderr);
    assert!(!refused.status.success());
    for wanted in ["talker.gguf", "chat_template.jinja", "--chat-template", "model.json"] {
        assert!(error.contains(wanted), "{wanted} is not in {error}");
    }

    let own = folder.path().join("elsewhere.txt");
    fs::write(&own, template).unwrap();
    let option = format!("--chat-template={}", own.display());
    let answered = |output: Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(answered(chat(&model, &[&option])).trim(), expected);
    let whole = format!("--chat-template={template}");
    assert_eq!(answered(chat(&model, &[&whole])).trim(), expected, "the text itself");
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    assert_eq!(answered(chat(&model, &[])).trim(), expected, "beside the file");

    let absent = chat(&model, &["--chat-template", "nowhere.jinja"]);
    let error = text(&absent.stderr);
    assert!(error.contains("'nowhere.jinja' is no file"), "{error}");
}
