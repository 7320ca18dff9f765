//! Language models on the GPU: every architecture beside what the reference libraries gave, and trained
//! checkpoints beside their recorded results.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use galatea_formats::safetensors;
use galatea_gpu::{GpuDevice, GpuProvider, PoolConfig, devices};
use galatea_graph::{Graph, infer};
use galatea_llm::arch::{self, ModelShape, StepOptions};
use galatea_llm::cache::{BlockCopy, BlockSwap};
use galatea_llm::config::JsonConfig;
use galatea_llm::engine::{SessionModel, StepBatch, StepModel};
use galatea_llm::sampling::LogitNeed;
use galatea_llm::weights::CheckpointWeights;
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::{
    ClaimRequest, ExecutionProvider, Precision, PreparedGraph, Session, SessionOptions,
};
use galatea_tensor::{DataType, OrderedMap, Tensor};
use serde_json::Value;

/// Decoders that are recorded.
const DECODERS: &[&str] = &[
    "llama",
    "llama-biases",
    "llama-linear",
    "llama-dynamic",
    "llama-yarn",
    "llama-llama3",
    "mistral-window",
    "qwen2",
    "qwen2-window",
    "qwen3",
    "gemma3",
    "gpt2",
];

/// Positions of a block, so that sequences lie in several, and the blocks.
const BLOCK: usize = 4;
const BLOCKS: usize = 24;

/// The device under test, opened for one test alone: its counters are looked at. None where the host has
/// none, which is said.
fn device() -> Option<Arc<GpuDevice>> {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return None;
    }
    Some(GpuDevice::open(0).unwrap())
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

/// Trained checkpoints and what is recorded of them.
fn trained() -> Option<(PathBuf, Value)> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    let folder = PathBuf::from(shared).join("models");
    let recorded = std::fs::read(folder.join("golden.json")).unwrap();
    Some((folder, serde_json::from_slice(&recorded).unwrap()))
}

fn decoder(folder: &Path, cache: DataType) -> (Graph, ModelShape) {
    let config = JsonConfig::read(&folder.join("config.json")).unwrap();
    let weights = safetensors::open(folder).unwrap();
    let row = arch::architecture(&config).unwrap();
    let options = StepOptions { cache, ..StepOptions::default() };
    (row.graph_for(&config, &weights, &options).unwrap(), row.shape(&config).unwrap())
}

/// A decoder on some provider alone.
fn model_on(
    provider: Arc<dyn ExecutionProvider>,
    folder: &Path,
    cache: DataType,
    options: &SessionOptions,
) -> SessionModel {
    let (graph, shape) = decoder(folder, cache);
    let session = Session::new(graph, &[provider], options).unwrap();
    SessionModel::new(session, shape, NonZeroUsize::new(BLOCK).unwrap(), BLOCKS).unwrap()
}

/// A decoder on the GPU alone.
fn model(
    device: &Arc<GpuDevice>,
    folder: &Path,
    cache: DataType,
    options: &SessionOptions,
) -> SessionModel {
    model_on(Arc::new(GpuProvider::on(Arc::clone(device))), folder, cache, options)
}

/// Operators of a decoder that the GPU does not take, with the reasons.
fn unclaimed(
    device: &Arc<GpuDevice>,
    folder: &Path,
    cache: DataType,
) -> OrderedMap<String, String> {
    let (graph, _) = decoder(folder, cache);
    let options = SessionOptions::default();
    let prepared = PreparedGraph::new(graph, options.optimise).unwrap();
    let facts = infer::facts(&prepared.graph, &HashMap::new()).unwrap();
    let claims =
        GpuProvider::on(Arc::clone(device)).claim(&ClaimRequest::new(&prepared.graph, &facts));
    let taken: HashSet<usize> = claims.claims.iter().flat_map(|c| c.nodes.clone()).collect();
    let reasons: HashMap<usize, String> =
        claims.refusals.into_iter().map(|refusal| (refusal.node, refusal.reason)).collect();
    let nodes = prepared.graph.nodes.iter().enumerate();
    let left = nodes.filter(|(at, _)| !taken.contains(at));
    left.map(|(at, node)| (node.operator_name(), reasons.get(&at).cloned().unwrap_or_default()))
        .collect()
}

