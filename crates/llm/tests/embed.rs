//! Texts through a tokenizer and an encoder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::reference::Reference;
use galatea_llm::embed::{EncodedTexts, EncoderEngine, TextEncoder, TextTokens};
use galatea_llm::engine::RequestTicket;
use galatea_llm::tokens::SpecialTokens;
use galatea_runtime::{ExecutionProvider, SessionOptions};
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

/// An engine on a small model, with as many waiting requests as a test wants.
fn engine(name: &str, max_waiting: usize) -> EncoderEngine {
    EncoderEngine::start(load(checkpoint(name).path()).unwrap(), max_waiting).unwrap()
}

fn text(tokens: &[u32]) -> TextTokens {
    TextTokens { tokens: tokens.to_vec(), types: Vec::new() }
}

/// Submits texts, and gives where the results come.
fn ask(engine: &EncoderEngine, texts: Vec<TextTokens>) -> (RequestTicket, Receiver<Outcome>) {
    let (to, results) = std::sync::mpsc::channel();
    let ticket = engine.submit(texts, Box::new(move |result| to.send(result).unwrap_or_default()));
    (ticket.unwrap(), results)
}

type Outcome = galatea_llm::error::Result<EncodedTexts>;

#[test]
fn texts_of_many_requests_give_what_each_gives_alone() {
    let engine = engine("bert-mean", 100);
    let texts: Vec<Vec<u32>> = (0..40_u32)
        .map(|n| (0..1 + n * 7 % 60).map(|at| 4 + (at * 5 + n) % 60).collect())
        .collect();
    let asked: Vec<_> = texts
        .chunks(3)
        .map(|part| ask(&engine, part.iter().map(|tokens| text(tokens)).collect()))
        .collect();
    let together: Vec<Vec<f32>> =
        asked.iter().flat_map(|(_, results)| results.recv().unwrap().unwrap().results).collect();
    let encoder = engine.model().encoder();
    for (tokens, found) in texts.iter().zip(&together) {
        let alone = encoder.embed(std::slice::from_ref(tokens)).unwrap().remove(0);
        let far = alone.iter().zip(found).any(|(a, b)| (a - b).abs() > 1e-5);
        assert!(!far, "{tokens:?}");
    }
    let told = engine.statistics();
    let tokens: usize = texts.iter().map(Vec::len).sum();
    assert_eq!((told.requests, told.finished["stop"], told.prompt_tokens), (14, 14, tokens as u64));
    assert_eq!((told.waiting, told.request_latency.count()), (0, 14));
    assert_eq!(ask(&engine, Vec::new()).1.recv().unwrap().unwrap().results, Vec::<Vec<f32>>::new());
}

#[test]
fn wrong_texts_and_too_many_requests_are_refused_and_those_taken_back_end() {
    let engine = engine("bert-mean", 1);
    let refused = |engine: &EncoderEngine, texts| {
        let told = engine.submit(texts, Box::new(|_| panic!("a refused request is answered")));
        told.unwrap_err().to_string()
    };
    let error = refused(&engine, vec![text(&[5]), text(&[5; 70])]);
    assert!(error.starts_with("input 1: 70 tokens found, expected from 1 to 64"), "{error}");
    assert!(refused(&engine, vec![text(&[64])]).contains("expected tokens below 64"));
    // The first result keeps the thread until this test has asked for more.
    let (go, going) = std::sync::mpsc::channel::<()>();
    let hold = engine.submit(vec![text(&[5])], Box::new(move |_| going.recv().unwrap_or(())));
    while engine.statistics().waiting > 0 {
        std::thread::yield_now();
    }
    let (ticket, results) = ask(&engine, vec![text(&[6])]);
    assert!(refused(&engine, vec![text(&[7])]).contains("1 requests wait, at most 1 may"));
    drop(ticket);
    go.send(()).unwrap();
    assert!(results.recv().unwrap().is_err());
    drop(hold);
    let told = engine.statistics();
    assert_eq!((told.refused, told.cancelled, told.finished["stop"]), (1, 1, 1));
    let (_ticket, results) = ask(&engine, vec![text(&[6])]);
    drop(engine);
    let last = results.recv().unwrap();
    assert!(last.is_ok() || last.unwrap_err().to_string().contains("it stops"));
}

#[test]
fn texts_that_are_too_long_are_cut_at_their_end() {
    let model = load(checkpoint("bert-mean").path()).unwrap();
    let cut = |most| model.text("a5 a6 a7", None, SpecialTokens::Add, Some(most));
    assert_eq!(cut(4).unwrap().tokens, [2, 5, 6, 3]);
    assert_eq!(cut(9).unwrap().tokens, [2, 5, 6, 7, 3]);
    assert!(cut(2).unwrap_err().to_string().contains("truncate_prompt_tokens: 2 tokens found"));
    let ranker = load(checkpoint("bert-rank").path()).unwrap();
    let pair = ranker.pair("a5 a6", "a6 a7 a8", Some(6)).unwrap();
    assert_eq!(pair.tokens.len(), pair.types.len());
    assert_eq!(pair.tokens, [2, 5, 6, 3, 6, 3]);
    assert!(ranker.pair("a5 a6", "a6 a7 a8", Some(5)).is_err());
}
