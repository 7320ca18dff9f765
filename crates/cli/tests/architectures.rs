//! The tiny checkpoints of `golden/llm`, and the trained ones beside the repository, as the CPU's kernels compute them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use galatea_formats::safetensors::{self, SafeTensors};
use galatea_llm::arch;
use galatea_llm::config::JsonConfig;
use galatea_llm::embed::{EncoderModel, EncoderSettings};
use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_llm::engine::{GenerationEvent, GenerationRequest, RequestTicket};
use galatea_llm::model::{CheckpointOptions, LanguageModel};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::tokens::SpecialText;
use galatea_llm::weights::CheckpointWeights;
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, Tensor, bf16, f16};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

fn cases(name: &str) -> Vec<Value> {
    let bytes = std::fs::read(folder(name).join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&bytes).unwrap();
    golden.get("cases").and_then(Value::as_array).unwrap().clone()
}

fn numbers(value: &Value, key: &str) -> Vec<f64> {
    let list = value.get(key).unwrap_or(value).as_array().unwrap();
    list.iter().map(|number| number.as_f64().unwrap()).collect()
}

fn ids(case: &Value, key: &str) -> Vec<u32> {
    numbers(case, key).into_iter().map(|id| id as u32).collect()
}

fn assert_near(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let distance = (f64::from(*found) - expected).abs();
        assert!(distance < 2e-4 * expected.abs().max(1.0), "{what}: {found}, not {expected}");
    }
}

#[test]
fn encoders_give_the_recorded_vectors_and_scores_in_a_batch() {
    let names = ["bert-mean", "bert-cls", "roberta-max", "distilbert-mean"];
    for name in names.into_iter().chain(["bert-rank", "xlm-roberta-rank", "distilbert-rank"]) {
        let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
        let weights = safetensors::open(&folder(name)).unwrap();
        let row = arch::encoder(&config).unwrap().unwrap();
        let graph = row.graph(&config, &weights).unwrap();
        let shape = row.shape(&config, &weights).unwrap();
        let providers = galatea_providers::all();
        let session = Session::new(graph, &providers, &SessionOptions::default()).unwrap();
        let settings = EncoderSettings::read(&folder(name), &config).unwrap();
        let encoder = EncoderModel::new(session, shape, settings);
        let (cases, key) =
            (cases(name), if name.ends_with("rank") { "score" } else { "normalised" });
        let found: Vec<Vec<f32>> = if key == "score" {
            let pair = |case: &Value| (ids(case, "ids"), ids(case, "types"));
            let pairs: Vec<_> = cases.iter().map(pair).collect();
            encoder.score(&pairs).unwrap().into_iter().map(|score| vec![score]).collect()
        } else {
            let texts: Vec<_> = cases.iter().map(|case| ids(case, "ids")).collect();
            encoder.embed(&texts).unwrap()
        };
        for (case, found) in cases.iter().zip(found) {
            assert_near(&found, &numbers(case, key), name);
        }
    }
}

/// The decoders of `golden/llm`, one of each kind.
const DECODERS: &[&str] =
    &["llama", "llama-biases", "mistral-window", "qwen2", "qwen3", "gemma3", "gpt2"];