fn integers(value: &Value) -> Vec<u32> {
    let id = |id: &Value| u32::try_from(id.as_u64().unwrap()).unwrap();
    value.as_array().unwrap().iter().map(id).collect()
}

/// The largest distance of logits from recorded ones, relative to the larger of 1 and the number.
fn distance(found: &[f32], expected: &Value) -> f64 {
    let expected = expected.as_array().unwrap();
    let off = |(found, expected): (&f32, &Value)| {
        let expected = expected.as_f64().unwrap();
        (f64::from(*found) - expected).abs() / expected.abs().max(1.0)
    };
    found
        .iter()
        .zip(expected)
        .map(off)
        .fold(0.0_f64, |worst, far| if far.is_nan() { f64::INFINITY } else { worst.max(far) })
}

#[test]
fn the_gpu_takes_every_node_of_every_decoder() {
    let Some(device) = device() else { return };
    let mut left = OrderedMap::new();
    for name in DECODERS {
        for cache in [DataType::Fp32, DataType::Fp16, DataType::Int8] {
            let own = unclaimed(&device, &golden(name), cache);
            if !own.is_empty() {
                left.insert(format!("{name} {cache}"), own);
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn decoders_give_the_recorded_logits() {
    let Some(device) = device() else { return };
    for name in DECODERS {
        let folder = golden(name);
        let recorded: Value =
            serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
        let options = SessionOptions::default();
        let mut model = model(&device, &folder, DataType::Fp32, &options);
        for case in recorded["cases"].as_array().unwrap() {
            let tokens = integers(&case["ids"]);
            let logits = model.logits(&tokens).unwrap();
            let rows: Vec<&[f32]> = logits.chunks(logits.len() / tokens.len()).collect();
            let expected = case["logits"].as_array().unwrap();
            for (row, expected) in rows.iter().rev().zip(expected.iter().rev()) {
                let off = distance(row, expected);
                assert!(off < 1e-4, "{name}, {} tokens: {off}", tokens.len());
            }
        }
    }
}

#[test]
fn narrow_caches_and_narrow_sums_give_what_the_processor_gives() {
    let Some(device) = device() else { return };
    let narrow = SessionOptions { precision: Precision::Fp16, ..SessionOptions::default() };
    // A byte whose number lies near the middle of two may become either; values of FP16 have three digits.
    let cases = [
        (DataType::Fp16, SessionOptions::default(), 2e-3),
        (DataType::Bf16, SessionOptions::default(), 1e-2),
        (DataType::Int8, SessionOptions::default(), 2e-2),
        (DataType::Fp16, narrow, 3e-2),
    ];
    for (cache, options, most) in cases {
        for name in ["llama", "gemma3", "gpt2"] {
            let folder = golden(name);
            let recorded = std::fs::read(folder.join("golden.json")).unwrap();
            let recorded: Value = serde_json::from_slice(&recorded).unwrap();
            let tokens = integers(&recorded["cases"][0]["ids"]);
            let found = model(&device, &folder, cache, &options).logits(&tokens).unwrap();
            let processor: Arc<dyn ExecutionProvider> = Arc::new(CpuProvider::new());
            let plain = SessionOptions::default();
            let expected = model_on(processor, &folder, cache, &plain).logits(&tokens).unwrap();
            let both = found.iter().zip(&expected);
            let off =
                both.map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0_f32, |worst, far| {
                    if far.is_nan() { f32::INFINITY } else { worst.max(far) }
                });
            assert!(off < most, "{name} with caches of {cache}: {off}");
        }
    }
}

/// Weights whose layers are repeated: layer 5 of two is the second one.
struct Repeated<'w> {
    own: &'w dyn CheckpointWeights,
    layers: usize,
}

impl Repeated<'_> {
    const LAYERS: usize = 24;

    /// A name with the number of its layer changed.
    fn named(name: &str, change: impl Fn(usize) -> usize) -> String {
        let renumber = |part: &str| match part.parse::<usize>() {
            Ok(layer) => change(layer).to_string(),
            Err(_) => part.to_owned(),
        };
        name.split('.').map(renumber).collect::<Vec<_>>().join(".")
    }

    fn of(&self, name: &str) -> String {
        Self::named(name, |layer| layer % self.layers)
    }
}

impl CheckpointWeights for Repeated<'_> {
    fn tensor(&self, name: &str) -> galatea_llm::error::Result<Tensor> {
        self.own.tensor(&self.of(name))
    }

    fn names(&self) -> Vec<String> {
        let own = self.own.names();
        let all = (0..Self::LAYERS).flat_map(|at| {
            let first = at % self.layers;
            let of_layer = move |name: &&String| Self::named(name, |_| first) == **name;
            own.iter().filter(of_layer).map(move |name| Self::named(name, |_| at))
        });
        all.collect::<HashSet<_>>().into_iter().collect()
    }
}

