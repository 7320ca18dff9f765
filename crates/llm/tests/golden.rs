//! Tiny random checkpoints of every architecture beside what the reference libraries gave for them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::reference::Reference;
use galatea_formats::safetensors;
use galatea_graph::{Graph, evaluate};
use galatea_llm::arch::{self, ModelShape};
use galatea_llm::config::JsonConfig;
use galatea_llm::embed::{EncoderModel, EncoderSettings, TextPooling};
use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_runtime::{ExecutionProvider, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};
use serde_json::Value;

/// Positions of a block, so that sequences lie in several.
const BLOCK: usize = 4;
/// Blocks of each sequence.
const BLOCKS: usize = 10;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

fn golden(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder(name).join("golden.json")).unwrap()).unwrap()
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
}

/// That numbers are those recorded, which have six digits.
fn assert_near(found: &[f32], expected: &Value, what: &str) {
    let expected = expected.as_array().unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let expected = expected.as_f64().unwrap();
        let distance = (f64::from(*found) - expected).abs();
        // Sums of 40 terms in FP32 on both sides.
        assert!(distance < 1e-4 * expected.abs().max(1.0), "{what} {at}: {found}, not {expected}");
    }
}

/// A decoder and its caches.
struct Decoder {
    graph: Graph,
    shape: ModelShape,
    caches: Vec<Tensor>,
}

/// New tokens of a sequence, and how many it has before them.
struct Piece {
    sequence: usize,
    before: usize,
    tokens: Vec<i64>,
}

impl Decoder {
    fn open(name: &str, sequences: usize) -> Self {
        let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
        let weights = safetensors::open(&folder(name)).unwrap();
        let row = arch::architecture(&config).unwrap();
        let (graph, shape) = (row.graph(&config, &weights).unwrap(), row.shape(&config).unwrap());
        let layer = shape.caches(sequences * BLOCKS, BLOCK);
        let layer = layer.map(|dims| Tensor::zeros(DataType::Fp32, &dims).unwrap());
        let caches = layer.iter().cycle().take(2 * shape.layers).cloned().collect();
        Self { graph, shape, caches }
    }

    /// Logits of all rows of a step.
    fn step(&mut self, pieces: &[Piece]) -> Vec<Vec<f32>> {
        let (mut tokens, mut positions) = (Vec::new(), Vec::new());
        let (mut starts, mut lengths, mut blocks) = (vec![0], Vec::new(), Vec::new());
        for piece in pieces {
            let end = piece.before + piece.tokens.len();
            tokens.extend(&piece.tokens);
            positions.extend((piece.before..end).map(|at| at as i64));
            starts.push(tokens.len() as i64);
            lengths.push(end as i64);
            // In an order of their own.
            blocks.extend((0..BLOCKS).rev().map(|at| (piece.sequence * BLOCKS + at) as i64));
        }
        let wanted = (0..tokens.len() as i64).collect();
        let mut inputs: Vec<Tensor> =
            [tokens, positions, starts, lengths].into_iter().map(Tensor::vector).collect();
        inputs.push(Tensor::from_vec(&[pieces.len(), BLOCKS], blocks).unwrap());
        inputs.push(Tensor::vector::<i64>(wanted));
        inputs.append(&mut self.caches);
        let mut outputs = evaluate::run(&self.graph, &inputs).unwrap();
        self.caches = outputs.split_off(1);
        let logits = outputs[0].to_vec::<f32>().unwrap();
        logits.chunks(self.shape.vocabulary).map(<[f32]>::to_vec).collect()
    }
}

/// The last rows of every sequence as recorded: alone and at once, token by token, and all sequences
/// in one batch.
fn check_decoder(name: &str) {
    let golden = golden(name);
    let cases = golden["cases"].as_array().unwrap();
    let mut batch = Vec::new();
    let mut alone = Vec::new();
    for (sequence, case) in cases.iter().enumerate() {
        let tokens = integers(&case["ids"]);
        let mut decoder = Decoder::open(name, 1);
        let rows = decoder.step(&[Piece { sequence: 0, before: 0, tokens: tokens.clone() }]);
        let recorded = case["logits"].as_array().unwrap();
        for (row, expected) in rows.iter().rev().zip(recorded.iter().rev()) {
            assert_near(row, expected, &format!("{name}, {} tokens, logit", tokens.len()));
        }
        let mut slow = Decoder::open(name, 1);
        for (before, (&token, row)) in tokens.iter().zip(&rows).enumerate() {
            let found = slow.step(&[Piece { sequence: 0, before, tokens: vec![token] }]);
            let same = found[0].iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(same, "{name}: token {before} by itself");
        }
        batch.push(Piece { sequence, before: 0, tokens });
        alone.extend(rows);
    }
    let together = Decoder::open(name, cases.len()).step(&batch);
    assert_eq!(together, alone, "{name}: a row in a batch");
}

