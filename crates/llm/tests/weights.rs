//! Weights that MLX has quantized, that are rounded when they are loaded, and caches of every type, beside what
//! the same checkpoint gives in FP32.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::reference::Reference;
use galatea_formats::safetensors::{self, SafeTensors};
use galatea_graph::evaluate;
use galatea_llm::arch::{self, StepOptions};
use galatea_llm::config::JsonConfig;
use galatea_llm::embed::EncoderModel;
use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_llm::error::Result;
use galatea_llm::facts::{CheckpointFacts, ModelDuty};
use galatea_llm::weights::{CheckpointWeights, FolderWeights, GgmlQuantization, RoundedCheckpoint};
use galatea_runtime::{ExecutionProvider, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, Tensor, bf16};
use serde_json::{Value, json};

const TOKENS: [i64; 7] = [3, 17, 5, 60, 2, 33, 8];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

fn config(folder: &Path) -> JsonConfig {
    JsonConfig::read(&folder.join("config.json")).unwrap()
}

/// The logits of all of some tokens.
fn logits(config: &JsonConfig, weights: &dyn CheckpointWeights, cache: DataType) -> Vec<f32> {
    let row = arch::architecture(config).unwrap();
    let options = StepOptions { cache, positions: Some(16) };
    let graph = row.graph_for(config, weights, &options).unwrap();
    let rows = TOKENS.len() as i64;
    let mut inputs = vec![
        Tensor::vector(TOKENS.to_vec()),
        Tensor::vector((0..rows).collect::<Vec<i64>>()),
        Tensor::vector(vec![0, rows]),
        Tensor::vector(vec![rows]),
        Tensor::from_vec(&[1, 4], vec![2_i64, 0, 3, 1]).unwrap(),
        Tensor::vector((0..rows).collect::<Vec<i64>>()),
    ];
    for &id in graph.inputs.iter().skip(inputs.len()) {
        let fact = graph.value(id).declared.clone().unwrap();
        // Four blocks of four positions, wherever these axes are.
        let dims =
            fact.shape.unwrap().iter().map(|dim| dim.known().unwrap_or(4)).collect::<Vec<_>>();
        inputs.push(Tensor::zeros(fact.dtype, &dims).unwrap());
    }
    evaluate::run(&graph, &inputs).unwrap()[0].to_vec::<f32>().unwrap()
}

/// The root of the mean square of what differs, as a share of that of the numbers.
fn missed(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let square = |x: f32| x * x;
    let distance: f32 = found.iter().zip(expected).map(|(a, b)| square(a - b)).sum();
    (distance / expected.iter().copied().map(square).sum::<f32>()).sqrt()
}

/// A layer in MLX's form: 8 codes of 4 bits or 4 of 8 in a word, groups of 32.
#[allow(clippy::cast_possible_truncation, reason = "codes have few bits")]
fn coded(tensor: &Tensor, bits: u32) -> [Tensor; 3] {
    let (rows, columns) = (tensor.shape()[0], tensor.shape()[1]);
    let numbers: Vec<f32> =
        tensor.to_vec::<bf16>().unwrap().into_iter().map(bf16::to_f32).collect();
    let most = f32::from(u8::MAX >> (8 - bits));
    let (mut words, mut scales, mut biases) = (Vec::new(), Vec::new(), Vec::new());
    for group in numbers.chunks(32) {
        let least = group.iter().copied().fold(f32::INFINITY, f32::min);
        let greatest = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scale = bf16::from_f32(((greatest - least) / most).max(1e-4));
        let bias = bf16::from_f32(least);
        let code = |x: &f32| ((x - bias.to_f32()) / scale.to_f32()).round().clamp(0.0, most);
        for word in group.chunks(32 / bits as usize) {
            let parts = word.iter().enumerate();
            words.push(
                parts.fold(0_u32, |all, (at, x)| all | (code(x) as u32) << (at as u32 * bits)),
            );
        }
        scales.push(scale);
        biases.push(bias);
    }
    let words = Tensor::from_vec(&[rows, columns * bits as usize / 32], words).unwrap();
    let part = |all| Tensor::from_vec(&[rows, columns / 32], all).unwrap();
    [words, part(scales), part(biases)]
}

fn write(folder: &Path, config: &Value, tensors: &OrderedMap<String, Tensor>) {
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let file = std::fs::File::create(folder.join("model.safetensors")).unwrap();
    let all = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
    safetensors::write(all, &OrderedMap::new(), file).unwrap();
}