#[test]
fn a_step_of_24_layers_starts_at_most_400_shaders() {
    let Some(device) = device() else { return };
    let mut all = OrderedMap::new();
    for (name, key) in [("llama", "num_hidden_layers"), ("gpt2", "n_layer")] {
        let folder = golden(name);
        let text = std::fs::read(folder.join("config.json")).unwrap();
        let mut config: Value = serde_json::from_slice(&text).unwrap();
        let layers = usize::try_from(config[key].as_u64().unwrap()).unwrap();
        config[key] = Repeated::LAYERS.into();
        let config = JsonConfig::parse(name, config.to_string().as_bytes()).unwrap();
        let own = safetensors::open(&folder).unwrap();
        let weights = Repeated { own: &own, layers };
        let row = arch::architecture(&config).unwrap();
        let options = StepOptions { cache: DataType::Fp16, ..StepOptions::default() };
        let mut graph = row.graph_for(&config, &weights, &options).unwrap();
        let shape = row.shape(&config).unwrap();
        arch::add_choices(&mut graph, shape.vocabulary).unwrap();
        let gpu: Arc<dyn ExecutionProvider> = Arc::new(GpuProvider::on(Arc::clone(&device)));
        let session = Session::new(graph, &[gpu], &SessionOptions::default()).unwrap();
        let block = NonZeroUsize::new(BLOCK).unwrap();
        let mut model = SessionModel::new(session, shape, block, BLOCKS).unwrap();
        for need in [LogitNeed::Best, LogitNeed::Top, LogitNeed::Logits] {
            let batch = StepBatch {
                tokens: vec![1],
                positions: vec![0],
                starts: vec![0, 1],
                lengths: vec![1],
                blocks: vec![0],
                most_blocks: 1,
                wanted: vec![0],
                need,
            };
            let before = device.counters.dispatches.load(Ordering::Relaxed);
            model.step(&batch).unwrap();
            let started = device.counters.dispatches.load(Ordering::Relaxed) - before;
            all.insert((name, need), started);
        }
    }
    eprintln!("dispatches of a step: {all:?}");
    assert!(all.values().all(|&count| count <= 400), "{all:?}");
}