#[test]
fn llama_gives_the_recorded_logits_with_every_kind_of_rope() {
    for name in ["llama", "llama-biases", "llama-linear", "llama-dynamic", "llama-yarn"] {
        check_decoder(name);
    }
    check_decoder("llama-llama3");
}

#[test]
fn mistral_gives_the_recorded_logits_beyond_its_window() {
    check_decoder("mistral-window");
}

#[test]
fn qwen_gives_the_recorded_logits() {
    for name in ["qwen2", "qwen2-window", "qwen3"] {
        check_decoder(name);
    }
}

#[test]
fn gemma_gives_the_recorded_logits_with_local_and_global_layers() {
    check_decoder("gemma3");
}

#[test]
fn olmo_gives_the_recorded_logits_with_norms_behind_its_parts() {
    check_decoder("olmo2");
}

#[test]
fn gpt2_gives_the_recorded_logits() {
    check_decoder("gpt2");
}

/// An encoder with settings that are changed.
fn encoder(name: &str, change: impl Fn(&mut EncoderSettings)) -> EncoderModel {
    let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
    let weights = safetensors::open(&folder(name)).unwrap();
    let row = arch::encoder(&config).unwrap().unwrap();
    let graph = row.graph(&config, &weights).unwrap();
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    let session = Session::new(graph, &providers, &SessionOptions::default()).unwrap();
    let mut settings = EncoderSettings::read(&folder(name), &config).unwrap();
    change(&mut settings);
    EncoderModel::new(session, row.shape(&config, &weights).unwrap(), settings)
}

fn ids(value: &Value) -> Vec<u32> {
    integers(value).into_iter().map(|id| u32::try_from(id).unwrap()).collect()
}

/// Vectors of all texts in one batch, whole and each text alone.
fn check_encoder(name: &str) {
    let golden = golden(name);
    let cases = golden["cases"].as_array().unwrap();
    let texts: Vec<Vec<u32>> = cases.iter().map(|case| ids(&case["ids"])).collect();
    let check = |encoder: &EncoderModel, key: &str| {
        let together = encoder.embed(&texts).unwrap();
        for ((case, text), vector) in cases.iter().zip(&texts).zip(&together) {
            assert_near(vector, &case[key], &format!("{name}, {} tokens, {key}", text.len()));
            let alone = encoder.embed(std::slice::from_ref(text)).unwrap();
            let same = alone[0].iter().zip(vector).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(same, "{name}: {} tokens alone", text.len());
        }
    };
    let encoder_as_told = encoder(name, |_| ());
    assert!(encoder_as_told.settings().normalise);
    check(&encoder_as_told, "normalised");
    check(&encoder(name, |settings| settings.normalise = false), "embedding");
    let last = |settings: &mut EncoderSettings| {
        settings.normalise = false;
        settings.pooling = vec![TextPooling::LastToken];
    };
    check(&encoder(name, last), "last_row");
}

/// Scores and logits of all pairs in one batch.
fn check_ranks(name: &str) {
    let golden = golden(name);
    let cases = golden["cases"].as_array().unwrap();
    let pairs: Vec<(Vec<u32>, Vec<u32>)> =
        cases.iter().map(|case| (ids(&case["ids"]), ids(&case["types"]))).collect();
    for (key, sigmoid) in [("score", true), ("logit", false)] {
        let encoder = encoder(name, |settings| settings.sigmoid = sigmoid);
        let scores = encoder.score(&pairs).unwrap();
        for (case, score) in cases.iter().zip(scores) {
            assert_near(&[score], &case[key], &format!("{name}, {key}"));
        }
        assert!(encoder.embed(&[vec![3]]).is_err());
    }
}

#[test]
fn bert_gives_the_recorded_vectors_alone_and_in_a_batch() {
    check_encoder("bert-mean");
    check_encoder("bert-cls");
}