/// Writes a checkpoint with its layers in MLX's form, but for `plain`; `finer` has 8 bits and the others 4.
fn write_coded(name: &str, place: &Path, finer: &str, plain: &str) {
    let source = safetensors::open(&folder(name)).unwrap();
    let read = std::fs::read_to_string(folder(name).join("config.json")).unwrap();
    let mut all: Value = serde_json::from_str(&read).unwrap();
    all["quantization"] = json!({ "group_size": 32, "bits": 4, plain: false,
        finer: { "group_size": 32, "bits": 8 } });
    let mut tensors = OrderedMap::new();
    for (name, tensor) in source.tensors() {
        let layer = name.strip_suffix(".weight").unwrap_or(name);
        let whole = tensor.shape().len() == 2 && tensor.shape()[1].is_multiple_of(32);
        if !whole || layer == plain {
            tensors.insert(name.clone(), tensor.clone());
            continue;
        }
        let bits = if layer == finer { 8 } else { 4 };
        let parts = ["weight", "scales", "biases"].into_iter().zip(coded(tensor, bits));
        tensors.extend(parts.map(|(part, tensor)| (format!("{layer}.{part}"), tensor)));
    }
    write(place, &all, &tensors);
}

/// Writes what the numbers of a folder's codes are.
fn write_decoded(from: &Path, to: &Path) {
    let weights = FolderWeights::open(from, &config(from)).unwrap();
    let mut all: Value =
        serde_json::from_slice(&std::fs::read(from.join("config.json")).unwrap()).unwrap();
    all.as_object_mut().unwrap().remove("quantization");
    let tensor = |name: String| {
        let tensor = weights.tensor(&name).unwrap();
        (name, tensor)
    };
    write(to, &all, &weights.names().into_iter().map(tensor).collect());
}

/// Weights of which nothing is of few bits.
struct Widened<'a>(&'a dyn CheckpointWeights);

impl CheckpointWeights for Widened<'_> {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        self.0.tensor(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

#[test]
fn layers_that_mlx_has_quantized_give_what_their_numbers_give() {
    let place = tempfile::tempdir().unwrap();
    // One layer has more bits than the others, and one none at all.
    let (finer, plain) = ("model.layers.0.mlp.gate_proj", "model.layers.1.self_attn.v_proj");
    write_coded("qwen3", place.path(), finer, plain);
    let config = config(place.path());
    let weights = FolderWeights::open(place.path(), &config).unwrap();
    let matrix = weights.blocks(&format!("{finer}.weight")).unwrap().unwrap();
    assert_eq!((matrix.format().bits(), matrix.format().block()), (8, 32));
    let found = logits(&config, &weights, DataType::Fp32);
    let expected = logits(&config, &Widened(&weights), DataType::Fp32);
    assert!(missed(&found, &expected) < 1e-5, "{}", missed(&found, &expected));
    let source = safetensors::open(&folder("qwen3")).unwrap();
    let original = logits(&config, &source, DataType::Fp32);
    assert!((0.001..0.5).contains(&missed(&found, &original)), "{}", missed(&found, &original));
}

const TEXTS: [&[u32]; 2] = [&[2, 17, 5, 60, 3], &[2, 33, 3]];

/// The rows that an encoder of a folder makes of some texts.
fn rows(folder: &Path, to: Option<&str>) -> Vec<f32> {
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    let options = SessionOptions::default();
    let to = to.map(|name| name.parse().unwrap());
    let encoder = EncoderModel::load_as(folder, &providers, &options, to).unwrap();
    encoder.embed(&TEXTS.map(<[u32]>::to_vec)).unwrap().concat()
}

/// The logits that a T5 of a folder gives behind some texts and the beginning of an answer.
fn written(folder: &Path, to: Option<&str>) -> Vec<f32> {
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    let options = SessionOptions::default();
    let to = to.map(|name| name.parse().unwrap());
    let model = EncoderDecoder::load_as(folder, &providers, &options, to).unwrap();
    let mut writing = model.read(&TEXTS.map(<[u32]>::to_vec)).unwrap();
    [0, 9, 4].into_iter().flat_map(|token| writing.write(&[token; 2]).unwrap().concat()).collect()
}