#[test]
fn copied_and_swapped_blocks_keep_what_they_hold() {
    let Some(device) = device() else { return };
    for cache in [DataType::Fp16, DataType::Int8] {
        let model = model(&device, &golden("llama"), cache, &SessionOptions::default());
        let mut model = model.with_swap_space(1 << 20);
        let blocks: Vec<usize> = (0..3).collect();
        let step = |tokens: &[i64], from: i64, blocks: &[usize], model: &mut SessionModel| {
            let rows = tokens.len() as i64;
            let batch = StepBatch {
                tokens: tokens.to_vec(),
                positions: (from..from + rows).collect(),
                starts: vec![0, rows],
                lengths: vec![from + rows],
                blocks: blocks.iter().map(|&block| block as i64).collect(),
                most_blocks: blocks.len(),
                wanted: vec![rows - 1],
                ..StepBatch::default()
            };
            model.step(&batch).unwrap().row(0).unwrap().to_vec()
        };
        step(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 0, &blocks, &mut model);
        let expected = step(&[3], 9, &blocks, &mut model);
        let before = device.counters.download_bytes.load(Ordering::Relaxed);
        let copies: Vec<BlockCopy> =
            blocks.iter().map(|&from| BlockCopy { from, to: from + 10 }).collect();
        model.copy(&copies).unwrap();
        let after = device.counters.download_bytes.load(Ordering::Relaxed);
        assert_eq!(before, after, "blocks are copied on the device");
        assert_eq!(step(&[3], 9, &[10, 11, 12], &mut model), expected);
        let out: Vec<BlockSwap> =
            (0..3).map(|at| BlockSwap::Out { block: at + 10, slot: at }).collect();
        model.swap(&out).unwrap();
        // Others use the blocks meanwhile.
        step(&[9, 8, 7, 6, 5, 4, 3, 2, 1], 0, &[10, 11, 12], &mut model);
        let back: Vec<BlockSwap> =
            (0..3).map(|at| BlockSwap::In { slot: at, block: 20 + at }).collect();
        model.swap(&back).unwrap();
        assert_eq!(step(&[3], 9, &[20, 21, 22], &mut model), expected);
    }
}

#[test]
fn trained_checkpoints_give_their_recorded_logits() {
    let (Some(device), Some((folder, recorded))) = (device(), trained()) else { return };
    for name in ["books-gpt2-5m", "books-qwen2-13m"] {
        let options = SessionOptions::default();
        let mut model = model(&device, &folder.join(name), DataType::Fp32, &options);
        let downloads = &device.counters.download_bytes;
        for case in recorded[name]["cases"].as_array().unwrap().iter().take(2) {
            let tokens = integers(&case["ids"]);
            let before = downloads.load(Ordering::Relaxed);
            let logits = model.logits(&tokens).unwrap();
            let last = &logits[logits.len() - logits.len() / tokens.len()..];
            let off = distance(&last[..16], &case["last_logits_first16"]);
            assert!(off < 2e-3, "{name}: {off}");
            let read = downloads.load(Ordering::Relaxed) - before;
            // Where memory is shared, large outputs are read where they are.
            let most = (logits.len() * 4) as u64;
            let staged = !device.capabilities().unified;
            assert!(read <= most && (read == most || !staged), "{read} bytes of {most} read back");
        }
    }
}

#[test]
fn checkpoints_whose_vocabulary_is_beyond_a_binding_give_their_recorded_logits() {
    let (Some(_), Some((folder, recorded))) = (device(), trained()) else { return };
    // Matrices of the vocabulary have 4 MiB and more.
    let little = PoolConfig::default().showing(600 << 10);
    let device = GpuDevice::open_with(0, &little).unwrap();
    for name in ["books-gpt2-5m", "books-qwen2-13m"] {
        let options = SessionOptions::default();
        let mut model = model(&device, &folder.join(name), DataType::Fp32, &options);
        let case = &recorded[name]["cases"][0];
        let tokens = integers(&case["ids"]);
        let logits = model.logits(&tokens).unwrap();
        let last = &logits[logits.len() - logits.len() / tokens.len()..];
        let off = distance(&last[..16], &case["last_logits_first16"]);
        assert!(off < 2e-3, "{name}: {off}");
    }
}