/// The logits behind the last of some tokens.
fn logits(name: &str, weights: &dyn CheckpointWeights, tokens: &[u32]) -> Vec<f32> {
    let config = JsonConfig::read(&folder(name).join("config.json")).unwrap();
    let row = arch::architecture(&config).unwrap();
    let graph = row.graph(&config, weights).unwrap();
    let shape = row.shape(&config).unwrap();
    let providers = galatea_providers::all();
    let session = Session::new(graph, &providers, &SessionOptions::default()).unwrap();
    let rows = tokens.len() as i64;
    let mut inputs = vec![
        Tensor::vector(tokens.iter().copied().map(i64::from).collect::<Vec<_>>()),
        Tensor::vector((0..rows).collect::<Vec<i64>>()),
        Tensor::vector(vec![0, rows]),
        Tensor::vector(vec![rows]),
        Tensor::from_vec(&[1, 3], vec![2_i64, 0, 1]).unwrap(),
        Tensor::vector(vec![rows - 1]),
    ];
    let layer = shape.caches(3, 16).map(|dims| Tensor::zeros(DataType::Fp32, &dims).unwrap());
    inputs.extend(layer.iter().cycle().take(2 * shape.layers).cloned());
    let outputs = session.run_tensors(Run::owned(inputs)).unwrap();
    outputs.first().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn decoders_give_the_recorded_logits() {
    for &name in DECODERS {
        let weights = safetensors::open(&folder(name)).unwrap();
        for case in cases(name) {
            let found = logits(name, &weights, &ids(&case, "ids"));
            let expected = case.get("logits").and_then(Value::as_array).unwrap();
            assert_near(&found, &numbers(expected.last().unwrap(), ""), name);
        }
    }
}

/// The weights of a checkpoint, changed.
struct Changed(OrderedMap<String, Tensor>);

impl Changed {
    fn new(name: &str, change: impl Fn(&Tensor) -> Tensor) -> Self {
        let weights = safetensors::open(&folder(name)).unwrap();
        let changed = |(name, tensor): (&String, &Tensor)| (name.clone(), change(tensor));
        Self(weights.tensors().iter().map(changed).collect())
    }

    fn safetensors(&self) -> SafeTensors {
        let tensors = self.0.iter().map(|(name, tensor)| (name.as_str(), tensor));
        let mut bytes = Vec::new();
        safetensors::write(tensors, &OrderedMap::new(), &mut bytes).unwrap();
        safetensors::parse(bytes.into()).unwrap()
    }
}

/// A tensor with every number as one of 16 bits.
fn halved(tensor: &Tensor, dtype: DataType) -> Tensor {
    let all = widened(tensor).to_vec::<f32>().unwrap().into_iter();
    match dtype {
        DataType::Fp16 => Tensor::from_vec(tensor.shape(), all.map(f16::from_f32).collect()),
        _ => Tensor::from_vec(tensor.shape(), all.map(bf16::from_f32).collect()),
    }
    .unwrap()
}

/// The numbers of a tensor of halves as FP32.
fn widened(tensor: &Tensor) -> Tensor {
    let all: Vec<f32> = match tensor.dtype() {
        DataType::Fp16 => tensor.to_vec::<f16>().unwrap().into_iter().map(f16::to_f32).collect(),
        _ => tensor.to_vec::<bf16>().unwrap().into_iter().map(bf16::to_f32).collect(),
    };
    Tensor::from_vec(tensor.shape(), all).unwrap()
}

#[test]
fn weights_of_16_bits_give_what_their_numbers_give_in_fp32() {
    for &name in DECODERS {
        for dtype in [DataType::Fp16, DataType::Bf16] {
            let halves = Changed::new(name, |tensor| halved(tensor, dtype)).safetensors();
            let floats = Changed::new(name, |tensor| widened(&halved(tensor, dtype))).safetensors();
            for case in cases(name) {
                let tokens = ids(&case, "ids");
                let expected: Vec<f64> =
                    logits(name, &floats, &tokens).into_iter().map(f64::from).collect();
                assert_near(&logits(name, &halves, &tokens), &expected, &format!("{name} {dtype}"));
            }
        }
    }
}

#[test]
fn t5_gives_the_recorded_logits() {
    for name in ["t5", "flan-t5"] {
        let (providers, options) = (galatea_providers::all(), SessionOptions::default());
        let model = EncoderDecoder::load(&folder(name), &providers, &options).unwrap();
        for case in cases(name) {
            let mut writing = model.read(&[ids(&case, "ids")]).unwrap();
            let step = |token| writing.write(&[token]).unwrap().remove(0);
            let rows: Vec<Vec<f32>> = ids(&case, "after").into_iter().map(step).collect();
            let recorded = case.get("logits").and_then(Value::as_array).unwrap();
            for (row, expected) in rows.iter().rev().zip(recorded.iter().rev()) {
                assert_near(row, &numbers(expected, ""), name);
            }
        }
    }
}

/// The checkpoint of this name among those that were trained on books, and its recorded cases.
fn trained(name: &str) -> Option<(PathBuf, Vec<Value>)> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    let models = Path::new(&shared).join("models");
    let golden = std::fs::read(models.join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    let cases = golden.pointer(&format!("/{name}/cases")).and_then(Value::as_array).unwrap();
    Some((models.join(name), cases.clone()))
}

/// An answer that is under way.
type Asked = (RequestTicket, Receiver<GenerationEvent>);

/// Asks for so many of the likeliest tokens behind a prompt.
fn ask(model: &LanguageModel, prompt: Vec<u32>, tokens: usize) -> Asked {
    let sampling = SamplingParameters {
        temperature: 0.0,
        max_tokens: Some(tokens as u32),
        ignore_eos: true,
        ..SamplingParameters::default()
    };
    let (priority, client, salt, constraint, id) = (0, 0, 0, None, String::new());
    let request = GenerationRequest { prompt, sampling, constraint, priority, client, salt, id };
    let (to, events) = mpsc::channel();
    let sink = Box::new(move |event| drop(to.send(event)));
    (model.engine().submit(request, sink).unwrap(), events)
}

/// The tokens and the text of an answer.
fn answer((_ticket, events): Asked) -> (Vec<u32>, String) {
    let (mut tokens, mut text) = (Vec::new(), String::new());
    loop {
        match events.recv().unwrap() {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => {
                tokens.extend(delta.tokens);
                text.push_str(&delta.text);
            }
            GenerationEvent::Finished(_) => return (tokens, text),
            GenerationEvent::Failed(error) => panic!("{error}"),
        }
    }
}

/// Checks that answers match the reference library's token for token: one alone, and all at once.
fn check_text(name: &str) {
    let Some((folder, cases)) = trained(name) else { return };
    let model =
        LanguageModel::load(&folder, &CheckpointOptions::new(galatea_providers::all())).unwrap();
    let expected = |case: &Value| {
        let (prompt, mut greedy) = (ids(case, "ids"), ids(case, "greedy_ids"));
        // Answers of T5 begin with a token of their own, others with their prompt.
        let before = if greedy.starts_with(&prompt) { prompt.len() } else { 1 };
        let answer = greedy.split_off(before);
        (prompt, answer)
    };
    let begun = |case: &Value| {
        let (prompt, tokens) = expected(case);
        ask(&model, prompt, tokens.len())
    };
    let check = |case: &Value, found: (Vec<u32>, String)| {
        let (_, tokens) = expected(case);
        assert_eq!(found.0, tokens, "{name}: {}", found.1);
        let whole = model.tokenizer().decode(&ids(case, "greedy_ids"), SpecialText::Skip);
        assert_eq!(whole, case.get("greedy_text").unwrap().as_str().unwrap(), "{name}");
        assert!(whole.ends_with(found.1.trim_end_matches(char::REPLACEMENT_CHARACTER)), "{name}");
    };
    let alone = cases.first().unwrap();
    check(alone, answer(begun(alone)));
    let all: Vec<Asked> = cases.iter().map(begun).collect();
    for (case, asked) in cases.iter().zip(all) {
        check(case, answer(asked));
    }
}

#[test]
fn trained_decoders_write_the_recorded_texts() {
    for name in ["books-qwen2-draft-2m", "books-qwen2-13m", "books-gpt2-5m"] {
        check_text(name);
    }
}

#[test]
fn a_trained_t5_writes_the_recorded_texts() {
    check_text("books-t5-7m");
}

#[test]
fn encoders_and_t5_are_near_the_recorded_results_with_rounded_weights() {
    let (providers, options) = (galatea_providers::all(), SessionOptions::default());
    let to = "q8_0".parse().unwrap();
    for name in ["bert-mean", "roberta-max", "distilbert-mean"] {
        let encoder = EncoderModel::load_as(&folder(name), &providers, &options, Some(to)).unwrap();
        for case in cases(name) {
            let found = encoder.embed(&[ids(&case, "ids")]).unwrap().remove(0);
            let expected = numbers(&case, "normalised");
            let cosine: f64 = found.iter().zip(expected).map(|(a, b)| f64::from(*a) * b).sum();
            assert!(cosine > 0.999, "{name}: {cosine}");
        }
    }
    for name in ["t5", "flan-t5"] {
        let model = EncoderDecoder::load_as(&folder(name), &providers, &options, Some(to)).unwrap();
        let whole = EncoderDecoder::load(&folder(name), &providers, &options).unwrap();
        assert!(model.weight_bytes() < whole.weight_bytes(), "{name}");
        for case in cases(name) {
            let mut writing = model.read(&[ids(&case, "ids")]).unwrap();
            let step = |token| writing.write(&[token]).unwrap().remove(0);
            let rows: Vec<Vec<f32>> = ids(&case, "after").into_iter().map(step).collect();
            let recorded = case.get("logits").and_then(Value::as_array).unwrap();
            for (row, expected) in rows.iter().rev().zip(recorded.iter().rev()) {
                let pairs = row.iter().zip(numbers(expected, ""));
                let (missed, size) = pairs.fold((0.0, 0.0), |(missed, size), (a, b)| {
                    (missed + (f64::from(*a) - b).powi(2), size + b * b)
                });
                // Rows are rounded to 8 bits too, and scores of T5 are not made smaller.
                assert!((missed / size).sqrt() < 0.25, "{name}: {}", (missed / size).sqrt());
            }
        }
    }
}

#[test]
fn a_draft_model_counts_in_the_memory_of_its_model() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat/1");
    let options = CheckpointOptions::new(galatea_providers::all());
    let alone = LanguageModel::load(&sample, &options).unwrap();
    let with_draft = CheckpointOptions { draft: Some((sample.clone(), 3)), ..options };
    let both = LanguageModel::load(&sample, &with_draft).unwrap();
    assert!(both.memory_bytes() > alone.memory_bytes() + alone.weight_bytes());
}