/// A checkpoint, what it computes, and layers of it.
type Sort = (&'static str, fn(&Path, Option<&str>) -> Vec<f32>, [&'static str; 2]);

/// The other models than decoders.
const OTHERS: [Sort; 4] = [
    ("bert-mean", rows, ["encoder.layer.0.intermediate.dense", "embeddings.word_embeddings"]),
    ("roberta-max", rows, ["encoder.layer.1.attention.self.key", "encoder.layer.0.output.dense"]),
    ("t5", written, ["encoder.block.0.layer.0.SelfAttention.q", "shared"]),
    ("flan-t5", written, ["decoder.block.1.layer.1.EncDecAttention.v", "lm_head"]),
];

#[test]
fn encoders_and_t5_that_mlx_has_quantized_give_what_their_numbers_give() {
    for (name, compute, [finer, plain]) in OTHERS {
        let (coded, decoded) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_coded(name, coded.path(), finer, plain);
        write_decoded(coded.path(), decoded.path());
        let (found, expected) = (compute(coded.path(), None), compute(decoded.path(), None));
        assert!(missed(&found, &expected) < 1e-5, "{name}: {}", missed(&found, &expected));
        // A folder without what sentence-transformers says of vectors, as the others are.
        let plain = tempfile::tempdir().unwrap();
        let config = std::fs::read(folder(name).join("config.json")).unwrap();
        let source = safetensors::open(&folder(name)).unwrap();
        write(plain.path(), &serde_json::from_slice(&config).unwrap(), source.tensors());
        let lost = missed(&found, &compute(plain.path(), None));
        assert!((0.001..0.9).contains(&lost), "{name}: {lost}");
    }
}

#[test]
fn encoders_and_t5_are_rounded_while_they_are_loaded() {
    for (name, compute, _) in OTHERS {
        let expected = compute(&folder(name), None);
        let mut before = 0.0;
        for (to, most) in [("q8_0", 0.05), ("q5_1", 0.3), ("q4_0", 0.7)] {
            let missed = missed(&compute(&folder(name), Some(to)), &expected);
            assert!(missed > before && missed < most, "{name} {to}: {missed} after {before}");
            before = missed;
        }
    }
}

#[test]
fn a_checkpoint_tells_how_its_weights_are_stored_and_what_is_wrong() {
    let place = tempfile::tempdir().unwrap();
    let (finer, plain) = ("model.layers.0.mlp.gate_proj", "model.layers.1.self_attn.v_proj");
    write_coded("qwen3", place.path(), finer, plain);
    let facts = CheckpointFacts::read(place.path()).unwrap();
    assert_eq!(
        (facts.format, facts.duty, facts.problem.clone()),
        ("MLX", ModelDuty::Decoder, None)
    );
    let source = safetensors::open(&folder("qwen3")).unwrap();
    let numbers: usize = source.tensors().values().map(Tensor::elements).sum();
    assert_eq!(facts.parameters(), numbers);
    let bytes = std::fs::metadata(place.path().join("model.safetensors")).unwrap().len();
    assert!(facts.weight_bytes() < usize::try_from(bytes).unwrap());
    let of = |name: &str| facts.weights.iter().find(|kind| kind.name == name).unwrap().clone();
    assert_eq!(of("MLX 8 bits").tensors, 1);
    assert!(of("MLX 4 bits").tensors > 5 && of("BF16").tensors > 1);
    // Codes of 4 bits, and for each 32 of them a scale and a bias of 16.
    assert_eq!(of("MLX 4 bits").bytes * 8, of("MLX 4 bits").numbers * 5);
    let shape = config(&folder("qwen3"));
    let [layers, heads, width] = ["num_hidden_layers", "num_key_value_heads", "head_dim"]
        .map(|key| shape.length(key).unwrap());
    assert_eq!(facts.cache[0].bytes, 2 * layers * heads * width * 4);
    assert!(facts.tokenizer.is_err());

    let mut tensors = source.tensors().clone();
    tensors.remove("model.norm.weight");
    let all = std::fs::read(folder("qwen3").join("config.json")).unwrap();
    write(place.path(), &serde_json::from_slice(&all).unwrap(), &tensors);
    let problem = CheckpointFacts::read(place.path()).unwrap().problem.unwrap().to_string();
    assert!(problem.contains("model.norm.weight"), "{problem}");
    write(place.path(), &json!({"model_type": "rwkv"}), &tensors);
    let error = CheckpointFacts::read(place.path()).unwrap_err().to_string();
    for known in ["rwkv", "llama", "bert", "t5"] {
        assert!(error.contains(known), "{error}");
    }
}

