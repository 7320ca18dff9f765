//! Texts through a tokenizer and an encoder.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod reference;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_llm::embed::TextEncoder;
use galatea_runtime::{ExecutionProvider, SessionOptions};
use reference::Reference;
use serde_json::{Map, Value, json};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

/// A copy of a checkpoint with a tokenizer of the words `a4` to `a63`.
fn checkpoint(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors", "modules.json", "1_Pooling/config.json"] {
        if golden(name).join(file).exists() {
            let target = folder.path().join(file);
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::copy(golden(name).join(file), target).unwrap();
        }
    }
    let special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]"];
    let mut words: Map<String, Value> = (4..64).map(|id| (format!("a{id}"), id.into())).collect();
    words.extend(special.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())));
    let added: Vec<Value> = special
        .iter()
        .enumerate()
        .map(|(id, word)| {
            json!({"id": id, "content": word, "special": true, "single_word": false,
                   "lstrip": false, "rstrip": false, "normalized": false})
        })
        .collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    });
    write(folder.path(), "tokenizer.json", &tokenizer);
    folder
}

fn write(folder: &Path, name: &str, value: &Value) {
    std::fs::write(folder.join(name), value.to_string()).unwrap();
}

fn load(folder: &Path) -> galatea_llm::error::Result<TextEncoder> {
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    TextEncoder::load(folder, &providers, &SessionOptions::default())
}

#[test]
fn texts_with_prompts_become_vectors_and_the_closest_document_comes_first() {
    let folder = checkpoint("bert-mean");
    let prompts = json!({"prompts": {"query": "a9 a10 ", "document": ""}});
    write(folder.path(), "config_sentence_transformers.json", &prompts);
    assert!(TextEncoder::recognises(folder.path()).unwrap());
    let model = load(folder.path()).unwrap();
    assert_eq!(model.encoder().dimensions(), Some(32));
    assert_eq!(model.tokens("a5 a6", None).unwrap(), [2, 5, 6, 3]);
    assert_eq!(model.tokens("a5 a6", Some("query")).unwrap(), [2, 9, 10, 5, 6, 3]);
    assert!(model.tokens("a5", Some("title")).is_err());
    let documents = ["a20 a21 a22 a23", "a9 a10 a5 a6", "a50"];
    let (scores, tokens) = model.rank("a5 a6", &documents).unwrap();
    assert_eq!(tokens, 6 + 6 + 3 + 6);
    // The second is the query with its prompt.
    assert!((scores[1] - 1.0).abs() < 1e-5, "{scores:?}");
    assert!(scores[0] < 0.999 && scores[2] < 0.999, "{scores:?}");
}

#[test]
fn a_cross_encoder_scores_the_query_with_each_document() {
    let folder = checkpoint("bert-rank");
    let model = load(folder.path()).unwrap();
    assert_eq!(model.encoder().dimensions(), None);
    let documents = ["a20 a21", "a22 a23 a24"];
    let (scores, tokens) = model.rank("a5 a6", &documents).unwrap();
    assert_eq!(tokens, 7 + 8);
    let (reversed, _) = model.rank("a5 a6", &[documents[1], documents[0]]).unwrap();
    assert!((scores[0] - reversed[1]).abs() < 1e-6 && (scores[1] - reversed[0]).abs() < 1e-6);
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)) && scores[0] != scores[1]);
    let long = "a7 ".repeat(70);
    let error = model.rank("a5", &["a6", &long]).unwrap_err().to_string();
    assert!(error.starts_with("input 1: 74 tokens found, expected from 1 to 64"), "{error}");
}

#[test]
fn checkpoints_of_other_models_and_with_wrong_weights_are_refused() {
    assert!(!TextEncoder::recognises(&golden("llama")).unwrap());
    let error = load(&golden("llama")).unwrap_err().to_string();
    assert!(error.contains("\"llama\"") && error.contains("xlm-roberta"), "{error}");
    let folder = checkpoint("bert-mean");
    let read = std::fs::read(folder.path().join("config.json")).unwrap();
    let config: Value = serde_json::from_slice(&read).unwrap();
    let refused = |key: &str, value: Value| {
        let mut changed = config.clone();
        changed[key] = value;
        write(folder.path(), "config.json", &changed);
        load(folder.path()).unwrap_err().to_string()
    };
    let error = refused("vocab_size", json!(65));
    assert!(
        error.contains("word_embeddings.weight': shape [64, 32], expected [65, 32]"),
        "{error}"
    );
    let error = refused("num_hidden_layers", json!(1));
    assert!(error.contains("encoder.layer.1.") && error.contains("no such weight"), "{error}");
    let error = refused("num_hidden_layers", json!(3));
    assert!(error.contains("encoder.layer.2."), "{error}");
    let error = refused("hidden_act", json!("mish"));
    assert!(error.contains("hidden_act") && error.contains("gelu_new"), "{error}");
    let error = refused("num_attention_heads", json!(5));
    assert!(error.contains("rows of 32 for 5 heads"), "{error}");
}