#[test]
fn roberta_gives_the_recorded_vectors_alone_and_in_a_batch() {
    check_encoder("roberta-max");
}

#[test]
fn distilbert_gives_the_recorded_vectors_alone_and_in_a_batch() {
    check_encoder("distilbert-mean");
}

#[test]
fn cross_encoders_give_the_recorded_scores() {
    for name in ["bert-rank", "xlm-roberta-rank", "distilbert-rank"] {
        check_ranks(name);
    }
}

#[test]
fn texts_that_an_encoder_cannot_take_are_named() {
    let encoder = encoder("roberta-max", |_| ());
    assert_eq!((encoder.context(), encoder.dimensions()), (62, Some(32)));
    for (text, expected) in [
        (vec![], "input 1: 0 tokens found, expected from 1 to 62"),
        (vec![5; 63], "input 1: 63 tokens found, expected from 1 to 62"),
        (vec![64], "input 1: token 64 found, expected tokens below 64"),
    ] {
        let error = encoder.embed(&[vec![3; 62], text]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(encoder.score(&[(vec![3], vec![0])]).unwrap_err().to_string().contains("vectors"));
}

/// Logits of the last rows, of all texts that begin together and of each alone.
fn check_encoder_decoder(name: &str) {
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    let options = SessionOptions::default();
    let model = EncoderDecoder::load(&folder(name), &providers, &options).unwrap();
    let golden = golden(name);
    let cases = golden["cases"].as_array().unwrap();
    let texts: Vec<Vec<u32>> = cases.iter().map(|case| ids(&case["ids"])).collect();
    let answers: Vec<Vec<u32>> = cases.iter().map(|case| ids(&case["after"])).collect();
    let mut alone = Vec::new();
    for ((case, text), answer) in cases.iter().zip(&texts).zip(&answers) {
        let mut writing = model.read(std::slice::from_ref(text)).unwrap();
        let rows: Vec<Vec<f32>> =
            answer.iter().map(|token| writing.write(&[*token]).unwrap().remove(0)).collect();
        let recorded = case["logits"].as_array().unwrap();
        for (row, expected) in rows.iter().rev().zip(recorded.iter().rev()) {
            assert_near(row, expected, &format!("{name}, {} tokens, logit", answer.len()));
        }
        alone.push(rows);
    }
    // Texts that end before the longest one go on with a token that does not matter.
    let mut writing = model.read(&texts).unwrap();
    for at in 0..answers.iter().map(Vec::len).max().unwrap() {
        let next: Vec<u32> = answers.iter().map(|ids| ids.get(at).copied().unwrap_or(3)).collect();
        for (found, alone) in writing.write(&next).unwrap().iter().zip(&alone) {
            let Some(alone) = alone.get(at) else { continue };
            let same = found.iter().zip(alone).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(same, "{name}: row {at} in a batch");
        }
    }
    assert!(model.read(&[]).is_err() && model.read(&[vec![]]).is_err());
    assert!(model.read(&[vec![64]]).unwrap_err().to_string().contains("token 64 found"));
    assert!(writing.write(&[3]).unwrap_err().to_string().contains("1 tokens for 4 texts"));
}

#[test]
fn t5_gives_the_recorded_logits_alone_and_in_a_batch() {
    check_encoder_decoder("t5");
    check_encoder_decoder("flan-t5");
}

#[test]
fn configurations_that_ask_for_too_much_are_refused_before_any_work() {
    for (name, key) in [
        ("llama", "num_hidden_layers"),
        ("gemma3", "num_hidden_layers"),
        ("gpt2", "n_layer"),
        ("llama", "max_position_embeddings"),
        ("gemma3", "max_position_embeddings"),
        ("llama-biases", "head_dim"),
    ] {
        let read = std::fs::read(folder(name).join("config.json")).unwrap();
        let mut config: Value = serde_json::from_slice(&read).unwrap();
        config[key] = (1_u64 << 31).into();
        let config = JsonConfig::parse("config.json", config.to_string().as_bytes()).unwrap();
        let weights = safetensors::open(&folder(name)).unwrap();
        let row = arch::architecture(&config).unwrap();
        let error = row.graph(&config, &weights).unwrap_err().to_string();
        assert!(error.contains("2147483648"), "{name}, {key}: {error}");
    }
}