#[test]
fn codes_of_other_programs_are_named() {
    let place = tempfile::tempdir().unwrap();
    for (entry, expected) in [
        (json!({"quantization_config": {"quant_method": "awq"}}), "quant_method 'awq', expected"),
        (json!({"quantization": {"bits": 7, "group_size": 64}}), "'bits' is 7, expected one of"),
        (json!({"quantization": {"bits": 4, "group_size": 48}}), "'group_size' is 48"),
    ] {
        write(place.path(), &entry, &OrderedMap::new());
        let error = FolderWeights::open(place.path(), &config(place.path())).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains("config.json"), "{error}");
    }
}

#[test]
fn rounded_weights_are_near_the_floats_and_the_nearer_the_more_bits_they_have() {
    for name in ["llama", "gemma3", "gpt2"] {
        let (config, source) = (config(&folder(name)), safetensors::open(&folder(name)).unwrap());
        let expected = logits(&config, &source, DataType::Fp32);
        let mut before = 0.0;
        for (to, most) in [("q8_0", 0.03), ("q5_1", 0.25), ("q4_0", 0.6)] {
            let to: GgmlQuantization = to.parse().unwrap();
            let weights = RoundedCheckpoint::new(source.clone(), to);
            let missed = missed(&logits(&config, &weights, DataType::Fp32), &expected);
            assert!(missed > before && missed < most, "{name} {to}: {missed} after {before}");
            before = missed;
        }
    }
}

#[test]
fn caches_of_every_type_give_almost_the_recorded_logits() {
    for name in ["llama", "qwen3", "gemma3", "gpt2", "mistral-window"] {
        let (config, source) = (config(&folder(name)), safetensors::open(&folder(name)).unwrap());
        let expected = logits(&config, &source, DataType::Fp32);
        // Keys and values keep 11, 8 and 7 bits; what comes of them is off by some of the last one.
        for (cache, most) in
            [(DataType::Fp16, 1e-3), (DataType::Bf16, 1e-2), (DataType::Int8, 2e-2)]
        {
            let missed = missed(&logits(&config, &source, cache), &expected);
            assert!(missed > 0.0 && missed < most, "{name} {cache}: {missed}");
        }
    }
}

/// The error of building a checkpoint whose weights are changed.
fn error(change: impl Fn(&mut OrderedMap<String, Tensor>)) -> String {
    let mut tensors = safetensors::open(&folder("llama")).unwrap().tensors().clone();
    change(&mut tensors);
    let place = tempfile::tempdir().unwrap();
    write(place.path(), &json!({}), &tensors);
    let weights: SafeTensors = safetensors::open(place.path()).unwrap();
    let config = config(&folder("llama"));
    arch::architecture(&config).unwrap().graph(&config, &weights).unwrap_err().to_string()
}

#[test]
fn missing_misshapen_and_unknown_weights_are_named_with_what_was_found_and_expected() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let missing = error(|all| drop(all.remove(name)));
    assert!(missing.contains(name) && missing.contains("model.safetensors"), "{missing}");
    assert!(missing.contains("not among the"), "{missing}");
    let other = Tensor::from_vec(&[3, 2], vec![bf16::ONE; 6]).unwrap();
    let misshapen = error(|all| drop(all.insert(name.to_owned(), other.clone())));
    assert!(
        misshapen.contains(&format!("'{name}': shape [3, 2], expected [40, 32]")),
        "{misshapen}"
    );
    let flat = Tensor::vector(vec![bf16::ONE; 6]);
    let flat = error(|all| drop(all.insert(name.to_owned(), flat.clone())));
    assert!(flat.contains(&format!("'{name}': shape [6], expected [40, 32]")), "{flat}");
    let extra = error(|all| drop(all.insert("model.layers.9.x".to_owned(), other.clone())));
    assert!(extra.contains("'model.layers.9.x': the architecture has no such weight"), "{extra}");
    let words = Tensor::from_vec(&[40, 32], vec![1_i64; 40 * 32]).unwrap();
    let typed = error(|all| drop(all.insert(name.to_owned(), words.clone())));
    assert!(typed.contains(name) && typed.contains("INT64"), "{typed}");
}
