//! Trained checkpoints beside what the reference library gave for them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::reference::Reference;
use galatea_formats::safetensors;
use galatea_graph::{Graph, evaluate};
use galatea_llm::arch::{self, ModelShape};
use galatea_llm::config::JsonConfig;
use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_runtime::{ExecutionProvider, SessionOptions};
use galatea_tensor::{DataType, Tensor};
use serde_json::Value;

/// Positions of a block, so that prompts lie in several.
const BLOCK: usize = 4;
const BLOCKS: usize = 24;

/// A checkpoint and the recorded results of it.
struct Model {
    graph: Graph,
    shape: ModelShape,
    golden: Value,
}

/// The folder of a checkpoint, and its recorded results.
fn recorded(name: &str) -> Option<(PathBuf, Value)> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    let folder = PathBuf::from(shared).join("models");
    let golden = std::fs::read(folder.join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    Some((folder.join(name), golden[name].clone()))
}

fn model(name: &str) -> Option<Model> {
    let (folder, golden) = recorded(name)?;
    let config = JsonConfig::read(&folder.join("config.json")).unwrap();
    let weights = safetensors::open(&folder).unwrap();
    let row = arch::architecture(&config).unwrap();
    let (graph, shape) = (row.graph(&config, &weights).unwrap(), row.shape(&config).unwrap());
    Some(Model { graph, shape, golden })
}

fn list(values: &[i64]) -> Tensor {
    Tensor::vector(values.to_vec())
}

impl Model {
    fn caches(&self) -> Vec<Tensor> {
        let layer = self.shape.caches(BLOCKS, BLOCK);
        let layer = layer.map(|shape| Tensor::zeros(DataType::Fp32, &shape).unwrap());
        layer.iter().cycle().take(2 * self.shape.layers).cloned().collect()
    }

    /// The logits behind the last of some tokens, which follow those that the caches hold.
    fn step(&self, caches: &mut Vec<Tensor>, before: usize, tokens: &[i64]) -> Vec<f32> {
        let rows = tokens.len() as i64;
        let before = before as i64;
        // The blocks of the sequence in an order of their own.
        let blocks: Vec<i64> = (0..BLOCKS as i64).rev().collect();
        let mut inputs = vec![
            list(tokens),
            list(&(before..before + rows).collect::<Vec<_>>()),
            list(&[0, rows]),
            list(&[before + rows]),
            Tensor::from_vec(&[1, BLOCKS], blocks).unwrap(),
            list(&[rows - 1]),
        ];
        inputs.append(caches);
        let mut outputs = evaluate::run(&self.graph, &inputs).unwrap();
        *caches = outputs.split_off(1);
        outputs[0].to_vec::<f32>().unwrap()
    }

    fn ids(case: &Value, key: &str) -> Vec<i64> {
        case[key].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
    }

    /// Logits behind the prompts as recorded, at once and token by token, and the first tokens that
    /// follow.
    fn check(&self, cases: usize, tokens: usize) {
        for case in self.golden["cases"].as_array().unwrap().iter().take(cases) {
            let (prompt, greedy) = (Self::ids(case, "ids"), Self::ids(case, "greedy_ids"));
            let mut caches = self.caches();
            let mut logits = self.step(&mut caches, 0, &prompt);
            let expected = case["last_logits_first16"].as_array().unwrap();
            for (at, (found, expected)) in logits.iter().zip(expected).enumerate() {
                let expected = expected.as_f64().unwrap();
                let distance = (f64::from(*found) - expected).abs();
                assert!(distance < 2e-3, "logit {at}: {found}, expected {expected}");
            }
            let mut slow = self.caches();
            let mut last = Vec::new();
            for (at, &token) in prompt.iter().enumerate() {
                last = self.step(&mut slow, at, &[token]);
            }
            for (a, b) in logits.iter().zip(&last) {
                assert!((a - b).abs() < 1e-4, "{a} at once, {b} token by token");
            }
            let mut ids = prompt.clone();
            while ids.len() < prompt.len() + tokens {
                let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let next = logits.iter().position(|&logit| logit == best).unwrap() as i64;
                ids.push(next);
                logits = self.step(&mut caches, ids.len() - 1, &[next]);
            }
            assert_eq!(ids[..], greedy[..ids.len()]);
        }
    }
}

#[test]
fn qwen2_gives_the_recorded_logits_and_tokens() {
    if let Some(model) = model("books-qwen2-draft-2m") {
        model.check(2, 6);
    }
    if let Some(model) = model("books-qwen2-13m") {
        model.check(1, 2);
    }
}

#[test]
fn gpt2_gives_the_recorded_logits_and_tokens() {
    if let Some(model) = model("books-gpt2-5m") {
        model.check(2, 4);
    }
}

#[test]
fn t5_gives_the_recorded_logits_and_tokens() {
    let Some((folder, golden)) = recorded("books-t5-7m") else { return };
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    let model = EncoderDecoder::load(&folder, &providers, &SessionOptions::default()).unwrap();
    let tokens = |case: &Value, key: &str| -> Vec<u32> {
        Model::ids(case, key).into_iter().map(|id| u32::try_from(id).unwrap()).collect()
    };
    let cases: Vec<&Value> = golden["cases"].as_array().unwrap().iter().take(2).collect();
    let texts: Vec<Vec<u32>> = cases.iter().map(|case| tokens(case, "ids")).collect();
    for (case, text) in cases.iter().zip(&texts) {
        let mut writing = model.read(std::slice::from_ref(text)).unwrap();
        let logits = writing.write(&[model.shape().start]).unwrap().remove(0);
        for (found, expected) in logits.iter().zip(case["first_logits_first16"].as_array().unwrap())
        {
            let distance = (f64::from(*found) - expected.as_f64().unwrap()).abs();
            assert!(distance < 2e-3, "{found}, expected {expected}");
        }
    }
    let answers = model.generate(&texts, 8, &[0]).unwrap();
    for (case, answer) in cases.iter().zip(answers) {
        assert_eq!(answer, tokens(case, "greedy_ids")[1..=answer.len()]);
    }
}
